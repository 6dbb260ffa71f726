//! Reductions with user-defined operations: a commutative one, one that is only associative (so that the order of ranks
//! matters), one on a struct, and one given as a plain C function; reduce, all-reduce and both scans.

use std::os::raw::{c_int, c_void};
use std::sync::atomic::{AtomicU32, Ordering};

use mpi::collective::{SystemOperation, UnsafeUserOperation, UserOperation};
use mpi::datatype::{DynBuffer, DynBufferMut};
use mpi::ffi::MPI_Datatype;
use mpi::traits::*;
use ntbring_mpi_tests::{fail, Job};

/// The map x -> a * x + b, modulo 2^64. Composition of such maps is associative and not commutative.
#[derive(Clone, Copy, Debug, Default, Equivalence, PartialEq)]
struct Map {
    a: u64,
    b: u64,
}

impl Map {
    fn of(rank: i32, i: usize) -> Self {
        Self { a: 2 * rank as u64 + 3, b: i as u64 + 7 * rank as u64 }
    }

    /// Applies `self` first, then `next`.
    fn then(self, next: Self) -> Self {
        Self { a: self.a.wrapping_mul(next.a), b: self.b.wrapping_mul(next.a).wrapping_add(next.b) }
    }

    fn of_ranks(ranks: std::ops::Range<i32>, i: usize) -> Self {
        ranks.map(|rank| Self::of(rank, i)).fold(Self { a: 1, b: 0 }, Self::then)
    }
}

fn slices<'a, T: Equivalence>(x: DynBuffer<'a>, acc: DynBufferMut<'a>) -> (&'a [T], &'a mut [T]) {
    match (x.downcast(), acc.downcast()) {
        (Some(x), Some(acc)) => (x, acc),
        _ => fail("a user operation was called with another type than it was used with"),
    }
}

fn chain(x: DynBuffer<'_>, acc: DynBufferMut<'_>) {
    let (x, acc) = slices::<Map>(x, acc);
    for (x, acc) in x.iter().zip(acc) {
        *acc = x.then(*acc);
    }
}

/// Returns a + b + a * b modulo 2^32, which is (1 + a)(1 + b) - 1: commutative and associative, and no predefined
/// operation.
fn join(a: u32, b: u32) -> u32 {
    a.wrapping_add(b).wrapping_add(a.wrapping_mul(b))
}

/// Selects the number with the larger last digit; if these are equal, the larger number.
unsafe extern "C" fn larger_last_digit(x: *mut c_void, acc: *mut c_void, len: *mut c_int, _: *mut MPI_Datatype) {
    // SAFETY: MPI passes a valid pointer to the length that it was given.
    for i in 0..unsafe { *len } as usize {
        // SAFETY: MPI passes two arrays of `len` i64 that do not overlap, since the reductions below use i64.
        let (x, acc) = unsafe { (x.cast::<i64>().add(i).read(), &mut *acc.cast::<i64>().add(i)) };
        if (x % 10, x) > (*acc % 10, *acc) {
            *acc = x;
        }
    }
}

fn ordered(job: &Job, len: usize) {
    let op = UserOperation::associative(chain);
    let (me, ranks) = (job.rank, job.size);
    let mine: Vec<Map> = (0..len).map(|i| Map::of(me, i)).collect();
    let expected = |last: i32| (0..len).map(|i| Map::of_ranks(0..last, i)).collect::<Vec<_>>();

    let mut all = vec![Map::default(); len];
    job.world.all_reduce_into(&mine[..], &mut all[..], &op);
    assert_eq!(all, expected(ranks), "all-reduce in the order of ranks, {len} elements");

    job.world.scan_into(&mine[..], &mut all[..], &op);
    assert_eq!(all, expected(me + 1), "scan, {len} elements");

    job.world.exclusive_scan_into(&mine[..], &mut all[..], &op);
    if me > 0 {
        assert_eq!(all, expected(me), "exclusive scan, {len} elements");
    }

    for root in [0, ranks - 1] {
        let root_process = job.world.process_at_rank(root);
        if me == root {
            root_process.reduce_into_root(&mine[..], &mut all[..], &op);
            assert_eq!(all, expected(ranks), "reduce to {root} in the order of ranks, {len} elements");
        } else {
            root_process.reduce_into(&mine[..], &op);
        }
    }
}

fn commutative(job: &Job, len: usize) {
    let calls = AtomicU32::new(0);
    // A closure that captures a variable.
    let op = UserOperation::commutative(|x, acc| {
        calls.fetch_add(1, Ordering::Relaxed);
        let (x, acc) = slices::<u32>(x, acc);
        for (x, acc) in x.iter().zip(acc) {
            *acc = join(*x, *acc);
        }
    });
    let element = |rank: i32, i: usize| 2 * (rank as u32 * 77 + i as u32);
    let mine: Vec<u32> = (0..len).map(|i| element(job.rank, i)).collect();
    let mut all = vec![0; len];
    job.world.all_reduce_into(&mine[..], &mut all[..], &op);
    for (i, got) in all.iter().enumerate() {
        let expected = (0..job.size).map(|rank| element(rank, i)).fold(0, join);
        assert_eq!(*got, expected, "all-reduce with a closure, element {i} of {len}");
    }
    let mut total = 0;
    job.world.all_reduce_into(&calls.load(Ordering::Relaxed), &mut total, SystemOperation::sum());
    assert!(total > 0, "the operation was never called");
}

fn plain_function(job: &Job, len: usize) {
    let element = |rank: i32, i: usize| (rank as i64 * 37 + i as i64 * 11) % 1009;
    // SAFETY: the function is used with i64 only, as it requires, and does not panic.
    let op = unsafe { UnsafeUserOperation::commutative(larger_last_digit) };
    let mine: Vec<i64> = (0..len).map(|i| element(job.rank, i)).collect();
    let mut all = vec![0; len];
    job.world.all_reduce_into(&mine[..], &mut all[..], &op);
    for (i, got) in all.iter().enumerate() {
        let expected = (0..job.size).map(|r| element(r, i)).max_by_key(|x| (x % 10, *x));
        assert_eq!(Some(*got), expected, "all-reduce with a plain function, element {i} of {len}");
    }
}

fn main() {
    let job = Job::start("reduce_user_op");
    for len in [1, 3, 1000, 60_000] {
        ordered(&job, len);
        commutative(&job, len);
        plain_function(&job, len);
    }
    job.finish();
}
