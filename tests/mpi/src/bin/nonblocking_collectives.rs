//! Several nonblocking collectives at once, with point-to-point traffic between them.

use mpi::collective::SystemOperation;
use mpi::traits::*;
use ntbring_mpi_tests::{exchange, filled, verify, Job};

fn round(job: &Job, len: usize, round: i32) {
    let (me, n, world) = (job.rank, job.size as usize, &job.world);
    let root = round % job.size;
    let root_process = world.process_at_rank(root);
    let ones: Vec<u64> = (0..len as u64).map(|i| i + me as u64).collect();
    let mut sums = vec![0; len];
    let mut scanned = vec![0; len];
    let mut shared = if me == root { filled(root, 0, round, len * 8) } else { vec![0; len * 8] };
    let to_all: Vec<u8> = (0..n).flat_map(|dst| filled(me, dst as i32, round, len)).collect();
    let mut from_all = vec![0; len * n];
    let mine = filled(me, 1000, round, len);
    let mut gathered = vec![0; len * n];
    let mut at_root = vec![0; len * n];
    mpi::request::scope(|scope| {
        let barrier = world.immediate_barrier();
        let sum = world.immediate_all_reduce_into(scope, &ones[..], &mut sums[..], SystemOperation::sum());
        let broadcast = root_process.immediate_broadcast_into(scope, &mut shared[..]);
        let all_to_all = world.immediate_all_to_all_into(scope, &to_all[..], &mut from_all[..]);
        exchange(world, 1, round, len + 5);
        let gather_all = world.immediate_all_gather_into(scope, &mine[..], &mut gathered[..]);
        let scan = world.immediate_scan_into(scope, &ones[..], &mut scanned[..], SystemOperation::sum());
        if me == root {
            root_process.immediate_gather_into_root(scope, &mine[..], &mut at_root[..]).wait();
        } else {
            root_process.immediate_gather_into(scope, &mine[..]).wait();
        }
        // Not in the order in which they were begun.
        scan.wait();
        all_to_all.wait();
        exchange(world, job.size / 2, round, len * 3);
        broadcast.wait();
        gather_all.wait();
        sum.wait();
        barrier.wait();
    });
    let below = |ranks: u64| ranks * ranks.saturating_sub(1) / 2;
    for i in 0..len {
        assert_eq!(sums[i], n as u64 * i as u64 + below(n as u64), "element {i} of the all-reduce of {len}");
        let ranks = me as u64 + 1;
        assert_eq!(scanned[i], ranks * i as u64 + below(ranks), "element {i} of the scan of {len}");
    }
    verify(&shared, root, 0, round);
    for src in 0..n {
        verify(&from_all[src * len..(src + 1) * len], src as i32, me, round);
        verify(&gathered[src * len..(src + 1) * len], src as i32, 1000, round);
        if me == root {
            verify(&at_root[src * len..(src + 1) * len], src as i32, 1000, round);
        }
    }
}

/// A nonblocking barrier that is not waited for at once delays no messages, and completes only when all ranks have
/// entered it.
fn late_barrier(job: &Job) {
    let mut barrier = Some(job.world.immediate_barrier());
    for tag in 0..20 {
        exchange(&job.world, 1, tag, 1000);
    }
    while let Some(request) = barrier.take() {
        barrier = request.test().err();
    }
}

fn main() {
    let job = Job::start("nonblocking_collectives");
    for (number, len) in [1, 10, 1000, 30_000, 200_000].into_iter().enumerate() {
        round(&job, len, number as i32);
    }
    for _ in 0..10 {
        late_barrier(&job);
    }
    job.finish();
}
