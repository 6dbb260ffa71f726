//! Sends that are cancelled: before a receive is posted, while one is posted, while they are held back for lack of
//! credit, twice, persistent ones, and some whose requests are freed. Between ranks of one host it shows nothing, since
//! MPICH's shared memory does not cancel sends.
//!
//! A message is received exactly once, or never if it was cancelled: its sender tells the receiver afterwards how many
//! messages to expect.

use mpi::ffi;
use mpi::traits::*;
use ntbring_mpi_tests::{exchange, filled, raw, verify, Job};
use std::os::raw::{c_int, c_void};

const TAG: i32 = 11;
const COUNT: i32 = 12;
const LARGE: usize = 3 << 20;

/// A function that begins a send.
type Begin = unsafe extern "C" fn(*const c_void, c_int, ffi::MPI_Datatype, c_int, c_int, ffi::MPI_Comm, *mut ffi::MPI_Request) -> c_int;

/// Begins a send.
///
/// # Safety
/// `out` must stay until the request has ended.
unsafe fn begin(job: &Job, how: Begin, out: &[u8], to: i32) -> ffi::MPI_Request {
    let (mut request, world) = (raw::no_request(), job.world.as_raw());
    // SAFETY: the caller keeps the buffer allocated; all other arguments are valid.
    raw::ok(unsafe { how(out.as_ptr().cast(), out.len() as i32, raw::byte(), to, TAG, world, &mut request) }, "a send");
    request
}

fn cancel(request: &mut ffi::MPI_Request) {
    // SAFETY: the request is valid and active.
    raw::ok(unsafe { ffi::MPI_Cancel(request) }, "MPI_Cancel");
}

/// Waits for a send that was to be cancelled. Returns true if it was cancelled.
fn ended(request: &mut ffi::MPI_Request) -> bool {
    // SAFETY: all buffers outlive their requests.
    let (code, status) = unsafe { raw::wait(request) };
    raw::ok(code, "MPI_Wait");
    raw::cancelled(&status)
}

/// Returns true if this rank sends, and its partner on the other side of the ring: the first half of the ranks sends to
/// the second.
fn sides(job: &Job) -> (bool, i32) {
    let half = job.size / 2;
    (job.rank < half, if job.rank < half { job.rank + half } else { job.rank - half })
}

/// No receive is posted: synchronous and large messages must be cancelled.
fn unasked(job: &Job, how: Begin, size: usize, certain: bool) {
    let (sends, other) = sides(job);
    if sends {
        let out = filled(job.rank, other, TAG, size);
        // SAFETY: the buffer outlives the request, which is waited for below.
        let mut request = unsafe { begin(job, how, &out, other) };
        cancel(&mut request);
        cancel(&mut request);
        let cancelled = ended(&mut request);
        assert!(cancelled || !certain, "a send of {size} bytes without a posted receive was not cancelled");
        job.world.process_at_rank(other).send_with_tag(&i32::from(!cancelled), COUNT);
    } else {
        receive_so_many(job, other, size);
    }
    job.world.barrier();
}

fn receive_so_many(job: &Job, from: i32, size: usize) {
    let mut count = 0_i32;
    job.world.process_at_rank(from).receive_into_with_tag(&mut count, COUNT);
    for _ in 0..count {
        let mut into = vec![0; size];
        job.world.process_at_rank(from).receive_into_with_tag(&mut into[..], TAG);
        verify(&into, from, job.rank, TAG);
    }
    let more = job.world.process_at_rank(from).immediate_probe_with_tag(TAG);
    assert!(more.is_none(), "a message of {size} bytes that was cancelled is there");
}

/// A receive is posted meanwhile: it gets that message, or the next one if that is cancelled.
fn racing(job: &Job, how: Begin, size: usize) {
    let (sends, other) = sides(job);
    if sends {
        let out = filled(job.rank, other, TAG, size);
        // SAFETY: the buffer outlives the request, which is waited for below.
        let mut request = unsafe { begin(job, how, &out, other) };
        cancel(&mut request);
        if ended(&mut request) {
            job.world.process_at_rank(other).send_with_tag(&out[..], TAG);
        }
    } else {
        let mut into = vec![0; size];
        job.world.process_at_rank(other).receive_into_with_tag(&mut into[..], TAG);
        verify(&into, other, job.rank, TAG);
    }
}

