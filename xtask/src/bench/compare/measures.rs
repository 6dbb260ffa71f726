//! The measures of `bench compare`, and the jobs that they need.

use crate::bench::contestants::OURS;
use crate::bench::figures::{size, MACHINE};
use crate::bench::jobs::{self, Job, Program, Shape, Who};
use crate::bench::papers::efficiency;
use crate::bench::tables::{limit_of, Limit};

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

/// The figure with which a measure is compared.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Than {
    /// The best figure of all other MPIs.
    Best,
    /// One figure: its contestant, test and size in bytes.
    Figure(&'static str, &'static str, u64),
    /// A value that is known without measuring: its name and the value.
    Known(&'static str, f64),
}

/// One line of the comparison.
#[derive(Clone, Debug)]
pub struct Measure {
    pub(super) name: String,
    pub(super) program: Program,
    pub(super) shape: Shape,
    pub(super) who: Who,
    /// The contestant whose figure it is.
    pub(super) of: &'static str,
    pub(super) test: &'static str,
    pub(super) bytes: u64,
    pub(super) than: Than,
    /// The ratio to be reached: an upper bound where smaller is better, otherwise a lower bound.
    pub(super) to_reach: f64,
    pub(super) limit: Option<Limit>,
    /// The ratio to the limit to be reached, if any.
    pub(super) of_limit_to_reach: Option<f64>,
}

/// Returns all measures.
pub(super) fn measures() -> Vec<Measure> {
    let pair = |name: String, test, bytes, to_reach| Measure {
        name,
        program: Program::P2p,
        shape: Shape::Pair,
        who: Who::Main,
        of: OURS,
        test,
        bytes,
        than: Than::Best,
        to_reach,
        limit: limit_of(test, bytes),
        of_limit_to_reach: None,
    };
    let short = |bytes| size(bytes).replace(' ', "");
    let mut all = Vec::new();
    all.push(Measure { of_limit_to_reach: Some(1.8), ..pair("latency_8B".into(), "latency", 8, 0.90) });
    for bytes in [64, KIB, 4 * KIB, 64 * KIB, MIB, 4 * MIB] {
        all.push(pair(format!("latency_{}", short(bytes)), "latency", bytes, 0.95));
    }
    all.push(pair("rate_8B".into(), "rate", 8, 1.25));
    let own = Than::Figure(OURS, "rate", 64);
    all.push(Measure { than: own, ..pair("rate_128B_of_own_64B".into(), "rate", 128, 0.80) });
    for bytes in [4 * KIB, 64 * KIB, MIB, 4 * MIB, 64 * MIB] {
        let to_reach = if bytes > 4 * MIB { 1.0 } else { 1.05 };
        all.push(pair(format!("bandwidth_{}", short(bytes)), "bandwidth", bytes, to_reach));
    }
    for bytes in [64 * KIB, MIB, 4 * MIB] {
        let than = Than::Figure(MACHINE, "raw_bandwidth", bytes);
        all.push(Measure { than, ..pair(format!("efficiency_{}", short(bytes)), "bandwidth", bytes, 0.97) });
    }
    for (name, test) in [("put_8B", "put"), ("fetch_and_op_8B", "fetch_and_op")] {
        all.push(Measure { program: Program::Rma, ..pair(name.into(), test, 8, 1.0) });
    }
    for (name, test, bytes) in [
        ("barrier_4ranks", "barrier", 0),
        ("allreduce_8B_4ranks", "allreduce", 8),
        ("alltoall_64KiB_4ranks", "alltoall", 64 * KIB),
    ] {
        let (program, shape) = (Program::Coll, Shape::Hosts(4));
        all.push(Measure { program, shape, ..pair(name.into(), test, bytes, 1.0) });
    }
    for (name, program, test) in
        [("startup_8ranks", Program::Startup, "startup"), ("memory_8ranks", Program::Memory, "memory_pss")]
    {
        all.push(Measure { program, shape: Shape::Hosts(8), ..pair(name.into(), test, 0, 1.0) });
    }
    for bytes in [MIB, 4 * MIB] {
        let (who, of) = (Who::Model, "ntbring-gen3x8-d2");
        let than = Than::Figure("ntbring-gen3x8", "bandwidth", bytes);
        let name = format!("relayed_gen3x8_{}", short(bytes));
        all.push(Measure { who, of, than, limit: None, ..pair(name, "bandwidth", bytes, 0.95) });
    }
    for bytes in [64 * KIB, MIB, 4 * MIB] {
        let (who, of) = (Who::Model, "ntbring-gen3x8");
        let than = Than::Known("link model gen3x8", efficiency::GEN3X8);
        let name = format!("efficiency_gen3x8_{}", short(bytes));
        all.push(Measure { who, of, than, limit: None, ..pair(name, "bandwidth", bytes, 0.97) });
    }
    all
}

/// Returns the jobs for the figures that these measures need: those of the machine before those that are compared with
/// them.
pub(super) fn jobs(measures: &[Measure]) -> Vec<Job> {
    let mut jobs = Vec::new();
    for measure in measures {
        let mut machine = |test, bytes| {
            jobs::want(&mut jobs, Program::Limits, Shape::Machine, Who::Machine, test, bytes);
        };
        if let Some(limit) = measure.limit {
            machine(limit.test, limit.bytes);
        }
        if let Than::Figure(MACHINE, test, bytes) = measure.than {
            machine(test, bytes);
        }
        let Measure { program, shape, who, test, bytes, .. } = *measure;
        jobs::want(&mut jobs, program, shape, who, test, bytes);
        if let Than::Figure(whose, test, bytes) = measure.than {
            if whose != MACHINE {
                jobs::want(&mut jobs, program, shape, who, test, bytes);
            }
        }
    }
    jobs
}
