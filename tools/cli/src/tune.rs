//! `ntbring tune`: measures and saves protocol thresholds.

use clap::Args;
use comfy_table::{presets, CellAlignment, Table};
use ntbring_endpoint::settings::{Settings, TABLE};
use ntbring_settings::environment;
use ntbring_settings::tuned::{self, Entry, Place};
use ntbring_settings::TunedFile;
use ntbring_tune::choose::{choose, size, Choice, Figures};
use ntbring_tune::Method;
use serde::Serialize;
use std::error::Error;
use std::io::IsTerminal;
use std::path::PathBuf;
use std::process::Command;

/// Options of `tune`.
#[derive(Args)]
pub struct TuneArgs {
    /// Quick measurement: fewer sizes and rounds
    #[arg(long)]
    quick: bool,
    /// Prints all results as one JSON object
    #[arg(long)]
    json: bool,
    /// Does not save the thresholds
    #[arg(long)]
    dry_run: bool,
    /// Saves the thresholds even if other processes used the cores during the measurement
    #[arg(long, conflicts_with = "dry_run")]
    force: bool,
    /// File to save to, instead of the one of NTBRING_TUNED (by default ~/.config/ntbring/tuned.json)
    #[arg(long, value_name = "FILE", conflicts_with = "dry_run")]
    file: Option<PathBuf>,
}

/// Options of a measuring process.
#[derive(Args)]
pub struct RankArgs {
    /// Number of the rank: 0 or 1
    #[arg(value_parser = clap::value_parser!(u32).range(0..2))]
    rank: u32,
    #[arg(long)]
    quick: bool,
}

/// Output of `--json`.
#[derive(Serialize)]
struct Report<'a> {
    made_for: &'a Place,
    quick: bool,
    #[serde(flatten)]
    figures: &'a Figures,
    thresholds: &'a [Choice],
    saved: Option<String>,
}

/// Runs one of the measuring processes.
pub fn rank(args: &RankArgs) -> Result<(), Box<dyn Error>> {
    Ok(ntbring_tune::measure(args.rank, args.quick)?)
}

/// Measures, shows and saves the thresholds.
pub fn run(args: &TuneArgs) -> Result<(), Box<dyn Error>> {
    // Earlier tuned values are ignored, because they may be wrong.
    let settings = Settings::from_vars(environment())?;
    for warning in TABLE.warnings(environment()) {
        eprintln!("warning: {warning}");
    }
    let file = file(args, &settings)?;
    let here = Place::here(settings.link_model());
    let program = std::env::current_exe().map_err(|error| format!("cannot find this program's file: {error}"))?;
    let command = |rank: u32| {
        let mut command = Command::new(&program);
        command.args(["tune-rank", &rank.to_string()]).args(args.quick.then_some("--quick"));
        command
    };
    let seen = std::io::stderr().is_terminal();
    let figures = ntbring_tune::run(command, |done, of| {
        if seen {
            eprint!("\rround {done} of {of}{}", if done == of { "\n" } else { "" });
        }
    })?;
    let choices = choose(&figures);
    let file = file.filter(|_| args.force || !figures.is_disturbed());
    if let Some(file) = &file {
        let value = |choice: &Choice| Some((choice.name.to_string(), choice.chosen.clone()?));
        let thresholds = choices.iter().filter_map(value).collect();
        let entry = Entry { made_for: here.clone(), ntbring: env!("CARGO_PKG_VERSION").into(), thresholds };
        tuned::save(file, &entry)?;
    }
    let saved = file.map(|file| file.display().to_string());
    if args.json {
        let report = Report { made_for: &here, quick: args.quick, figures: &figures, thresholds: &choices, saved };
        println!("{}", serde_json::to_string(&report)?);
        return Ok(());
    }
    println!("{here}\n");
    println!("half of the round trip, us; * the fastest method, for packed and chunked by the mean of both columns\n");
    println!("{}\n", times(&figures));
    println!("{}\n", thresholds(&choices));
    if cfg!(debug_assertions) {
        println!("this ntbring was built without optimisation: these are not the times of the library that jobs use");
    }
    if figures.is_disturbed() {
        let share = 100.0 * figures.disturbed;
        println!("other processes used the cores in {share:.0} % of the batches: these figures cannot be trusted");
    }
    match saved {
        None if !args.dry_run => println!("not saved: run it on an idle machine, or with --force"),
        Some(file) => println!("saved in {file}; NTBRING_TUNED=off ignores it"),
        None => println!("not saved"),
    }
    Ok(())
}

/// Returns the file to save to; None if nothing is to be saved.
fn file(args: &TuneArgs, settings: &Settings) -> Result<Option<PathBuf>, String> {
    if args.dry_run {
        return Ok(None);
    }
    if let Some(file) = &args.file {
        return Ok(Some(file.clone()));
    }
    match settings.tuned.path(|name| std::env::var_os(name).map(PathBuf::from)) {
        Some(file) => Ok(Some(file)),
        None if settings.tuned == TunedFile::Off => {
            Err("NTBRING_TUNED=off leaves no file to save to; use --dry-run, or --file FILE".into())
        }
        None => Err("neither XDG_CONFIG_HOME nor HOME is set; use --file FILE, and NTBRING_TUNED=FILE for jobs".into()),
    }
}

fn times(figures: &Figures) -> String {
    let ways: Vec<Method> =
        Method::ALL.into_iter().filter(|&way| figures.figures.iter().any(|f| f.way == way)).collect();
    let header = std::iter::once("payload".to_string()).chain(ways.iter().map(Method::to_string)).collect();
    let row = |bytes: usize| {
        let winner = figures.winner(bytes);
        let cell = |&way: &Method| {
            let mark = if winner == Some(way) { "*" } else { "" };
            figures.time(bytes, way).map_or("-".into(), |us| format!("{mark}{us:.2}"))
        };
        std::iter::once(size(bytes)).chain(ways.iter().map(cell)).collect()
    };
    table(header, figures.sizes().into_iter().map(row).collect())
}

fn thresholds(choices: &[Choice]) -> String {
    let header = ["threshold", "default", "chosen", "saves"].map(str::to_string).to_vec();
    let row = |choice: &Choice| {
        let chosen = choice.chosen.clone().unwrap_or_else(|| "cannot be measured here".into());
        let saved = if choice.saved > 0.0 { format!("{:.0} %", choice.saved) } else { "-".into() };
        vec![choice.name.into(), choice.default.into(), chosen, saved]
    };
    table(header, choices.iter().map(row).collect())
}

fn table(header: Vec<String>, rows: Vec<Vec<String>>) -> String {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING);
    table.set_header(header).add_rows(rows);
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table.trim_fmt()
}
