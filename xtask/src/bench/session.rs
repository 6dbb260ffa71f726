//! Compiles the benchmarks and runs them: round by round, the contestants in turn.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{bail, Context, Result};

use crate::bench::attempts::Attempts;
use crate::bench::compile::{build, compile, compile_by};
use crate::bench::contestants::{Contestant, Role};
use crate::bench::disturbance::Watch;
use crate::bench::figures::{Figures, MACHINE, RAW_WINDOW};
use crate::bench::jobs::{Job, Program, Shape, Who};
use crate::bench::machine::Machine;
use crate::bench::peers::Source;
use crate::bench::roster;
use crate::bench::states::{self, States};
use crate::bench::suites;
use crate::setup::Installed;
use crate::{paths, process, ui};

/// Time in seconds after which a figure is taken for hanging.
const PATIENCE: u64 = 15;

/// Time after which a small application is.
const PATIENCE_WITH_APP: Duration = Duration::from_secs(8);

/// Time after which the start of a program is.
const PATIENCE_WITH_START: Duration = Duration::from_secs(20);

/// The effort spent on measurements.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// Number of rounds.
    pub rounds: usize,
    /// Time budget of a figure in seconds.
    pub budget: f64,
    /// Time in seconds after which a program starts no further figure.
    pub limit: u64,
    /// Number of launches over which the median of a start-up time is taken.
    pub launches: usize,
    /// If true, figures must be measured in the same state of the machine, for which more rounds may be run.
    pub alike: bool,
}

impl Effort {
    /// Returns the largest number of rounds that may be run.
    fn rounds_max(&self) -> usize {
        if self.alike {
            2 * self.rounds
        } else {
            self.rounds
        }
    }

    /// Returns the text that follows the number of a round.
    fn of_rounds(&self, round: usize) -> String {
        if round < self.rounds {
            format!(" of {}", self.rounds)
        } else {
            format!(", {} at most", self.rounds_max())
        }
    }

    /// Returns the time after which a run is killed.
    fn deadline(&self, program: Program) -> Duration {
        match program {
            Program::App(_) => PATIENCE_WITH_APP,
            Program::Startup | Program::Memory => PATIENCE_WITH_START * self.launches as u32,
            _ => Duration::from_secs(2 * self.limit + 30),
        }
    }
}

/// All measurements of one call.
pub struct Session {
    /// The contestants that take part.
    pub contestants: Vec<Contestant>,
    /// The results.
    pub figures: Figures,
    /// The same results, by the state of the machine in which they were measured.
    pub states: States,
    /// The state of the machine after the latest run. `runs` is the number of runs of each contestant of the present
    /// job in each state.
    state: Option<usize>,
    runs: BTreeMap<(String, Option<usize>), usize>,
    effort: Effort,
    cores: Vec<usize>,
    /// If true, suites are timed, too.
    suites: bool,
    dir: PathBuf,
    attempts: Attempts,
    failures: BTreeMap<String, String>,
    remarks: Vec<String>,
    ours_failed: bool,
}

impl Session {
    /// Creates a session with the MPIs that are installed and those of `more`. With `suites`, the contestants that time
    /// suites take part in any case.
    pub fn new(
        installed: &Installed,
        more: Option<Source>,
        effort: Effort,
        cores: Vec<usize>,
        suites: bool,
    ) -> Result<Self> {
        let (contestants, remarks) = roster::all(installed, more)?;
        Ok(Self { suites, remarks, ..Self::of(contestants, effort, cores, paths::target().join("bench"))? })
    }

