//! Messages of a rank to itself, on communicators of one rank and of all: their requests are freed at once, while they
//! wait; matched, probed and cancelled in several ways. Then a receive that is too short, and a neighbourhood collective
//! beside a receive of any tag.

use std::os::raw::c_int;

use mpi::ffi;
use mpi::traits::*;
use ntbring_mpi_tests::raw::{self, class, no_request, ok, status, wait};
use ntbring_mpi_tests::Job;

const MESSAGES: i32 = 200;

fn int() -> ffi::MPI_Datatype {
    i32::equivalent_datatype().as_raw()
}

/// A communicator and this process's rank in it.
#[derive(Clone, Copy)]
struct Place {
    comm: ffi::MPI_Comm,
    me: c_int,
    name: &'static str,
}

impl Place {
    /// Sends a number to this process, and frees the request.
    fn send(self, from: &i32, tag: c_int, synchronous: bool) {
        let (buf, mut request) = (std::ptr::from_ref(from).cast(), no_request());
        // SAFETY: the callers keep the number until the message has been received.
        unsafe {
            let code = if synchronous {
                ffi::MPI_Issend(buf, 1, int(), self.me, tag, self.comm, &mut request)
            } else {
                ffi::MPI_Isend(buf, 1, int(), self.me, tag, self.comm, &mut request)
            };
            ok(code, "the send");
            ok(ffi::MPI_Request_free(&mut request), "MPI_Request_free");
        }
    }

    /// Posts a receive that nothing matches, and cancels it: its request may take the place of a freed one.
    fn cancelled(self) {
        let (mut into, mut request) = (-1_i32, no_request());
        let buf = std::ptr::from_mut(&mut into).cast();
        // SAFETY: the number lives until the request is over.
        let (code, status) = unsafe {
            ok(ffi::MPI_Irecv(buf, 1, int(), self.me, MESSAGES + 1, self.comm, &mut request), "MPI_Irecv");
            ok(ffi::MPI_Cancel(&mut request), "MPI_Cancel");
            wait(&mut request)
        };
        ok(code, "MPI_Wait");
        assert!(raw::cancelled(&status), "{}: a receive was not cancelled", self.name);
    }

    /// Receives the message of a tag in one of four ways.
    fn receive(self, tag: c_int, how: i32) {
        let (mut into, mut status, comm) = (-1_i32, status(), self.comm);
        let buf = std::ptr::from_mut(&mut into).cast();
        // SAFETY: the number has room for the message and is not borrowed until it has come.
        unsafe {
            let (mut message, mut request, mut flag) = (ffi::RSMPI_MESSAGE_NULL, no_request(), 0);
            match how {
                0 => ok(ffi::MPI_Recv(buf, 1, int(), self.me, tag, comm, &mut status), "MPI_Recv"),
                1 => {
                    ok(ffi::MPI_Mprobe(self.me, tag, comm, &mut message, &mut status), "MPI_Mprobe");
                    ok(ffi::MPI_Mrecv(buf, 1, int(), &mut message, &mut status), "MPI_Mrecv");
                }
                2 => {
                    while flag == 0 {
                        let any = ffi::MPI_ANY_SOURCE;
                        ok(ffi::MPI_Improbe(any, ffi::MPI_ANY_TAG, comm, &mut flag, &mut message, &mut status), "MPI_Improbe");
                    }
                    ok(ffi::MPI_Imrecv(buf, 1, int(), &mut message, &mut request), "MPI_Imrecv");
                    ok(ffi::MPI_Wait(&mut request, &mut status), "MPI_Wait");
                }
                _ => {
                    ok(ffi::MPI_Irecv(buf, 1, int(), ffi::MPI_ANY_SOURCE, tag, comm, &mut request), "MPI_Irecv");
                    ok(ffi::MPI_Wait(&mut request, &mut status), "MPI_Wait");
                }
            }
        }
        assert_eq!((into, status.MPI_TAG, status.MPI_SOURCE), (tag * 17 + how, tag, self.me), "{}, way {how}", self.name);
    }

