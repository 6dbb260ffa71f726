//! Readings of the stats pages of a running job, for `ntbring stats` and `ntbring top`.
//!
//! Every process keeps a page for its counters (`ntbring_host::StatsPage`). A reader asks the process to update it,
//! which the process does when it is next idle in MPI. A rank that computes does not update it; its latest values are
//! read then, with their age. Counters of forwarder threads are always up to date.

mod link;
mod rank;

pub use link::{sum, Link};
pub use rank::Rank;

use crate::running::choose_of;
use ntbring_endpoint::Figures;
use ntbring_host::RunningProcess;
use std::collections::BTreeMap;
use std::error::Error;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Largest time that waiting ranks may take to update their counters.
const ANSWER: Duration = Duration::from_millis(300);
/// Interval between two checks for the updates.
const LOOK: Duration = Duration::from_millis(5);

/// Returns the processes of the job whose rank 0 is process `job`, or of the only job.
pub fn find(job: Option<u32>) -> Result<(u32, Vec<RunningProcess>), Box<dyn Error>> {
    let mut jobs = BTreeMap::<u32, Vec<RunningProcess>>::new();
    for process in RunningProcess::all()? {
        jobs.entry(process.job).or_default().push(process);
    }
    choose_of(jobs, job)
}

/// Asks all processes to update their counters, waits for those that can, and returns the counters of all that have
/// joined, by rank and VCI.
pub fn look(job: u32, processes: &[RunningProcess]) -> Result<Vec<Rank>, Box<dyn Error>> {
    let start = Instant::now();
    processes.iter().for_each(|process| process.stats_page.ask());
    let is_new = |process: &RunningProcess| process.stats_page.age().is_some_and(|age| age <= start.elapsed());
    let living = || processes.iter().filter(|process| process.pid.is_some());
    while start.elapsed() < ANSWER && !living().all(is_new) {
        sleep(LOOK);
    }
    let mut ranks = Vec::new();
    for process in processes {
        let found = Figures::look(&process.stats_page).map_err(|what| format!("job {job}: {what}"))?;
        ranks.extend(found.map(|(figures, age)| Rank::new(job, process.pid, figures, age)));
    }
    ranks.sort_by_key(|rank| (rank.figures.rank, rank.figures.vci));
    Ok(ranks)
}

/// Parses an interval, in seconds.
pub fn seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse().ok().filter(|seconds| (0.1..=86400.0).contains(seconds));
    seconds.map(Duration::from_secs_f64).ok_or_else(|| "from 0.1 to 86400 seconds".into())
}
