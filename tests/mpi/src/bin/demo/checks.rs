//! The checks of the demo. A check returns a description of a failure on this rank instead of ending the job, so that
//! the report is complete.

use mpi::collective::SystemOperation;
use mpi::traits::*;
use ntbring_mpi_tests::{fill, filled, mismatch, received_bytes, Job};

/// A check: returns None if all was correct on this rank, and otherwise a description of the failure.
type Check = fn(&Job) -> Option<String>;

/// The checks, in order, with the names they have in the report.
pub const ALL: &[(&str, Check)] =
    &[("neighbours", neighbours), ("opposite", opposite), ("alltoall", all_to_all), ("allreduce", all_reduce)];

const LARGEST: usize = 4 << 20;

/// Returns true if a check was successful on all ranks.
pub fn all_agree(job: &Job, mine: bool) -> bool {
    let mut all = false;
    job.world.all_reduce_into(&mine, &mut all, SystemOperation::logical_and());
    all
}

/// Every rank sends `shift` ahead and receives from behind, with every size from nothing to 4 MiB.
fn exchanges(job: &Job, shift: i32) -> Option<String> {
    let (to, from) = (job.ahead(shift), job.ahead(-shift));
    let (mut out, mut into) = (vec![0_u8; LARGEST], vec![0_u8; LARGEST]);
    let mut problem = None;
    for (tag, size) in std::iter::once(0).chain((0..=22).map(|bits| 1 << bits)).enumerate() {
        fill(&mut out[..size], job.rank, to, tag as i32);
        into[..size].fill(0);
        let status = mpi::request::scope(|scope| {
            let receiving = job.world.process_at_rank(from).immediate_receive_into_with_tag(scope, &mut into[..size], tag as i32);
            job.world.process_at_rank(to).send_with_tag(&out[..size], tag as i32);
            receiving.wait()
        });
        let got = received_bytes(&status);
        let wrong =
            if got == size { mismatch(&into[..size], from, job.rank, tag as i32) } else { Some(format!("{got} bytes, not {size}")) };
        problem = problem.or(wrong);
    }
    problem
}

fn neighbours(job: &Job) -> Option<String> {
    let (ahead, behind) = (exchanges(job, 1), exchanges(job, -1));
    ahead.or(behind)
}

fn opposite(job: &Job) -> Option<String> {
    exchanges(job, job.size / 2)
}

fn all_to_all(job: &Job) -> Option<String> {
    let mut problem = None;
    for block in [8, 1000, 256 << 10] {
        let out: Vec<u8> = (0..job.size).flat_map(|dst| filled(job.rank, dst, 50, block)).collect();
        let mut into = vec![0_u8; out.len()];
        job.world.all_to_all_into(&out[..], &mut into[..]);
        for (part, src) in into.chunks(block).zip(0..) {
            problem = problem.or_else(|| mismatch(part, src, job.rank, 50));
        }
    }
    problem
}

fn all_reduce(job: &Job) -> Option<String> {
    let mut problem = None;
    for len in [1_u64, 1000, 200_000] {
        let mine: Vec<u64> = (0..len).map(|i| i * 3 + job.rank as u64).collect();
        let mut sums = vec![0_u64; mine.len()];
        job.world.all_reduce_into(&mine[..], &mut sums[..], SystemOperation::sum());
        let ranks = job.size as u64;
        let wrong = sums.iter().zip(0..).position(|(sum, i)| *sum != ranks * i * 3 + ranks * (ranks - 1) / 2);
        problem = problem.or(wrong.map(|i| format!("sum {i} of {len} is wrong")));
    }
    problem
}
