//! Sessions one after another, some of them two at once, each with communicators of all ranks and of one, reductions and
//! messages; before them one whose errors return. With the argument `world` MPI is initialized the usual way afterwards, too.

use std::os::raw::c_int;

use mpi::ffi;
use mpi::traits::*;
use ntbring_mpi_tests::raw::{self, class, ok};
use ntbring_mpi_tests::{arg, Job};

/// A session, or nothing but its handle once it is finalized.
struct Session(ffi::MPI_Session);

impl Session {
    fn new() -> Self {
        // SAFETY: the result has a valid destination.
        unsafe {
            let mut session = std::mem::zeroed();
            ok(ffi::MPI_Session_init(ffi::RSMPI_INFO_NULL, ffi::RSMPI_ERRORS_ARE_FATAL, &mut session), "MPI_Session_init");
            Self(session)
        }
    }

    /// Returns a communicator of a set of processes.
    fn communicator(&self, set: &std::ffi::CStr) -> ffi::MPI_Comm {
        // SAFETY: all results have valid destinations; the group is not used after it is freed.
        unsafe {
            let (mut group, mut comm) = (std::mem::zeroed(), std::mem::zeroed());
            ok(ffi::MPI_Group_from_session_pset(self.0, set.as_ptr(), &mut group), "MPI_Group_from_session_pset");
            let (info, errors) = (ffi::RSMPI_INFO_NULL, ffi::RSMPI_ERRORS_ARE_FATAL);
            ok(ffi::MPI_Comm_create_from_group(group, set.as_ptr(), info, errors, &mut comm), "MPI_Comm_create_from_group");
            ok(ffi::MPI_Group_free(&mut group), "MPI_Group_free");
            comm
        }
    }

    fn finalize(mut self) {
        // SAFETY: nothing of the session is in use.
        ok(unsafe { ffi::MPI_Session_finalize(&mut self.0) }, "MPI_Session_finalize");
    }
}

fn free(mut comm: ffi::MPI_Comm) {
    // SAFETY: the communicator is valid, and nothing is pending on it.
    ok(unsafe { ffi::MPI_Comm_free(&mut comm) }, "MPI_Comm_free");
}

/// Returns this process's rank, after a reduction and a message around the ring.
fn round(number: i32) -> i32 {
    let session = Session::new();
    let other = (number % 2 == 1).then(Session::new);
    let (all, one) = (session.communicator(c"mpi://WORLD"), session.communicator(c"mpi://SELF"));
    let (mut me, mut ranks, mut alone, mut sum, mut got) = (-1, -1, -1, -1, -1);
    let int = i32::equivalent_datatype().as_raw();
    // SAFETY: all results have valid destinations, and the buffers hold one number each.
    unsafe {
        ok(ffi::MPI_Comm_rank(all, &mut me), "MPI_Comm_rank");
        ok(ffi::MPI_Comm_size(all, &mut ranks), "MPI_Comm_size");
        ok(ffi::MPI_Comm_size(one, &mut alone), "MPI_Comm_size");
        let mine = me + number;
        let (out, add) = (std::ptr::from_ref(&mine).cast(), ffi::RSMPI_SUM);
        ok(ffi::MPI_Allreduce(out, std::ptr::from_mut(&mut sum).cast(), 1, int, add, all), "MPI_Allreduce");
        let (into, mut status): (*mut c_int, _) = (&mut got, raw::status());
        let (to, from) = ((me + 1) % ranks, (me + ranks - 1) % ranks);
        ok(ffi::MPI_Sendrecv(out, 1, int, to, 1, into.cast(), 1, int, from, 1, all, &mut status), "MPI_Sendrecv");
        assert_eq!((sum, got, alone), (ranks * number + ranks * (ranks - 1) / 2, from + number, 1), "round {number}");
    }
    free(one);
    free(all);
    if let Some(other) = other {
        other.finalize();
    }
    session.finalize();
    me
}

/// Asks a session whose errors return for a set of processes that does not exist.
fn errors_return() {
    // SAFETY: the results have valid destinations; the session is finalized once.
    unsafe {
        let (mut session, mut group) = (std::mem::zeroed(), std::mem::zeroed());
        ok(ffi::MPI_Session_init(ffi::RSMPI_INFO_NULL, ffi::RSMPI_ERRORS_RETURN, &mut session), "MPI_Session_init");
        let code = ffi::MPI_Group_from_session_pset(session, c"mpi://nowhere".as_ptr(), &mut group);
        assert_ne!(class(code), ffi::MPI_SUCCESS as c_int, "a group of a set that does not exist");
        ok(ffi::MPI_Session_finalize(&mut session), "MPI_Session_finalize");
    }
}

fn main() {
    errors_return();
    let rounds = arg(1, 4);
    let mut me = -1;
    for number in 0..rounds {
        me = round(number);
    }
    if std::env::args().nth(2).is_some() {
        let job = Job::start("sessions");
        assert_eq!(job.rank, me, "the rank in the world");
        job.world.barrier();
        return job.finish();
    }
    if me == 0 {
        println!("ok sessions");
    }
}
