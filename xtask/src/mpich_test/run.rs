//! Runs one test, and many.

use std::fs;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::thread::{Scope, ScopedJoinHandle};
use std::time::Duration;

use anyhow::{Context, Result};

use super::memcheck;
use super::selection::Reason;
use super::suite::Suite;
use super::testlist::Test;
use crate::mpi::{Layout, Mpi};
use crate::{parallel, process};

/// Time after mpiexec's own time limit at which a test is killed.
const LATER: Duration = Duration::from_secs(15);

/// Time limit of tests that are expected to fail and of [`ENDS_BY_LIMIT`], which need not have all the time they ask
/// for.
const SHORT_LIMIT: Duration = Duration::from_secs(20);

/// Tests that end by running into their limit, with any MPICH: the first one is designed so, and in the others the
/// surviving ranks wait in `MPI_Finalize` for a rank that has ended. The suite accepts mpiexec's exit status as the
/// nonzero one that it requires.
const ENDS_BY_LIMIT: &[&str] =
    &["init/timeout", "errors/comm/subcomm_abort", "errors/comm/subcomm_abort2", "errors/comm/intercomm_abort"];

/// Tests whose ranks sleep for most of their time, beside [`ENDS_BY_LIMIT`]: until a connection is given up.
const SLEEPS: &[&str] = &["errors/spawn/connect_timeout_no_accept", "errors/spawn/connect_timeout_mismatch"];

/// Returns true if a test needs time rather than cores.
fn sleeps(test: &Test) -> bool {
    let place = format!("{}/{}", test.dir, test.program);
    [ENDS_BY_LIMIT, SLEEPS].concat().contains(&place.as_str())
}

/// Tests of one directory that were begun earlier, each with its index in the directory.
pub type Begun<'scope> = Vec<(usize, ScopedJoinHandle<'scope, Result<Ran>>)>;

/// The result of a test.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// It passed.
    Passed,
    /// It passed although it was expected to fail, for this reason.
    UnexpectedPass(String),
    /// It failed, for this reason.
    Failed(String),
    /// It failed as expected, for this reason.
    ExpectedFailure(String),
    /// It was not run, for this reason.
    Skipped(String),
}

/// A test that was run or skipped.
#[derive(Clone, Debug)]
pub struct Ran {
    /// Identity of the test.
    pub id: String,
    /// Short description of the layout of its ranks on hosts.
    pub layout: String,
    /// Its result.
    pub verdict: Verdict,
    /// Its run time.
    pub elapsed: Duration,
    /// The file with its output.
    pub log: PathBuf,
}

impl Ran {
    /// Returns true if it was ended by its time limit and is not meant to be.
    pub fn is_out_of_time(&self) -> bool {
        matches!(&self.verdict, Verdict::Failed(why) if why.starts_with("out of time"))
    }
}

/// The parameters that all tests of a run share.
pub struct Runner<'a> {
    /// The MPI to run with.
    pub mpi: &'a Mpi,
    /// The suite that contains the tests.
    pub suite: &'a Suite,
    /// Largest number of hosts of the ring.
    pub hosts: usize,
    /// Number of ranks on each host, if that suffices.
    pub per_host: usize,
    /// Seed for placing ranks on hosts at random, instead of `per_host` on each.
    pub placement: Option<u64>,
    /// Number of tests to run at once.
    pub jobs: usize,
    /// Directory of the logs.
    pub logs: &'a Path,
    /// True if all tests run under valgrind.
    pub memcheck: bool,
    /// Variables for all tests; a variable that a test sets itself keeps the test's value.
    pub env: &'a [(String, String)],
}

/// A test, and the reason for which it is expected to fail, if it is.
pub type Job = (Test, Option<Reason>);

