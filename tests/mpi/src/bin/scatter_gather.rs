//! Broadcast, scatter, gather and their relatives, from several roots, in several sizes, with equal and unequal parts.

use mpi::datatype::{Partition, PartitionMut};
use mpi::traits::*;
use mpi::Count;
use ntbring_mpi_tests::Job;

/// Returns element `i` of the data of `src` for `dst`.
fn value(src: i32, dst: i32, i: usize) -> u64 {
    (src as u64) << 48 | (dst as u64) << 32 | i as u64
}

fn values(src: i32, dst: i32, len: usize) -> Vec<u64> {
    (0..len).map(|i| value(src, dst, i)).collect()
}

/// Returns the length of the unequal part of `rank`; some parts are empty.
fn part(rank: i32, len: usize) -> usize {
    len * (rank as usize % 4) / 2
}

fn rooted(job: &Job, root: i32, len: usize) {
    let (me, world) = (job.rank, &job.world);
    let root_process = world.process_at_rank(root);
    let ranks = 0..job.size;

    let mut shared = if me == root { values(root, 99, len) } else { vec![0; len] };
    root_process.broadcast_into(&mut shared[..]);
    assert_eq!(shared, values(root, 99, len), "broadcast");

    let mut mine = vec![0; len];
    if me == root {
        let all: Vec<u64> = ranks.clone().flat_map(|dst| values(root, dst, len)).collect();
        root_process.scatter_into_root(&all[..], &mut mine[..]);
    } else {
        root_process.scatter_into(&mut mine[..]);
    }
    assert_eq!(mine, values(root, me, len), "scatter");

    let mine = values(me, root, len);
    if me == root {
        let mut all = vec![0; len * job.size as usize];
        root_process.gather_into_root(&mine[..], &mut all[..]);
        assert_eq!(all, ranks.flat_map(|src| values(src, root, len)).collect::<Vec<_>>(), "gather");
    } else {
        root_process.gather_into(&mine[..]);
    }
}

/// Returns counts and displacements of unequal parts, and their total length.
fn partition(size: i32, len: usize) -> (Vec<Count>, Vec<Count>, usize) {
    let counts: Vec<Count> = (0..size).map(|r| part(r, len) as Count).collect();
    let mut end = 0;
    let starts = counts
        .iter()
        .map(|count| {
            end += count;
            end - count
        })
        .collect();
    (counts, starts, end as usize)
}

fn unequal(job: &Job, root: i32, len: usize) {
    let (me, world) = (job.rank, &job.world);
    let root_process = world.process_at_rank(root);
    let (counts, starts, total) = partition(job.size, len);

    let mut mine = vec![0; part(me, len)];
    if me == root {
        let all: Vec<u64> = (0..job.size).flat_map(|dst| values(root, dst, part(dst, len))).collect();
        root_process.scatter_varcount_into_root(&Partition::new(&all[..], &counts[..], &starts[..]), &mut mine[..]);
    } else {
        root_process.scatter_varcount_into(&mut mine[..]);
    }
    assert_eq!(mine, values(root, me, part(me, len)), "scatter of unequal parts");

    let mine = values(me, root, part(me, len));
    if me == root {
        let mut all = vec![0; total];
        root_process.gather_varcount_into_root(&mine[..], &mut PartitionMut::new(&mut all[..], &counts[..], &starts[..]));
        assert_eq!(all, (0..job.size).flat_map(|src| values(src, root, part(src, len))).collect::<Vec<_>>(), "gather of unequal parts");
    } else {
        root_process.gather_varcount_into(&mine[..]);
    }
}

fn all(job: &Job, len: usize) {
    let (me, world) = (job.rank, &job.world);
    let mut into = vec![0; len * job.size as usize];
    world.all_gather_into(&values(me, 77, len)[..], &mut into[..]);
    assert_eq!(into, (0..job.size).flat_map(|src| values(src, 77, len)).collect::<Vec<_>>(), "all-gather");

    let out: Vec<u64> = (0..job.size).flat_map(|dst| values(me, dst, len)).collect();
    world.all_to_all_into(&out[..], &mut into[..]);
    assert_eq!(into, (0..job.size).flat_map(|src| values(src, me, len)).collect::<Vec<_>>(), "all-to-all");

    let (counts, starts, total) = partition(job.size, len);
    let mut into = vec![0; total];
    world.all_gather_varcount_into(&values(me, 78, part(me, len))[..], &mut PartitionMut::new(&mut into[..], &counts[..], &starts[..]));
    assert_eq!(into, (0..job.size).flat_map(|src| values(src, 78, part(src, len))).collect::<Vec<_>>(), "all-gather of unequal parts");

    // Every rank gets parts of the size that belongs to the receiver.
    let out: Vec<u64> = (0..job.size).flat_map(|dst| values(me, dst, part(dst, len))).collect();
    let mine = part(me, len);
    let mut into = vec![0; mine * job.size as usize];
    let in_counts = vec![mine as Count; job.size as usize];
    let in_starts: Vec<Count> = (0..job.size).map(|src| src * mine as Count).collect();
    world.all_to_all_varcount_into(
        &Partition::new(&out[..], &counts[..], &starts[..]),
        &mut PartitionMut::new(&mut into[..], &in_counts[..], &in_starts[..]),
    );
    assert_eq!(into, (0..job.size).flat_map(|src| values(src, me, mine)).collect::<Vec<_>>(), "all-to-all of unequal parts");
}

fn main() {
    let job = Job::start("scatter_gather");
    for len in [1, 7, 1000, 40_000] {
        let mut roots = vec![0, job.size / 2, job.size - 1];
        roots.dedup();
        for root in roots {
            rooted(&job, root, len);
            unequal(&job, root, len);
        }
        all(&job, len);
    }
    job.finish();
}
