//! Ways to leave other than MPI_Finalize directly after the last message: `late` (rank 0 finalizes long after the
//! others), `early` (the others finalize long before rank 0 receives their messages), `unread` (the others finalize
//! long before rank 0 sends the messages for which they have posted receives), `exit` (all end without MPI_Finalize, in
//! the middle of their messages), `one` (rank 1 ends without it, while the others wait for it).

use std::time::{Duration, Instant};

use mpi::ffi;
use mpi::traits::*;
use ntbring_mpi_tests::raw::{byte, no_request, ok};
use ntbring_mpi_tests::{arg, exchange, fail, filled, shifts, verify, Job};

const LATE: Duration = Duration::from_secs(3);
/// Longer than the time after which a rank that waits to leave prints a warning.
const VERY_LATE: Duration = Duration::from_secs(12);
/// Large enough that the payload is not requested before a receive is posted.
const LARGE: usize = 8 << 20;

fn main() {
    let mode: String = arg(1, "late".to_string());
    let job = Job::start("leaver");
    for shift in shifts(job.size) {
        exchange(&job.world, shift, shift, 100_000);
    }
    let leave = || std::process::exit(0);
    match mode.as_str() {
        "late" if job.rank == 0 => compute(LATE),
        "late" => {}
        "early" if job.rank == 0 => {
            compute(VERY_LATE);
            for from in 1..job.size {
                let mut room = vec![0; LARGE];
                job.world.process_at_rank(from).receive_into_with_tag(&mut room[..], 0);
                verify(&room, from, 0, 0);
            }
        }
        "early" => send_and_forget(&job, 0, filled(job.rank, 0, 0, LARGE)),
        "unread" if job.rank == 0 => {
            std::thread::sleep(Duration::from_secs(1));
            (1..job.size).for_each(|to| send_and_forget(&job, to, filled(0, to, 0, LARGE)));
        }
        "unread" => receive_and_forget(&job, 0),
        "exit" => {
            let far = (job.rank + job.size / 2) % job.size;
            send_and_forget(&job, far, filled(job.rank, far, 0, LARGE));
            (0..1000_u64).for_each(|n| job.world.process_at_rank(far).send(&n));
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

fn compute(time: Duration) {
    let start = Instant::now();
    while start.elapsed() < time {
        std::hint::spin_loop();
    }
}

/// Sends a message to a rank, and never waits for the request.
fn send_and_forget(job: &Job, to: i32, payload: Vec<u8>) {
    let mut request = no_request();
    let (at, len) = (payload.leak().as_ptr().cast(), LARGE as i32);
    // SAFETY: the buffer has the given size and is never freed; the request is not used afterwards.
    unsafe {
        ok(ffi::MPI_Isend(at, len, byte(), to, 0, job.world.as_raw(), &mut request), "MPI_Isend");
        ok(ffi::MPI_Request_free(&mut request), "MPI_Request_free");
    }
}

/// Posts a receive from a rank, and never waits for the request.
fn receive_and_forget(job: &Job, from: i32) {
    let mut request = no_request();
    let (at, len) = (vec![0_u8; LARGE].leak().as_mut_ptr().cast(), LARGE as i32);
    // SAFETY: the buffer has the given size and is never freed; the request is not used afterwards.
    unsafe {
        ok(ffi::MPI_Irecv(at, len, byte(), from, 0, job.world.as_raw(), &mut request), "MPI_Irecv");
        ok(ffi::MPI_Request_free(&mut request), "MPI_Request_free");
    }
}
