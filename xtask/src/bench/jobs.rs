//! The jobs: a program, the ranks on which it runs, and the tests that it performs.

use std::fmt;

/// The programs of `benches/`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Program {
    /// `benches/mpi/p2p.c`
    P2p,
    /// `benches/mpi/rma.c`
    Rma,
    /// `benches/mpi/coll.c`
    Coll,
    /// `benches/mpi/startup.c`, timed by its parent
    Startup,
    /// `benches/mpi/startup.c`, which reports its memory
    Memory,
    /// `benches/machine/limits.c`, without MPI
    Limits,
    /// `benches/papers`, a crate, without MPI
    Papers,
}

impl Program {
    /// Returns its C sources, below `benches/`.
    pub fn sources(self) -> &'static [&'static str] {
        match self {
            Self::P2p => &["mpi/p2p.c", "mpi/engine.c", "mpi/common.c"],
            Self::Rma => &["mpi/rma.c", "mpi/engine.c", "mpi/common.c"],
            Self::Coll => &["mpi/coll.c", "mpi/engine.c", "mpi/common.c"],
            Self::Startup | Self::Memory => &["mpi/startup.c", "mpi/common.c"],
            Self::Limits => &["machine/limits.c", "mpi/common.c"],
            Self::Papers => &[],
        }
    }

    /// Returns the name of its executables.
    pub fn binary(self) -> &'static str {
        match self {
            Self::P2p => "p2p",
            Self::Rma => "rma",
            Self::Coll => "coll",
            Self::Startup | Self::Memory => "startup",
            Self::Limits => "limits",
            Self::Papers => "ntbring-papers",
        }
    }

    /// Returns its name for messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Papers => "papers",
            other => other.binary(),
        }
    }
}

/// The number of ranks and their placement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Shape {
    /// Two ranks on two hosts; on a ring, at the contestant's distance.
    Pair,
    /// Two hosts of two ranks each, paired across.
    Pairs,
    /// This many hosts of one rank.
    Hosts(usize),
    /// Two processes without MPI.
    Machine,
}

impl Shape {
    /// Returns the number of ranks that take part.
    pub fn ranks(self) -> usize {
        match self {
            Self::Pair | Self::Machine => 2,
            Self::Pairs => 4,
            Self::Hosts(count) => count,
        }
    }
}

/// One test and the sizes to measure; an empty list means the test's own sizes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Test {
    /// Name of the test in the program.
    pub name: &'static str,
    /// Sizes in bytes.
    pub sizes: Vec<u64>,
}

impl fmt::Display for Test {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sizes: Vec<String> = self.sizes.iter().map(ToString::to_string).collect();
        match sizes.is_empty() {
            true => out.write_str(self.name),
            false => write!(out, "{}={}", self.name, sizes.join(",")),
        }
    }
}

/// The group of contestants that run a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Who {
    /// ntbring between neighbours on a ring, and the other MPIs.
    Main,
    /// The same, and ntbring between ranks that are further apart.
    Distances,
    /// Only ntbring on rings under a link model.
    Model,
    /// The models of MPI-VMMC.
    Ablation,
    /// The two of these models that show the effect of queue management.
    QueueManagement,
    /// ntbring, as it is compared with the raw window.
    Efficiency,
    /// No contestant: the machine itself.
    Machine,
    /// The machine itself, in the rounds of [`Who::Efficiency`], since it may be in another state in other rounds.
    RawWindow,
}

/// One run of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    /// The program.
    pub program: Program,
    /// Its ranks.
    pub shape: Shape,
    /// The contestants that run it.
    pub who: Who,
    /// The tests that it performs; empty for a program without tests.
    pub tests: Vec<Test>,
}

impl Job {
    fn new(program: Program, shape: Shape, who: Who, tests: Vec<Test>) -> Self {
        Self { program, shape, who, tests }
    }

    /// Returns the name of its test if it has exactly one, with the size if there is exactly one.
    fn named(&self) -> String {
        match self.tests.as_slice() {
            [test] if test.sizes.len() == 1 => format!(" {test}"),
            [test] => format!(" {}", test.name),
            _ => String::new(),
        }
    }

    /// Returns a short description.
    pub fn describe(&self) -> String {
        match self.shape {
            Shape::Machine => format!("limits of the machine{}", self.named()),
            shape => format!("{}{}, {} ranks", self.program.name(), self.named(), shape.ranks()),
        }
    }
}

fn test(name: &'static str, sizes: &[u64]) -> Test {
    Test { name, sizes: sizes.to_vec() }
}

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

