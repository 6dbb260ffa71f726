//! Instructions of an 8-byte message, counted by valgrind's callgrind in `benches/mpi/instructions.c`.
//!
//! Counted are the instructions of MPI_Send and MPI_Recv, with all functions that they call, in both ranks of a
//! ping-pong in lock step: the message has arrived when MPI_Recv is called. The difference between a long and a short
//! run, divided by the difference of their numbers of messages, contains no one-time costs. The kernel's instructions
//! are not counted.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{bail, ensure, Context, Result};

use crate::bench::compile;
use crate::bench::contestants::{on_path, Contestant};
use crate::bench::figures::{Figures, Key};
use crate::bench::jobs::Shape;
use crate::{process, ui};

/// The test of a whole message: the sum of [`PARTS`].
pub const MESSAGE: &str = "instructions";

/// Tests of the parts of a message, and the functions of the program whose instructions are counted.
pub const PARTS: [(&str, &str); 2] =
    [("instructions_send", "counted_send"), ("instructions_receive", "counted_receive")];

/// The size of a message in bytes.
pub const BYTES: u64 = 8;

/// The unit of these figures.
pub const UNIT: &str = "instr";

/// Round trips of the short and of the long run: 2000 and 22000 messages.
const ROUND_TRIPS: [u64; 2] = [1_000, 11_000];

/// Number of counts for each side. Counts differ by less than a thousandth, so that more of them would add nothing.
const COUNTS: usize = 3;

/// Time limit of a run, which takes seconds, or minutes if other processes use the cores.
const LIMIT: Duration = Duration::from_secs(300);

/// Sets the number of polls of a waiting rank between two yields to 0. While such polls are left, receives seldom poll
/// MPICH's shared memory; with none, every receive does, and the count does not depend on the scheduler.
const POLLS: (&str, &str) = ("NTBRING_SPIN", "0");

/// Counts the instructions of all contestants in turn. Fails where valgrind is missing or cannot run a contestant.
pub fn measure(contestants: &[Contestant], dir: &Path, figures: &mut Figures) -> Result<()> {
    let valgrind = on_path("valgrind").context("valgrind is not installed (apt-get install valgrind)")?;
    let log = dir.join("compile.log");
    let binary = |one: &Contestant| dir.join(format!("instructions-{}", one.suffix));
    for one in contestants {
        compile::compile(
            one.mpicc.as_deref().context("it has no MPI compiler")?,
            &["mpi/instructions.c"],
            &binary(one),
            &log,
        )?;
    }
    for count in 0..COUNTS {
        let name = format!("instructions of an 8-byte message: count {} of {COUNTS}", count + 1);
        ui::step(&name, || {
            let mut order: Vec<&Contestant> = contestants.iter().collect();
            order.rotate_left(count % contestants.len().max(1));
            for one in order {
                let parts = per_message(one, &valgrind, &binary(one), dir).with_context(|| one.name.to_string())?;
                let mut push = |test: &str, value| {
                    let key = Key { test: test.to_string(), ranks: 2, bytes: BYTES, mpi: one.name.to_string() };
                    figures.push_sized(key, value, UNIT);
                };
                PARTS.iter().zip(parts).for_each(|((test, _), value)| push(test, value));
                push(MESSAGE, parts.iter().sum());
            }
            anyhow::Ok(())
        })?;
    }
    Ok(())
}

/// Returns the instructions of each part for one message.
fn per_message(one: &Contestant, valgrind: &Path, binary: &Path, dir: &Path) -> Result<[f64; 2]> {
    let [short, long] = ROUND_TRIPS.map(|round_trips| count(one, valgrind, binary, dir, round_trips));
    let (short, long) = (short?, long?);
    // A round trip consists of two messages.
    let messages = (2 * (ROUND_TRIPS[1] - ROUND_TRIPS[0])) as f64;
    Ok([0, 1].map(|part| (long[part] as f64 - short[part] as f64) / messages))
}

