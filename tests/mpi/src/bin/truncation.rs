//! A message longer than its receive: the receive returns MPI_ERR_TRUNCATE, nothing behind its buffer is written, and
//! later messages are not affected.

use mpi::ffi;
use mpi::traits::*;
use ntbring_mpi_tests::{exchange, filled, raw, shifts, Job};

const GUARD: usize = 64;

fn too_long(job: &Job, shift: i32, sent: usize, room: usize, late: bool) {
    let (to, from, comm) = (job.ahead(shift), job.ahead(-shift), job.world.as_raw());
    let out = filled(job.rank, to, 1, sent);
    let mut into = vec![0x77_u8; room + GUARD];
    let mut requests = [raw::no_request(); 2];
    let [sending, receiving] = &mut requests;
    // SAFETY: both buffers outlive the requests, which are waited for below; the receive is limited to `room` bytes.
    let (code, status, sent_code) = unsafe {
        let post = |request: &mut ffi::MPI_Request, buf: *mut u8| {
            raw::ok(ffi::MPI_Irecv(buf.cast(), room as i32, raw::byte(), from, 1, comm, request), "MPI_Irecv");
        };
        if !late {
            post(receiving, into.as_mut_ptr());
            job.world.barrier();
        }
        raw::ok(ffi::MPI_Isend(out.as_ptr().cast(), sent as i32, raw::byte(), to, 1, comm, sending), "MPI_Isend");
        if late {
            let mut seen = raw::status();
            raw::ok(ffi::MPI_Probe(from, 1, comm, &mut seen), "MPI_Probe");
            assert_eq!(raw::bytes(&seen), sent, "bytes announced by a probe");
            post(receiving, into.as_mut_ptr());
        }
        let (code, status) = raw::wait(receiving);
        (code, status, raw::wait(sending).0)
    };
    let what = format!("{sent} bytes from {from} into {room}, {}", if late { "unexpected" } else { "expected" });
    assert_eq!(raw::class(code), ffi::MPI_ERR_TRUNCATE as i32, "error class of the receive of {what}");
    assert_eq!((status.MPI_SOURCE, status.MPI_TAG), (from, 1), "source and tag of the receive of {what}");
    raw::ok(sent_code, "the send of a message that is too long for its receiver");
    assert!(into[room..].iter().all(|b| *b == 0x77), "bytes behind the buffer were written: {what}");
}

fn main() {
    let job = Job::start("truncation");
    raw::errors_return(&job.world);
    for shift in shifts(job.size) {
        for (sent, room) in [
            (1, 0),
            (64, 63),
            (64, 8),
            (1000, 10),
            (16 << 10, 100),
            (20_000, 19_999),
            (60_000, 3000),
            (60_000, 0),
            (100_000, 99_999),
            (1 << 20, 1000),
            (1 << 20, 0),
        ] {
            for late in [false, true] {
                too_long(&job, shift, sent, room, late);
                // Later messages on the same route are complete and in order.
                exchange(&job.world, shift, 1, 40);
                exchange(&job.world, shift, 1, 70_000);
            }
        }
    }
    job.world.barrier();
    job.finish();
}
