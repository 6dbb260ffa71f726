//! Experiments on a ring in virtual time, which `cargo xtask sim` runs. The ring itself is `ntbring_sim`;
//! docs/simulator.md explains the output.

mod collectives;
mod lab;
mod output;
mod papers;
mod retry;
mod sweep;
mod tables;

use anyhow::{bail, Context, Result};
use clap::{Args, Parser, Subcommand};
use lab::{parameters, Lab, PARAMETERS};
use output::Table;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

/// Simulates the ring in virtual time.
#[derive(Parser)]
#[command(name = "cargo xtask sim", bin_name = "cargo xtask sim", disable_help_subcommand = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
    #[command(flatten)]
    common: Common,
}

#[derive(Args)]
struct Common {
    /// Parameters of links, hosts and protocols; default: those of tools/sim/parameters.toml
    #[arg(long, value_name = "FILE", global = true)]
    parameters: Option<PathBuf>,
    /// Prints the tables as one JSON object
    #[arg(long, global = true)]
    json: bool,
    /// Draws plots into this directory, as SVG
    #[arg(long, value_name = "DIR", global = true)]
    plot: Option<PathBuf>,
    /// Seed of all random choices
    #[arg(long, value_name = "N", global = true, default_value_t = 1)]
    seed: u64,
}

#[derive(Subcommand)]
enum Command {
    /// Shows the tables of network managers for rings, lines, a broken ring and a torus; fails if a property is
    /// violated
    Tables,
    /// Repeats the papers' experiments, beside the papers' figures
    Papers,
    /// Shows latency and throughput against the options that are given as lists
    Sweep(Box<sweep::SweepArgs>),
    /// Shows the times of large collectives on rings, beside the least times that links and processors allow
    Collectives(collectives::CollectivesArgs),
    /// Shows the number of attempts of messages over a link that loses packets, beside 1 - p^n
    Retry(retry::RetryArgs),
}

fn main() -> ExitCode {
    match run(&Cli::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Runs the experiment. Returns true if all of its checks have passed.
fn run(cli: &Cli) -> Result<bool> {
    let Common { parameters: file, json, plot, seed } = &cli.common;
    let figures = match file {
        None => parameters(PARAMETERS, "tools/sim/parameters.toml")?,
        Some(file) => {
            let text = std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
            parameters(&text, &file.display().to_string())?
        }
    };
    let (lab, start) = (Lab { parameters: figures, seed: *seed }, Instant::now());
    let tables = match &cli.command {
        Command::Tables => tables::run()?,
        Command::Papers => papers::run(&lab)?,
        Command::Sweep(args) => sweep::run(&lab, args)?,
        Command::Collectives(args) => collectives::run(&lab, args)?,
        Command::Retry(args) => retry::run(&lab, args)?,
    };
    show(&tables, *json)?;
    if let Some(directory) = plot {
        draw(&tables, directory)?;
    }
    let (host_seconds, events) =
        tables.iter().fold((0.0, 0), |sum, table| (sum.0 + table.simulated.0, sum.1 + table.simulated.1));
    if events > 0 {
        let spent = start.elapsed().as_secs_f64();
        eprintln!("{host_seconds:.3} host-seconds of virtual time, {events} events, in {spent:.1} s");
    }
    Ok(tables.iter().all(|table| table.failed.is_empty()))
}

fn show(tables: &[Table], json: bool) -> Result<()> {
    if json {
        println!("{}", serde_json::to_string(&tables)?);
        return Ok(());
    }
    for (n, table) in tables.iter().enumerate() {
        print!("{}{}", if n > 0 { "\n" } else { "" }, table.text());
    }
    Ok(())
}

fn draw(tables: &[Table], directory: &Path) -> Result<()> {
    std::fs::create_dir_all(directory).with_context(|| format!("cannot create {}", directory.display()))?;
    let mut drawn = 0;
    for plot in tables.iter().flat_map(|table| &table.plots) {
        let file = directory.join(format!("{}.svg", plot.name));
        std::fs::write(&file, plot.svg()?).with_context(|| format!("cannot write {}", file.display()))?;
        eprintln!("drawn: {}", file.display());
        drawn += 1;
    }
    if drawn == 0 {
        bail!("there is nothing to draw: give a list of values, e.g. --load 0.1..1.0");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_sound() {
        use clap::CommandFactory;
        Cli::command().debug_assert();
    }

    #[test]
    fn parameters_that_nobody_reads_are_refused() {
        assert!(parameters(PARAMETERS, "x").is_ok());
        let more = PARAMETERS.replace("transfer_max", "transfer_most");
        let error = format!("{:#}", parameters(&more, "mine.toml").unwrap_err());
        assert!(error.contains("mine.toml") && error.contains("transfer_most"), "{error}");
    }
}
