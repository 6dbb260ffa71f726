//! Receives that are cancelled: before any message was sent, with a named and with any source, many of them, and while
//! the message arrives.

use mpi::ffi;
use mpi::traits::*;
use ntbring_mpi_tests::{exchange, filled, raw, verify, Job};

/// Posts a receive of up to `buf.len()` bytes.
///
/// # Safety
/// `buf` must stay allocated and unaccessed until the request is complete.
unsafe fn post(job: &Job, from: i32, tag: i32, buf: &mut [u8]) -> ffi::MPI_Request {
    let mut request = raw::no_request();
    // SAFETY: the caller keeps the buffer allocated; all other arguments are valid.
    let code =
        unsafe { ffi::MPI_Irecv(buf.as_mut_ptr().cast(), buf.len() as i32, raw::byte(), from, tag, job.world.as_raw(), &mut request) };
    raw::ok(code, "MPI_Irecv");
    request
}

/// Cancels a receive and waits for it. Returns true if it was cancelled rather than completed.
///
/// # Safety
/// As for `raw::wait`.
unsafe fn cancel(request: &mut ffi::MPI_Request) -> (bool, ffi::MPI_Status) {
    // SAFETY: the request is valid and active.
    raw::ok(unsafe { ffi::MPI_Cancel(request) }, "MPI_Cancel");
    // SAFETY: the caller keeps the request's buffer allocated.
    let (code, status) = unsafe { raw::wait(request) };
    raw::ok(code, "MPI_Wait");
    (raw::cancelled(&status), status)
}

/// Cancels receives of messages that were not sent: the cancel must succeed, and later messages with the same tag match
/// later receives.
fn before(job: &Job, any: bool) {
    let (to, from) = (job.ahead(job.size / 2), job.ahead(-(job.size / 2)));
    let named = if any { any_source() } else { from };
    let mut buffers = vec![vec![0xc3_u8; 5000]; 20];
    // SAFETY: the buffers outlive the requests, all of which are cancelled and waited for below.
    let mut requests: Vec<_> = buffers.iter_mut().map(|buf| unsafe { post(job, named, 7, buf) }).collect();
    // Every other one first, so that receives are removed from the middle of the list of posted receives.
    for parity in [1, 0] {
        for request in requests.iter_mut().skip(parity).step_by(2) {
            // SAFETY: as above.
            let (cancelled, _) = unsafe { cancel(request) };
            assert!(cancelled, "a receive that nothing was sent to was not cancelled");
        }
    }
    job.world.barrier();
    let out = filled(job.rank, to, 7, 5000);
    mpi::request::scope(|scope| {
        let sending = job.world.process_at_rank(to).immediate_send_with_tag(scope, &out[..], 7);
        let mut into = vec![0; 5000];
        job.world.process_at_rank(from).receive_into_with_tag(&mut into[..], 7);
        verify(&into, from, job.rank, 7);
        sending.wait();
    });
    assert!(buffers.iter().flatten().all(|b| *b == 0xc3), "a cancelled receive's buffer was written");
    job.world.barrier();
}

fn any_source() -> i32 {
    // SAFETY: the constant is initialized by the C side at load time and never written.
    unsafe { ffi::RSMPI_ANY_SOURCE }
}

/// A cancel races with the message: in either order, the message is received exactly once and whole.
fn racing(job: &Job, size: usize, any: bool) {
    let (to, from) = (job.ahead(1), job.ahead(-1));
    let out = filled(job.rank, to, 8, size);
    let mut into = vec![0; size];
    mpi::request::scope(|scope| {
        // SAFETY: `into` stays allocated and is not accessed before the request is complete.
        let mut request = unsafe { post(job, if any { any_source() } else { from }, 8, &mut into) };
        let sending = job.world.process_at_rank(to).immediate_send_with_tag(scope, &out[..], 8);
        // SAFETY: as above.
        let (cancelled, status) = unsafe { cancel(&mut request) };
        if cancelled {
            job.world.process_at_rank(from).receive_into_with_tag(&mut into[..], 8);
        } else {
            assert_eq!((raw::bytes(&status), status.MPI_SOURCE), (size, from), "size and sender of a receive that was not cancelled");
        }
        sending.wait();
    });
    verify(&into, from, job.rank, 8);
    job.world.barrier();
}

fn main() {
    let job = Job::start("cancel_recv");
    for any in [false, true] {
        before(&job, any);
        for size in [0, 8, 3000, 40_000, 100_000] {
            for _ in 0..10 {
                racing(&job, size, any);
            }
        }
    }
    // Very many, one after the other: none may leave resources behind.
    let mut buf = vec![0; 100];
    for number in 0..5000 {
        let from = if number % 2 == 0 { any_source() } else { job.ahead(number) };
        // SAFETY: `buf` outlives the request, which is waited for at once.
        let (cancelled, _) = unsafe { cancel(&mut post(&job, from, 9, &mut buf)) };
        assert!(cancelled, "receive {number} was not cancelled");
    }
    // Otherwise a later message could match a receive posted above by another rank.
    job.world.barrier();
    exchange(&job.world, 1, 9, 1000);
    job.finish();
}
