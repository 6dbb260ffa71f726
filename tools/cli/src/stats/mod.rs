//! `ntbring stats`: counters of the ranks of a running job.

mod histograms;
mod table;

use crate::reading::{find, look, seconds, sum};
use crate::running::{down, running};
use clap::Args;
use serde::Serialize;
use std::error::Error;
use std::thread::sleep;
use std::time::Duration;

/// Options of `stats`.
#[derive(Args)]
pub struct StatsArgs {
    /// Process id of rank 0 of the job; needed if several jobs are running
    #[arg(long, value_name = "PID")]
    job: Option<u32>,
    /// Prints one JSON object per rank, named as in NTBRING_STATS, and one per direction of a link
    #[arg(long)]
    json: bool,
    /// Repeats the output at this interval, until the job ends
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    watch: Option<Duration>,
}

/// Shows the counters of a job.
pub fn run(args: &StatsArgs) -> Result<(), Box<dyn Error>> {
    let (job, processes) = find(args.job)?;
    loop {
        let ranks = look(job, &processes)?;
        if ranks.is_empty() {
            return Err(format!("no rank of job {job} has joined yet").into());
        }
        let hosts = running()?.remove(&job).unwrap_or_default();
        let links = sum(job, &ranks, &down(&hosts));
        match args.json {
            true => {
                ranks.iter().try_for_each(print)?;
                links.iter().try_for_each(print)?;
            }
            false => println!("{}", table::show(job, &ranks, &links)),
        }
        let Some(pause) = args.watch else { return Ok(()) };
        sleep(pause);
        // The end of the job is not an error for `--watch`.
        if !find(Some(job)).is_ok_and(|(_, found)| found.len() >= processes.len()) {
            return Ok(());
        }
    }
}

fn print<T: Serialize>(line: &T) -> Result<(), serde_json::Error> {
    serde_json::to_string(line).map(|line| println!("{line}"))
}
