//! MPI programs on a ring of virtual machines.

use std::time::{Duration, Instant};

use anyhow::{bail, Result};

use super::console::Answer;
use super::ring::{Job, Ring, Setting};
use crate::mpi_programs::{self, Program};
use crate::ui::{self, Tally};
use crate::{demo, paths};

/// Programs that are left out, and the reasons.
const LEFT_OUT: [(&str, &str); 10] = [
    ("huge", "4 GiB of data: hours through windows of 2 MB/s"),
    ("large", "much data"),
    ("all_to_all_large", "much data"),
    ("flood", "much data"),
    ("overlap", "measures time"),
    ("stream", "measures bandwidth"),
    ("window_cost", "measures time"),
    ("unexpected_memory", "measures memory while much data flows"),
    ("held_back", "many messages, and measures memory"),
    ("ring_collectives", "much data"),
];

/// Programs that start further jobs: the windows of the machines, 4 MiB each, have room for two of the usual size.
const SPAWNING: [&str; 2] = ["dynamic", "spawn_loop"];
const SPAWNING_WINDOW: &str = "768K";

/// Variables that only emulated ports understand.
const EMULATED: [&str; 3] = ["NTBRING_WEAK", "NTBRING_FAULT", "NTBRING_LINK_MODEL"];

/// The programs and where they run.
pub struct Selection<'a> {
    /// Names; empty: the demo.
    pub named: &'a [String],
    /// True for all programs that fit.
    pub all: bool,
    /// Ranks on each machine.
    pub ranks: u32,
    /// The machines of each job that runs at the same time; empty: one job on all.
    pub jobs: &'a [Vec<u32>],
    /// Longest time for one program.
    pub limit: Duration,
    /// Longest time for all.
    pub budget: Duration,
}

/// The time that a run may take.
pub struct Budget {
    start: Instant,
    limit: Duration,
}

impl Budget {
    /// Begins a run.
    pub fn new(limit: Duration) -> Budget {
        Budget { start: Instant::now(), limit }
    }

    /// Returns the time that is left for a program that may take `limit`; None if too little is left.
    pub fn left(&self, limit: Duration) -> Option<Duration> {
        let left = self.limit.saturating_sub(self.start.elapsed());
        (left > Duration::from_secs(15)).then(|| left.min(limit))
    }

    /// Returns the time since the start.
    pub fn elapsed(&self) -> Duration {
        self.start.elapsed()
    }
}

/// Boots a ring, runs the programs one after the other, and counts those that passed.
pub fn run(setting: &Setting, selection: &Selection, guests: u32) -> Result<Tally> {
    if let Some(missing) = selection.named.iter().find(|name| !setting.programs.join(name).is_file()) {
        bail!("there is no program {missing} in {}", paths::shown(&setting.programs));
    }
    let ring = setting.ring(guests)?;
    println!(
        "{guests} virtual machines, {} rank(s) on each; packets on the network, and bytes through windows:",
        selection.ranks
    );
    if selection.all {
        return every(&ring, selection);
    }
    if selection.named.is_empty() {
        return self::demo(&ring, selection);
    }
    let mut tally = Tally::default();
    for name in selection.named {
        let whole = job(&ring, name, selection.ranks, selection.limit);
        let parts = selection.jobs.iter().map(|hosts| Job { hosts: hosts.clone(), ..whole.clone() });
        let mut jobs: Vec<Job> = parts.collect();
        if jobs.is_empty() {
            jobs.push(whole);
        }
        tally += one(&ring, name, &jobs, &says_ok(name))?;
    }
    Ok(tally)
}

/// Returns a job of a program on all machines.
fn job(ring: &Ring, program: &str, ranks: u32, limit: Duration) -> Job {
    let mut job = ring.job(program, ranks, limit);
    if SPAWNING.contains(&program) {
        job.env.push(("NTBRING_WINDOW".into(), SPAWNING_WINDOW.into()));
    }
    job
}

/// Runs all programs that fit, and lists those that are left out.
fn every(ring: &Ring, selection: &Selection) -> Result<Tally> {
    let (mut tally, mut left_out) = (Tally::default(), 0u32);
    let budget = Budget::new(selection.budget);
    for program in mpi_programs::list()? {
        let limit = budget.left(selection.limit);
        let late = || limit.is_none().then(|| "the time for the whole run is over".to_string());
        if let Some(why) = why_not(&program, ring.guests(), selection.ranks).or_else(late) {
            println!("  {:<44} left out: {why}", program.call());
            left_out += 1;
            continue;
        }
        let mut job = self::job(ring, &program.name, selection.ranks, limit.unwrap_or(selection.limit));
        job.args = program.args.clone();
        job.is_cut = job.limit < selection.limit;
        job.env.extend(program.env.clone());
        let one = one(ring, &program.call(), &[job], &says_ok(&program.name))?;
        left_out += u32::from(one.passed + one.failed == 0);
        tally += one;
    }
    println!(
        "  {} programs were run in {}, {left_out} left out",
        tally.passed + tally.failed,
        ui::seconds(budget.elapsed())
    );
    Ok(tally)
}

