//! `ntbring stats`: what the ranks of a running job have counted so far.
//!
//! Every process keeps a page for that (`ntbring_host::Bulletin`). It is asked to write what is new there; it does when it next has
//! nothing else to do in MPI. A rank that computes does not: then there is what it wrote last, and how long ago. What transfer
//! threads count is there at once.

mod link;
mod table;

use crate::running::{choose_of, down, running};
use clap::Args;
use link::Link;
use ntbring_endpoint::Figures;
use ntbring_host::RunningProcess;
use serde::Serialize;
use std::collections::BTreeMap;
use std::error::Error;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// How long ranks that are waiting may take to write what is new.
const ANSWER: Duration = Duration::from_millis(300);
/// Between two looks at whether they have.
const LOOK: Duration = Duration::from_millis(5);

/// What can be chosen.
#[derive(Args)]
pub struct StatsArgs {
    /// Which job, if several are running: the process of its rank 0
    #[arg(long, value_name = "PID")]
    job: Option<u32>,
    /// Prints one JSON object a rank, named as in NTBRING_STATS, and one for each direction of a link
    #[arg(long)]
    json: bool,
    /// Again and again, so often, until the job ends
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    watch: Option<Duration>,
}

/// What a rank has counted, and how long ago it wrote it down.
#[derive(Serialize)]
struct Rank {
    job: u32,
    age_ms: u64,
    #[serde(flatten)]
    figures: Figures,
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
        // Whoever watches wants no error when it is over.
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

/// Asks all processes for what is new, and waits for those who can say it.
fn look(job: u32, processes: &[RunningProcess]) -> Result<Vec<Rank>, Box<dyn Error>> {
    let start = Instant::now();
    processes.iter().for_each(|process| process.bulletin.ask());
    let is_new = |process: &RunningProcess| process.bulletin.age().is_some_and(|age| age <= start.elapsed());
    while start.elapsed() < ANSWER && !processes.iter().all(is_new) {
        sleep(LOOK);
    }
    let mut ranks = Vec::new();
    for process in processes {
        let found = Figures::look(&process.bulletin).map_err(|what| format!("job {job}: {what}"))?;
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
