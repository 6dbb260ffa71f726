//! Scenarios in which something fails while jobs run on a ring of virtual machines.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;
use clap::ValueEnum;

use super::checks::Checks;
use super::ring::{Job, Ring, Running, Setting};
use crate::paths;
use crate::ui::Tally;

/// Longest time from the death of an agent to the end of its jobs.
const END: Duration = Duration::from_secs(2);

/// Longest time after which the death of a host is known. Its links go down at once; the rest is the time that
/// emulated processors need to end a job.
const HOST_BOUND: Duration = Duration::from_secs(30);

/// Time during which cables are pulled.
const PULLING: Duration = Duration::from_secs(60);

/// A scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Fault {
    /// Cables are pulled and plugged for a minute, below verified random traffic with retransmission
    Cable,
    /// One cable goes down and up every few hundred milliseconds
    Flap,
    /// Writes are lost below traffic with retransmission
    Drop,
    /// A virtual machine is killed
    GuestKilled,
    /// A virtual machine stands still for 10 s
    GuestPaused,
    /// The agent of a machine is killed
    AgentKilled,
    /// A rank is killed
    RankKilled,
    /// A machine reboots and takes part in the next job
    GuestReboot,
}

/// Runs a scenario on a ring of its own.
pub fn run(fault: Fault, setting: &Setting, guests: u32) -> Result<Tally> {
    let mut ring = setting.ring(guests)?;
    let name = fault.to_possible_value().map_or_else(String::new, |value| value.get_name().to_string());
    let mut checks = Checks::new(format!("{name}, {guests} virtual machines"));
    match fault {
        Fault::Cable => cable(&ring, &mut checks, Duration::from_millis(1500), Duration::from_millis(500))?,
        Fault::Flap => cable(&ring, &mut checks, Duration::from_millis(400), Duration::from_millis(50))?,
        Fault::Drop => drop_writes(&ring, &mut checks)?,
        Fault::GuestKilled => guest_killed(&mut ring, &mut checks)?,
        Fault::GuestPaused => guest_paused(&ring, &mut checks)?,
        Fault::AgentKilled => agent_killed(&ring, &mut checks)?,
        Fault::RankKilled => rank_killed(&ring, &mut checks)?,
        Fault::GuestReboot => guest_reboot(&mut ring, &mut checks)?,
    }
    Ok(checks.tally())
}

/// Returns verified random traffic of many rounds.
fn traffic(ring: &Ring, seed: u64, rounds: u32) -> Job {
    let mut job = ring.job("random_traffic", 1, Duration::from_secs(400));
    job.args = vec![seed.to_string(), rounds.to_string()];
    job
}

fn with_retry(mut job: Job) -> Job {
    job.env.push(("NTBRING_RELIABILITY".into(), "retry".into()));
    job
}

/// Checks that a short job succeeds on these machines.
fn next_job(ring: &Ring, hosts: &[u32], what: &str, checks: &mut Checks) -> Result<()> {
    let mut job = ring.job("any_source", 1, Duration::from_secs(120));
    job.hosts = hosts.to_vec();
    let answer = ring.run(&job)?;
    let found = match answer.success() {
        true => last_line(&answer.output),
        false => format!("{}; see {}", reason(&answer.output), paths::shown(&ring.keep(what, &answer)?)),
    };
    checks.that(what, answer.success(), &found);
    Ok(())
}

fn last_line(text: &str) -> String {
    let line = text.trim().lines().last().unwrap_or("no output");
    line.chars().take(160).collect()
}

/// Returns the first line that speaks of an error, without those of the launcher and without warnings.
fn reason(text: &str) -> String {
    let marks = ["lost", "killed", "dead", "gone", "ended", "error", "ERROR", "KILLED"];
    let is_other = |line: &&str| !line.contains("WARN") && !line.starts_with("[proxy") && !line.starts_with("[mpiexec");
    let line = text.lines().filter(is_other).find(|line| marks.iter().any(|mark| line.contains(mark)));
    line.map_or_else(|| last_line(text), |line| line.chars().take(200).collect())
}

fn start_and_settle(ring: &Ring, job: &Job) -> Result<Running> {
    let running = ring.start(job)?;
    // The ranks have started and messages flow.
    let before = ring.models.count("window_bytes")?;
    while !running.is_over() && ring.models.count("window_bytes")? < before + (2 << 20) {
        if running.elapsed() > Duration::from_secs(60) {
            break;
        }
        thread::sleep(Duration::from_millis(100));
    }
    Ok(running)
}