/// Returns the reason for which a program is not run on such a ring; None if it is run.
fn why_not(program: &Program, guests: u32, ranks: u32) -> Option<String> {
    if program.one_machine {
        return Some("it looks at the files of other hosts' processes".into());
    }
    if let Some(name) = EMULATED.iter().find(|&&name| program.env.contains_key(name)) {
        return Some(format!("{name} is for emulated ports"));
    }
    if let Some((_, why)) = LEFT_OUT.iter().find(|(name, _)| *name == program.name) {
        return Some((*why).into());
    }
    (!program.runs_on(guests as usize, ranks as usize)).then(|| "not for this number of hosts and ranks".into())
}

/// Returns the judge of a program of tests/mpi: it must print that all is well.
fn says_ok(name: &str) -> impl Fn(&Answer) -> Option<String> {
    let wanted = format!("ok {name}");
    move |answer| {
        let said = answer.output.lines().any(|line| line.trim() == wanted);
        (!said).then(|| format!("it did not print {wanted:?}"))
    }
}

/// The counts of what has crossed the network and the windows.
pub struct Traffic {
    network: (u64, u64),
    windows: u64,
}

impl Traffic {
    /// Reads the counts.
    pub fn now(ring: &Ring) -> Result<Traffic> {
        Ok(Traffic { network: ring.network()?, windows: ring.models.count("window_bytes")? })
    }

    /// Returns the number of bytes that have crossed windows since then.
    pub fn windows_since(&self, ring: &Ring) -> Result<u64> {
        Ok(ring.models.count("window_bytes")? - self.windows)
    }

    /// Prints what has crossed since then.
    pub fn print_since(&self, ring: &Ring) -> Result<()> {
        let now = Traffic::now(ring)?;
        let (packets, bytes) = (now.network.0 - self.network.0, now.network.1 - self.network.1);
        println!("    network: {packets} packets, {bytes} bytes; windows: {} bytes", now.windows - self.windows);
        Ok(())
    }
}

/// Runs a program as one job, or as several at once, and prints a line for each. A job passes if it succeeds and if
/// `complaint` returns none.
pub fn one(ring: &Ring, what: &str, jobs: &[Job], complaint: &dyn Fn(&Answer) -> Option<String>) -> Result<Tally> {
    let before = Traffic::now(ring)?;
    let running = jobs.iter().map(|job| ring.start(job)).collect::<Result<Vec<_>>>()?;
    let mut tally = Tally::default();
    for (job, running) in jobs.iter().zip(running) {
        let (answer, _) = running.wait()?;
        let failure = failure(&answer).or_else(|| complaint(&answer));
        // 124 is the status of a command that the machine has ended at its time limit.
        if job.is_cut && answer.status == Some(124) {
            println!("  {what:<44} left out: the time for the whole run was over before its end");
            continue;
        }
        let hosts: Vec<String> = job.hosts.iter().map(ToString::to_string).collect();
        let on = format!("on {}", hosts.join("+"));
        let outcome = failure.as_ref().map_or("passed".to_string(), |why| format!("FAILED: {why}"));
        println!("  {what:<44} {on:<12} {outcome:<8} {:>8.1} s", answer.elapsed.as_secs_f64());
        ui::flush();
        match failure {
            None => tally.passed += 1,
            Some(_) => {
                tally.failed += 1;
                let log = ring.keep(what, &answer)?;
                ui::failed(format!("{what} {on}: see {}", paths::shown(&log)));
            }
        }
    }
    before.print_since(ring)?;
    Ok(tally)
}

/// Returns the way in which a job has failed; None if it has succeeded.
pub fn failure(answer: &Answer) -> Option<String> {
    match answer.status {
        Some(0) => None,
        Some(status) => Some(format!("exit status {status}")),
        None => Some("no end".into()),
    }
}

/// Runs the demo of `cargo xtask run`, and prints its table.
fn demo(ring: &Ring, selection: &Selection) -> Result<Tally> {
    let mut job = ring.job("demo", selection.ranks, selection.limit);
    job.env.push(("RING_DEMO_OUT".into(), "/tmp/demo.jsonl".into()));
    job.env.push(("NTBRING_STATS".into(), "/tmp/stats.jsonl".into()));
    let tally = one(ring, "demo", &[job], &says_ok("demo"))?;
    if tally.failed == 0 {
        let lines = ring.console(0)?.root("cat /tmp/demo.jsonl")?.output;
        let mut statistics = String::new();
        for id in 0..ring.guests() {
            statistics += ring.console(id)?.root("cat /tmp/stats.jsonl")?.text();
            statistics.push('\n');
        }
        println!("\n{}\n", demo::shown(&lines, statistics.trim())?);
    }
    Ok(tally)
}
