//! `cargo xtask test`: runs everything that CI runs.

mod libtest;
mod linters;
mod progress;
mod steps;

use std::time::Instant;

use anyhow::Result;
use clap::Args;

use self::progress::Progress;
use self::steps::Step;
use crate::process;
use crate::setup::{self, SetupArgs};
use crate::ui::{self, Tally};

/// Command-line options.
#[derive(Args, Clone, Debug)]
pub struct TestArgs {
    /// Run only these steps: see --list
    #[arg(long, value_name = "STEP")]
    only: Vec<String>,

    /// Run the steps that take hours, too, and continue an earlier run of the same version that was stopped
    #[arg(long)]
    full: bool,

    /// List the steps
    #[arg(long)]
    list: bool,

    #[command(flatten)]
    setup: SetupArgs,
}

/// Sets up if needed, then runs all steps, even after a failure; the caller prints the tally.
pub fn run(args: &TestArgs) -> Result<Tally> {
    steps::check_names(&args.only)?;
    if args.list {
        let long = if args.full { steps::FULL } else { &[] };
        steps::STEPS.iter().chain(long).for_each(|step| println!("{}: {}", step.name, step.what));
        return Ok(Tally::default());
    }
    let start = Instant::now();
    let installed = setup::ensure(&args.setup)?;
    let context = steps::Context { installed, setup: args.setup.clone() };
    let mut tally = Tally::default();
    let mut summary = Vec::new();
    let chosen: Vec<&Step> = if args.only.is_empty() {
        let long = if args.full { steps::FULL } else { &[] };
        steps::STEPS.iter().chain(long).collect()
    } else {
        let is_named = |step: &&Step| args.only.iter().any(|name| name == step.name);
        steps::STEPS.iter().chain(steps::FULL).filter(is_named).collect()
    };
    let mut progress = args.full.then(|| Progress::load(chosen.len()));
    for step in chosen {
        if let Some(counts) = progress.as_ref().and_then(|progress| progress.of(step.name)) {
            tally += counts;
            summary.push(format!("  {:<14} {:<28} {:>12}", step.name, counts.to_string(), "earlier"));
            continue;
        }
        println!("{}: {}", step.name, step.what);
        ui::flush();
        let begin = Instant::now();
        let counts = match (step.work)(&context) {
            Ok(counts) => counts,
            Err(error) if process::interrupted() => return Err(error),
            Err(error) => {
                println!("{error:#}");
                ui::failed(step.name);
                Tally { passed: 0, failed: 1 }
            }
        };
        if let Some(progress) = &mut progress {
            progress.finish(step.name, counts)?;
        }
        tally += counts;
        summary.push(format!("  {:<14} {:<28} {:>12}", step.name, counts.to_string(), ui::seconds(begin.elapsed())));
        println!("{}", summary[summary.len() - 1]);
    }
    println!("\nall steps ({}):\n{}", ui::seconds(start.elapsed()), summary.join("\n"));
    Ok(tally)
}
