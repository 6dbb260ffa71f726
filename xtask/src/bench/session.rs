//! Compiles what is needed and runs it: round by round, the contestants in turn.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{bail, Context, Result};

use crate::bench::contestants::{self, Contestant, Role};
use crate::bench::figures::{Figures, MACHINE, RAW_WINDOW};
use crate::bench::jobs::{Job, Program, Shape, Who};
use crate::bench::states::{self, States};
use crate::bench::suites;
use crate::setup::Installed;
use crate::{paths, process, ui};

/// For every C compiler: warnings would be ours.
const FLAGS: &[&str] = &["-O2", "-Wall", "-Wextra"];

/// How long and how often.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// Rounds.
    pub rounds: usize,
    /// Seconds that a figure may cost.
    pub budget: f64,
    /// After so many seconds a program begins no new figure.
    pub limit: u64,
    /// Launches of which a start-up time is the median.
    pub launches: usize,
    /// Whether figures are to be found in the same state of the machine, for which there may be more rounds.
    pub alike: bool,
}

impl Effort {
    /// The most rounds that there may be.
    fn rounds_max(&self) -> usize {
        if self.alike {
            3 * self.rounds
        } else {
            self.rounds
        }
    }

    /// After the number of a round.
    fn of_rounds(&self, round: usize) -> String {
        if round < self.rounds {
            format!(" of {}", self.rounds)
        } else {
            format!(", {} at most", self.rounds_max())
        }
    }

    /// After that time a run is ended.
    fn deadline(&self) -> Duration {
        Duration::from_secs(2 * self.limit + 30)
    }
}

/// All that is measured in one call.
pub struct Session {
    /// Who takes part.
    pub contestants: Vec<Contestant>,
    /// What came out.
    pub figures: Figures,
    /// The same, by the state that the machine was in.
    pub states: States,
    /// The state that it was in after the latest run; and how many runs each contestant of the present job had in each.
    state: Option<usize>,
    runs: BTreeMap<(String, Option<usize>), usize>,
    effort: Effort,
    cores: Vec<usize>,
    /// Whether suites are to be timed, too.
    suites: bool,
    dir: PathBuf,
    failures: BTreeMap<String, String>,
    remarks: Vec<String>,
    ours_failed: bool,
}

impl Session {
    /// With the MPIs that are there; `suites`: those that suites are timed with take part in any case.
    pub fn new(installed: &Installed, effort: Effort, cores: Vec<usize>, suites: bool) -> Result<Self> {
        let (contestants, remarks) = contestants::all(installed);
        Ok(Self { suites, remarks, ..Self::of(contestants, effort, cores, paths::target().join("bench"))? })
    }

    /// With these contestants; executables and output lie in `dir`.
    pub fn of(contestants: Vec<Contestant>, effort: Effort, cores: Vec<usize>, dir: PathBuf) -> Result<Self> {
        fs::create_dir_all(&dir).with_context(|| format!("cannot create {}", dir.display()))?;
        Ok(Self {
            contestants,
            figures: Figures::default(),
            states: States::default(),
            state: None,
            runs: BTreeMap::new(),
            effort,
            cores,
            suites: false,
            dir,
            failures: BTreeMap::new(),
            remarks: Vec::new(),
            ours_failed: false,
        })
    }

    /// Contestants that run at least one of these jobs, or suites.
    pub fn taking_part(&self, jobs: &[Job]) -> Vec<Contestant> {
        let of_suites = |one: &Contestant| self.suites && suites::takes_part(one);
        let takes_part = |one: &&Contestant| jobs.iter().any(|job| one.is_one_of(job.who)) || of_suites(one);
        self.contestants.iter().filter(takes_part).cloned().collect()
    }

    fn takers(&self, job: &Job) -> Vec<Contestant> {
        self.contestants.iter().filter(|one| one.is_one_of(job.who)).cloned().collect()
    }

    /// Where a program is for a contestant.
    pub fn binary(&self, program: Program, suffix: &str) -> PathBuf {
        match program {
            Program::Papers => paths::target().join("release").join(program.binary()),
            _ => self.dir.join(format!("{}-{suffix}", program.binary())),
        }
    }

