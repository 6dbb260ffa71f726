//! Lists of jobs: without duplicates, merged, split, restricted.

use crate::bench::jobs::{Job, Test};

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

/// Adds a job, unless it is there already.
pub fn want(jobs: &mut Vec<Job>, job: Job) {
    if !jobs.contains(&job) {
        jobs.push(job);
    }
}

/// Makes one job of all that run the same program in the same way, in the place of the first of them: the start of a
/// program takes longer than most of its figures.
pub fn merged(jobs: Vec<Job>) -> Vec<Job> {
    let mut all: Vec<Job> = Vec::new();
    for job in jobs {
        match all.iter_mut().find(|other| other.is_like(&job)) {
            None => all.push(job),
            Some(other) => job.tests.into_iter().for_each(|test| add(&mut other.tests, test)),
        }
    }
    all
}

/// Adds the sizes of a test to the one of the same name, if there is one.
fn add(tests: &mut Vec<Test>, test: Test) {
    match tests.iter_mut().find(|other| other.name == test.name) {
        None => tests.push(test),
        // No sizes are the test's own.
        Some(other) if other.sizes.is_empty() || test.sizes.is_empty() => other.sizes.clear(),
        Some(other) => {
            let new = test.sizes.into_iter().filter(|bytes| !other.sizes.contains(bytes)).collect::<Vec<_>>();
            other.sizes.extend(new);
        }
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
    use crate::bench::jobs::{all, Program, Shape, Who};

    fn figure(name: &'static str, bytes: u64) -> Job {
        Job::of_figure(Program::P2p, Shape::Pair, Who::Main, name, bytes)
    }

    fn tests(job: &Job) -> Vec<String> {
        job.tests.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn wanted_figures_are_run_once() {
        let startup = Job::of_figure(Program::Startup, Shape::Hosts(8), Who::Main, "startup", 0);
        let mut jobs = Vec::new();
        for job in [figure("latency", 64), figure("latency", 8), figure("latency", 8), figure("rate", 8)] {
            want(&mut jobs, job);
        }
        want(&mut jobs, startup.clone());
        want(&mut jobs, startup);
        assert_eq!(jobs.len(), 4);
        assert_eq!(jobs[..3].iter().flat_map(tests).collect::<Vec<_>>(), ["latency=64", "latency=8", "rate=8"]);
        assert!(jobs[3].tests.is_empty());
    }

    #[test]
    fn what_one_start_can_measure_is_one_job() {
        let limit = Job::of_figure(Program::Limits, Shape::Machine, Who::Machine, "cacheline", 0);
        let unbound = Job { bound: false, ..figure("latency", 8) };
        let all =
            [limit, figure("latency", 8), figure("rate", 8), unbound, figure("latency", 64), figure("latency", 8)];
        let jobs = merged(all.to_vec());
        assert_eq!(jobs.len(), 3);
        assert_eq!(tests(&jobs[1]), ["latency=8,64", "rate=8"]);
        assert_eq!(tests(&jobs[2]), ["latency=8"]);
        let own = Job { tests: vec![Test { name: "latency", sizes: Vec::new() }], ..figure("latency", 8) };
        assert_eq!(tests(&merged(vec![figure("latency", 8), own])[0]), ["latency"]);
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
}
