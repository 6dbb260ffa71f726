//! `cargo xtask mpich-test`: MPICH's own test suite on the ring.

mod conformance;
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
use std::time::{Duration, Instant};

use anyhow::{bail, Result};
use clap::Args;

use crate::lock::{self, Lock};
use crate::mpi::Mpi;
use crate::setup::{self, packages, remove, Profile, SetupArgs};
use crate::ui::{self, Tally};
use crate::variants::{Variant, VariantArgs};
use crate::{cores, paths, version};
use conformance::Column;
use report::Counts;
use run::{Job, Ran, Runner, Verdict};
use selection::{Choice, Expected, Pattern, Reason};
use suite::{Against, Suite};
use testlist::Test;

/// The directories that are run if none are given.
const DIRS: &[&str] = &["pt2pt", "coll", "datatype", "comm", "topo", "attr", "group", "info", "init", "errors"];

/// Hosts of the ring, if nothing else is said.
const DEFAULT_HOSTS: u8 = 4;

/// Rings of neighbours only, with one way that is as long as the other, and with none.
const ALL_HOSTS: &[u8] = &[2, 4, 5];

/// After so many tests ran out of time, if they are more than half, the rest is not worth
/// waiting for.
const TOO_MANY_TIMEOUTS: usize = 5;

/// What can be chosen.
#[derive(Args, Clone, Debug)]
pub struct MpichTestArgs {
    /// Hosts of the ring; with several, one after the other [default: 4; with --all 2,4,5]
    #[arg(long, value_name = "H", value_delimiter = ',', value_parser = clap::value_parser!(u8).range(1..=16))]
    hosts: Vec<u8>,

    /// Run all directories that the profile builds, and write docs/conformance.md
    #[arg(long, conflicts_with_all = ["ci", "list", "patterns", "extremes", "memcheck"])]
    all: bool,

    /// Place ranks on hosts by chance, from this seed, instead of evenly
    #[arg(long, value_name = "SEED")]
    placement: Option<u64>,

    /// Ranks on a host; more where a test wants more than all hosts then have
    #[arg(long, value_name = "P", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..))]
    per_host: u8,

    /// Run only the part that tests/mpich/ci.txt chooses
    #[arg(long)]
    ci: bool,

    /// Tests to run at once
    #[arg(long, value_name = "J", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..))]
    jobs: u8,

    /// Which of the suite's lists to run, separated by commas [default: all three]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = testlist::LISTS.to_vec())]
    lists: Vec<String>,

    /// Run with the MPICH installed in DIR (with DIR/bin/mpicc) instead of ours: does a failure come from us?
    #[arg(long, value_name = "DIR")]
    with_mpi: Option<PathBuf>,

    /// Run the tests under valgrind; what it finds is a failure
    #[arg(long)]
    memcheck: bool,

    /// Show what would be run
    #[arg(long)]
    list: bool,

    /// Directories of the suite, or tests: "coll", "coll/allred", "coll/allred 4"
    #[arg(value_name = "DIR")]
    patterns: Vec<String>,

    #[command(flatten)]
    variants: VariantArgs,

    #[command(flatten)]
    setup: SetupArgs,
}

impl MpichTestArgs {
    /// What CI runs.
    pub fn ci(setup: SetupArgs) -> Self {
        Self {
            hosts: Vec::new(),
            all: false,
            placement: None,
            per_host: 1,
            ci: true,
            jobs: 1,
            lists: Vec::new(),
            with_mpi: None,
            memcheck: false,
            list: false,
            patterns: Vec::new(),
            variants: VariantArgs::default(),
            setup,
        }
    }

    /// What `bench compare --suites` times: the plain list of a directory, one rank a host where that
    /// suffices; with our MPICH or another one.
    pub fn timed(setup: SetupArgs, dir: &str, with_mpi: Option<PathBuf>, env: Vec<(String, String)>) -> Self {
        Self {
            ci: false,
            lists: vec!["testlist".to_string()],
            with_mpi,
            patterns: vec![dir.to_string()],
            variants: VariantArgs::of(env),
            ..Self::ci(setup)
        }
    }
}

impl MpichTestArgs {
    /// The rings to be run on.
    fn rings(&self) -> Vec<u8> {
        match (&self.hosts[..], self.all) {
            ([], true) => ALL_HOSTS.to_vec(),
            ([], false) => vec![DEFAULT_HOSTS],
            (hosts, _) => hosts.to_vec(),
        }
    }

    /// What tells one run of everything from another.
    fn column(&self, hosts: u8) -> String {
        let mut name = format!("{hosts} hosts");
        if self.per_host > 1 {
            name.push_str(&format!(" of {}", self.per_host));
        }
        if let Some(seed) = self.placement {
            name.push_str(&format!(", seed {seed}"));
        }
        match &self.with_mpi {
            Some(dir) => name.push_str(&format!(", MPI in {}", dir.display())),
            None if self.setup.profile != Profile::Full => name.push_str(&format!(", {}", self.setup.profile)),
            None => {}
        }
        self.variants.settings().for_each(|setting| name.push_str(&format!(", {setting}")));
        name
    }

