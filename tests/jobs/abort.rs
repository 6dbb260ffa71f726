//! MPI_Abort, by any rank at any time: the job ends soon, with the code, and leaves nothing.

use crate::harness::*;
use std::time::Duration;

const MODES: [&str; 7] = ["traffic", "thread", "flood", "window", "barrier", "compute", "children"];
/// Time limit for a job to start, abort and end, on a machine that has other work too.
const SOON: Duration = Duration::from_secs(20);

#[test]
#[ignore = "needs cargo xtask setup"]
fn whoever_aborts_ends_the_job() {
    let before = shm();
    for (n, mode) in MODES.into_iter().enumerate() {
        for (m, (hosts, per_host)) in [(4, 1), (2, 2)].into_iter().enumerate() {
            let by = fastrand::usize(0..hosts * per_host).to_string();
            // Either with the first message, or later.
            let after = [0, fastrand::usize(1..800)][(n + m) % 2].to_string();
            let job = Job::new(hosts, per_host, &["aborts", mode, &by, &after]).start();
            let ended = job.end_of_all(SOON);
            let what = format!("aborts {mode} {by} {after}: {:?}\n{}\n{}", ended.status, ended.stdout, ended.stderr);
            assert_eq!(ended.status.code(), Some(37), "{what}");
            assert!(
                !what.contains("panicked") && !what.contains("Segmentation") && !what.contains("signal 11"),
                "{what}"
            );
            ended.failed_saying(&[&format!("MPI_Abort(MPI_COMM_WORLD, 37) - process {by}")]);
            nothing_left(&before);
        }
    }
}

#[test]
#[ignore = "needs cargo xtask setup"]
fn an_end_that_concerns_a_part_of_the_ranks_ends_the_job() {
    let before = shm();
    for mode in ["part", "exit", "child", "quit"] {
        for (hosts, per_host) in [(4, 1), (2, 2)] {
            let by = fastrand::usize(0..hosts * per_host);
            let job = Job::new(hosts, per_host, &["aborts", mode, &by.to_string(), "100"]).start();
            let ended = job.end_of_all(SOON);
            // mpiexec treats a rank that exits with success as a failure only if it must kill other ranks of that host.
            let code = match (mode, per_host) {
                ("quit", 1) => 0,
                ("quit", _) => 1,
                _ => 37,
            };
            assert_eq!(ended.status.code(), Some(code), "{mode} {by}: {}\n{}", ended.stdout, ended.stderr);
            let by_whom = format!(", 37) - process {}", by / 2);
            let words = match mode {
                "part" => ["MPI_Abort(comm=", &by_whom],
                "quit" => ["mpiexec: rank ", ") has ended without MPI_Finalize while others of its host were running"],
                _ => ["mpiexec: rank ", ") has ended with exit code 37 without MPI_Finalize"],
            };
            if code != 0 {
                ended.failed_saying(&words);
            }
            nothing_left(&before);
        }
    }
}
