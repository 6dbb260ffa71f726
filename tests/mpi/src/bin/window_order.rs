//! Two ranks put a number into each other's memory, flush, and read the number that the other has put: at least one of
//! them must find it, since a put is complete when its flush has returned. The test detects a flush without a full
//! barrier, since processors let loads overtake stores.

use mpi::traits::*;
use ntbring_mpi_tests::window::{row, Window};
use ntbring_mpi_tests::{fail, Job};

const ROUNDS: usize = 10_000;

/// Returns for each round 1 if this rank has found the other one's number, otherwise 0.
fn rounds(job: &Job) -> Vec<u8> {
    let w = Window::new(job, 1);
    let other = 1 - job.rank;
    w.set(0, 0);
    w.settle(job);
    let found = (1..=ROUNDS as i64).map(|round| {
        // The barrier lets both begin at nearly the same time.
        job.world.barrier();
        w.put(&[round], row(1), other, 0, row(1));
        w.flush(other);
        let mut value = [0];
        w.get(&mut value, row(1), job.rank, 0, row(1));
        w.flush(job.rank);
        u8::from(value[0] == round)
    });
    let found = found.collect();
    w.settle(job);
    found
}

fn main() {
    let job = Job::start("window_order");
    if job.size != 2 {
        fail("window_order is for two ranks");
    }
    let mine = rounds(&job);
    let mut all = vec![0u8; 2 * ROUNDS];
    job.world.all_gather_into(&mine[..], &mut all[..]);
    let neither = (0..ROUNDS).filter(|&i| all[i] + all[ROUNDS + i] == 0).count();
    assert_eq!(neither, 0, "rounds of {ROUNDS} in which neither rank saw the other's number");
    job.finish();
}