    /// Compiles for all that take part. A peer whose compiler fails is left out.
    pub fn compile(&mut self, jobs: &[Job]) -> Result<()> {
        let log = self.dir.join("compile.log");
        crate::setup::remove(&log)?;
        let mut done = BTreeSet::new();
        let mut broken = BTreeSet::new();
        if jobs.iter().any(|job| job.program == Program::Papers) {
            build(Program::Papers, &log)?;
        }
        for one in self.taking_part(jobs) {
            let Some(mpicc) = &one.mpicc else { continue };
            // The program that tells the version is always needed.
            let programs = jobs.iter().filter(|job| one.is_one_of(job.who)).map(|job| job.program);
            for program in programs.chain([Program::Startup]) {
                let binary = self.binary(program, one.suffix);
                if broken.contains(one.suffix) || !done.insert(binary.clone()) {
                    continue;
                }
                match compile(mpicc, program.sources(), &binary, &log) {
                    Err(error) if one.role == Role::Peer && !process::interrupted() => {
                        broken.insert(one.suffix);
                        self.remarks.push(format!("{}: {error:#}: skipped", one.name));
                    }
                    other => other?,
                }
            }
        }
        self.contestants.retain(|one| !broken.contains(one.suffix));
        let cc = Path::new("cc");
        compile(cc, Program::Limits.sources(), &self.dir.join("limits"), &log)?;
        compile(cc, &["machine/stopwatch.c", "mpi/common.c"], &self.dir.join("stopwatch"), &log)
    }

    /// Runs all rounds of one job, and of the limits before it, after the other: a virtual machine may be another one a
    /// few minutes later.
    pub fn run(&mut self, jobs: &[Job]) -> Result<()> {
        let has_takers = |job: &&Job| job.shape == Shape::Machine || !self.takers(job).is_empty();
        let jobs: Vec<&Job> = jobs.iter().filter(has_takers).collect();
        for together in jobs.split_inclusive(|job| job.shape != Shape::Machine) {
            self.runs.clear();
            for round in 0..self.effort.rounds_max() {
                if round >= self.effort.rounds && self.are_alike() {
                    break;
                }
                self.state = self.look();
                for job in together {
                    let name = format!("{}: round {}{}", job.describe(), round + 1, self.effort.of_rounds(round));
                    ui::step(&name, || self.run_job(job, round))?;
                }
            }
        }
        Ok(())
    }

    /// Whether all have had half of their rounds, and enough to be compared, in some one state.
    fn are_alike(&self) -> bool {
        let names: BTreeSet<&String> = self.runs.keys().map(|(name, _)| name).collect();
        let all: BTreeSet<usize> = self.runs.keys().filter_map(|(_, state)| *state).collect();
        let runs = |name: &str, state: usize| self.runs.get(&(name.to_string(), Some(state))).copied().unwrap_or(0);
        let half = self.effort.rounds.div_ceil(2).max(states::enough(self.effort.rounds));
        all.into_iter().any(|state| names.iter().all(|name| runs(name, state) >= half))
    }

    /// The state that the machine is in, if that matters and can be told.
    fn look(&mut self) -> Option<usize> {
        let cores = self.cores.get(..2).filter(|_| self.effort.alike)?;
        let mut command = Command::new(self.dir.join("limits"));
        command.args(["--cores", &list(cores), "--budget", "0.02", "cacheline"]);
        let output = command.output().ok()?;
        let mut found = Figures::default();
        found.add(MACHINE, 2, &String::from_utf8_lossy(&output.stdout));
        let distance = found.median("cacheline", 2, 0, MACHINE)?;
        Some(self.states.number(distance))
    }

    /// The number of rounds that there are at least.
    pub fn rounds(&self) -> usize {
        self.effort.rounds
    }

    /// What was skipped and what failed.
    pub fn notes(&self) -> Vec<String> {
        self.remarks.iter().chain(self.failures.values()).cloned().collect()
    }

    /// An error if ours failed: whoever reads only the exit status must know.
    pub fn conclude(&self) -> Result<()> {
        if self.ours_failed {
            bail!("ntbring failed a benchmark: see above");
        }
        Ok(())
    }

    /// One after the other; each round begins with another one, so that none always has the same before it.
    fn run_job(&mut self, job: &Job, round: usize) -> Result<()> {
        if job.shape == Shape::Machine {
            return self.run_limits(job);
        }
        let mut takers = self.takers(job);
        let first = round % takers.len().max(1);
        takers.rotate_left(first);
        takers.iter().try_for_each(|one| self.measure(job, one))
    }

