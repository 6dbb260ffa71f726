//! The measures of `bench compare` except those of collectives, and the jobs that all need.

use crate::bench::compare::collectives;
use crate::bench::contestants::OURS;
use crate::bench::figures::{size, MACHINE};
use crate::bench::jobs::{self, App, Job, Program, Shape, Who};
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
    /// If true, ranks are bound to cores where there is one for each.
    pub(super) bound: bool,
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

impl Measure {
    /// Returns a measure that compares ntbring with the best of the others.
    pub(super) fn new(
        name: String,
        program: Program,
        shape: Shape,
        (test, bytes): (&'static str, u64),
        to_reach: f64,
    ) -> Self {
        let (who, of, than) = (Who::Main, OURS, Than::Best);
        let (limit, of_limit_to_reach) = (None, None);
        Self { name, program, shape, who, bound: true, of, test, bytes, than, to_reach, limit, of_limit_to_reach }
    }

    /// Returns the name under which the figure is stored.
    pub(super) fn figure(&self) -> String {
        format!("{}{}", self.test, jobs::suffix(self.program, self.shape, self.bound))
    }

    /// Returns true if it is worth measuring on a machine with so many cores: where there are more ranks, none are
    /// bound in any case.
    pub(super) fn is_possible(&self, cores: usize) -> bool {
        self.bound || self.shape.ranks() <= cores
    }

    /// Returns a job for a figure that is measured in the same runs.
    fn job(&self, test: &'static str, bytes: u64) -> Job {
        Job { bound: self.bound, ..Job::of_figure(self.program, self.shape, self.who, test, bytes) }
    }
}

/// Returns a size as a part of names.
pub(super) fn short(bytes: u64) -> String {
    size(bytes).replace(' ', "")
}

fn pair(name: String, test: &'static str, bytes: u64, to_reach: f64) -> Measure {
    Measure { limit: limit_of(test, bytes), ..Measure::new(name, Program::P2p, Shape::Pair, (test, bytes), to_reach) }
}

/// Returns all measures.
pub(super) fn measures() -> Vec<Measure> {
    let mut all = of_pairs();
    all.extend(one_sided());
    all.extend(collectives::measures());
    all.extend(whole_programs());
    all.extend(modelled());
    all
}

fn of_pairs() -> Vec<Measure> {
    let sized = |test: &'static str, bytes, to_reach| pair(format!("{test}_{}", short(bytes)), test, bytes, to_reach);
    let mut all = vec![Measure { of_limit_to_reach: Some(1.8), ..sized("latency", 8, 0.95) }];
    all.extend([64, KIB, 4 * KIB, 64 * KIB, MIB, 4 * MIB].map(|bytes| sized("latency", bytes, 0.95)));
    all.extend([8, 64].map(|bytes| sized("rate", bytes, 1.1)));
    let own = Than::Figure(OURS, "rate", 64);
    all.push(Measure { than: own, ..pair("rate_128B_of_own_64B".into(), "rate", 128, 0.80) });
    all.extend([4 * KIB, 64 * KIB, MIB, 4 * MIB].map(|bytes| sized("bandwidth", bytes, 1.05)));
    all.push(sized("bandwidth", 64 * MIB, 1.0));
    all.extend([4 * KIB, 64 * KIB, MIB, 4 * MIB].map(|bytes| sized("bibw", bytes, 1.05)));
    all.extend([64 * KIB, MIB, 4 * MIB].map(|bytes| {
        let than = Than::Figure(MACHINE, "raw_bandwidth", bytes);
        Measure { than, ..pair(format!("efficiency_{}", short(bytes)), "bandwidth", bytes, 0.97) }
    }));
    all
}

/// Those that crash some versions of Open MPI come last.
fn one_sided() -> Vec<Measure> {
    let tests = ["put", "get", "fetch_and_op", "compare_and_swap", "accumulate"];
    let measure = |test| Measure::new(format!("{test}_8B"), Program::Rma, Shape::Pair, (test, 8), 1.0);
    tests.map(measure).to_vec()
}

fn whole_programs() -> Vec<Measure> {
    let measure = |program: Program, test: &'static str, ranks, to_reach| {
        let name = format!("{}_{ranks}ranks", program.name());
        Measure::new(name, program, Shape::Hosts(ranks), (test, 0), to_reach)
    };
    let mut all = [2, 8, 32].map(|ranks| measure(Program::Startup, "startup", ranks, 1.0)).to_vec();
    all.push(measure(Program::Memory, "memory_pss", 8, 1.0));
    for app in App::ALL {
        all.extend(jobs::APP_RANKS.map(|ranks| measure(Program::App(app), app.name(), ranks, 0.95)));
    }
    all
}

/// Bandwidths under a link model, compared with our own at one hop and with the model's.
fn modelled() -> Vec<Measure> {
    let mut all = Vec::new();
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
            jobs::want(&mut jobs, Job::of_figure(Program::Limits, Shape::Machine, Who::Machine, test, bytes));
        };
        if let Some(limit) = measure.limit {
            machine(limit.test, limit.bytes);
        }
        if let Than::Figure(MACHINE, test, bytes) = measure.than {
            machine(test, bytes);
        }
        jobs::want(&mut jobs, measure.job(measure.test, measure.bytes));
        if let Than::Figure(whose, test, bytes) = measure.than {
            if whose != MACHINE {
                jobs::want(&mut jobs, measure.job(test, bytes));
            }
        }
    }
    jobs
}
