//! Jobs whose hosts cannot watch each other's processes, as on separate machines: their monitors detect failures.

use crate::harness::*;
use std::time::{Duration, Instant};

/// Returns the job with hosts that have no shortcuts.
fn apart(job: Job) -> Job {
    job.env("NTBRING_SHORTCUTS", "none")
}

/// Sends a signal to the ranks of host `host`, which has `per_host` of them, and to its monitor.
fn signal_host(job: &Running, host: u32, per_host: u32, number: i32) {
    let is_there = |(rank, _): &(u32, i32)| rank / per_host == host;
    for (_, pid) in job.processes().into_iter().chain(job.monitors()).filter(is_there) {
        signal(pid, number);
    }
}

#[test]
#[ignore = "needs cargo xtask setup"]
fn the_only_rank_of_a_host_is_killed_and_named_by_the_others() {
    for (hosts, per_host, victim) in [(2, 1, 1), (4, 1, 2), (5, 1, 0), (2, 2, 3)] {
        let before = shm();
        let job = apart(busy(hosts, per_host)).option("-disable-auto-cleanup").start();
        let ranks = job.joined(hosts * per_host);
        signal(ranks[victim].1, libc::SIGKILL);
        let name = format!("rank {victim} on host {} (process {}) has died", victim / per_host, ranks[victim].1);
        job.end_of_all(Duration::from_secs(40)).failed_saying(&[&name]);
        nothing_left(&before);
    }
}

#[test]
#[ignore = "needs cargo xtask setup"]
fn monitors_end_with_the_ranks_of_their_hosts() {
    let job = apart(busy(4, 2)).start();
    let ranks = job.joined(8);
    let mut hosts: Vec<u32> = job.monitors().into_iter().map(|(rank, _)| rank / 2).collect();
    hosts.sort();
    assert_eq!(hosts, [0, 1, 2, 3]);
    // No monitor has a living rank that it could notify.
    ranks.iter().for_each(|&(_, pid)| signal(pid, libc::SIGKILL));
    let start = Instant::now();
    while !job.monitors().is_empty() {
        assert!(start.elapsed() < Duration::from_secs(20), "monitors are left: {:?}", job.monitors());
        std::thread::sleep(Duration::from_millis(20));
    }
    // The monitors of a job that succeeds end, too.
    apart(Job::new(3, 1, &["random_traffic", "7", "20"])).run_without_monitors_left().ok();
}

#[test]
#[ignore = "needs cargo xtask setup"]
fn a_host_that_is_stopped_for_seconds_is_slow_and_loses_nothing() {
    // Longer than it takes to see that the ranks are at it.
    let job = apart(Job::new(4, 1, &["random_traffic", "7", "2000"])).start();
    // Ranks that are still in MPI_Init do not watch each other.
    job.joined(4);
    signal_host(&job, 2, 1, libc::SIGSTOP);
    // On a busy machine the others look less often, and count less silence than there is.
    let stopped = Instant::now();
    while !job.stderr.so_far().contains("host 2 has sent no keep-alive") && stopped.elapsed() < Duration::from_secs(40)
    {
        std::thread::sleep(Duration::from_millis(50));
    }
    signal_host(&job, 2, 1, libc::SIGCONT);
    let ended = job.end(Duration::from_secs(90)).ok();
    for word in ["host 2 has sent no keep-alive for 2 s", "host 2 is heard again"] {
        assert!(ended.stderr.contains(word), "{word:?} is missing in: {}", ended.stderr);
    }
}

#[test]
#[ignore = "needs cargo xtask setup"]
fn a_host_that_stays_silent_is_lost() {
    let job = apart(busy(3, 1)).env("NTBRING_KEEPALIVE_TIMEOUT", "3").option("-disable-auto-cleanup").start();
    job.joined(3);
    signal_host(&job, 1, 1, libc::SIGSTOP);
    let start = Instant::now();
    while job.processes().len() > 1 {
        assert!(start.elapsed() < Duration::from_secs(40), "hosts 0 and 2 wait for a host that is silent");
        std::thread::sleep(Duration::from_millis(20));
    }
    signal_host(&job, 1, 1, libc::SIGKILL);
    let lost = "rank 1 is lost: host 1 has sent no keep-alive for 3 s (NTBRING_KEEPALIVE_TIMEOUT)";
    job.end_of_all(Duration::from_secs(60)).failed_saying(&[lost]);
}