/// Payloads with gaps, which are packed when they leave: cancelled, and sent afterwards.
fn gaps(job: &Job, bytes: usize) {
    let (sends, other) = sides(job);
    if sends {
        let wide = filled(job.rank, other, TAG, 2 * bytes);
        // SAFETY: all results have valid destinations; `wide` outlives the requests, which are waited for.
        unsafe {
            let (mut type_, mut request, world) = (std::mem::zeroed(), raw::no_request(), job.world.as_raw());
            raw::ok(ffi::MPI_Type_vector(bytes as i32, 1, 2, raw::byte(), &mut type_), "MPI_Type_vector");
            raw::ok(ffi::MPI_Type_commit(&mut type_), "MPI_Type_commit");
            for (how, cancels) in [(ffi::MPI_Issend as Begin, true), (ffi::MPI_Issend, true), (ffi::MPI_Isend, false)] {
                let at = wide.as_ptr().cast();
                if !cancels {
                    job.world.process_at_rank(other).send_with_tag(&1, COUNT);
                }
                raw::ok(how(at, 1, type_, other, TAG, world, &mut request), "a send");
                if cancels {
                    cancel(&mut request);
                    assert!(ended(&mut request), "a send of {bytes} bytes with gaps was not cancelled");
                }
            }
            // Before the last message has left.
            raw::ok(ffi::MPI_Type_free(&mut type_), "MPI_Type_free");
            assert!(!ended(&mut request), "a send was cancelled that should not be");
        }
    } else {
        let (mut into, mut count) = (vec![0; bytes], 0);
        job.world.process_at_rank(other).receive_into_with_tag(&mut count, COUNT);
        job.world.process_at_rank(other).receive_into_with_tag(&mut into[..], TAG);
        let wide = filled(other, job.rank, TAG, 2 * bytes);
        assert!(into.iter().eq(wide.iter().step_by(2)), "a payload with gaps");
    }
    job.world.barrier();
}

/// Many messages are held back for credit or wait for room; some of them are cancelled.
fn held(job: &Job) {
    const MESSAGES: usize = 6000;
    let (sends, other) = sides(job);
    if sends {
        let out: Vec<Vec<u8>> = (0..MESSAGES).map(|n| (n as u64).to_le_bytes().repeat(128)).collect();
        // SAFETY: the buffer outlives the request, which is waited for below.
        let mut requests: Vec<_> = out.iter().map(|out| unsafe { begin(job, ffi::MPI_Isend, out, other) }).collect();
        for request in requests.iter_mut().skip(1).step_by(2) {
            cancel(request);
        }
        let cancelled: Vec<bool> = requests.iter_mut().skip(1).step_by(2).map(ended).collect();
        let kept: Vec<u64> = (0..MESSAGES).filter(|&n| n % 2 == 0 || !cancelled[n / 2]).map(|n| n as u64).collect();
        assert!(kept.len() < MESSAGES, "none of {MESSAGES} was cancelled");
        job.world.process_at_rank(other).send_with_tag(&kept[..], COUNT);
        for request in requests.iter_mut().step_by(2) {
            assert!(!ended(request), "a send was cancelled that should not be");
        }
    } else {
        let (kept, _) = job.world.process_at_rank(other).receive_vec_with_tag::<u64>(COUNT);
        for number in kept {
            let mut into = [0_u64; 128];
            job.world.process_at_rank(other).receive_into_with_tag(&mut into[..], TAG);
            assert_eq!(into, [number; 128]);
        }
        assert!(job.world.process_at_rank(other).immediate_probe_with_tag(TAG).is_none());
    }
    job.world.barrier();
}

/// A persistent send is cancelled and started again; a request is freed without a wait for it.
fn others(job: &Job) {
    let (sends, other) = sides(job);
    let out = filled(job.rank, other, TAG, LARGE);
    if sends {
        let (mut request, world) = (raw::no_request(), job.world.as_raw());
        // SAFETY: `out` outlives all requests: it is not needed after the barrier below.
        unsafe {
            let (at, len) = (out.as_ptr().cast(), LARGE as i32);
            raw::ok(ffi::MPI_Ssend_init(at, len, raw::byte(), other, TAG, world, &mut request), "MPI_Ssend_init");
            raw::ok(ffi::MPI_Start(&mut request), "MPI_Start");
            cancel(&mut request);
            assert!(ended(&mut request), "a persistent send was not cancelled");
            raw::ok(ffi::MPI_Start(&mut request), "MPI_Start");
            job.world.process_at_rank(other).send_with_tag(&1, COUNT);
            assert!(!ended(&mut request), "a persistent send that was started again was cancelled");
            raw::ok(ffi::MPI_Request_free(&mut request), "MPI_Request_free");
            let mut freed = begin(job, ffi::MPI_Issend, &out, other);
            cancel(&mut freed);
            raw::ok(ffi::MPI_Request_free(&mut freed), "MPI_Request_free");
        }
    } else {
        let mut count = 0;
        job.world.process_at_rank(other).receive_into_with_tag(&mut count, COUNT);
        let mut into = vec![0; LARGE];
        job.world.process_at_rank(other).receive_into_with_tag(&mut into[..], TAG);
        verify(&into, other, job.rank, TAG);
    }
    // Cancel requests are answered before any later message.
    job.world.barrier();
    exchange(&job.world, job.size / 2, 14, 8);
    job.world.barrier();
}

fn main() {
    let job = Job::start("cancel_send");
    if job.size % 2 == 1 {
        panic!("it takes an even number of ranks");
    }
    for size in [0, 8, 3000, 60_000, 300_000, LARGE] {
        unasked(&job, ffi::MPI_Issend, size, true);
        unasked(&job, ffi::MPI_Isend, size, size == LARGE);
        for how in [ffi::MPI_Issend as Begin, ffi::MPI_Isend] {
            (0..20).for_each(|_| racing(&job, how, size));
        }
        job.world.barrier();
    }
    [8, 3000, 60_000, 300_000].into_iter().for_each(|bytes| gaps(&job, bytes));
    held(&job);
    others(&job);
    exchange(&job.world, 1, 15, 1000);
    job.finish();
}
