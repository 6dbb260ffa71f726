//! The program of `cargo xtask run`: checks a ring of hosts and measures every pair of ranks.
//!
//! Checked: messages from nothing to 4 MiB between neighbours and between opposite ranks, an all-to-all, an all-reduce.
//! Measured, for each pair: the latency at 8 bytes (half a round trip) and the bandwidth at 1 MiB (a window of
//! messages). Rank 0 writes JSON lines to the file that `RING_DEMO_OUT` names, one {"check":"alltoall","ok":true} per
//! check and one {"pair":[0,1],"latency_us":1.2,"bandwidth_mb_s":5000.0} per pair; without that variable it prints a
//! table.

mod checks;
mod measure;
mod report;

use ntbring_mpi_tests::{fail, Job};

fn main() {
    let job = Job::start("demo");
    job.needs_ranks(2);
    let mut report = report::Report::open(job.rank == 0);
    let mut failed = Vec::new();
    for (name, check) in checks::ALL {
        let problem = check(&job);
        let ok = checks::all_agree(&job, problem.is_none());
        if let Some(what) = problem {
            eprintln!("rank {}: {name}: {what}", job.rank);
        }
        if !ok {
            failed.push(*name);
        }
        report.check(name, ok);
    }
    for low in 0..job.size {
        for high in low + 1..job.size {
            if let Some(measured) = measure::pair(&job, low, high) {
                report.pair(low, high, &measured);
            }
        }
    }
    report.close();
    if !failed.is_empty() {
        fail(format!("the demo's checks failed: {}", failed.join(", ")));
    }
    job.finish();
}