    /// Creates a session with these contestants; executables and output are stored in `dir`.
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
            attempts: Attempts::default(),
            failures: BTreeMap::new(),
            remarks: Vec::new(),
            ours_failed: false,
        })
    }

    /// Returns the contestants that run at least one of these jobs, or suites.
    pub fn taking_part(&self, jobs: &[Job]) -> Vec<Contestant> {
        let of_suites = |one: &Contestant| self.suites && suites::takes_part(one);
        let takes_part = |one: &&Contestant| jobs.iter().any(|job| roster::takes_part(one, job.who)) || of_suites(one);
        self.contestants.iter().filter(takes_part).cloned().collect()
    }

    fn takers(&self, job: &Job) -> Vec<Contestant> {
        self.contestants.iter().filter(|one| roster::takes_part(one, job.who)).cloned().collect()
    }

    /// Returns the path of a program's executable for a contestant.
    pub fn binary(&self, program: Program, suffix: &str) -> PathBuf {
        match program {
            Program::Papers => paths::target().join("release").join(program.binary()),
            _ => self.dir.join(format!("{}-{suffix}", program.binary())),
        }
    }

    /// Compiles the programs for all contestants that take part. A peer whose compiler fails is left out.
    pub fn compile(&mut self, jobs: &[Job]) -> Result<()> {
        let log = self.dir.join("compile.log");
        crate::paths::remove(&log)?;
        let mut done = BTreeSet::new();
        let mut broken = BTreeSet::new();
        if jobs.iter().any(|job| job.program == Program::Papers) {
            build(Program::Papers, &log)?;
        }
        for one in self.taking_part(jobs) {
            // The start-up benchmark is always needed, since it reports the version.
            let programs = jobs.iter().filter(|job| roster::takes_part(&one, job.who)).map(|job| job.program);
            for program in programs.chain([Program::Startup]) {
                let binary = self.binary(program, one.suffix);
                let Some(compiler) = one.compiler() else { break };
                if broken.contains(one.suffix) || !done.insert(binary.clone()) {
                    continue;
                }
                match compile_by(compiler, program.sources(), &binary, &log) {
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

    /// Runs the jobs one after the other, each with all its rounds and those of the limits that it is compared with: a
    /// virtual machine may behave differently a few minutes later.
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

    /// Returns true if all contestants have had at least half of their rounds, and enough for a comparison, in one and
    /// the same state.
    fn are_alike(&self) -> bool {
        let names: BTreeSet<&String> = self.runs.keys().map(|(name, _)| name).collect();
        let all: BTreeSet<usize> = self.runs.keys().filter_map(|(_, state)| *state).collect();
        let runs = |name: &str, state: usize| self.runs.get(&(name.to_string(), Some(state))).copied().unwrap_or(0);
        let half = self.effort.rounds.div_ceil(2).max(states::enough(self.effort.rounds));
        all.into_iter().any(|state| names.iter().all(|name| runs(name, state) >= half))
    }

    /// Returns the present state of the machine, if it matters and can be determined.
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

    /// Returns the number of rounds of each job, without those that may be added until all are in the same state.
    pub fn rounds(&self) -> usize {
        self.effort.rounds
    }

    /// Returns notes on contestants and tests that were skipped or failed.
    pub fn notes(&self) -> Vec<String> {
        self.remarks.iter().chain(self.failures.values()).cloned().collect()
    }

    /// Fails if ntbring has failed a benchmark, so that the exit status tells.
    pub fn conclude(&self) -> Result<()> {
        if self.ours_failed {
            bail!("ntbring failed a benchmark: see above");
        }
        Ok(())
    }

    /// Runs the contestants of a job one after the other. Each round starts with another contestant, so that none
    /// always follows the same one.
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
        let taken = self.take(job, whose, Role::Peer, &mut command)?;
        if taken.figures > 0 {
            self.count(whose, taken.state);
        }
        Ok(())
    }

    /// Runs a contestant, and again for the rest if it fails.
    fn measure(&mut self, job: &Job, one: &Contestant) -> Result<()> {
        let mut left = self.attempts.worth_it(one.name, job);
        let mut counted = false;
        while let Some(job) = left {
            let mut command = self.command(&job, one);
            let taken = self.take(&job, one.name, one.role, &mut command)?;
            // Runs without figures are not counted, so that no round waits for a contestant that always fails.
            if taken.figures > 0 && !counted {
                self.count(one.name, taken.state);
                counted = true;
            }
            left = taken.rest;
        }
        Ok(())
    }

    fn count(&mut self, name: &str, state: Option<usize>) {
        *self.runs.entry((name.to_string(), state)).or_default() += 1;
    }

    fn command(&self, job: &Job, one: &Contestant) -> Command {
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
            Program::App(_) => {}
            Program::P2p | Program::Rma | Program::Coll | Program::Limits | Program::Papers => {
                let effort = &self.effort;
                command.args(["--budget", &effort.budget.to_string(), "--limit", &effort.limit.to_string()]);
                let pair = matches!(job.shape, Shape::Pair);
                if job.program != Program::Papers {
                    command.args(["--patience", &PATIENCE.to_string()]);
                    if pair {
                        command.args(["--peer", &one.peer().to_string()]);
                    }
                }
                if job.bound && (pair || one.ranks(job.shape) <= self.cores.len()) {
                    command.args(["--cores", &list(&self.cores)]);
                }
                command.args(job.tests.iter().map(ToString::to_string));
            }
        }
        command
    }

    /// Runs a command and adds its figures, including those that were printed before a failure, since each of them is
    /// complete.
    fn take(&mut self, job: &Job, name: &str, role: Role, command: &mut Command) -> Result<Taken> {
        let (program, ranks, suffix) = (job.program, job.shape.ranks(), job.suffix());
        let out = self.dir.join(format!("{name}-{}-{ranks}{suffix}.out", program.name()));
        let outcome = process::run_captured(command, &out, Some(self.effort.deadline(program)))?;
        let bytes = fs::read(&out).with_context(|| format!("cannot read {}", out.display()))?;
        let text = String::from_utf8_lossy(&bytes);
        let figures = self.figures.add_as(name, ranks, suffix, &text);
        let after = self.look();
        let state = std::mem::replace(&mut self.state, after).filter(|before| after == Some(*before));
        if let Some(state) = state {
            self.states.figures_mut(state).add_as(name, ranks, suffix, &text);
        }
        if outcome.success() && figures > 0 {
            return Ok(Taken { figures, state, rest: None });
        }
        self.ours_failed |= role != Role::Peer;
        let failure = self.attempts.note(name, job, &text, outcome.timed_out);
        let what = if outcome.success() { "printed no figures".to_string() } else { outcome.describe() };
        let place = failure.figure.map_or_else(|| job.describe(), |figure| format!("{figure}, {}", job.describe()));
        let line = format!("{name}, {place}: {what} after {figures} figures: {}", paths::shown(&out));
        self.failures.entry(format!("{name} {place}")).or_insert(line);
        Ok(Taken { figures, state, rest: failure.rest })
    }
}

/// The results of a run.
struct Taken {
    /// The number of figures.
    figures: usize,
    /// The state of the machine, if it was the same before and after.
    state: Option<usize>,
    /// The part of the job that remains to be run after a failure.
    rest: Option<Job>,
}

fn list(cores: &[usize]) -> String {
    cores.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
}

/// Runs the jobs and records in the description of the machine how much other processes disturbed them.
pub fn run_watched(session: &mut Session, jobs: &[Job], machine: &mut Machine) -> Result<()> {
    let watch = Watch::start();
    session.run(jobs)?;
    if let Some(disturbance) = watch.end() {
        machine.lines.push(("while measuring".to_string(), disturbance.describe()));
        machine.warnings.extend(disturbance.warning());
    }
    Ok(())
}