/// Sizes for latencies and bandwidths that suffice to show the curve.
const FEW: &[u64] = &[8, 64, KIB, 4 * KIB, 64 * KIB, MIB, 4 * MIB];
const FEW_ONE_SIDED: &[u64] = &[8, KIB, 64 * KIB, MIB];
const FEW_COLLECTIVE: &[u64] = &[8, 64 * KIB];

/// Returns few sizes for a quick run, and otherwise none, which means the test's own.
fn few(sizes: &'static [u64], quick: bool) -> &'static [u64] {
    if quick {
        sizes
    } else {
        &[]
    }
}

/// Returns the point-to-point jobs: pairs, several pairs, all neighbours of a ring.
pub fn p2p(quick: bool) -> Vec<Job> {
    let mut latencies = vec![0];
    latencies.extend(FEW);
    let pair = vec![
        Test { name: "latency", sizes: if quick { latencies } else { Vec::new() } },
        test("bandwidth", few(FEW, quick)),
        test("bibw", few(FEW, quick)),
        test("rate", &[]),
    ];
    vec![
        Job::new(Program::P2p, Shape::Pair, Who::Distances, pair),
        Job::new(Program::P2p, Shape::Pairs, Who::Main, vec![test("multibw", &[]), test("multirate", &[])]),
        Job::new(Program::P2p, Shape::Hosts(4), Who::Main, vec![test("ring", &[])]),
        limits(quick),
    ]
}

/// Returns the jobs of one-sided operations.
pub fn rma(quick: bool) -> Vec<Job> {
    let sizes = few(FEW_ONE_SIDED, quick);
    let tests = vec![
        test("put", sizes),
        test("get", sizes),
        test("put_bw", sizes),
        test("get_bw", sizes),
        test("fetch_and_op", &[]),
        test("compare_and_swap", &[]),
        test("fetch_and_op_rate", &[]),
        test("compare_and_swap_rate", &[]),
        test("accumulate", sizes),
        test("accumulate_bw", sizes),
    ];
    vec![Job::new(Program::Rma, Shape::Pair, Who::Distances, tests)]
}

/// Returns the jobs of collectives, some with more ranks than this machine may have cores.
pub fn coll(quick: bool) -> Vec<Job> {
    let tests =
        ["bcast", "reduce", "allreduce", "alltoall", "allgather"].map(|name| test(name, few(FEW_COLLECTIVE, quick)));
    let tests: Vec<Test> = [test("barrier", &[])].into_iter().chain(tests).collect();
    [2, 4, 8].map(|ranks| Job::new(Program::Coll, Shape::Hosts(ranks), Who::Main, tests.clone())).to_vec()
}

/// Returns the jobs that measure start-up time and memory.
pub fn startup() -> Vec<Job> {
    let job = |program, ranks| Job::new(program, Shape::Hosts(ranks), Who::Main, Vec::new());
    vec![job(Program::Startup, 2), job(Program::Startup, 8), job(Program::Memory, 2), job(Program::Memory, 8)]
}

/// Returns the job that measures the limits of the machine.
pub fn limits(quick: bool) -> Job {
    let tests = vec![
        test("cacheline", &[]),
        test("call", &[]),
        test("memcpy", few(FEW, quick)),
        test("raw_bandwidth", few(FEW, quick)),
        test("raw_latency", few(FEW, quick)),
    ];
    Job::new(Program::Limits, Shape::Machine, Who::Machine, tests)
}

/// Returns the jobs of the models of MPI-VMMC.
pub fn ablation(quick: bool) -> Vec<Job> {
    let sizes: Vec<u64> = match quick {
        true => vec![8, 64, 512, 2 * KIB, 8 * KIB, 16 * KIB, 32 * KIB, 64 * KIB, MIB],
        false => (0..=20).map(|power| 1 << power).collect(),
    };
    let latencies = vec![8, 64, 512, 4 * KIB, 64 * KIB];
    let tests = vec![Test { name: "latency", sizes: latencies }, Test { name: "bandwidth", sizes }];
    vec![Job::new(Program::Papers, Shape::Pair, Who::Ablation, tests)]
}

/// Returns the jobs that compare MPI with the raw window.
pub fn efficiency(quick: bool) -> Vec<Job> {
    let sizes: Vec<u64> = match quick {
        true => vec![64 * KIB, MIB, 4 * MIB],
        false => (16..=22).map(|power| 1 << power).collect(),
    };
    let raw = vec![Test { name: "raw_bandwidth", sizes: sizes.clone() }];
    vec![
        Job::new(Program::Limits, Shape::Machine, Who::RawWindow, raw),
        Job::new(Program::P2p, Shape::Pair, Who::Efficiency, vec![Test { name: "bandwidth", sizes }]),
    ]
}

/// Returns the job that shows the effect of queue management, for a comparison, where all of [`ablation`] would take
/// too long.
pub fn queue_management() -> Job {
    Job::new(Program::Papers, Shape::Pair, Who::QueueManagement, vec![test("bandwidth", &[8, 64, 512])])
}

/// Returns the jobs under a link model: between neighbours, and through a host that forwards.
pub fn modelled() -> Vec<Job> {
    vec![Job::new(Program::P2p, Shape::Pair, Who::Model, vec![test("bandwidth", &[64 * KIB, MIB, 4 * MIB])])]
}

/// Returns all of the jobs above.
pub fn all(quick: bool) -> Vec<Job> {
    [p2p(quick), rma(quick), coll(quick), startup(), ablation(quick), efficiency(quick), modelled()].concat()
}

/// Splits jobs into one for each test. The shorter a job is, the sooner its rounds follow each other, and the more
/// similar is the state of the machine in all of them.
pub fn singly(jobs: Vec<Job>) -> Vec<Job> {
    jobs.into_iter()
        .flat_map(|job| match job.tests.len() {
            0 => vec![job],
            _ => job.tests.iter().map(|test| Job { tests: vec![test.clone()], ..job.clone() }).collect(),
        })
        .collect()
}

/// Adds a job for one figure, unless one of the jobs measures it already.
pub fn want(jobs: &mut Vec<Job>, program: Program, shape: Shape, who: Who, name: &'static str, bytes: u64) {
    // A program without tests is only run.
    let tests = match program {
        Program::P2p | Program::Rma | Program::Coll | Program::Limits | Program::Papers => vec![test(name, &[bytes])],
        Program::Startup | Program::Memory => Vec::new(),
    };
    let job = Job::new(program, shape, who, tests);
    if !jobs.contains(&job) {
        jobs.push(job);
    }
}

/// Keeps only tests whose name contains `only`, and jobs that have such a test.
pub fn restrict(jobs: Vec<Job>, only: &str) -> Vec<Job> {
    jobs.into_iter()
        .filter_map(|mut job| {
            let named = job.program.name().contains(only);
            job.tests.retain(|test| named || test.name.contains(only));
            (named || !job.tests.is_empty()).then_some(job)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wanted_figures_are_run_once() {
        let mut jobs = Vec::new();
        want(&mut jobs, Program::P2p, Shape::Pair, Who::Main, "latency", 64);
        want(&mut jobs, Program::P2p, Shape::Pair, Who::Main, "latency", 8);
        want(&mut jobs, Program::P2p, Shape::Pair, Who::Main, "latency", 8);
        want(&mut jobs, Program::P2p, Shape::Pair, Who::Main, "rate", 8);
        want(&mut jobs, Program::Startup, Shape::Hosts(8), Who::Main, "startup", 0);
        want(&mut jobs, Program::Startup, Shape::Hosts(8), Who::Main, "startup", 0);
        assert_eq!(jobs.len(), 4);
        let tests: Vec<String> = jobs[..3].iter().map(|job| job.tests[0].to_string()).collect();
        assert_eq!(tests, ["latency=64", "latency=8", "rate=8"]);
        assert!(jobs[3].tests.is_empty());
    }

    #[test]
    fn single_tests_are_jobs() {
        let jobs = singly(all(true));
        assert!(jobs.iter().all(|job| job.tests.len() <= 1));
        assert!(jobs.iter().any(|job| job.program == Program::Startup));
        assert_eq!(jobs[1].describe(), "p2p bandwidth, 2 ranks");
    }

    #[test]
    fn restriction_drops_what_is_not_asked_for() {
        let jobs = restrict(all(true), "put");
        assert_eq!(jobs.len(), 1);
        assert_eq!(jobs[0].tests.iter().map(|test| test.name).collect::<Vec<_>>(), ["put", "put_bw"]);
        assert_eq!(restrict(all(true), "limits").len(), 2, "of p2p, and of efficiency");
        assert!(restrict(all(true), "nonsense").is_empty());
    }

    #[test]
    fn tests_are_written_as_the_programs_read_them() {
        assert_eq!(test("put", &[8, 16]).to_string(), "put=8,16");
        assert_eq!(test("barrier", &[]).to_string(), "barrier");
    }
}
