//! `cargo xtask mpich-test`: runs MPICH's own test suite on the ring.

mod args;
mod conformance;
mod elsewhere;
mod judge;
mod memcheck;
mod report;
mod run;
mod selection;
mod suite;
mod testlist;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{bail, Result};

use crate::lock::{self, Lock};
use crate::mpi::Mpi;
use crate::parallel::cores;
use crate::setup::{self, packages};
use crate::ui::{self, Tally};
use crate::variants::Variant;
use crate::{paths, version};
pub use args::MpichTestArgs;
use args::DEFAULT_HOSTS;
use conformance::Column;
pub use elsewhere::{Case, Elsewhere};
use report::Counts;
use run::{Begun, Job, Ran, Runner, Verdict};
use selection::{Choice, Expected, Pattern, Reason};
use suite::{Against, Suite};
use testlist::Test;

/// The directories that are run by default.
const DIRS: &[&str] = &["pt2pt", "coll", "datatype", "comm", "topo", "attr", "group", "info", "init", "errors"];

/// If at least this many tests, and more than half of all, have run out of time, the rest is not run.
const TOO_MANY_TIMEOUTS: usize = 5;

/// A directory and the tests of it that are to be run.
type Chosen = (String, Vec<Job>);

/// A directory and the results of its tests.
type Done = (String, Vec<Ran>);

/// The tests to be run, and the MPI and suite to run them with.
struct Plan {
    mpi: Mpi,
    suite: Suite,
    directories: Vec<Chosen>,
    /// Directory of the logs and of the report.
    place: PathBuf,
    _lock: Lock,
}

/// The times and results of tests.
#[derive(Clone, Copy, Debug, Default)]
pub struct Timing {
    /// The sum of the times of all tests.
    pub elapsed: Duration,
    /// Number of tests that were run.
    pub tests: usize,
    /// Number of tests that failed unexpectedly, including those that ran out of time.
    pub failed: usize,
    /// Number of tests that ran out of time.
    pub timed_out: usize,
}

/// Builds what is needed and runs the tests; the caller prints the tally.
pub fn run(args: &MpichTestArgs) -> Result<Tally> {
    let plan = plan(args)?;
    if args.list {
        for (test, xfail) in plan.directories.iter().flat_map(|(_, jobs)| jobs) {
            println!(
                "{}{}",
                test.id(),
                xfail.as_ref().filter(|x| x.under.is_none()).map_or("", |_| "  (expected to fail)")
            );
        }
        return Ok(Tally::default());
    }
    if args.memcheck {
        packages::install(&["valgrind"])?;
    }
    plan.build()?;
    if args.all {
        return all(args, &plan);
    }
    args.variants.each(|variant| {
        args.rings()
            .into_iter()
            .map(|hosts| Ok(tally(&execute(args, variant, &plan, &plan.directories, hosts, &mut |_, _| Ok(()))?)))
            .sum()
    })
}

/// Runs all directories ring by ring and stores the results of each when it is done, since a ring takes an hour and the
/// run may be stopped.
fn all(args: &MpichTestArgs, plan: &Plan) -> Result<Tally> {
    let docs = paths::root().join("docs");
    // The version is determined before the page is rewritten, which would count as a change.
    let version = version::commit().unwrap_or_else(|| "unknown".to_string());
    let total = args.variants.each(|variant| {
        let mut sum = Tally::default();
        let new = |hosts| Column::new(args.column(hosts), args.shown(hosts));
        if !args.resume {
            // Empty columns are stored first, so that a later `--resume` continues this run and not an older one.
            args.rings().into_iter().try_for_each(|hosts| conformance::keep(&docs, &new(hosts)))?;
        }
        for hosts in args.rings() {
            let mut column = new(hosts);
            if args.resume {
                column = conformance::left(&docs, &column)?.unwrap_or(column);
            }
            if column.is_finished() {
                println!("{} is done: {}", args.column(hosts), column.tally());
                sum += column.tally();
                // The page is written anew, since its text may have changed since that run.
                conformance::keep(&docs, &column)?;
                continue;
            }
            let left: Vec<Chosen> = plan.directories.iter().filter(|(dir, _)| !column.has(dir)).cloned().collect();
            execute(args, variant, plan, &left, hosts, &mut |dir, ran| {
                column.add(&version, dir, ran);
                conformance::keep(&docs, &column)
            })?;
            column.finish();
            conformance::keep(&docs, &column)?;
            sum += column.tally();
        }
        Ok(sum)
    })?;
    println!("the table is in {}", paths::shown(&docs.join("conformance.md")));
    Ok(total)
}