    fn run_limits(&mut self, job: &Job) -> Result<()> {
        let Some(cores) = self.cores.get(..2) else {
            let line = "limits of the machine: they need two cores: skipped";
            self.failures.insert(MACHINE.to_string(), line.to_string());
            return Ok(());
        };
        let mut command = Command::new(self.dir.join("limits"));
        command.args(["--cores", &list(cores), "--budget", &self.effort.budget.to_string()]);
        command.args(job.tests.iter().map(ToString::to_string));
        let whose = if job.who == Who::RawWindow { RAW_WINDOW } else { MACHINE };
        self.take(job, whose, Role::Peer, &mut command)
    }

    fn measure(&mut self, job: &Job, one: &Contestant) -> Result<()> {
        let binary = self.binary(job.program, one.suffix);
        let mut command = one.command(job.shape, &binary);
        match job.program {
            Program::Startup => {
                let mut timed = Command::new(self.dir.join("stopwatch"));
                timed.arg(self.effort.launches.to_string()).arg(command.get_program()).args(command.get_args());
                timed.envs(one.env.iter().cloned());
                command = timed;
            }
            Program::Memory => {
                command.arg("--memory");
            }
            Program::P2p | Program::Rma | Program::Coll | Program::Limits | Program::Papers => {
                let effort = &self.effort;
                command.args(["--budget", &effort.budget.to_string(), "--limit", &effort.limit.to_string()]);
                let pair = matches!(job.shape, Shape::Pair);
                if pair && job.program != Program::Papers {
                    command.args(["--peer", &one.peer().to_string()]);
                }
                if pair || one.ranks(job.shape) <= self.cores.len() {
                    command.args(["--cores", &list(&self.cores)]);
                }
                command.args(job.tests.iter().map(ToString::to_string));
            }
        }
        self.take(job, one.name, one.role, &mut command)
    }

    /// Runs a command and takes its figures: also those that came before a failure, each is complete.
    fn take(&mut self, job: &Job, name: &str, role: Role, command: &mut Command) -> Result<()> {
        let out = self.dir.join(format!("{name}-{}-{}.out", job.program.name(), job.shape.ranks()));
        let outcome = process::run_captured(command, &out, Some(self.effort.deadline()))?;
        let bytes = fs::read(&out).with_context(|| format!("cannot read {}", out.display()))?;
        let text = String::from_utf8_lossy(&bytes);
        let count = self.figures.add(name, job.shape.ranks(), &text);
        let after = self.look();
        let state = std::mem::replace(&mut self.state, after).filter(|before| after == Some(*before));
        if let Some(state) = state {
            self.states.figures_mut(state).add(name, job.shape.ranks(), &text);
        }
        // Who fails always is not waited for.
        if count > 0 {
            *self.runs.entry((name.to_string(), state)).or_default() += 1;
        }
        if outcome.success() && count > 0 {
            return Ok(());
        }
        self.ours_failed |= role != Role::Peer;
        let what = if outcome.success() { "printed no figures".to_string() } else { outcome.describe() };
        let line = format!("{name}, {}: {what} after {count} figures: {}", job.describe(), paths::shown(&out));
        self.failures.entry(format!("{name} {}", job.describe())).or_insert(line);
        Ok(())
    }
}

/// Compiles sources of `benches`.
pub fn compile(cc: &Path, sources: &[&str], binary: &Path, log: &Path) -> Result<()> {
    let mut command = Command::new(cc);
    command.args(FLAGS).arg("-o").arg(binary);
    command.args(sources.iter().map(|source| paths::root().join("benches").join(source)));
    process::check_logged(&mut command, log)
}

/// Builds a program that is a crate of the workspace.
fn build(program: Program, log: &Path) -> Result<()> {
    let mut command = Command::new("cargo");
    command.args(["build", "--release", "--package", program.binary(), "--manifest-path"]);
    command.arg(paths::root().join("Cargo.toml")).arg("--target-dir").arg(paths::target());
    process::check_logged(&mut command, log)
}

fn list(cores: &[usize]) -> String {
    cores.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
}