/// Returns the instructions of each part in a run, summed over both ranks.
fn count(one: &Contestant, valgrind: &Path, binary: &Path, dir: &Path, round_trips: u64) -> Result<[u64; 2]> {
    let prefix = format!("callgrind-{}.", one.name);
    let files = || -> Result<Vec<PathBuf>> {
        let entries = fs::read_dir(dir).with_context(|| format!("cannot read {}", dir.display()))?.flatten();
        let named = |path: &PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(&prefix));
        Ok(entries.map(|entry| entry.path()).filter(named).collect())
    };
    files()?.iter().try_for_each(|file| crate::paths::remove(file))?;
    let mut command = one.command(Shape::Pair, valgrind);
    command
        .args(["-q", "--tool=callgrind", "--compress-strings=no", "--compress-pos=no"])
        .arg(format!("--callgrind-out-file={}", dir.join(format!("{prefix}%p")).display()))
        .arg(binary)
        .arg(round_trips.to_string())
        // hwloc's x86 backend queries processors with instructions that valgrind does not emulate.
        .env("HWLOC_COMPONENTS", "-x86");
    let (name, value) = POLLS;
    let is_set = env::var_os(name).is_some() || one.env.iter().any(|(set, _)| set == name);
    if !is_set && knows(one, name) {
        command.env(name, value);
    }
    let out = dir.join(format!("{}-instructions.out", one.name));
    let outcome = process::run_captured(&mut command, &out, Some(LIMIT))?;
    if !outcome.success() {
        return Err(ui::error_with_log(format!("{}: {}", process::shown(&command), outcome.describe()), &out));
    }
    let mut sum = [0, 0];
    for (part, (_, function)) in PARTS.iter().enumerate() {
        let mut calls = 0;
        for file in files()? {
            let text = fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
            let found = inclusive(&text, function).with_context(|| format!("{} is cut off", file.display()))?;
            calls += found.calls;
            sum[part] += found.instructions;
        }
        ensure!(calls == 2 * round_trips, "callgrind has seen {calls} calls of {function}, not {}", 2 * round_trips);
    }
    Ok(sum)
}

/// Returns true if a build has this setting: MPI_Init fails where a variable names an unknown setting.
fn knows(one: &Contestant, name: &str) -> bool {
    let Some(mpicc) = &one.mpicc else { return false };
    let mut info = Command::new(mpicc.with_file_name("ntbring"));
    process::output(info.args(["info", "--config"])).is_ok_and(|text| text.lines().any(|line| line.trim() == name))
}

/// The calls of a function in a run.
#[derive(Debug, Default, PartialEq, Eq)]
struct Calls {
    calls: u64,
    /// Instructions of these calls, including all functions that they call.
    instructions: u64,
}

/// Sums up the calls of a function in callgrind's output: `cfn=NAME`, then `calls=COUNT POSITION`, then a line that
/// ends with the number of instructions.
fn inclusive(text: &str, function: &str) -> Result<Calls> {
    let mut sum = Calls::default();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if line.strip_prefix("cfn=") != Some(function) {
            continue;
        }
        let calls = lines.next().and_then(|line| line.strip_prefix("calls=")?.split(' ').next());
        let cost = lines.next().and_then(|line| line.rsplit(' ').next());
        let number = |text: Option<&str>| text.and_then(|text| text.parse::<u64>().ok());
        let (Some(calls), Some(cost)) = (number(calls), number(cost)) else {
            bail!("a call of {function} has no cost");
        };
        sum.calls += calls;
        sum.instructions += cost;
    }
    Ok(sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_summed_up_with_all_that_they_call() {
        let text =
            "events: Ir\nfn=main\n0 3\ncfn=counted_send\ncalls=1000 0\n0 571602\n0 7\ncfi=x.c\ncfn=counted_send\n\
                    calls=2 0 \n0 100\ncfn=counted_send2\ncalls=1 0\n0 9\nfn=counted_send\n0 5\n";
        assert_eq!(inclusive(text, "counted_send").unwrap(), Calls { calls: 1002, instructions: 571_702 });
        assert_eq!(inclusive(text, "nothing").unwrap(), Calls::default());
        assert!(inclusive("cfn=counted_send\ncalls=1 0\n", "counted_send").is_err());
    }
}
