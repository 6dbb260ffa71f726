//! `cargo xtask test`: everything that CI runs.

mod libtest;
mod linters;
mod steps;

use std::time::Instant;

use anyhow::Result;
use clap::Args;

use crate::process;
use crate::setup::{self, SetupArgs};
use crate::ui::{self, Tally};

/// What can be chosen.
#[derive(Args, Clone, Debug)]
pub struct TestArgs {
    /// Only these steps: see --list
    #[arg(long, value_name = "STEP")]
    only: Vec<String>,

    /// Name the steps
    #[arg(long)]
    list: bool,

    #[command(flatten)]
    setup: SetupArgs,
}

/// Sets up if needed, then runs all steps, also after a failure; the caller prints the tally.
pub fn run(args: &TestArgs) -> Result<Tally> {
    steps::check_names(&args.only)?;
    if args.list {
        steps::STEPS.iter().for_each(|step| println!("{}: {}", step.name, step.what));
        return Ok(Tally::default());
    }
    let start = Instant::now();
    let installed = setup::ensure(&args.setup)?;
    let context = steps::Context { installed, setup: args.setup.clone() };
    let mut tally = Tally::default();
    let mut summary = Vec::new();
    for step in steps::STEPS {
        if !args.only.is_empty() && !args.only.iter().any(|name| name == step.name) {
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
        tally += counts;
        summary.push(format!("  {:<14} {:<28} {:>12}", step.name, counts.to_string(), ui::seconds(begin.elapsed())));
        println!("{}", summary[summary.len() - 1]);
    }
    println!("\nall steps ({}):\n{}", ui::seconds(start.elapsed()), summary.join("\n"));
    Ok(tally)
}
