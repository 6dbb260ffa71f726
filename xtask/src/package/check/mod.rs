//! Tries the packages as a user would: in an empty Python environment, and in fresh systems.

mod system;
mod wheel;

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use crate::ui::Tally;
use crate::{paths, process, ui};
pub use system::system;
pub use wheel::wheel;

/// Programs of users: names of files, and their texts.
const PROGRAMS: [(&str, &str); 3] =
    [("mpi.c", include_str!("mpi.c")), ("mpi.f90", include_str!("mpi.f90")), ("shmem.c", include_str!("shmem.c"))];

/// Beginnings of the names of variables that say how packages are downloaded.
const OF_DOWNLOADS: [&str; 5] = ["PIP_", "SSL_CERT_", "http_proxy", "https_proxy", "no_proxy"];

/// Time limit of each step.
const LIMIT: Duration = Duration::from_secs(15 * 60);

/// One command in a place.
#[derive(Debug)]
struct Step {
    what: String,
    elapsed: Duration,
    passed: bool,
}

/// A place in which commands are run, one after the other, until one fails.
pub struct Trial {
    place: String,
    log: PathBuf,
    steps: Vec<Step>,
}

impl Trial {
    /// Runs all commands of a place. The failure of one of them is printed; the other places are still tried.
    ///
    /// # Errors
    ///
    /// Returns an error if the user has stopped xtask.
    fn run(place: &str, work: impl FnOnce(&mut Self) -> Result<()>) -> Result<Self> {
        let log = paths::logs().join(format!("package-{place}.log"));
        paths::remove(&log)?;
        let mut trial = Self { place: place.to_string(), log, steps: Vec::new() };
        if let Err(error) = work(&mut trial) {
            if process::interrupted() {
                return Err(error);
            }
            // An error between two commands is a failure of the trial, too.
            if trial.steps.iter().all(|step| step.passed) {
                trial.record("preparation", Duration::ZERO, false);
            }
            println!("{error:#}");
        }
        Ok(trial)
    }

    /// Runs a command, which must succeed and print `expected`.
    fn step(&mut self, what: &str, command: &mut Command, expected: &str) -> Result<()> {
        let began = Instant::now();
        let done = ui::step(&format!("{}: {what}", self.place), || self.command(command, expected));
        self.record(what, began.elapsed(), done.is_ok());
        done
    }

    fn command(&self, command: &mut Command, expected: &str) -> Result<()> {
        let file = self.log.with_extension("out");
        let outcome = process::run_captured(command, &file, Some(LIMIT))?;
        let text = String::from_utf8_lossy(&fs::read(&file).unwrap_or_default()).into_owned();
        paths::remove(&file)?;
        let mut log = fs::read_to_string(&self.log).unwrap_or_default();
        log += &format!("$ {}\n{text}\n", process::shown(command));
        fs::write(&self.log, log).with_context(|| format!("cannot write {}", self.log.display()))?;
        let fault = match outcome.success() {
            false => outcome.describe(),
            true if !text.contains(expected) => format!("it did not print {expected:?}"),
            true => return Ok(()),
        };
        Err(ui::error_with_log(fault, &self.log))
    }

    fn record(&mut self, what: &str, elapsed: Duration, passed: bool) {
        self.steps.push(Step { what: what.to_string(), elapsed, passed });
    }
}

/// Returns a table of all steps with their times and outcomes, and the numbers of those that passed and failed.
pub fn summary(trials: &[Trial]) -> (String, Tally) {
    let mut rows = Vec::new();
    let mut tally = Tally::default();
    for trial in trials {
        for step in &trial.steps {
            let outcome = if step.passed { "passed" } else { "FAILED" };
            tally += Tally { passed: usize::from(step.passed), failed: usize::from(!step.passed) };
            let what = format!("{}: {}", trial.place, step.what);
            rows.push(vec![what, ui::seconds(step.elapsed), outcome.to_string()]);
        }
    }
    (ui::table(&["step", "time", "outcome"], &rows), tally)
}

/// Returns the variables that say how packages are downloaded: commands get no others of this process.
fn of_downloads() -> impl Iterator<Item = (String, String)> {
    let wanted = |name: &str| OF_DOWNLOADS.iter().any(|start| name.starts_with(start));
    env::vars().filter(move |(name, _)| wanted(name))
}

/// Writes the programs of a user into a directory.
fn write_programs(dir: &Path) -> Result<()> {
    fs::create_dir_all(dir).with_context(|| format!("cannot make {}", dir.display()))?;
    for (name, text) in PROGRAMS {
        fs::write(dir.join(name), text).with_context(|| format!("cannot write {name} in {}", dir.display()))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn a_failure_ends_a_trial_and_is_counted() {
        let trial = Trial::run("unit-test", |trial| {
            trial.step("first", &mut shell("echo sum 6"), "sum 6")?;
            trial.step("second", &mut shell("echo sum 7"), "sum 6")?;
            trial.step("third", &mut shell("true"), "")
        })
        .unwrap();
        let log = fs::read_to_string(&trial.log).unwrap();
        paths::remove(&trial.log).unwrap();
        assert!(log.contains("sum 7") && !log.contains("true"), "{log}");
        let (table, tally) = summary(&[trial]);
        assert_eq!(tally, Tally { passed: 1, failed: 1 });
        let outcomes: Vec<_> = table.lines().skip(1).filter_map(|line| line.split_whitespace().last()).collect();
        assert_eq!(outcomes, ["passed", "FAILED"]);
    }
}
