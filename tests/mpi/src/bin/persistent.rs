//! Persistent requests of all send modes, started together and one by one, repeatedly.

use mpi::ffi;
use mpi::traits::*;
use ntbring_mpi_tests::{fill, raw, shifts, verify, Job};

const ROUNDS: i32 = 30;
const SIZES: [usize; 5] = [0, 8, 500, 20_000, 300_000];

/// A pair of persistent requests and their buffers.
struct Channel {
    to: i32,
    from: i32,
    tag: i32,
    out: Vec<u8>,
    into: Vec<u8>,
    requests: [ffi::MPI_Request; 2],
}

type SendInit = unsafe extern "C" fn(
    *const std::os::raw::c_void,
    i32,
    ffi::MPI_Datatype,
    i32,
    i32,
    ffi::MPI_Comm,
    *mut ffi::MPI_Request,
) -> std::os::raw::c_int;

impl Channel {
    fn new(job: &Job, init: SendInit, shift: i32, tag: i32, size: usize) -> Self {
        let (to, from, comm) = (job.ahead(shift), job.ahead(-shift), job.world.as_raw());
        let (out, mut into) = (vec![0_u8; size], vec![0_u8; size]);
        let mut requests = [raw::no_request(); 2];
        let [receive, send] = &mut requests;
        // SAFETY: the buffers are on the heap, so they do not move with the channel, and `drop` frees the requests
        // before them.
        unsafe {
            raw::ok(ffi::MPI_Recv_init(into.as_mut_ptr().cast(), size as i32, raw::byte(), from, tag, comm, receive), "MPI_Recv_init");
            raw::ok(init(out.as_ptr().cast(), size as i32, raw::byte(), to, tag, comm, send), "the send's init call");
        }
        Self { to, from, tag, out, into, requests }
    }

    fn prepare(&mut self, job: &Job, round: i32) {
        fill(&mut self.out, job.rank, self.to, self.tag * 1000 + round);
        self.into.fill(0);
    }

    fn wait(&mut self, job: &Job, round: i32) {
        for (index, request) in self.requests.iter_mut().enumerate() {
            // SAFETY: the request is active, and its buffers are allocated and not borrowed.
            let (code, status) = unsafe { raw::wait(request) };
            raw::ok(code, "MPI_Wait");
            if index == 0 {
                assert_eq!((raw::bytes(&status), status.MPI_SOURCE), (self.into.len(), self.from), "size and sender in round {round}");
            }
        }
        assert!(!self.requests.contains(&raw::no_request()), "a persistent request was gone after its completion");
        verify(&self.into, self.from, job.rank, self.tag * 1000 + round);
    }
}

impl Drop for Channel {
    fn drop(&mut self) {
        for request in &mut self.requests {
            // SAFETY: the request is valid and inactive.
            raw::ok(unsafe { ffi::MPI_Request_free(request) }, "MPI_Request_free");
        }
    }
}

fn main() {
    let mut job = Job::start("persistent");
    job.universe.set_buffer_size(4 << 20);
    let modes: [SendInit; 3] = [ffi::MPI_Send_init, ffi::MPI_Ssend_init, ffi::MPI_Bsend_init];
    for shift in shifts(job.size) {
        let mut channels: Vec<Channel> = Vec::new();
        for init in modes {
            for size in SIZES {
                let tag = channels.len() as i32;
                channels.push(Channel::new(&job, init, shift, tag, size));
            }
        }
        for round in 0..ROUNDS {
            channels.iter_mut().for_each(|channel| channel.prepare(&job, round));
            if round % 2 == 0 {
                let mut all: Vec<ffi::MPI_Request> = channels.iter().flat_map(|channel| channel.requests).collect();
                // SAFETY: the persistent requests are inactive, and their buffers do not move until all have been
                // waited for.
                raw::ok(unsafe { ffi::MPI_Startall(all.len() as i32, all.as_mut_ptr()) }, "MPI_Startall");
            } else {
                // Receives are started after the sends.
                for channel in &mut channels {
                    for request in channel.requests.iter_mut().rev() {
                        // SAFETY: as above.
                        raw::ok(unsafe { ffi::MPI_Start(request) }, "MPI_Start");
                    }
                }
            }
            channels.iter_mut().rev().for_each(|channel| channel.wait(&job, round));
        }
    }
    // Ready sends: all receives are started before the barrier, the sends after it.
    for size in SIZES {
        let mut channel = Channel::new(&job, ffi::MPI_Rsend_init, 1 % job.size, 77, size);
        for round in 0..5 {
            channel.prepare(&job, round);
            // SAFETY: as above; the barrier guarantees that the receive is posted before the ready send.
            unsafe {
                raw::ok(ffi::MPI_Start(&mut channel.requests[0]), "MPI_Start");
                job.world.barrier();
                raw::ok(ffi::MPI_Start(&mut channel.requests[1]), "MPI_Start");
            }
            channel.wait(&job, round);
        }
    }
    job.finish();
}