impl Runner<'_> {
    /// If several tests may run at once, begins those of a directory that sleep most of their time, so that they need
    /// no time of their own: beside the tests of all directories.
    pub fn begin<'scope>(
        &'scope self,
        scope: &'scope Scope<'scope, '_>,
        jobs: &'scope [Job],
        seen: &'scope (dyn Fn(&Ran) + Sync),
    ) -> Begun<'scope> {
        let sleeping = jobs.iter().enumerate().filter(|(_, (test, _))| self.jobs > 1 && sleeps(test));
        let begin = |(index, job)| {
            let run = move || self.run_one(index, job, available_gigabytes()).inspect(seen);
            (index, scope.spawn(run))
        };
        sleeping.map(begin).collect()
    }

    /// Runs all tests of a directory but those begun, awaits these, and calls `seen` as each test ends. Results are in
    /// the order of the tests.
    pub fn run_all(&self, jobs: &[Job], begun: Begun, seen: &(dyn Fn(&Ran) + Sync)) -> Result<Vec<Ran>> {
        let memory = available_gigabytes();
        let rest: Vec<(usize, &Job)> =
            jobs.iter().enumerate().filter(|(index, _)| begun.iter().all(|(other, _)| other != index)).collect();
        // Tests that need much memory run alone, and so do tests that write files, since several use the same file
        // names.
        let alone = |(_, (test, _)): &(usize, &Job)| test.writes_files() || test.memory * self.jobs as f64 > memory;
        let run = |_, (index, job): &(usize, &Job)| Ok((*index, self.run_one(*index, job, memory).inspect(seen)?));
        let mut ran = parallel::run_all(&rest, self.jobs, alone, run)?;
        for (index, test) in begun {
            ran.push((index, test.join().unwrap_or_else(|panic| resume_unwind(panic))?));
        }
        ran.sort_by_key(|(index, _)| *index);
        Ok(ran.into_iter().map(|(_, ran)| ran).collect())
    }

    fn run_one(&self, index: usize, (test, xfail): &Job, memory: f64) -> Result<Ran> {
        let layout = match self.placement {
            None => Layout::fill(test.ranks, self.hosts, self.per_host),
            Some(seed) => {
                let mut rng = fastrand::Rng::with_seed(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ index as u64);
                Layout::scattered(test.ranks, self.hosts, &mut rng)
            }
        };
        let name = test.program.replace('/', "_");
        let log = self.logs.join(&test.dir).join(format!("{index:03}-{name}-{}.log", test.ranks));
        let mut ran =
            Ran { id: test.id(), layout: layout.describe(), verdict: Verdict::Passed, elapsed: Duration::ZERO, log };
        if test.memory > memory {
            ran.verdict = Verdict::Skipped(format!("needs {} GB of memory, {memory:.1} are free", test.memory));
            return Ok(ran);
        }
        let place = format!("{}/{}", test.dir, test.program);
        let (needed, free) = (disk_gigabytes(&place), free_gigabytes(&self.suite.build));
        if needed > free {
            ran.verdict = Verdict::Skipped(format!("needs {needed} GB of disk, {free:.1} are free"));
            return Ok(ran);
        }
        let xfail = xfail.as_ref().filter(|reason| reason.holds(self.env, &layout));
        let failure = self.execute(test, xfail.is_some(), &layout, &mut ran)?;
        ran.verdict = match (failure, xfail) {
            (None, None) => Verdict::Passed,
            (None, Some(reason)) => Verdict::UnexpectedPass(reason.text.clone()),
            (Some(failure), None) => Verdict::Failed(failure),
            (Some(_), Some(reason)) => Verdict::ExpectedFailure(reason.text.clone()),
        };
        Ok(ran)
    }

    /// Runs a test and returns the reason of its failure, if it failed.
    fn execute(&self, test: &Test, xfail: bool, layout: &Layout, ran: &mut Ran) -> Result<Option<String>> {
        let program = self.suite.build.join(&test.dir).join(&test.program);
        let (Some(dir), Some(name)) = (program.parent(), program.file_name()) else {
            return Ok(Some("its name is not a valid file name".to_string()));
        };
        if !program.exists() {
            self.suite.build_one(dir, &name.to_string_lossy())?;
        }
        if !program.exists() {
            write_log(&ran.log, "the program was not built", "")?;
            return Ok(Some("does not compile (see build.log of the suite)".to_string()));
        }
        let place = format!("{}/{}", test.dir, test.program);
        let ends_by_limit = ENDS_BY_LIMIT.contains(&place.as_str());
        let limit = if xfail || ends_by_limit { test.limit.min(SHORT_LIMIT) } else { test.limit };
        let limit = if self.memcheck { limit * memcheck::SLOWER } else { limit };
        let mut command = self.mpi.run(layout, &test.mpiexec_args);
        if self.memcheck {
            memcheck::add(&mut command, &ran.log);
        }
        command
            .current_dir(dir)
            .arg(Path::new(".").join(name))
            .args(&test.args)
            .env("MPIEXEC_TIMEOUT", limit.as_secs().to_string())
            .envs(self.env.iter().cloned())
            .envs(test.env.iter().cloned());
        let outcome = process::run_captured(&mut command, &ran.log, Some(limit + LATER))?;
        ran.elapsed = outcome.elapsed;
        let output = fs::read(&ran.log).with_context(|| format!("cannot read {}", ran.log.display()))?;
        let mut output = String::from_utf8_lossy(&output).into_owned();
        let mut verdict = test.judge.verdict(&outcome, &output, limit, ends_by_limit);
        if self.memcheck {
            match memcheck::found(&ran.log)? {
                None => verdict = Err("valgrind has not run".to_string()),
                Some(found) if !found.is_empty() => {
                    verdict = Err("valgrind has reported errors".to_string());
                    output.push_str(&found);
                }
                Some(_) => {}
            }
        }
        let env: Vec<String> =
            self.env.iter().chain(&test.env).map(|(name, value)| format!("{name}={value} ")).collect();
        let head = format!(
            "$ cd {} && {}{}\n# {}, {:?}",
            dir.display(),
            env.concat(),
            process::shown(&command),
            outcome.describe(),
            verdict
        );
        write_log(&ran.log, &head, &output)?;
        Ok(verdict.err())
    }
}

fn write_log(log: &Path, head: &str, output: &str) -> Result<()> {
    let work = || {
        if let Some(parent) = log.parent() {
            fs::create_dir_all(parent)?;
        }
        fs::write(log, format!("{head}\n{output}"))
    };
    work().with_context(|| format!("cannot write {}", log.display()))
}

/// Returns the space on disk that a test needs, gigabytes, if that is much.
fn disk_gigabytes(place: &str) -> f64 {
    match place {
        // They write files of 2 GiB.
        "io/bigtype" | "io/i_bigtype" => 2.5,
        _ => 0.0,
    }
}

/// Returns the free space of the disk of a directory, gigabytes; `f64::MAX` if the system does not report it.
fn free_gigabytes(directory: &Path) -> f64 {
    rustix::fs::statvfs(directory).map_or(f64::MAX, |disk| disk.f_bavail as f64 * disk.f_frsize as f64 / 1e9)
}

/// Returns the memory in gigabytes that is available without swapping; `f64::MAX` if the system does not report it.
fn available_gigabytes() -> f64 {
    fs::read_to_string("/proc/meminfo")
        .ok()
        .and_then(|text| {
            let line = text.lines().find(|line| line.starts_with("MemAvailable:"))?;
            line.split_whitespace().nth(1)?.parse::<f64>().ok()
        })
        .map_or(f64::MAX, |kilobytes| kilobytes / 1e6)
}
