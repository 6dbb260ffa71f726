//! The directory in which programs are built and run, and the judging of their results.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::Result;

use crate::mpi::{Layout, Mpi};
use crate::setup::SetupArgs;
use crate::ui::{self, Tally};
use crate::{paths, process};

/// The state of the tests: the directory in which programs are built and run, and their results.
pub struct Bench {
    pub mpi: Mpi,
    pub setup: SetupArgs,
    /// Directory for the files of the current group.
    pub place: PathBuf,
    pub tally: Tally,
}

impl Bench {
    /// Returns the path of a log of the current group.
    pub fn log(&self, name: &str) -> PathBuf {
        self.place.join(format!("{}.log", name.replace([' ', '/'], "-")))
    }

    /// Runs one test. It passes if the command succeeds and, if `wanted` is given, prints it as a line.
    pub fn test(&mut self, name: &str, command: &mut Command, limit: Duration, wanted: Option<&str>) -> Result<bool> {
        self.judged(name, command, limit, 1, |text| {
            let wanted = wanted.filter(|wanted| !text.lines().any(|line| line.trim() == *wanted))?;
            Some(format!("it did not print {wanted:?}"))
        })
    }

    /// Runs one test. It passes if, in one of the allowed number of tries, the command succeeds and there is no
    /// complaint about its output.
    pub fn judged(
        &mut self,
        name: &str,
        command: &mut Command,
        limit: Duration,
        tries: u32,
        judge: impl Fn(&str) -> Option<String>,
    ) -> Result<bool> {
        let log = self.log(name);
        let mut start = Instant::now();
        let mut complaint = None;
        for left in (0..tries).rev() {
            paths::remove(&log)?;
            start = Instant::now();
            let outcome = process::run_captured(command, &log, Some(limit))?;
            let text = fs::read(&log)?;
            complaint = match outcome.success() {
                true => judge(&String::from_utf8_lossy(&text)),
                false => Some(outcome.describe()),
            };
            match &complaint {
                Some(why) if left > 0 && !process::interrupted() => println!("  {name}: {why}; once more"),
                _ => break,
            }
        }
        match &complaint {
            None => {
                println!("  {name:<40} {:>12}", ui::seconds(start.elapsed()));
                self.tally.passed += 1;
            }
            Some(why) => {
                let what = format!("    FAILED {name}: {why}\n  {}", process::shown(command));
                println!("{}", ui::error_with_log(what, &log));
                self.tally.failed += 1;
                ui::failed(name);
            }
        }
        ui::flush();
        Ok(complaint.is_none())
    }

    /// Returns a call of mpiexec on `hosts` hosts of one rank each.
    pub fn mpiexec(&self, hosts: usize) -> Command {
        self.mpi.run(&Layout::spread(hosts, hosts), &[])
    }

    /// Returns a call of oshrun with this layout.
    pub fn oshrun(&self, layout: &Layout) -> Command {
        let mut command = Command::new(self.tool("oshrun"));
        command.args(["-launcher", "fork", "-hosts", &layout.hosts(), "-np", &layout.ranks().to_string()]);
        command
    }

    /// Returns a call of mpiexec on these hosts, for a program that was linked with Debian's mpich.
    pub fn exec(&self, hosts: &str, ranks: u32) -> Command {
        let mut command = Command::new(self.tool("ntbring"));
        command.args(["exec", "--", "mpiexec", "-launcher", "fork", "-hosts", hosts, "-n", &ranks.to_string()]);
        command
    }

    /// Returns the directory of the sources of ntbring's own programs.
    pub fn sources(&self) -> PathBuf {
        paths::root().join("tests/foreign")
    }

    /// Returns the path of a program of the installation.
    pub fn tool(&self, name: &str) -> PathBuf {
        self.mpi.prefix().join("bin").join(name)
    }
}

/// Makes an empty directory, replacing an old one.
pub fn fresh(dir: &Path) -> Result<PathBuf> {
    paths::remove(dir)?;
    fs::create_dir_all(dir)?;
    Ok(dir.to_path_buf())
}
