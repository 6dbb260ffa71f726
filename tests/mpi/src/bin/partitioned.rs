//! Partitioned messages between ranks at every distance: with few and with many partitions, empty and large ones,
//! marked ready in any order and by several threads, waited for one by one, started repeatedly; with different
//! partitions at receiver and sender.

use std::os::raw::{c_int, c_void};

use mpi::ffi;
use mpi::traits::*;
use mpi::Threading;
use ntbring_mpi_tests::raw::{byte, no_request, ok, status};
use ntbring_mpi_tests::{fill, shifts, verify, Job, Rng};

/// Number of partitions of the sender, the receiver's number as a multiple of it, and bytes of a partition of the
/// receiver.
const SHAPES: [(usize, usize, usize); 8] =
    [(1, 1, 0), (1, 1, 8), (7, 1, 1000), (7, 1, 0), (512, 1, 64), (8192, 1, 16), (5, 3, 333), (3, 1, 1 << 20)];
const ROUNDS: i32 = 3;
const THREADS: usize = 3;

/// One side of a channel: a request and its memory.
struct Side {
    request: ffi::MPI_Request,
    memory: Vec<u8>,
}

impl Side {
    fn sender(job: &Job, to: i32, tag: c_int, partitions: usize, size: usize) -> Side {
        let mut side = Side { request: no_request(), memory: vec![0; partitions * size] };
        let at: *mut c_void = side.memory.as_mut_ptr().cast();
        let (world, info) = (job.world.as_raw(), info());
        // SAFETY: the buffer has the given size and does not move until the request is freed.
        let code = unsafe { ffi::MPI_Psend_init(at, partitions as c_int, size as i64, byte(), to, tag, world, info, &mut side.request) };
        ok(code, "MPI_Psend_init");
        side
    }

    fn receiver(job: &Job, from: i32, tag: c_int, partitions: usize, size: usize) -> Side {
        let mut side = Side { request: no_request(), memory: vec![0; partitions * size] };
        let at: *mut c_void = side.memory.as_mut_ptr().cast();
        let (world, info) = (job.world.as_raw(), info());
        // SAFETY: the buffer has the given size and does not move until the request is freed.
        let code = unsafe { ffi::MPI_Precv_init(at, partitions as c_int, size as i64, byte(), from, tag, world, info, &mut side.request) };
        ok(code, "MPI_Precv_init");
        side
    }

    fn start(&mut self) {
        // SAFETY: the request is valid and inactive.
        ok(unsafe { ffi::MPI_Start(&mut self.request) }, "MPI_Start");
    }

    fn wait(&mut self) {
        // SAFETY: the request is valid; its memory is not borrowed.
        ok(unsafe { ffi::MPI_Wait(&mut self.request, &mut status()) }, "MPI_Wait");
    }

    /// Returns the present content of a part of the memory, while more data arrives.
    fn look(&self, part: std::ops::Range<usize>) -> Vec<u8> {
        // SAFETY: the address is within the memory; the read is volatile, since MPI writes to it at the same time.
        part.map(|at| unsafe { self.memory.as_ptr().add(at).read_volatile() }).collect()
    }

    /// Returns true if a partition has arrived.
    fn has(&self, partition: usize) -> bool {
        let mut flag = 0;
        // SAFETY: the request is active and has that partition.
        ok(unsafe { ffi::MPI_Parrived(self.request, partition as c_int, &mut flag) }, "MPI_Parrived");
        flag != 0
    }
}

impl Drop for Side {
    fn drop(&mut self) {
        // SAFETY: the request is valid and inactive.
        ok(unsafe { ffi::MPI_Request_free(&mut self.request) }, "MPI_Request_free");
    }
}

/// The part of a channel that several threads may use at the same time.
struct Ready(ffi::MPI_Request);

// SAFETY: MPI allows threads to mark partitions of one request as ready at the same time.
unsafe impl Sync for Ready {}

impl Ready {
    /// Marks partitions as ready, consecutive ones with a single call.
    fn give(&self, partitions: &[usize]) {
        let mut numbers: Vec<c_int> = partitions.iter().map(|&p| p as c_int).collect();
        let is_run = numbers.windows(2).all(|two| two[1] == two[0] + 1);
        // SAFETY: the request is active, and these partitions have not been marked ready yet.
        let code = unsafe {
            match numbers[..] {
                [] => return,
                [one] => ffi::MPI_Pready(one, self.0),
                [first, .., last] if is_run => ffi::MPI_Pready_range(first, last, self.0),
                _ => ffi::MPI_Pready_list(numbers.len() as c_int, numbers.as_mut_ptr(), self.0),
            }
        };
        ok(code, "MPI_Pready");
    }
}

fn info() -> ffi::MPI_Info {
    // SAFETY: the constant is initialized by the C side at load time and never written.
    unsafe { ffi::RSMPI_INFO_NULL }
}

fn main() {
    let job = Job::start_threaded("partitioned", Threading::Multiple);
    for (number, &(partitions, finer, size)) in SHAPES.iter().enumerate() {
        for shift in shifts(job.size) {
            let (to, from, tag) = (job.ahead(shift), job.ahead(-shift), number as c_int);
            let mut sending = Side::sender(&job, to, tag, partitions, size * finer);
            let mut receiving = Side::receiver(&job, from, tag, partitions * finer, size);
            for round in 0..ROUNDS {
                let mut rng = Rng::new(number as u64 * 100 + round as u64);
                receiving.memory.fill(0xa5);
                receiving.start();
                sending.start();
                fill(&mut sending.memory, job.rank, to, round);
                let mut order: Vec<usize> = (0..partitions).collect();
                if round > 0 {
                    rng.shuffle(&mut order);
                }
                let ready = &Ready(sending.request);
                match round {
                    2 => std::thread::scope(|threads| {
                        for part in order.chunks(partitions.div_ceil(THREADS)) {
                            threads.spawn(move || part.chunks(5).for_each(|few| ready.give(few)));
                        }
                    }),
                    _ => order.chunks(1 + rng.below(9) as usize).for_each(|few| ready.give(few)),
                }
                let looked_for = rng.below((partitions * finer) as u64) as usize;
                while round > 0 && !receiving.has(looked_for) {
                    std::thread::yield_now();
                }
                if round > 0 {
                    // The partition arrives before the whole message has.
                    let mut expected = vec![0; receiving.memory.len()];
                    fill(&mut expected, from, job.rank, round);
                    let part = looked_for * size..(looked_for + 1) * size;
                    assert_eq!(receiving.look(part.clone()), expected[part], "partition {looked_for}");
                }
                receiving.wait();
                sending.wait();
                verify(&receiving.memory, from, job.rank, round);
            }
        }
    }
    job.finish();
}
