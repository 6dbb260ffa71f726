//! The jobs: a program, the ranks on which it runs, and the tests that it performs.

mod lists;
mod merge;

use std::fmt;

pub use lists::{
    ablation, all, apps, coll, efficiency, limits, p2p, queue_management, rma, startup, APP_RANKS, COLLECTIVES,
};
pub use merge::{merged, restrict, singly, want};

/// The small applications of `benches/apps`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum App {
    /// Jacobi's iteration on a plane, with exchange of borders
    Halo,
    /// Conjugate gradients
    Cg,
    /// Sorting by samples
    Sort,
    /// Fourier transform of a plane, by transposes
    Fft,
}

impl App {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Halo, Self::Cg, Self::Sort, Self::Fft];

    /// Returns its name, which is also that of its only figure.
    pub fn name(self) -> &'static str {
        match self {
            Self::Halo => "halo",
            Self::Cg => "cg",
            Self::Sort => "sort",
            Self::Fft => "fft",
        }
    }

    fn sources(self) -> &'static [&'static str] {
        match self {
            Self::Halo => &["apps/halo.c", "apps/app.c", "mpi/common.c"],
            Self::Cg => &["apps/cg.c", "apps/app.c", "mpi/common.c"],
            Self::Sort => &["apps/sort.c", "apps/app.c", "mpi/common.c"],
            Self::Fft => &["apps/fft.c", "apps/app.c", "mpi/common.c"],
        }
    }
}

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
    /// One of `benches/apps`
    App(App),
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
            Self::App(app) => app.sources(),
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
            Self::App(app) => app.name(),
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

    /// Returns true if it is told which tests to perform; the other programs have only one.
    pub fn has_tests(self) -> bool {
        !matches!(self, Self::Startup | Self::Memory | Self::App(_))
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
    /// If true, ranks are bound to cores where there is one for each.
    pub bound: bool,
    /// The tests that it performs; empty for a program without tests.
    pub tests: Vec<Test>,
}

impl Job {
    fn new(program: Program, shape: Shape, who: Who, tests: Vec<Test>) -> Self {
        Self { program, shape, who, bound: true, tests }
    }

    /// Returns a job for one figure.
    pub fn of_figure(program: Program, shape: Shape, who: Who, name: &'static str, bytes: u64) -> Self {
        let tests = if program.has_tests() { vec![Test { name, sizes: vec![bytes] }] } else { Vec::new() };
        Self::new(program, shape, who, tests)
    }

    /// Returns the ending of the names of its figures.
    pub fn suffix(&self) -> &'static str {
        suffix(self.program, self.shape, self.bound)
    }

    /// Returns true if both are runs of the same program in the same way, perhaps with different tests.
    fn is_like(&self, other: &Self) -> bool {
        let how = |job: &Self| (job.program, job.shape, job.who, job.bound);
        how(self) == how(other)
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
        let how = match self.suffix() {
            "" => String::new(),
            suffix => format!(" ({})", &suffix[1..]),
        };
        match self.shape {
            Shape::Machine => format!("limits of the machine{}", self.named()),
            shape => format!("{}{}, {} ranks{how}", self.program.name(), self.named(), shape.ranks()),
        }
    }
}

/// Returns the ending of the names of figures that have the same test and number of ranks as others, but other hosts or
/// no bound ranks.
pub fn suffix(program: Program, shape: Shape, bound: bool) -> &'static str {
    match (program, shape, bound) {
        (Program::Coll, Shape::Pairs, _) => "_2x2",
        (_, _, false) => "_unbound",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_are_written_as_the_programs_read_them() {
        let test = |name, sizes: &[u64]| Test { name, sizes: sizes.to_vec() };
        assert_eq!(test("put", &[8, 16]).to_string(), "put=8,16");
        assert_eq!(test("barrier", &[]).to_string(), "barrier");
    }

    #[test]
    fn runs_in_other_ways_have_names_of_their_own() {
        let bound = Job::of_figure(Program::Coll, Shape::Hosts(4), Who::Main, "scan", 8);
        let unbound = Job { bound: false, ..bound.clone() };
        let on_two_hosts = Job { shape: Shape::Pairs, ..bound.clone() };
        assert_eq!([&bound, &unbound, &on_two_hosts].map(Job::suffix), ["", "_unbound", "_2x2"]);
        assert_eq!(unbound.describe(), "coll scan=8, 4 ranks (unbound)");
        assert!(!bound.is_like(&unbound) && bound.is_like(&Job { tests: Vec::new(), ..bound.clone() }));
        assert_eq!(suffix(Program::P2p, Shape::Pairs, true), "", "its tests have other names already");
    }

    #[test]
    fn sources_are_there() {
        let apps = App::ALL.into_iter().map(Program::App);
        for source in apps.chain([Program::P2p, Program::Rma, Program::Coll]).flat_map(Program::sources) {
            assert!(crate::paths::root().join("benches").join(source).is_file(), "{source}");
        }
    }
}