fn cable(ring: &Ring, checks: &mut Checks, plugged: Duration, pulled: Duration) -> Result<()> {
    let (start, mut seed, mut pulls) = (Instant::now(), 1, 0u32);
    let mut failed = 0;
    while start.elapsed() < PULLING && failed < 3 {
        let running = start_and_settle(ring, &with_retry(traffic(ring, seed, 10)))?;
        while !running.is_over() {
            let cable = pulls % ring.guests();
            ring.models.command(&format!("flap {cable} {}", pulled.as_millis()))?;
            pulls += 1;
            thread::sleep(plugged);
        }
        let (answer, _) = running.wait()?;
        failed += u32::from(!answer.success());
        let what = format!("random_traffic, seed {seed}");
        checks.that(&what, answer.success(), &format!("{} ({:.0?})", last_line(&answer.output), answer.elapsed));
        seed += 1;
    }
    let lost = ring.models.count("dropped")?;
    let found = format!("{pulls} times in {:.0?}; {lost} writes were lost", start.elapsed());
    checks.that("cables were pulled below traffic", pulls > 5, &found);
    Ok(())
}

fn drop_writes(ring: &Ring, checks: &mut Checks) -> Result<()> {
    let running = start_and_settle(ring, &with_retry(traffic(ring, 5, 10)))?;
    let mut times = 0;
    while !running.is_over() {
        ring.models.command(&format!("drop {} 20", times % ring.guests()))?;
        times += 1;
        thread::sleep(Duration::from_millis(500));
    }
    let (answer, _) = running.wait()?;
    checks.that("random_traffic", answer.success(), &last_line(&answer.output));
    let lost = ring.models.count("dropped")?;
    checks.that("writes were lost", lost > 0, &format!("{lost} writes"));
    Ok(())
}

fn guest_killed(ring: &mut Ring, checks: &mut Checks) -> Result<()> {
    let last = ring.guests() - 1;
    let running = start_and_settle(ring, &traffic(ring, 3, 1000))?;
    let (killed, _config) = (Instant::now(), ring.kill(last)?);
    let (answer, end) = running.wait()?;
    let time = end.duration_since(killed);
    checks.that("the job ends with an error", answer.status.is_some_and(|status| status != 0), &reason(&answer.output));
    checks.that("... within the bound", time < HOST_BOUND, &format!("{time:.1?}"));
    let name = format!("host {last}");
    checks.that("... that names the host", answer.output.contains(&name), &name);
    let rest: Vec<u32> = (0..last).collect();
    next_job(ring, &rest, "a job on the rest", checks)
}

fn guest_paused(ring: &Ring, checks: &mut Checks) -> Result<()> {
    let last = ring.guests() - 1;
    let running = start_and_settle(ring, &traffic(ring, 4, 10))?;
    ring.machine(last)?.pause(true)?;
    thread::sleep(Duration::from_secs(10));
    checks.that("the job waits", !running.is_over(), "after 10 s");
    ring.machine(last)?.pause(false)?;
    let (answer, _) = running.wait()?;
    checks.that("nothing is lost", answer.success(), &last_line(&answer.output));
    next_job(ring, &(0..=last).collect::<Vec<u32>>(), "the next job", checks)
}

fn agent_killed(ring: &Ring, checks: &mut Checks) -> Result<()> {
    let running = start_and_settle(ring, &traffic(ring, 5, 1000))?;
    let console = ring.console(1)?;
    // The time of the command counts, too.
    let killed = Instant::now();
    console.root("/run/busybox killall -9 ntbringd; rm -f /run/ntbring/agent.sock")?;
    let (answer, end) = running.wait()?;
    let time = end.duration_since(killed);
    checks.that("the job ends with an error", answer.status.is_some_and(|status| status != 0), &reason(&answer.output));
    checks.that("... within 2 s", time < END, &format!("{time:.1?}"));
    let start = format!("/run/busybox setsid {} >/dev/console 2>&1 </dev/null & sleep 1", ring.agent().display());
    console.root(&start)?;
    let is_back = ring.wait_for_agent(1);
    checks.that("a new agent starts", is_back.is_ok(), "");
    next_job(ring, &(0..ring.guests()).collect::<Vec<u32>>(), "the next job", checks)
}

fn rank_killed(ring: &Ring, checks: &mut Checks) -> Result<()> {
    let running = start_and_settle(ring, &traffic(ring, 6, 1000))?;
    ring.console(1)?.root("/run/busybox killall -9 random_traffic")?;
    let killed = Instant::now();
    let (answer, end) = running.wait()?;
    let time = end.duration_since(killed);
    checks.that("the job ends with an error", answer.status.is_some_and(|status| status != 0), &reason(&answer.output));
    checks.that("... within the bound", time < HOST_BOUND, &format!("{time:.1?}"));
    next_job(ring, &(0..ring.guests()).collect::<Vec<u32>>(), "the next job", checks)
}

fn guest_reboot(ring: &mut Ring, checks: &mut Checks) -> Result<()> {
    let all: Vec<u32> = (0..ring.guests()).collect();
    next_job(ring, &all, "a job before", checks)?;
    let config = ring.kill(1)?;
    ring.boot(config)?;
    next_job(ring, &all, "the next job, with the machine that has rebooted", checks)
}
