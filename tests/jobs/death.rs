//! Processes that die, are stopped, or are asked for their state.

use crate::harness::*;
use std::time::{Duration, Instant};

#[test]
#[ignore = "needs cargo xtask setup"]
fn a_killed_peer_is_named_by_the_others() {
    for (hosts, per_host, victim) in [(2, 1, 1), (4, 1, 2), (2, 2, 3)] {
        let before = shm();
        a_killed_rank_is_named_by_the_others(busy(hosts, per_host), (hosts, per_host), victim);
        nothing_left(&before);
    }
}

#[test]
#[ignore = "needs cargo xtask setup"]
fn a_peer_killed_in_the_middle_of_an_accumulate_hangs_nobody() {
    // On four hosts, host 0 performs the accumulates of rank 2.
    for hosts in [3, 4] {
        let before = shm();
        let job = Job::new(hosts, 1, &["window_atomics", "hold"]).option("-disable-auto-cleanup").start();
        let ranks = job.said(hosts, "holds");
        std::thread::sleep(Duration::from_millis(fastrand::u64(0..300)));
        let killed = Instant::now();
        signal(ranks[1].1, libc::SIGKILL);
        job.end(Duration::from_secs(40)).failed_saying(&[&format!("(process {}) has died", ranks[1].1)]);
        assert!(killed.elapsed() < Duration::from_secs(10), "the others took {:?} to end", killed.elapsed());
        nothing_left(&before);
    }
}

#[test]
#[ignore = "needs cargo xtask setup"]
fn a_killed_peer_ends_the_job_with_mpiexecs_own_cleanup() {
    let before = shm();
    let job = busy(4, 1).start();
    let ranks = job.joined(4);
    signal(ranks[0].1, libc::SIGKILL);
    job.end(Duration::from_secs(20)).failed_saying(&[]);
    nothing_left(&before);
}

#[test]
#[ignore = "needs cargo xtask setup"]
fn nothing_is_left_when_all_are_killed() {
    let before = shm();
    let mut job = busy(4, 2).start();
    job.joined(8);
    job.kill();
    assert!(job.processes().is_empty(), "processes are left");
    nothing_left(&before);
}

#[test]
#[ignore = "needs cargo xtask setup"]
fn nothing_is_left_of_jobs_that_are_killed_while_they_start() {
    let before = shm();
    for _ in 0..20 {
        let mut job = busy(2, 3).start();
        std::thread::sleep(Duration::from_millis(fastrand::u64(0..250)));
        job.kill();
        assert!(job.processes().is_empty(), "processes are left");
        nothing_left(&before);
    }
}

#[test]
#[ignore = "needs cargo xtask setup"]
fn a_stopped_peer_is_slow_and_not_dead() {
    let job = Job::new(4, 1, &["random_traffic", "7", "300"]).start();
    let ranks = job.joined(4);
    signal(ranks[2].1, libc::SIGSTOP);
    // Longer than hosts wait for a keep-alive before they warn, and for a neighbour before they go round it.
    std::thread::sleep(Duration::from_secs(3));
    assert_eq!(job.processes(), ranks, "all wait for the one that is stopped");
    signal(ranks[2].1, libc::SIGCONT);
    job.end(Duration::from_secs(90)).ok();
}

#[test]
#[ignore = "needs cargo xtask setup"]
fn a_rank_describes_itself_on_a_signal() {
    let job = Job::new(4, 1, &["blocked_wait", "3", "recv"]).env("NTBRING_DUMP_SIGNAL", "USR1").start();
    let ranks = job.ranks(4);
    std::thread::sleep(Duration::from_millis(1500));
    for (_, pid) in &ranks[1..] {
        signal(*pid, libc::SIGUSR1);
    }
    let ended = job.end(Duration::from_secs(60)).ok();
    for rank in 1..4 {
        assert!(ended.stderr.contains(&format!("ntbring rank {rank} on host {rank} of 4:")), "{}", ended.stderr);
    }
    assert!(ended.stderr.contains("nothing waits to be sent"), "{}", ended.stderr);
}
