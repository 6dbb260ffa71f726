//! `ntbring stats`: counters of the ranks of a running job.
//!
//! Every process keeps a page for its counters (`ntbring_host::StatsPage`). This tool asks the process to update it,
//! which the process does when it is next idle in MPI. A rank that computes does not update it; the tool then shows
//! its latest values and their age. Counters of forwarder threads are always up to date.

mod link;
mod rank;
mod table;

use crate::running::{choose_of, down, running};
use clap::Args;
use ntbring_endpoint::Figures;
use ntbring_host::RunningProcess;
use rank::Rank;
use serde::Serialize;
use std::collections::BTreeMap;
use std::error::Error;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Largest time that waiting ranks may take to update their counters.
const ANSWER: Duration = Duration::from_millis(300);
/// Interval between two checks for the updates.
const LOOK: Duration = Duration::from_millis(5);

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
        let links = link::sum(job, &ranks, &down(&hosts));
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

fn find(job: Option<u32>) -> Result<(u32, Vec<RunningProcess>), Box<dyn Error>> {
    let mut jobs = BTreeMap::<u32, Vec<RunningProcess>>::new();
    for process in RunningProcess::all()? {
        jobs.entry(process.job).or_default().push(process);
    }
    choose_of(jobs, job)
}

/// Asks all processes to update their counters, and waits for those that can.
fn look(job: u32, processes: &[RunningProcess]) -> Result<Vec<Rank>, Box<dyn Error>> {
    let start = Instant::now();
    processes.iter().for_each(|process| process.stats_page.ask());
    let is_new = |process: &RunningProcess| process.stats_page.age().is_some_and(|age| age <= start.elapsed());
    while start.elapsed() < ANSWER && !processes.iter().all(is_new) {
        sleep(LOOK);
    }
    let mut ranks = Vec::new();
    for process in processes {
        let found = Figures::look(&process.stats_page).map_err(|what| format!("job {job}: {what}"))?;
        if let Some((figures, age)) = found {
            ranks.push(Rank { job, age_ms: age.as_millis() as u64, figures });
        }
    }
    ranks.sort_by_key(|rank| (rank.figures.rank, rank.figures.vci));
    Ok(ranks)
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse().ok().filter(|seconds| (0.1..=86400.0).contains(seconds));
    seconds.map(Duration::from_secs_f64).ok_or_else(|| "from 0.1 to 86400 seconds".into())
}
