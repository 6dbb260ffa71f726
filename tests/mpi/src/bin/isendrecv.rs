//! MPI_Isendrecv and MPI_Isendrecv_replace of matrix columns, many times with the same datatypes, which must still be
//! there afterwards; their statuses, errors and MPI_PROC_NULL on either side.

use std::os::raw::c_int;

use mpi::ffi;
use mpi::traits::*;
use ntbring_mpi_tests::raw::{self, class, no_request, ok, wait};
use ntbring_mpi_tests::{shifts, Job};

const ROUNDS: i32 = 30;

fn int() -> ffi::MPI_Datatype {
    i32::equivalent_datatype().as_raw()
}

/// A column of a square matrix, whose next element is the next column.
struct Column(ffi::MPI_Datatype);

impl Column {
    fn new(n: usize) -> Self {
        let n = n as c_int;
        // SAFETY: the types are valid for writes; the first is not used after it is freed.
        unsafe {
            let (mut apart, mut column) = (std::mem::zeroed(), std::mem::zeroed());
            ok(ffi::MPI_Type_vector(n, 1, n, int(), &mut apart), "MPI_Type_vector");
            ok(ffi::MPI_Type_create_resized(apart, 0, 4, &mut column), "MPI_Type_create_resized");
            ok(ffi::MPI_Type_commit(&mut column), "MPI_Type_commit");
            ok(ffi::MPI_Type_free(&mut apart), "MPI_Type_free");
            Self(column)
        }
    }

    fn size(&self) -> c_int {
        let mut size = -1;
        // SAFETY: the result has a valid destination; MPI checks the datatype.
        ok(unsafe { ffi::MPI_Type_size(self.0, &mut size) }, "MPI_Type_size");
        size
    }
}

impl Drop for Column {
    fn drop(&mut self) {
        // SAFETY: the type is valid, and no pending operation uses it.
        ok(unsafe { ffi::MPI_Type_free(&mut self.0) }, "MPI_Type_free");
    }
}

fn value(rank: i32, round: i32, at: usize) -> i32 {
    (rank * 1_000_003 + round * 7919).wrapping_add(at as i32 * 31)
}

/// Sends columns 3 and 4 to columns 0 and 1 of another rank, and exchanges columns 9 to 11 in place.
fn round(job: &Job, shift: i32, n: usize, column: &Column, round: i32) {
    let (to, from, comm) = (job.ahead(shift), job.ahead(-shift), job.world.as_raw());
    let whole = |rank| (0..n * n).map(|at| value(rank, round, at)).collect::<Vec<i32>>();
    let (mut a, mut b) = (whole(job.rank), vec![-1; n * n]);
    let [mut there, mut replaced] = [no_request(); 2];
    let (out, into) = (a[3..].as_ptr().cast(), b.as_mut_ptr().cast());
    // SAFETY: the columns lie in their matrices, do not overlap, and are not borrowed until both requests are over.
    let statuses = unsafe {
        ok(ffi::MPI_Isendrecv(out, 2, column.0, to, 5, into, 2, column.0, from, 5, comm, &mut there), "MPI_Isendrecv");
        let place = a.as_mut_ptr().add(9).cast();
        let code = ffi::MPI_Isendrecv_replace(place, 3, column.0, to, 6, from, ffi::MPI_ANY_TAG, comm, &mut replaced);
        ok(code, "MPI_Isendrecv_replace");
        [(wait(&mut there), 2, 5), (wait(&mut replaced), 3, 6)]
    };
    for ((code, status), columns, tag) in statuses {
        ok(code, "MPI_Wait");
        let wanted = (columns * n * 4, from, tag);
        assert_eq!((raw::bytes(&status), status.MPI_SOURCE, status.MPI_TAG), wanted, "status of {columns} columns of {n}");
    }
    for (at, (a, b)) in a.into_iter().zip(b).enumerate() {
        let column = at % n;
        let wanted = if column < 2 { value(from, round, at + 3) } else { -1 };
        assert_eq!(b, wanted, "column {column} of {n}, row {}, after MPI_Isendrecv", at / n);
        let whose = if (9..12).contains(&column) { from } else { job.rank };
        assert_eq!(a, value(whose, round, at), "column {column} of {n}, row {}, after MPI_Isendrecv_replace", at / n);
    }
    assert_eq!(column.size(), n as c_int * 4, "size of the datatype");
}

/// MPI_PROC_NULL on one side or both: even ranks only send, odd ranks only receive, then all do neither.
fn nobody(job: &Job) {
    let (comm, none) = (job.world.as_raw(), ffi::MPI_PROC_NULL);
    let partner = if job.rank ^ 1 < job.size { job.rank ^ 1 } else { none };
    let (dest, source) = if job.rank % 2 == 0 { (partner, none) } else { (none, partner) };
    for (dest, source) in [(dest, source), (none, none)] {
        let (mine, mut same, mut into) = (job.rank, job.rank, -1);
        let [mut first, mut second] = [no_request(); 2];
        let place = std::ptr::from_mut(&mut same).cast();
        let (out, room) = (std::ptr::from_ref(&mine).cast(), std::ptr::from_mut(&mut into).cast());
        // SAFETY: the numbers outlive the requests and are not borrowed before they are over.
        let statuses = unsafe {
            ok(ffi::MPI_Isendrecv_replace(place, 1, int(), dest, 8, source, 8, comm, &mut first), "MPI_Isendrecv_replace");
            ok(ffi::MPI_Isendrecv(out, 1, int(), dest, 9, room, 1, int(), source, 9, comm, &mut second), "MPI_Isendrecv");
            [wait(&mut second), wait(&mut first)]
        };
        for (code, status) in statuses {
            ok(code, "MPI_Wait");
            let bytes = if source == none { 0 } else { 4 };
            assert_eq!((status.MPI_SOURCE, raw::bytes(&status)), (source, bytes), "status from {source} to {dest}");
        }
        let got = if source == none { (mine, -1) } else { (source, source) };
        assert_eq!((same, into), got, "received from {source}, sent to {dest}");
    }
}

/// A message that is longer than its receive is an error of the whole, and writes nothing behind it.
fn too_long(job: &Job) {
    let (to, from) = (job.ahead(1), job.ahead(-1));
    let comm = job.world.duplicate();
    raw::errors_return(&comm);
    let (out, mut into, mut request) = ([7_i32; 100], [-1_i32; 100], no_request());
    let (from_here, to_here) = (out.as_ptr().cast(), into.as_mut_ptr().cast());
    // SAFETY: the receive has room for four numbers, the send has more; both live until the request is over.
    let (code, _) = unsafe {
        ok(ffi::MPI_Isendrecv(from_here, 100, int(), to, 1, to_here, 4, int(), from, 1, comm.as_raw(), &mut request), "MPI_Isendrecv");
        wait(&mut request)
    };
    assert_eq!(class(code), ffi::MPI_ERR_TRUNCATE as c_int, "{}", raw::text(code));
    assert!(into[4..].iter().all(|word| *word == -1), "written behind the receive");
}

fn main() {
    let job = Job::start("isendrecv");
    for n in [16, 100, 400] {
        let column = Column::new(n);
        for shift in shifts(job.size) {
            for number in 0..if n < 400 { ROUNDS } else { 4 } {
                round(&job, shift, n, &column, number);
            }
        }
    }
    nobody(&job);
    too_long(&job);
    job.finish();
}
