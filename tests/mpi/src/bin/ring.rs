//! A token travels round the ring of ranks; it grows, and each rank checks it and increments its hop count.

use mpi::traits::*;
use ntbring_mpi_tests::{fill, mismatch, Job};

/// Size in bytes of the hop count, with which the token begins.
const COUNT: usize = 8;

fn check(token: &[u8], size: usize, round: i32, hops: u64) {
    assert_eq!(token.len(), COUNT + size, "size of the token in round {round}");
    assert_eq!(token[..COUNT], hops.to_le_bytes(), "hops of the token in round {round} of {size} bytes");
    if let Some(what) = mismatch(&token[COUNT..], 0, round, 1) {
        panic!("round {round}: {what}");
    }
}

fn main() {
    let job = Job::start("ring");
    job.needs_ranks(2);
    let (left, right) = (job.world.process_at_rank(job.ahead(-1)), job.world.process_at_rank(job.ahead(1)));
    for (size, rounds) in [(0, 50), (1, 50), (56, 50), (1000, 20), (8 << 10, 10), (64 << 10, 5), (1 << 20, 3), (8 << 20, 1)] {
        for round in 0..rounds {
            if job.rank == 0 {
                let mut token = vec![0; COUNT + size];
                fill(&mut token[COUNT..], 0, round, 1);
                right.send(&token[..]);
                let (token, _) = left.receive_vec::<u8>();
                check(&token, size, round, job.size as u64 - 1);
            } else {
                let (mut token, _) = left.receive_vec::<u8>();
                check(&token, size, round, job.rank as u64 - 1);
                token[..COUNT].copy_from_slice(&(job.rank as u64).to_le_bytes());
                right.send(&token[..]);
            }
        }
    }
    job.finish();
}
