//! A message that does not fit its receive: one that is too long (MPI_ERR_TRUNCATE), or one that ends within an element
//! of a datatype with gaps (MPI_ERR_TYPE). Nothing behind the buffer is written, and later messages are not affected.

use mpi::ffi;
use mpi::traits::*;
use ntbring_mpi_tests::typemap::Typed;
use ntbring_mpi_tests::{exchange, filled, raw, shifts, Job};

const GUARD: usize = 64;

/// When the receive is posted: before the message is sent, after it has arrived, or as a receive of a matched probe.
#[derive(Clone, Copy, Debug)]
enum Posted {
    Before,
    After,
    Matched,
}

/// Exchanges messages of `sent` bytes, whose receives of `count` elements of `datatype` fail with an error of `class`.
fn misfit(job: &Job, shift: i32, sent: usize, (count, datatype): (usize, &Typed), posted: Posted, class: u32) {
    let (to, from, comm) = (job.ahead(shift), job.ahead(-shift), job.world.as_raw());
    let out = filled(job.rank, to, 1, sent);
    let room = count * datatype.extent() as usize;
    let mut into = vec![0x77_u8; room + GUARD];
    let (buf, count) = (into.as_mut_ptr().cast(), count as i32);
    let mut requests = [raw::no_request(); 2];
    let [sending, receiving] = &mut requests;
    // SAFETY: both buffers outlive the requests, which are waited for below; the receive is limited to `room` bytes.
    let (code, status, sent_code) = unsafe {
        if let Posted::Before = posted {
            raw::ok(ffi::MPI_Irecv(buf, count, datatype.handle, from, 1, comm, receiving), "MPI_Irecv");
            job.world.barrier();
        }
        raw::ok(ffi::MPI_Isend(out.as_ptr().cast(), sent as i32, raw::byte(), to, 1, comm, sending), "MPI_Isend");
        let mut seen = raw::status();
        let (code, status) = match posted {
            Posted::Before => raw::wait(receiving),
            Posted::After => {
                raw::ok(ffi::MPI_Probe(from, 1, comm, &mut seen), "MPI_Probe");
                assert_eq!(raw::bytes(&seen), sent, "bytes announced by a probe");
                let mut status = raw::status();
                (ffi::MPI_Recv(buf, count, datatype.handle, from, 1, comm, &mut status), status)
            }
            Posted::Matched => {
                let mut message = ffi::RSMPI_MESSAGE_NULL;
                raw::ok(ffi::MPI_Mprobe(from, 1, comm, &mut message, &mut seen), "MPI_Mprobe");
                raw::ok(ffi::MPI_Imrecv(buf, count, datatype.handle, &mut message, receiving), "MPI_Imrecv");
                raw::wait(receiving)
            }
        };
        (code, status, raw::wait(sending).0)
    };
    let what = format!("{sent} bytes from {from} into {count} of {}, posted: {posted:?}", datatype.name);
    assert_eq!(raw::class(code), class as i32, "error class of the receive of {what}");
    assert_eq!((status.MPI_SOURCE, status.MPI_TAG), (from, 1), "source and tag of the receive of {what}");
    raw::ok(sent_code, "the send of a message that does not fit its receive");
    assert!(into[room..].iter().all(|b| *b == 0x77), "bytes behind the buffer were written: {what}");
}

fn all_misfits(job: &Job) {
    let byte = Typed::byte();
    let gapped = Typed::int().vector(2, 1, 3, false);
    for shift in shifts(job.size) {
        for posted in [Posted::Before, Posted::After, Posted::Matched] {
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
                misfit(job, shift, sent, (room, &byte), posted, ffi::MPI_ERR_TRUNCATE);
                // Later messages on the same route are complete and in order.
                exchange(&job.world, shift, 1, 40);
                exchange(&job.world, shift, 1, 70_000);
            }
            for sent in [3, 1001, 20_001, 100_001, (1 << 20) + 1] {
                misfit(job, shift, sent, (sent, &gapped), posted, ffi::MPI_ERR_TYPE);
                exchange(&job.world, shift, 1, 40);
                exchange(&job.world, shift, 1, 70_000);
            }
        }
    }
}

fn main() {
    let job = Job::start("truncation");
    raw::errors_return(&job.world);
    all_misfits(&job);
    job.world.barrier();
    job.finish();
}
