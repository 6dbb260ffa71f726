//! Threads of a rank under MPI_THREAD_MULTIPLE exchange messages, reduce, and create and free windows and
//! communicators, all at the same time, each on a communicator of its own.
//!
//! `thread_multiple [ROUNDS [THREADS [PERIOD]]]`: windows and communicators are created every PERIOD rounds.

use mpi::collective::SystemOperation;
use mpi::topology::SimpleCommunicator;
use mpi::traits::*;
use mpi::Threading;
use ntbring_mpi_tests::window::{row, Window};
use ntbring_mpi_tests::{arg, exchange, shifts, Job, Rng};

fn work(comm: &SimpleCommunicator, thread: u64, rounds: u64, period: u64) {
    // The same on all ranks, so that both sides know the sizes.
    let mut rng = Rng::new(thread);
    let distances = shifts(comm.size());
    for round in 0..rounds {
        let shift = distances[rng.below(distances.len() as u64) as usize];
        exchange(comm, shift, (round % 7) as i32, rng.size(17));
        if (round + 1) % period == 0 {
            let mut sum = 0;
            comm.all_reduce_into(&(thread * 1000 + round), &mut sum, SystemOperation::sum());
            assert_eq!(sum, (thread * 1000 + round) * comm.size() as u64, "all-reduce of thread {thread} in round {round}");
            come_and_go(comm, (thread * 1000 + round) as i64);
        }
    }
}

/// Creates and frees a communicator and a window while other threads communicate.
fn come_and_go(comm: &SimpleCommunicator, value: i64) {
    let comm = comm.duplicate();
    comm.barrier();
    let mut window = Window::of(&comm, 1);
    window.set(0, -1);
    window.lock_all();
    window.settle_on(&comm);
    window.put(&[value], row(1), (comm.rank() + 1) % comm.size(), 0, row(1));
    window.settle_on(&comm);
    assert_eq!(window.own(0), value, "what the rank before has put");
    comm.barrier();
}

fn main() {
    let job = Job::start_threaded("thread_multiple", Threading::Multiple);
    let (rounds, period) = (arg(1, 300), arg(3, 50));
    let comms: Vec<SimpleCommunicator> = (0..arg(2, 2)).map(|_| job.world.duplicate()).collect();
    std::thread::scope(|threads| {
        for (comm, thread) in comms.iter().zip(0..) {
            threads.spawn(move || work(comm, thread, rounds, period));
        }
    });
    drop(comms);
    job.finish();
}
