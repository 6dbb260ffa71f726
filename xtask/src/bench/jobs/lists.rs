//! The jobs of each benchmark.

use crate::bench::jobs::{App, Job, Program, Shape, Test, Who};

fn test(name: &'static str, sizes: &[u64]) -> Test {
    Test { name, sizes: sizes.to_vec() }
}

/// The collectives with data.
pub const COLLECTIVES: [&str; 8] =
    ["bcast", "reduce", "allreduce", "allgather", "reduce_scatter_block", "alltoall", "alltoallv", "scan"];

/// Numbers of ranks of the small applications.
pub const APP_RANKS: [usize; 3] = [4, 8, 16];

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
    let tests = COLLECTIVES.map(|name| test(name, few(FEW_COLLECTIVE, quick)));
    let tests: Vec<Test> = [test("barrier", &[])].into_iter().chain(tests).collect();
    [2, 4, 8].map(|ranks| Job::new(Program::Coll, Shape::Hosts(ranks), Who::Main, tests.clone())).to_vec()
}

/// Returns the jobs that measure start-up time and memory.
pub fn startup() -> Vec<Job> {
    let job = |program, ranks| Job::new(program, Shape::Hosts(ranks), Who::Main, Vec::new());
    vec![job(Program::Startup, 2), job(Program::Startup, 8), job(Program::Memory, 2), job(Program::Memory, 8)]
}

/// Returns the jobs of the small applications.
pub fn apps() -> Vec<Job> {
    let all = APP_RANKS.into_iter().flat_map(|ranks| App::ALL.map(|app| (app, ranks)));
    all.map(|(app, ranks)| Job::new(Program::App(app), Shape::Hosts(ranks), Who::Main, Vec::new())).collect()
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
    [p2p(quick), rma(quick), coll(quick), startup(), apps(), ablation(quick), efficiency(quick), modelled()].concat()
}
