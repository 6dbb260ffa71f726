//! `cargo xtask bench`: measurements, side by side with the MPIs that this machine has.

mod contestants;
mod figures;

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use anyhow::{bail, Context, Result};
use clap::Args;

use crate::setup::{self, SetupArgs};
use crate::{paths, process, ui};
use contestants::Contestant;
use figures::Figures;

/// The benchmarks that there are.
const NAMES: &[&str] = &["p2p"];

/// What p2p measures; in this order.
const TESTS: &[&str] = &["latency", "bandwidth", "rate"];

/// Far more than one run needs.
const LIMIT: Duration = Duration::from_secs(600);

/// What can be chosen.
#[derive(Args, Clone, Debug)]
pub struct BenchArgs {
    /// Which benchmark: p2p (latency, bandwidth and message rate between two ranks)
    #[arg(value_name = "NAME", default_value = "p2p", value_parser = NAMES.to_vec())]
    name: String,

    /// Write all figures of all rounds there
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,

    /// Fewer iterations, for a first look
    #[arg(long)]
    quick: bool,

    /// How often everything is run, alternately; medians are shown
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u8).range(1..))]
    rounds: u8,

    #[command(flatten)]
    setup: SetupArgs,
}

/// Compiles, measures, prints.
pub fn run(args: &BenchArgs) -> Result<()> {
    let source = paths::root().join("benches/mpi").join(format!("{}.c", args.name));
    if !source.exists() {
        bail!("{} is not there", paths::shown(&source));
    }
    let installed = setup::ensure(&args.setup)?;
    let dir = paths::target().join("bench");
    fs::create_dir_all(&dir)?;
    let log = dir.join("compile.log");
    setup::remove(&log)?;
    let contestants = contestants::all(&installed);
    for contestant in &contestants {
        let mut compile = Command::new(&contestant.mpicc);
        compile.args(["-O2", "-o"]).arg(dir.join(contestant.binary)).arg(&source);
        process::check_logged(&mut compile, &log)?;
    }

    let mut figures = Figures::default();
    for round in 1..=args.rounds {
        ui::step(&format!("round {round} of {}", args.rounds), || {
            contestants.iter().try_for_each(|contestant| measure(contestant, args.quick, &mut figures))
        })?;
    }
    let names: Vec<&str> = contestants.iter().map(|contestant| contestant.name).collect();
    for test in TESTS {
        println!("\n{}", figures.table(test, &names));
    }
    println!("\nmedians of {} rounds; in brackets: how much better than it ntbring is between neighbours", args.rounds);
    for contestant in &contestants {
        println!("  {}: {}", contestant.name, contestant.what);
    }
    if let Some(file) = &args.json {
        fs::write(file, figures.json()?).with_context(|| format!("cannot write {}", file.display()))?;
    }
    Ok(())
}

fn measure(contestant: &Contestant, quick: bool, figures: &mut Figures) -> Result<()> {
    let dir = paths::target().join("bench");
    for test in TESTS {
        let out = dir.join(format!("{}-{test}.out", contestant.name));
        let mut command = contestant.command(&dir.join(contestant.binary));
        command.args(["--test", test, "--peer", &contestant.peer.to_string()]);
        if quick {
            command.arg("--quick");
        }
        let outcome = process::run_captured(&mut command, &out, Some(LIMIT))?;
        if !outcome.success() {
            let what = format!("{}: {}", process::shown(&command), outcome.describe());
            return Err(ui::error_with_log(what, &out));
        }
        let text = fs::read(&out)?;
        figures.add(contestant.name, &String::from_utf8_lossy(&text))?;
    }
    Ok(())
}