    fn freed(self) {
        for how in 0..4 {
            let out: Vec<i32> = (0..MESSAGES).map(|tag| tag * 17 + how).collect();
            for (tag, number) in out.iter().enumerate() {
                self.send(number, tag as c_int, tag % 3 == how as usize % 3);
                if tag % 5 == 0 {
                    self.cancelled();
                }
            }
            let tags: Vec<c_int> = if how == 1 { (0..MESSAGES).rev().collect() } else { (0..MESSAGES).collect() };
            tags.into_iter().for_each(|tag| self.receive(tag, how));
            // The other way round: receives that are freed before anything is sent.
            let mut into = vec![-1; MESSAGES as usize];
            for (tag, place) in into.iter_mut().enumerate() {
                let (buf, mut request) = (std::ptr::from_mut(place).cast(), no_request());
                // SAFETY: the vector lives until a message to itself behind these has been received.
                unsafe {
                    ok(ffi::MPI_Irecv(buf, 1, int(), self.me, tag as c_int, self.comm, &mut request), "MPI_Irecv");
                    ok(ffi::MPI_Request_free(&mut request), "MPI_Request_free");
                }
            }
            out.iter().enumerate().for_each(|(tag, number)| self.send(number, tag as c_int, false));
            let last = 3;
            self.send(&last, MESSAGES, true);
            self.receive_last();
            assert_eq!(into, out, "{}: received by freed requests", self.name);
        }
    }

    fn receive_last(self) {
        let (mut into, mut status) = (-1_i32, status());
        let buf = std::ptr::from_mut(&mut into).cast();
        // SAFETY: the number has room for the message.
        ok(unsafe { ffi::MPI_Recv(buf, 1, int(), self.me, MESSAGES, self.comm, &mut status) }, "MPI_Recv");
        assert_eq!(into, 3, "{}: the last message", self.name);
    }

    fn too_short(self) {
        let (out, mut into, mut request, mut status) = ([5_i32; 100], [-1_i32; 100], no_request(), status());
        let to = into.as_mut_ptr().cast();
        // SAFETY: the receive has room for four numbers; all buffers live until both are over.
        let code = unsafe {
            ok(ffi::MPI_Comm_set_errhandler(self.comm, ffi::RSMPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
            ok(ffi::MPI_Isend(out.as_ptr().cast(), 100, int(), self.me, 5, self.comm, &mut request), "MPI_Isend");
            let code = ffi::MPI_Recv(to, 4, int(), self.me, 5, self.comm, &mut status);
            ok(wait(&mut request).0, "MPI_Wait");
            ok(ffi::MPI_Comm_set_errhandler(self.comm, ffi::RSMPI_ERRORS_ARE_FATAL), "MPI_Comm_set_errhandler");
            code
        };
        assert_eq!(class(code), ffi::MPI_ERR_TRUNCATE as c_int, "{}: {}", self.name, raw::text(code));
        assert!(into[4..].iter().all(|word| *word == -1), "{}: written behind the receive", self.name);
    }
}

/// A receive of any tag must not take what a collective of the same communicator sends.
fn beside_collective() {
    let (mut into, mut gotten, out) = (-1_i32, [-1_i32; 2], [3_i32, 4]);
    let [mut receive, mut collective] = [no_request(); 2];
    let buf = std::ptr::from_mut(&mut into).cast();
    // SAFETY: all buffers live until the requests are over, and the arrays have an element for the only dimension.
    unsafe {
        let mut ring = std::mem::zeroed();
        ok(ffi::MPI_Cart_create(ffi::RSMPI_COMM_SELF, 1, [1].as_ptr(), [1].as_ptr(), 0, &mut ring), "MPI_Cart_create");
        ok(ffi::MPI_Irecv(buf, 1, int(), 0, ffi::MPI_ANY_TAG, ring, &mut receive), "MPI_Irecv");
        let (from, to) = (out.as_ptr().cast(), gotten.as_mut_ptr().cast());
        ok(ffi::MPI_Ineighbor_alltoall(from, 1, int(), to, 1, int(), ring, &mut collective), "MPI_Ineighbor_alltoall");
        ok(wait(&mut collective).0, "MPI_Wait");
        let place = Place { comm: ring, me: 0, name: "a ring of one" };
        place.send(&7, 9, true);
        ok(wait(&mut receive).0, "MPI_Wait");
        ok(ffi::MPI_Comm_free(&mut ring), "MPI_Comm_free");
    }
    assert_eq!((into, gotten), (7, [4, 3]), "a receive beside a neighbourhood collective");
}

fn main() {
    let job = Job::start("self_freed");
    // SAFETY: the results have valid destinations; the communicator is freed when nothing is pending on it.
    unsafe {
        let mut alone = std::mem::zeroed();
        ok(ffi::MPI_Comm_split(job.world.as_raw(), job.rank, 0, &mut alone), "MPI_Comm_split");
        let places =
            [(alone, 0, "a communicator of one"), (ffi::RSMPI_COMM_SELF, 0, "MPI_COMM_SELF"), (job.world.as_raw(), job.rank, "the world")];
        for (comm, me, name) in places {
            let place = Place { comm, me, name };
            place.freed();
            place.too_short();
        }
        ok(ffi::MPI_Comm_free(&mut alone), "MPI_Comm_free");
    }
    beside_collective();
    job.finish();
}
