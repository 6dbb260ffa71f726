//! Two jobs that know of each other only by the name of a port, which one of them writes to a file: they connect
//! repeatedly, exchange messages of all sizes, merge, and disconnect; at the end the connecting job ends before the
//! other has received its last messages.
//!
//! `strangers accept|connect FILE`; `... doomed`: the connecting job is killed instead, once both are connected, and
//! the other one finalizes with a message that will not be received.

use std::ffi::CStr;
use std::time::Duration;

use mpi::ffi;
use mpi::topology::{InterCommunicator, MergeOrder};
use mpi::traits::*;
use ntbring_mpi_tests::ports::{disconnect, look_for, meet, open};
use ntbring_mpi_tests::raw::{byte, no_request, ok};
use ntbring_mpi_tests::{arg, exchange, filled, shifts, verify, Job};

const SIZES: [usize; 6] = [0, 8, 1000, 20_000, 300_000, 3_000_000];
const MEETINGS: i32 = 3;

fn main() {
    let (part, file): (String, String) = (arg(1, String::new()), arg(2, String::new()));
    let job = Job::start("strangers");
    let accepts = part == "accept";
    let port = if accepts { open(&job, &file) } else { look_for(&file) };
    if arg(3, String::new()) == "doomed" {
        return doomed(job, &port, accepts);
    }
    for meeting in 0..MEETINGS {
        let other = meet(&job, &port, accepts);
        let all = other.merge(if accepts { MergeOrder::Low } else { MergeOrder::High });
        assert_eq!(all.size(), job.size + other.remote_size());
        for shift in shifts(all.size()) {
            SIZES.into_iter().for_each(|size| exchange(&all, shift, meeting, size));
        }
        let mut sum = 0;
        all.all_reduce_into(&all.rank(), &mut sum, mpi::collective::SystemOperation::sum());
        assert_eq!(sum, all.size() * (all.size() - 1) / 2);
        if meeting == MEETINGS - 1 {
            last_words(&job, &other, accepts);
        }
        drop(all);
        disconnect(other);
    }
    // Two jobs remain that have no connection to each other.
    shifts(job.size).into_iter().for_each(|shift| exchange(&job.world, shift, 9, 100_000));
    job.finish();
}

fn doomed(job: Job, port: &CStr, accepts: bool) {
    let other = meet(&job, port, accepts);
    if !accepts {
        if job.rank == 0 {
            other.process_at_rank(0).send(&1_u8);
        }
        std::thread::sleep(Duration::from_millis(300));
        // SAFETY: the call has no memory-safety preconditions.
        unsafe { libc::kill(libc::getpid(), libc::SIGKILL) };
    }
    if job.rank == 0 {
        other.process_at_rank(0).receive::<u8>();
        let (payload, mut request) = (filled(0, 0, 0, 8 << 20).leak(), no_request());
        // SAFETY: the buffer has the given size and is never freed; the request is not used afterwards.
        unsafe {
            let (at, len, comm) = (payload.as_ptr().cast(), payload.len() as i32, other.as_raw());
            ok(ffi::MPI_Isend(at, len, byte(), 0, 0, comm, &mut request), "MPI_Isend");
            ok(ffi::MPI_Request_free(&mut request), "MPI_Request_free");
        }
    }
    std::mem::forget(other);
    job.finish();
}

/// Exchanges last messages, which are small enough to be sent without a reply.
fn last_words(job: &Job, other: &InterCommunicator, accepts: bool) {
    const WORDS: usize = 500;
    if job.rank > 0 {
        return;
    }
    if accepts {
        std::thread::sleep(Duration::from_millis(300));
        let mut words = [0; WORDS];
        other.process_at_rank(0).receive_into(&mut words[..]);
        verify(&words, 1, 2, 3);
    } else {
        other.process_at_rank(0).send(&filled(1, 2, 3, WORDS)[..]);
    }
}
