//! A program that fails is started again for the figures behind the one in which it failed, and a figure that has failed
//! often is not tried again. So a crash costs one figure and not those that share its process.

use std::collections::BTreeMap;

use crate::bench::figures::Figures;
use crate::bench::jobs::{Job, Program, Shape, Test};

/// Number of failures after which a contestant is not asked for a figure again.
const MOST: usize = 2;

/// The identity of a figure, or of a program without tests.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    mpi: String,
    program: Program,
    shape: Shape,
    bound: bool,
    figure: Option<(&'static str, u64)>,
}

/// The failures of all contestants.
#[derive(Debug, Default)]
pub struct Attempts(BTreeMap<Key, usize>);

/// A failure.
#[derive(Debug, PartialEq)]
pub struct Failure {
    /// The figure in which the program failed, if that can be told.
    pub figure: Option<String>,
    /// The figures that have not been tried, if there are any.
    pub rest: Option<Job>,
}

impl Attempts {
    /// Returns the part of a job that is worth a try; None if there is none.
    pub fn worth_it(&self, mpi: &str, job: &Job) -> Option<Job> {
        let often = |figure| self.0.get(&key(mpi, job, figure)).is_some_and(|failures| *failures >= MOST);
        if often(None) {
            return None;
        }
        let Some(all) = figures(job) else { return Some(job.clone()) };
        with(job, all.into_iter().filter(|figure| !often(Some(*figure))))
    }

    /// Notes that a job has failed, with this output. What was too slow once is so again, and counts as often.
    pub fn note(&mut self, mpi: &str, job: &Job, output: &str, timed_out: bool) -> Failure {
        let all = figures(job);
        let mut printed = Figures::default();
        printed.add(mpi, 0, output);
        let is_printed = |(test, bytes): &(&str, u64)| printed.values(test, 0, *bytes, mpi).is_some();
        let mut left = all.iter().flatten().copied().skip_while(is_printed);
        let figure = left.next();
        // A program that fails after its last figure has lost nothing.
        if figure.is_some() || job.tests.is_empty() {
            *self.0.entry(key(mpi, job, figure)).or_default() += if timed_out { MOST } else { 1 };
        }
        Failure { figure: figure.map(|(test, bytes)| format!("{test}={bytes}")), rest: with(job, left) }
    }
}

fn key(mpi: &str, job: &Job, figure: Option<(&'static str, u64)>) -> Key {
    Key { mpi: mpi.to_string(), program: job.program, shape: job.shape, bound: job.bound, figure }
}

/// Returns the figures of a job in their order; None if only the program knows them.
fn figures(job: &Job) -> Option<Vec<(&'static str, u64)>> {
    let known = !job.tests.is_empty() && job.tests.iter().all(|test| !test.sizes.is_empty());
    let of_test = |test: &Test| test.sizes.iter().map(|bytes| (test.name, *bytes)).collect::<Vec<_>>();
    known.then(|| job.tests.iter().flat_map(of_test).collect())
}

/// Returns a job with these figures instead; None if there are none.
fn with(job: &Job, figures: impl Iterator<Item = (&'static str, u64)>) -> Option<Job> {
    let mut tests: Vec<Test> = Vec::new();
    for (name, bytes) in figures {
        match tests.last_mut() {
            Some(last) if last.name == name => last.sizes.push(bytes),
            _ => tests.push(Test { name, sizes: vec![bytes] }),
        }
    }
    (!tests.is_empty()).then(|| Job { tests, ..job.clone() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::jobs::{App, Who};

    fn job() -> Job {
        let tests = vec![Test { name: "put", sizes: vec![8, 64] }, Test { name: "get", sizes: vec![8] }];
        Job { tests, ..Job::of_figure(Program::Rma, Shape::Pair, Who::Main, "put", 8) }
    }

    fn shown(job: Option<Job>) -> Vec<String> {
        job.map_or(Vec::new(), |job| job.tests.iter().map(ToString::to_string).collect())
    }

    const FIRST: &str = "{\"test\":\"put\",\"bytes\":8,\"value\":1.0,\"unit\":\"us\"}\n";

    #[test]
    fn a_failure_costs_one_figure() {
        let mut attempts = Attempts::default();
        let failure = attempts.note("a", &job(), FIRST, false);
        assert_eq!(failure.figure.as_deref(), Some("put=64"));
        assert_eq!(shown(failure.rest), ["get=8"]);
        assert_eq!(shown(attempts.worth_it("a", &job())), ["put=8,64", "get=8"]);
        attempts.note("a", &job(), FIRST, false);
        assert_eq!(shown(attempts.worth_it("a", &job())), ["put=8", "get=8"]);
        assert_eq!(shown(attempts.worth_it("b", &job())), ["put=8,64", "get=8"]);
        let unbound = Job { bound: false, ..job() };
        assert_eq!(shown(attempts.worth_it("a", &unbound)), ["put=8,64", "get=8"]);
    }

    #[test]
    fn a_failure_at_the_end_costs_nothing() {
        let mut attempts = Attempts::default();
        let all = FIRST.to_string() + &FIRST.replace(":8", ":64") + &FIRST.replace("put", "get");
        for _ in 0..MOST {
            assert_eq!(attempts.note("a", &job(), &all, false), Failure { figure: None, rest: None });
        }
        assert_eq!(attempts.worth_it("a", &job()), Some(job()));
    }

    #[test]
    fn programs_without_tests_are_given_up_as_a_whole() {
        let mut attempts = Attempts::default();
        let app = Job::of_figure(Program::App(App::Cg), Shape::Hosts(4), Who::Main, "cg", 0);
        for _ in 0..MOST {
            assert_eq!(attempts.worth_it("a", &app), Some(app.clone()));
            assert_eq!(attempts.note("a", &app, "", false).rest, None);
        }
        assert_eq!(attempts.worth_it("a", &app), None);
        attempts.note("b", &app, "", true);
        assert_eq!(attempts.worth_it("b", &app), None);
        let own = Job { tests: vec![Test { name: "put", sizes: Vec::new() }], ..job() };
        assert_eq!(attempts.note("a", &own, "", false).rest, None);
    }
}