fn tally(results: &[Done]) -> Tally {
    results.iter().map(|(_, ran)| Counts::of(ran).tally()).sum()
}

/// Runs the tests as [`run`] does and returns their times.
pub fn time(args: &MpichTestArgs) -> Result<Timing> {
    let plan = plan(args)?;
    plan.build()?;
    let mut timing = Timing::default();
    args.variants.each(|variant| {
        let results = execute(args, variant, &plan, &plan.directories, DEFAULT_HOSTS, &mut |_, _| Ok(()))?;
        for ran in results.iter().flat_map(|(_, ran)| ran) {
            timing.elapsed += ran.elapsed;
            timing.tests += 1;
            timing.failed += usize::from(matches!(ran.verdict, Verdict::Failed(_)));
            timing.timed_out += usize::from(ran.is_out_of_time());
        }
        Ok(results.iter().map(|(_, ran)| Counts::of(ran).tally()).sum())
    })?;
    Ok(timing)
}

impl Plan {
    fn build(&self) -> Result<()> {
        let tops = self.directories.iter().filter_map(|(dir, _)| dir.split('/').next());
        let tops: BTreeSet<String> = tops.map(str::to_string).collect();
        ui::step("build: the suite's programs", || self.suite.build(&tops, cores()))
    }
}

fn plan(args: &MpichTestArgs) -> Result<Plan> {
    let choice = if args.ci { Some(Choice::read(&paths::root().join("tests/mpich/ci.txt"))?) } else { None };
    let patterns: Vec<Pattern> = match &choice {
        _ if args.all => Vec::new(),
        _ if !args.patterns.is_empty() => args.patterns.iter().map(|text| Pattern::new(text)).collect(),
        Some(choice) => choice.patterns().cloned().collect(),
        None => DIRS.iter().map(|dir| Pattern::new(dir)).collect(),
    };
    let expected = Expected::read(&paths::root().join("tests/mpich/xfail.txt"))?;

    let (mpi, suite, place, lock) = prepare(args)?;
    let patterns = if args.all { suite.directories()?.iter().map(|dir| Pattern::new(dir)).collect() } else { patterns };
    let wanted = |test: &Test| {
        let id = test.id();
        patterns.iter().any(|pattern| pattern.matches(&id))
            && (args.lists.is_empty() || args.lists.contains(&test.list))
            && (test.memory == 0.0 || !args.small)
            && choice.as_ref().is_none_or(|choice| choice.includes(&test.list, &id))
    };
    let mut tops: Vec<&str> = Vec::new();
    for pattern in &patterns {
        if !tops.contains(&pattern.top()) {
            tops.push(pattern.top());
        }
    }
    let mut directories: Vec<Chosen> = Vec::new();
    for dir in tops.iter().flat_map(|top| suite.lists(top)) {
        for test in testlist::collect(&suite.build, &suite.source, dir)? {
            // Tests that MPICH itself expects to fail often hang until their time limit, which takes too long for CI.
            if !wanted(&test) || (args.ci && test.xfail.is_some()) {
                continue;
            }
            let xfail = test
                .xfail
                .clone()
                .map(|ticket| Reason::always(format!("marked so by MPICH: {ticket}")))
                .or_else(|| expected.reason(&test.id()).cloned());
            match directories.iter_mut().find(|(dir, _)| *dir == test.dir) {
                Some((_, jobs)) => jobs.push((test, xfail)),
                None => directories.push((test.dir.clone(), vec![(test, xfail)])),
            }
        }
    }
    if directories.is_empty() {
        bail!("no test of MPICH's suite matches");
    }
    Ok(Plan { mpi, suite, directories, place, _lock: lock })
}

