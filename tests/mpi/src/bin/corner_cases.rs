//! Corners of the standard that few programs touch: what the status of a receive from nobody says, messages and element
//! counts of pair types, a reduction in place with unequal counts, generalized requests that are freed early, structs in the
//! format external32, and long values of an info.

use std::os::raw::{c_int, c_void};
use std::sync::atomic::{AtomicU32, Ordering};

use mpi::ffi;
use mpi::traits::*;
use ntbring_mpi_tests::{raw, Job};

/// A value and a rank, as MPI_SHORT_INT has them in memory.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct ShortInt {
    value: i16,
    rank: c_int,
}

/// MPI_SHORT_INT: a macro in MPICH's mpi.h that rsmpi does not export.
const SHORT_INT: ffi::MPI_Datatype = ffi::MPI_Datatype(0x8c00_0003_u32 as c_int);

fn int() -> ffi::MPI_Datatype {
    c_int::equivalent_datatype().as_raw()
}

/// Fails the job unless the status is that of a receive from MPI_PROC_NULL.
fn from_nobody(status: &ffi::MPI_Status, what: &str) {
    // SAFETY: the constants are initialized by the C side at load time and never written.
    let (nobody, any_tag) = unsafe { (ffi::RSMPI_PROC_NULL, ffi::RSMPI_ANY_TAG) };
    assert_eq!((status.MPI_SOURCE, status.MPI_TAG, raw::bytes(status)), (nobody, any_tag, 0), "{what}");
}

/// Receives from nobody in several ways.
fn null_receives(job: &Job) {
    // SAFETY: as above.
    let nobody = unsafe { ffi::RSMPI_PROC_NULL };
    let (world, mut value) = (job.world.as_raw(), 7);
    let buf = (&raw mut value).cast();
    let mut request = raw::no_request();
    // SAFETY: `value` outlives the request, which is waited for.
    raw::ok(unsafe { ffi::MPI_Irecv(buf, 1, int(), nobody, 3, world, &mut request) }, "MPI_Irecv");
    // SAFETY: as above.
    let (code, status) = unsafe { raw::wait(&mut request) };
    raw::ok(code, "MPI_Wait");
    from_nobody(&status, "MPI_Irecv");

    // SAFETY: `value` outlives the request, which is freed below.
    raw::ok(unsafe { ffi::MPI_Recv_init(buf, 1, int(), nobody, 3, world, &mut request) }, "MPI_Recv_init");
    for _ in 0..3 {
        // SAFETY: the request is inactive.
        raw::ok(unsafe { ffi::MPI_Start(&mut request) }, "MPI_Start");
        // SAFETY: as above.
        let (code, status) = unsafe { raw::wait(&mut request) };
        raw::ok(code, "MPI_Wait");
        from_nobody(&status, "MPI_Recv_init");
    }
    // SAFETY: the request is inactive.
    raw::ok(unsafe { ffi::MPI_Request_free(&mut request) }, "MPI_Request_free");
    assert_eq!(value, 7, "a receive from nobody wrote");
}

/// Sends pairs to the neighbour and counts their elements.
fn pairs(job: &Job) {
    let pair = SHORT_INT;
    let (to, from) = (job.ahead(1), job.ahead(-1));
    let sent = [ShortInt { value: job.rank as i16 + 5, rank: job.rank }; 100];
    let mut got = [ShortInt::default(); 120];
    let (mut status, mut request) = (raw::status(), raw::no_request());
    // SAFETY: the buffers have room for their elements and outlive the calls.
    unsafe {
        raw::ok(ffi::MPI_Isend(sent.as_ptr().cast(), 100, pair, to, 1, job.world.as_raw(), &mut request), "MPI_Isend");
        raw::ok(ffi::MPI_Recv(got.as_mut_ptr().cast(), 120, pair, from, 1, job.world.as_raw(), &mut status), "MPI_Recv");
        raw::ok(raw::wait(&mut request).0, "MPI_Wait");
    }
    assert!(got[..100].iter().all(|p| (p.value, p.rank) == (from as i16 + 5, from)), "pairs from rank {from}");
    let mut elements = 0;
    // SAFETY: the pointers are valid for the call.
    raw::ok(unsafe { ffi::MPI_Get_elements(&status, pair, &mut elements) }, "MPI_Get_elements");
    assert_eq!(elements, 200, "elements of 100 pairs");
}

/// Reduces and scatters in place, where the first rank gets less than the others: their results move to a place that
/// overlaps the old one.
fn overlapping_results(job: &Job, first: usize, others: usize) {
    let counts: Vec<c_int> = (0..job.size).map(|r| if r == 0 { first } else { others } as c_int).collect();
    let total: usize = counts.iter().map(|&c| c as usize).sum();
    let before: usize = counts[..job.rank as usize].iter().map(|&c| c as usize).sum();
    let sum_of_ranks = job.size * (job.size - 1) / 2;
    for nonblocking in [false, true] {
        let mut data: Vec<c_int> = (0..total as c_int).map(|i| i + job.rank).collect();
        let (buf, world) = (data.as_mut_ptr().cast(), job.world.as_raw());
        let mut request = raw::no_request();
        // SAFETY: `data` has room for all elements and outlives the request; the operation is predefined.
        unsafe {
            let (sum, here, n) = (ffi::RSMPI_SUM, raw::in_place(), counts.as_ptr());
            if nonblocking {
                let code = ffi::MPI_Ireduce_scatter(here, buf, n, int(), sum, world, &mut request);
                raw::ok(code, "MPI_Ireduce_scatter");
                raw::ok(raw::wait(&mut request).0, "MPI_Wait");
            } else {
                raw::ok(ffi::MPI_Reduce_scatter(here, buf, n, int(), sum, world), "MPI_Reduce_scatter");
            }
        }
        for (i, &got) in data[..counts[job.rank as usize] as usize].iter().enumerate() {
            assert_eq!(got, (before + i) as c_int * job.size + sum_of_ranks, "element {i}, nonblocking: {nonblocking}");
        }
    }
}

