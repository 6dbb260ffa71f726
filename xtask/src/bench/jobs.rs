//! What can be run: a program, over which ranks, and which of its tests.

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
    /// `benches/mpi/startup.c`, timed from outside
    Startup,
    /// `benches/mpi/startup.c`, asking for its memory
    Memory,
    /// `benches/machine/limits.c`: no MPI
    Limits,
    /// `benches/papers`, a crate: no MPI
    Papers,
}

impl Program {
    /// The C sources, below `benches/`.
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

    /// What its executables are called.
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

    /// For messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Papers => "papers",
            other => other.binary(),
        }
    }
}

/// How many ranks there are, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Shape {
    /// Two ranks on two hosts; on a ring as far apart as the contestant says.
    Pair,
    /// Two hosts of two ranks each, paired across.
    Pairs,
    /// That many hosts of one rank.
    Hosts(usize),
    /// No MPI: two processes.
    Machine,
}

impl Shape {
    /// The number of ranks that take part.
    pub fn ranks(self) -> usize {
        match self {
            Self::Pair | Self::Machine => 2,
            Self::Pairs => 4,
            Self::Hosts(count) => count,
        }
    }
}

/// One test and the sizes that are asked for; none: the test's own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Test {
    /// As the program calls it.
    pub name: &'static str,
    /// In bytes.
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

/// Which of the contestants run a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Who {
    /// Neighbours of a ring, and the other MPIs.
    Main,
    /// These, and ranks further apart on a ring.
    Distances,
    /// Rings under a link model only.
    Model,
    /// The models of MPI-VMMC.
    Ablation,
    /// Of these the two that tell what queue management is worth.
    QueueManagement,
    /// ntbring, to be compared with the raw window.
    Efficiency,
    /// Nobody: the machine itself.
    Machine,
    /// The same, in the rounds of [`Who::Efficiency`]: in others it may have been in another state.
    RawWindow,
}

/// One run of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    /// What is run.
    pub program: Program,
    /// On what.
    pub shape: Shape,
    /// By whom.
    pub who: Who,
    /// What of it.
    pub tests: Vec<Test>,
}

impl Job {
    fn new(program: Program, shape: Shape, who: Who, tests: Vec<Test>) -> Self {
        Self { program, shape, who, tests }
    }

    /// Its test, if it is one, and its size, if it has one.
    fn named(&self) -> String {
        match self.tests.as_slice() {
            [test] if test.sizes.len() == 1 => format!(" {test}"),
            [test] => format!(" {}", test.name),
            _ => String::new(),
        }
    }

    /// In short.
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

/// Of latencies and bandwidths: enough to see the course.
const FEW: &[u64] = &[8, 64, KIB, 4 * KIB, 64 * KIB, MIB, 4 * MIB];
const FEW_ONE_SIDED: &[u64] = &[8, KIB, 64 * KIB, MIB];
const FEW_COLLECTIVE: &[u64] = &[8, 64 * KIB];

/// Sizes for a first look, or the test's own.
fn few(sizes: &'static [u64], quick: bool) -> &'static [u64] {
    if quick {
        sizes
    } else {
        &[]
    }
}

/// Point to point: pairs, several pairs, all neighbours of a ring.
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

/// One-sided operations.
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

/// Collectives, with more ranks than this machine may have cores.
pub fn coll(quick: bool) -> Vec<Job> {
    let tests =
        ["bcast", "reduce", "allreduce", "alltoall", "allgather"].map(|name| test(name, few(FEW_COLLECTIVE, quick)));
    let tests: Vec<Test> = [test("barrier", &[])].into_iter().chain(tests).collect();
    [2, 4, 8].map(|ranks| Job::new(Program::Coll, Shape::Hosts(ranks), Who::Main, tests.clone())).to_vec()
}

/// What it costs to be there at all.
pub fn startup() -> Vec<Job> {
    let job = |program, ranks| Job::new(program, Shape::Hosts(ranks), Who::Main, Vec::new());
    vec![job(Program::Startup, 2), job(Program::Startup, 8), job(Program::Memory, 2), job(Program::Memory, 8)]
}

/// What the machine allows.
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

/// The models of MPI-VMMC.
pub fn ablation(quick: bool) -> Vec<Job> {
    let sizes: Vec<u64> = match quick {
        true => vec![8, 64, 512, 2 * KIB, 8 * KIB, 16 * KIB, 32 * KIB, 64 * KIB, MIB],
        false => (0..=20).map(|power| 1 << power).collect(),
    };
    let latencies = vec![8, 64, 512, 4 * KIB, 64 * KIB];
    let tests = vec![Test { name: "latency", sizes: latencies }, Test { name: "bandwidth", sizes }];
    vec![Job::new(Program::Papers, Shape::Pair, Who::Ablation, tests)]
}

/// MPI and the raw window.
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

/// What queue management is worth: for a comparison, where all of [`ablation`] would take too long.
pub fn queue_management() -> Job {
    Job::new(Program::Papers, Shape::Pair, Who::QueueManagement, vec![test("bandwidth", &[8, 64, 512])])
}

/// Under a link model: between neighbours, and through a host that relays.
pub fn modelled() -> Vec<Job> {
    vec![Job::new(Program::P2p, Shape::Pair, Who::Model, vec![test("bandwidth", &[64 * KIB, MIB, 4 * MIB])])]
}

/// All of the above.
pub fn all(quick: bool) -> Vec<Job> {
    [p2p(quick), rma(quick), coll(quick), startup(), ablation(quick), efficiency(quick), modelled()].concat()
}

/// A job for each test. The shorter a job is, the sooner after each other its rounds are, and the more alike the
/// machine that they find.
pub fn singly(jobs: Vec<Job>) -> Vec<Job> {
    jobs.into_iter()
        .flat_map(|job| match job.tests.len() {
            0 => vec![job],
            _ => job.tests.iter().map(|test| Job { tests: vec![test.clone()], ..job.clone() }).collect(),
        })
        .collect()
}

/// Adds one figure to those that are wanted, as a job of its own, unless it is there.
pub fn want(jobs: &mut Vec<Job>, program: Program, shape: Shape, who: Who, name: &'static str, bytes: u64) {
    // A program that has no tests is only run.
    let tests = match program {
        Program::P2p | Program::Rma | Program::Coll | Program::Limits | Program::Papers => vec![test(name, &[bytes])],
        Program::Startup | Program::Memory => Vec::new(),
    };
    let job = Job::new(program, shape, who, tests);
    if !jobs.contains(&job) {
        jobs.push(job);
    }
}

/// Leaves only tests whose name contains `only`, and jobs that have one.
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
