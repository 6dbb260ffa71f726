//! MPI programs on a ring of virtual machines.

use std::time::Duration;

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
}

/// Boots a ring, runs the programs one after the other, and counts those that passed.
pub fn run(setting: &Setting, selection: &Selection, guests: u32) -> Result<Tally> {
    if let Some(missing) = selection.named.iter().find(|name| !setting.programs.join(name).is_file()) {
        bail!("there is no program {missing} in tests/mpi");
    }
    let ring = setting.ring(guests)?;
    println!(
        "{guests} virtual machines, {} rank(s) on each; packets on the network, and bytes through windows:",
        selection.ranks
    );
    let mut tally = Tally::default();
    if selection.all {
        for program in mpi_programs::list()? {
            if let Some(why) = why_not(&program, guests, selection.ranks) {
                println!("  {:<44} left out: {why}", program.call());
                continue;
            }
            let mut job = ring.job(&program.name, selection.ranks, selection.limit);
            job.args = program.args.clone();
            job.env = program.env.clone().into_iter().collect();
            tally += one(&ring, &program.call(), &program.name, &[job])?;
        }
        return Ok(tally);
    }
    if selection.named.is_empty() {
        return self::demo(&ring, selection);
    }
    for name in selection.named {
        let whole = ring.job(name, selection.ranks, selection.limit);
        let parts = selection.jobs.iter().map(|hosts| Job { hosts: hosts.clone(), ..whole.clone() });
        let mut jobs: Vec<Job> = parts.collect();
        if jobs.is_empty() {
            jobs.push(whole);
        }
        tally += one(&ring, name, name, &jobs)?;
    }
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

/// Runs a program as one job, or as several at once, and prints a line.
fn one(ring: &Ring, what: &str, name: &str, jobs: &[Job]) -> Result<Tally> {
    let before = (ring.network()?, ring.models.count("window_bytes")?);
    let running = jobs.iter().map(|job| ring.start(job)).collect::<Result<Vec<_>>>()?;
    let mut tally = Tally::default();
    for (job, running) in jobs.iter().zip(running) {
        let (answer, _) = running.wait()?;
        let said = answer.output.lines().any(|line| line.trim() == format!("ok {name}"));
        let passed = answer.success() && said;
        let hosts: Vec<String> = job.hosts.iter().map(ToString::to_string).collect();
        let on = format!("on {}", hosts.join("+"));
        let outcome = if passed { "passed".to_string() } else { failure(&answer) };
        println!("  {what:<44} {on:<12} {outcome:<8} {:>8.1} s", answer.elapsed.as_secs_f64());
        ui::flush();
        match passed {
            true => tally.passed += 1,
            false => {
                tally.failed += 1;
                let log = ring.keep(name, &answer)?;
                ui::failed(format!("{what} {on}: see {}", paths::shown(&log)));
            }
        }
    }
    let after = (ring.network()?, ring.models.count("window_bytes")?);
    let (packets, bytes) = (after.0 .0 - before.0 .0, after.0 .1 - before.0 .1);
    println!("    network: {packets} packets, {bytes} bytes; windows: {} bytes", after.1 - before.1);
    Ok(tally)
}

fn failure(answer: &Answer) -> String {
    answer.status.map_or_else(|| "FAILED: no end".into(), |status| format!("FAILED: exit status {status}"))
}

/// Runs the demo of `cargo xtask run`, and prints its table.
fn demo(ring: &Ring, selection: &Selection) -> Result<Tally> {
    let mut job = ring.job("demo", selection.ranks, selection.limit);
    job.env.push(("RING_DEMO_OUT".into(), "/tmp/demo.jsonl".into()));
    job.env.push(("NTBRING_STATS".into(), "/tmp/stats.jsonl".into()));
    let tally = one(ring, "demo", "demo", &[job])?;
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