/// Calls of the generalized request's `free_fn`.
static FREED: AtomicU32 = AtomicU32::new(0);

unsafe extern "C" fn query(_: *mut c_void, _: *mut ffi::MPI_Status) -> c_int {
    ffi::MPI_SUCCESS as c_int
}

unsafe extern "C" fn free(_: *mut c_void) -> c_int {
    FREED.fetch_add(1, Ordering::Relaxed);
    ffi::MPI_SUCCESS as c_int
}

unsafe extern "C" fn cancel(_: *mut c_void, _: c_int) -> c_int {
    ffi::MPI_SUCCESS as c_int
}

/// Frees a generalized request before and after its operation is complete: `free_fn` is called by the later one.
fn generalized_requests() {
    for (round, early) in [(0, true), (1, false)] {
        let mut request = raw::no_request();
        let freed = || FREED.load(Ordering::Relaxed);
        // SAFETY: the functions do not use their state; a request that was freed may still be completed.
        unsafe {
            let code = ffi::MPI_Grequest_start(Some(query), Some(free), Some(cancel), std::ptr::null_mut(), &mut request);
            raw::ok(code, "MPI_Grequest_start");
            let operation = request;
            if early {
                raw::ok(ffi::MPI_Request_free(&mut request), "MPI_Request_free");
            } else {
                raw::ok(ffi::MPI_Grequest_complete(operation), "MPI_Grequest_complete");
            }
            assert_eq!(freed(), round, "free_fn was called too early, early: {early}");
            if early {
                raw::ok(ffi::MPI_Grequest_complete(operation), "MPI_Grequest_complete");
            } else {
                raw::ok(ffi::MPI_Request_free(&mut request), "MPI_Request_free");
            }
        }
        assert_eq!(freed(), round + 1, "calls of free_fn, early: {early}");
    }
}

/// Packs structs of an integer and a double in the format external32, which is big-endian and without gaps.
fn external_structs() {
    const FORMAT: &std::ffi::CStr = c"external32";
    let values = [(1_i32, 2.5_f64), (-3, 1e100)];
    let mut memory = [0_u8; 32];
    for (i, (number, real)) in values.iter().enumerate() {
        memory[16 * i..16 * i + 4].copy_from_slice(&number.to_ne_bytes());
        memory[16 * i + 8..16 * i + 16].copy_from_slice(&real.to_ne_bytes());
    }
    let expected: Vec<u8> = values.iter().flat_map(|(number, real)| number.to_be_bytes().into_iter().chain(real.to_be_bytes())).collect();
    let (mut packed, mut back) = ([0_u8; 24], [0_u8; 32]);
    let (lens, at, parts) = ([1, 1], [0, 8], [int(), f64::equivalent_datatype().as_raw()]);
    let (mut pair, mut end) = (int(), 0);
    // SAFETY: the arrays have two elements each, the buffers have room for two structs; the type is freed once.
    unsafe {
        raw::ok(ffi::MPI_Type_create_struct(2, lens.as_ptr(), at.as_ptr(), parts.as_ptr(), &mut pair), "MPI_Type_create_struct");
        raw::ok(ffi::MPI_Type_commit(&mut pair), "MPI_Type_commit");
        let (from, into) = (memory.as_ptr().cast(), packed.as_mut_ptr().cast());
        raw::ok(ffi::MPI_Pack_external(FORMAT.as_ptr(), from, 2, pair, into, 24, &mut end), "MPI_Pack_external");
        assert_eq!((end, &packed[..]), (24, &expected[..]), "packed structs");
        end = 0;
        let (from, into) = (packed.as_ptr().cast(), back.as_mut_ptr().cast());
        raw::ok(ffi::MPI_Unpack_external(FORMAT.as_ptr(), from, 24, &mut end, into, 2, pair), "MPI_Unpack_external");
        raw::ok(ffi::MPI_Type_free(&mut pair), "MPI_Type_free");
    }
    assert_eq!((end, back), (24, memory), "unpacked structs");
}

/// Reads an info's value into a buffer that is too small for it.
fn long_values() {
    let (mut value, mut found) = ([b'?' as std::os::raw::c_char; 8], 0);
    // SAFETY: the strings end with zeros; `value` has room for four characters and the zero.
    unsafe {
        let mut info = ffi::RSMPI_INFO_NULL;
        raw::ok(ffi::MPI_Info_create(&mut info), "MPI_Info_create");
        raw::ok(ffi::MPI_Info_set(info, c"key".as_ptr(), c"abcdefgh".as_ptr()), "MPI_Info_set");
        raw::ok(ffi::MPI_Info_get(info, c"key".as_ptr(), 4, value.as_mut_ptr(), &mut found), "MPI_Info_get");
        raw::ok(ffi::MPI_Info_free(&mut info), "MPI_Info_free");
    }
    let bytes = value.map(|c| c as u8);
    assert_eq!((found, &bytes[..5], bytes[5]), (1, &b"abcd\0"[..], b'?'), "a value that was cut off");
}

fn main() {
    let job = Job::start("corner_cases");
    null_receives(&job);
    pairs(&job);
    for (first, others) in [(0, 3), (1, 200), (0, 70_000), (5, 150_000)] {
        overlapping_results(&job, first, others);
    }
    generalized_requests();
    external_structs();
    long_values();
    job.finish();
}