    /// The command, for the page that it writes.
    fn shown(&self, hosts: u8) -> String {
        let mut text = format!("cargo xtask mpich-test --all --profile {}", self.setup.profile);
        let mut list = |name: &str, items: Vec<String>| {
            if !items.is_empty() {
                text.push_str(&format!(" --{name} {}", items.join(",")));
            }
        };
        list("hosts", vec![hosts.to_string()]);
        list("per-host", if self.per_host > 1 { vec![self.per_host.to_string()] } else { Vec::new() });
        list("placement", self.placement.iter().map(ToString::to_string).collect());
        list("lists", self.lists.clone());
        list("with-mpi", self.with_mpi.iter().map(|dir| dir.display().to_string()).collect());
        self.variants.settings().for_each(|setting| text.push_str(&format!(" --env {setting}")));
        text
    }
}

/// What is to be run, and with what.
struct Plan {
    mpi: Mpi,
    suite: Suite,
    directories: Vec<(String, Vec<Job>)>,
    /// Where the logs and the report go.
    place: PathBuf,
    _lock: Lock,
}

/// How long tests took, and how they ended.
#[derive(Clone, Copy, Debug, Default)]
pub struct Timing {
    /// The time of all tests together.
    pub elapsed: Duration,
    /// Tests that were run.
    pub tests: usize,
    /// Of these, those that failed though nobody expected it; also by running out of time.
    pub failed: usize,
    /// Of these, those that ran out of time.
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
    let docs = paths::root().join("docs");
    // Before there is a page that was changed.
    let version = version::commit().unwrap_or_else(|| "unknown".to_string());
    let tally = args.variants.each(|variant| {
        let mut sum = Tally::default();
        for hosts in args.rings() {
            let results = execute(args, variant, &plan, hosts)?;
            sum += results.iter().map(|(_, ran)| Counts::of(ran).tally()).sum();
            if args.all {
                let column = Column::new(args.column(hosts), args.shown(hosts), version.clone(), &results);
                conformance::keep(&docs, &column)?;
            }
        }
        Ok(sum)
    })?;
    if args.all {
        println!("the table is in {}", paths::shown(&docs.join("conformance.md")));
    }
    Ok(tally)
}

/// Runs the tests as [`run`] does, and says how long they took.
pub fn time(args: &MpichTestArgs) -> Result<Timing> {
    let plan = plan(args)?;
    plan.build()?;
    let mut timing = Timing::default();
    args.variants.each(|variant| {
        let results = execute(args, variant, &plan, DEFAULT_HOSTS)?;
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
            && choice.as_ref().is_none_or(|choice| choice.includes(&test.list, &id))
    };
    let mut tops: Vec<&str> = Vec::new();
    for pattern in &patterns {
        if !tops.contains(&pattern.top()) {
            tops.push(pattern.top());
        }
    }
    let mut directories: Vec<(String, Vec<Job>)> = Vec::new();
    for top in &tops {
        for test in testlist::collect(&suite.build, &suite.source, top)? {
            // What MPICH itself expects to fail often hangs until its time is up: not for CI.
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

/// The MPI and the suite, configured for it; and a place for what comes out, which nobody else uses meanwhile.
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

fn execute(args: &MpichTestArgs, variant: &Variant, plan: &Plan, hosts: u8) -> Result<Vec<(String, Vec<Ran>)>> {
    let Plan { mpi, suite, directories, place, .. } = plan;
    let suffix = if args.rings().len() > 1 { format!("-{hosts}") } else { String::new() };
    let logs = place.join(format!("{}{suffix}", variant.place("logs")));
    remove(&logs)?;
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
    let mut results: Vec<(String, Vec<Ran>)> = Vec::new();
    for (dir, jobs) in directories {
        let begin = Instant::now();
        let ran = runner.run_all(jobs, &seen)?;
        let counts = Counts::of(&ran);
        println!("{}", counts.line(dir, begin.elapsed()));
        ui::flush();
        tally += counts.tally();
        results.push((dir.clone(), ran));
        let timeouts = timeouts.load(Ordering::Relaxed);
        if !args.all && timeouts >= TOO_MANY_TIMEOUTS && timeouts * 2 > tally.passed + tally.failed {
            println!("  the rest is not run: {timeouts} tests ran out of time");
            break;
        }
    }
    let file = place.join(format!("{}{suffix}.json", variant.place("report")));
    report::write(&file, mpi.prefix(), (hosts, per_host), &results)?;
    println!("  {} in all; report: {}", ui::seconds(start.elapsed()), paths::shown(&file));
    Ok(results)
}
