//! Ways to leave that are not MPI_Finalize after the last message: `late` (rank 0 finalizes long after the others), `exit`
//! (all end without MPI_Finalize), `one` (rank 1 ends without it, while the others wait for it).

use std::time::{Duration, Instant};

use mpi::traits::*;
use ntbring_mpi_tests::{arg, exchange, fail, shifts, Job};

const LATE: Duration = Duration::from_secs(3);

fn main() {
    let mode: String = arg(1, "late".to_string());
    let job = Job::start("leaver");
    for shift in shifts(job.size) {
        exchange(&job.world, shift, shift, 100_000);
    }
    let leave = || std::process::exit(0);
    match mode.as_str() {
        "late" if job.rank == 0 => {
            let start = Instant::now();
            while start.elapsed() < LATE {
                std::hint::spin_loop();
            }
        }
        "late" => {}
        "exit" => {
            job.world.barrier();
            leave()
        }
        "one" => {
            if job.rank == 1 {
                leave()
            }
            job.world.barrier();
            fail("a barrier without rank 1");
        }
        other => fail(format!("there is no way '{other}'")),
    }
    job.finish();
}