/// Returns the MPI, the suite configured for it, and a directory for the results, locked against concurrent runs.
fn prepare(args: &MpichTestArgs) -> Result<(Mpi, Suite, PathBuf, Lock)> {
    let (mpi, source, id, name) = match &args.with_mpi {
        None => {
            let installed = setup::ensure(&args.setup)?;
            let name = installed.profile.to_string();
            (installed.mpi, installed.source, installed.source_id, name)
        }
        Some(dir) => {
            let (source, id) = setup::source_only(&args.setup)?;
            let slug = dir.to_string_lossy().replace(|letter: char| !letter.is_ascii_alphanumeric(), "-");
            (Mpi::foreign(dir)?, source, id, format!("with{slug}"))
        }
    };
    let place = paths::target().join("mpich-test").join(&name);
    let lock = lock::take(&place.join("lock"))?;
    let against = Against { mpi: &mpi, name, profile: args.setup.profile };
    let suite = suite::configure(&against, &source, &id)?;
    Ok((mpi, suite, place, lock))
}

/// Runs directories on a ring and passes the results of each to `done` when it is complete.
fn execute(
    args: &MpichTestArgs,
    variant: &Variant,
    plan: &Plan,
    directories: &[Chosen],
    hosts: u8,
    done: &mut dyn FnMut(&str, &[Ran]) -> Result<()>,
) -> Result<Vec<Done>> {
    let Plan { mpi, suite, place, .. } = plan;
    let suffix = if args.rings().len() > 1 { format!("-{hosts}") } else { String::new() };
    let logs = place.join(format!("{}{suffix}", variant.place("logs")));
    if !args.resume {
        paths::remove(&logs)?;
    }
    let (hosts, per_host) = (usize::from(hosts), usize::from(args.per_host));
    let (placement, jobs) = (args.placement, usize::from(args.jobs));
    let runner = Runner {
        mpi,
        suite,
        hosts,
        per_host,
        placement,
        jobs,
        logs: &logs,
        memcheck: args.memcheck,
        env: &variant.env,
    };
    let timeouts = AtomicUsize::new(0);
    let seen = |ran: &Ran| {
        if ran.is_out_of_time() {
            timeouts.fetch_add(1, Ordering::Relaxed);
        }
        if matches!(ran.verdict, Verdict::Failed(_)) {
            ui::failed(format!("{} [{}]", ran.id, ran.layout));
        }
        if let Some(line) = report::remark(ran) {
            println!("{line}");
        }
    };

    match placement {
        None => println!("MPICH's test suite on {hosts} hosts, {per_host} rank(s) a host where that suffices:"),
        Some(seed) => println!("MPICH's test suite on up to {hosts} hosts, ranks placed by chance (seed {seed}):"),
    }
    let start = Instant::now();
    let mut tally = Tally::default();
    let mut results: Vec<Done> = Vec::new();
    thread::scope(|scope| -> Result<()> {
        // All are begun before the first directory is run.
        let begun: Vec<Begun> = directories.iter().map(|(_, jobs)| runner.begin(scope, jobs, &seen)).collect();
        for ((dir, jobs), begun) in directories.iter().zip(begun) {
            let begin = Instant::now();
            let ran = runner.run_all(jobs, begun, &seen)?;
            let counts = Counts::of(&ran);
            println!("{}", counts.line(dir, begin.elapsed()));
            ui::flush();
            tally += counts.tally();
            done(dir, &ran)?;
            results.push((dir.clone(), ran));
            let timeouts = timeouts.load(Ordering::Relaxed);
            if !args.all && timeouts >= TOO_MANY_TIMEOUTS && timeouts * 2 > tally.passed + tally.failed {
                println!("  the rest is not run: {timeouts} tests ran out of time");
                break;
            }
        }
        Ok(())
    })?;
    let file = place.join(format!("{}{suffix}.json", variant.place("report")));
    report::write(&file, mpi.prefix(), (hosts, per_host), &results)?;
    println!("  {} in all; report: {}", ui::seconds(start.elapsed()), paths::shown(&file));
    Ok(results)
}
