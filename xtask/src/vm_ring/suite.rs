//! Tests of MPICH's own suite on a ring of virtual machines.

use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::Duration;

use anyhow::{Context, Result};

use super::console::Answer;
use super::programs::{Budget, Traffic};
use super::ring::{Job, Setting};
use crate::mpich_test::{Case, Elsewhere};
use crate::process::Outcome;
use crate::ui::{self, Tally};

/// Programs that are left out, and the reasons.
const LEFT_OUT: [(&str, &str); 6] = [
    ("pt2pt/large_message", "messages of 4 GiB"),
    ("pt2pt/sendflood", "much data"),
    ("pt2pt/mprobe_limit", "much data"),
    ("pt2pt/pingping", "much data"),
    ("pt2pt/probe_unexp", "much data"),
    ("pt2pt/sendrecv1", "much data"),
];

/// Boots a ring, runs the tests, and counts those that passed.
pub fn run(setting: &Setting, tests: &Elsewhere, guests: u32, budget: Duration) -> Result<Tally> {
    let ring = setting.ring(guests)?;
    println!("MPICH's test suite on {guests} virtual machines, one rank on each where that suffices:");
    let (before, budget) = (Traffic::now(&ring)?, Budget::new(budget));
    let (mut tally, mut left_out) = (Tally::default(), 0);
    for test in &tests.cases {
        let id = test.id();
        let left = LEFT_OUT.iter().find(|(start, _)| id.split(' ').next() == Some(*start));
        let time = budget.left(test.limit());
        let why = left.map(|(_, why)| (*why).to_string()).or_else(|| why_not(test));
        let why = why.or_else(|| time.is_none().then(|| "the time for the whole run is over".to_string()));
        if let Some(why) = why {
            println!("  {id:<52} left out: {why}");
            left_out += 1;
            continue;
        }
        let limit = time.unwrap_or(test.limit());
        let count = test.ranks() as u32;
        let hosts = count.min(guests);
        let directory = test.program.parent().context("a program has a directory")?;
        let job = Job {
            hosts: (0..hosts).collect(),
            ranks: count / hosts,
            more: count % hosts,
            program: test.program.clone(),
            args: test.args().to_vec(),
            env: test.env().to_vec(),
            options: test.options().to_vec(),
            directory: Some(directory.to_path_buf()),
            limit,
            is_cut: false,
        };
        let answer = ring.run(&job)?;
        match test.judge(&outcome(&answer), &answer.output, limit) {
            Err(_) if limit < test.limit() && outcome(&answer).timed_out => {
                println!("  {id:<52} left out: the time for the whole run was over before its end");
                left_out += 1;
            }
            Ok(()) => {
                println!("  {id:<52} {count:>2} ranks  passed {:>8.1} s", answer.elapsed.as_secs_f64());
                tally.passed += 1;
            }
            Err(why) => {
                println!("  {id:<52} {count:>2} ranks  FAILED: {why}");
                tally.failed += 1;
                ring.keep(&id, &answer)?;
                ui::failed(id);
            }
        }
        ui::flush();
    }
    let count = tally.passed + tally.failed;
    println!("  {count} tests were run in {}, {left_out} left out", ui::seconds(budget.elapsed()));
    before.print_since(&ring)?;
    Ok(tally)
}

/// Returns the reason for which a test is not run; None if it is run.
fn why_not(test: &Case) -> Option<String> {
    if test.args().iter().any(|arg| arg.starts_with("-testsize=")) {
        return Some("many large messages of generated datatypes".into());
    }
    if test.ranks() == 1 {
        return Some("one rank: nothing crosses a window".into());
    }
    test.why_not()
}

/// Returns the end of a job as that of a process.
fn outcome(answer: &Answer) -> Outcome {
    // 124 is the status of a command that the machine has ended at its time limit.
    let timed_out = matches!(answer.status, None | Some(124));
    let status = ExitStatus::from_raw(answer.status.unwrap_or(1) << 8);
    Outcome { status, timed_out, elapsed: answer.elapsed }
}
