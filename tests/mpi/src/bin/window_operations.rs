//! Every one-sided operation to every rank, mappable or not: rows and derived types, empty and large transfers, invalid
//! ranges, and lack of memory.

use mpi::ffi;
use mpi::traits::*;
use ntbring_mpi_tests::window::{allocate, near, op, row, spread, Shape, Window};
use ntbring_mpi_tests::{raw, Hosts, Job};

/// Number of elements of a window that belong to one origin.
const SLOT: usize = 64;

fn value(origin: i32, target: i32, i: usize) -> i64 {
    i64::from(origin) * 1_000_000 + i64::from(target) * 1000 + i as i64
}

/// Compares this rank's slots with the values that each origin should have written.
fn check(job: &Job, w: &Window, what: &str, expected: impl Fn(i32, usize) -> i64) {
    w.settle(job);
    for origin in 0..job.size {
        for i in 0..SLOT {
            let found = w.own(origin as usize * SLOT + i);
            assert_eq!(found, expected(origin, i), "{what}: number {i} of rank {origin}'s");
        }
    }
    job.world.barrier();
}

fn rows_and_vectors(job: &Job, w: &Window) {
    let (me, slot) = (job.rank, job.rank as usize * SLOT);
    let all = |target| (0..SLOT).map(move |i| value(me, target, i)).collect::<Vec<i64>>();
    let (sixteen, third) = (spread(16, 4), spread(16, 3));

    let rows: Vec<_> = (0..job.size).map(all).collect();
    (0..job.size).for_each(|t| w.put(&rows[t as usize], row(SLOT), t, slot, row(SLOT)));
    check(job, w, "put", |o, i| value(o, me, i));
    for target in 0..job.size {
        let mut got = [0; SLOT];
        w.get(&mut got, row(SLOT), target, slot, row(SLOT));
        assert_eq!(got[..], all(target)[..], "get from rank {target}");
        // Every fourth number at the target, every third at the origin.
        let mut got = [-1; SLOT];
        w.get(&mut got, third, target, slot, sixteen);
        for (i, x) in got.iter().enumerate() {
            let expected = if i % 3 == 0 && i < 48 { value(me, target, i / 3 * 4) } else { -1 };
            assert_eq!(*x, expected, "number {i} of a vector from rank {target}");
        }
    }
    job.world.barrier();

    // Vectors at the target from rows and from vectors; the numbers in between stay.
    for (shape, stride) in [(row(16), 1), (third, 3)] {
        let negative: Vec<_> = rows.iter().map(|r| r.iter().map(|x| -x).collect::<Vec<i64>>()).collect();
        (0..job.size).for_each(|t| w.put(&negative[t as usize], shape, t, slot, sixteen));
        check(job, w, "put of a vector", |o, i| if i % 4 == 0 { -value(o, me, i / 4 * stride) } else { value(o, me, i) });
        (0..job.size).for_each(|t| w.accumulate(op("sum"), &rows[t as usize], shape, t, slot, sixteen));
        check(job, w, "accumulate of a vector", |o, i| if i % 4 == 0 { 0 } else { value(o, me, i) });
    }
    for target in 0..job.size {
        let (ones, mut before) = ([1; SLOT], [-1; SLOT]);
        w.get_accumulate(op("sum"), &ones, &mut before, third, target, slot, sixteen);
        let expected = |i: usize| if i.is_multiple_of(3) && i < 48 { 0 } else { -1 };
        before.iter().enumerate().for_each(|(i, x)| assert_eq!(*x, expected(i), "get_accumulate: number {i}"));
        w.get_accumulate(op("max"), &ones, &mut before, row(SLOT), target, slot, row(SLOT));
        assert_eq!((before[0], before[1]), (1, value(me, target, 1)), "get_accumulate of a row");
    }
    check(job, w, "get_accumulate", |o, i| if i % 4 == 0 { 1 } else { value(o, me, i).max(1) });

    // Empty operations.
    for target in 0..job.size {
        w.put(&[], row(0), target, slot, row(0));
        w.get(&mut [], row(0), target, slot, row(0));
        w.accumulate(op("sum"), &[], row(0), target, slot, row(0));
        w.get_accumulate(op("sum"), &[], &mut [], row(0), target, slot, row(0));
    }
    check(job, w, "nothing", |o, i| if i % 4 == 0 { 1 } else { value(o, me, i).max(1) });

    for target in 0..job.size {
        let values: Vec<i64> = (0..SLOT as i64).collect();
        let [got, before] = w.with_requests(&values, target, slot);
        let double: Vec<i64> = values.iter().map(|x| 2 * x).collect();
        assert_eq!((&got, &before), (&double, &double), "with requests, rank {target}");
    }
    check(job, w, "with requests", |_, i| 2 * i as i64);
}

fn single_numbers(job: &Job, w: &Window) {
    let slot = job.rank as usize * SLOT;
    for target in 0..job.size {
        assert_eq!(w.fetch(op("sum"), 5, target, slot + 3), 6);
        assert_eq!(w.fetch(op("max"), 50, target, slot + 3), 11);
        assert_eq!(w.fetch(op("max"), 7, target, slot + 3), 50);
        assert_eq!(w.swap(49, 1, target, slot + 3), 50, "no swap");
        assert_eq!(w.swap(50, 1, target, slot + 3), 50, "a swap");
        assert_eq!(w.fetch(op("sum"), 0, target, slot + 3), 1);
    }
    check(job, w, "single numbers", |_, i| if i == 3 { 1 } else { 2 * i as i64 });
}

/// Operations beyond the target's memory: an error where MPI can detect it, and no memory is touched.
fn ranges(job: &Job, w: &Window) {
    let hosts = Hosts::discover(&job.world);
    let Some(target) = (0..job.size).find(|r| hosts.distance(job.rank, *r) == 1 && near(&hosts, job.rank, *r)) else { return };
    let (len, values) = (SLOT * job.size as usize, [7; SLOT]);
    for (number, there) in [(len - SLOT + 1, row(SLOT)), (len - 60, spread(16, 4)), (usize::MAX / 64, row(1))] {
        let code = w.try_put(&values, Shape { count: if there.count == 1 { 16 } else { 64 }, ..row(0) }, target, number, there);
        assert_ne!(code, 0, "a put beyond the window's end at {number}");
    }
    check(job, w, "ranges", |_, i| if i == 3 { 1 } else { 2 * i as i64 });
}

fn much(job: &Job) {
    const LEN: usize = 3_000_003;
    // Sizes differ, and some windows are empty.
    let len = if job.rank == 1 { 0 } else { LEN + job.rank as usize };
    let w = Window::new(job, len);
    (0..len).for_each(|i| w.set(i, 1));
    w.settle(job);
    let values: Vec<i64> = (0..LEN).map(|i| value(job.rank, 0, i)).collect();
    for shift in [1, 2] {
        let target = job.ahead(shift);
        let writer = job.ahead(-shift);
        if target != 1 {
            w.put(&values, row(LEN), target, target as usize, row(LEN));
        }
        w.settle(job);
        if job.rank != 1 {
            (0..LEN).for_each(|i| assert_eq!(w.own(i + job.rank as usize), value(writer, 0, i), "number {i} of much from {writer}"));
        }
        job.world.barrier();
        if target != 1 {
            w.accumulate(op("sum"), &values, row(LEN), target, target as usize, row(LEN));
            w.flush(target);
            let mut got = vec![0; LEN];
            w.get(&mut got, row(LEN), target, target as usize, row(LEN));
            assert!(got.iter().zip(&values).all(|(x, v)| *x == 2 * v), "much is added and got");
        }
        w.settle(job);
    }
}

/// One rank requests more memory than there is: all ranks get an error.
fn no_memory(job: &Job) {
    raw::errors_return(&job.world);
    let bytes = if job.rank == job.size - 1 { 1 << 50 } else { 4096 };
    let (code, _, _) = allocate(&job.world, bytes);
    assert_eq!(raw::class(code), ffi::MPI_ERR_NO_MEM as i32, "the class of the error when there is no memory");
    // Afterwards a window that fits can still be allocated.
    drop(Window::new(job, 10));
}

/// Returns the number of open descriptors of this process.
fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").map_or(0, Iterator::count)
}

fn many(job: &Job) {
    let before = descriptors();
    let windows: Vec<Window> = (0..40).map(|_| Window::new(job, 100)).collect();
    assert_eq!(descriptors(), before, "windows keep no descriptors");
    drop(windows);
    assert_eq!(descriptors(), before, "no descriptor is left");
}

fn main() {
    let job = Job::start("window_operations");
    let w = Window::new(&job, SLOT * job.size as usize);
    rows_and_vectors(&job, &w);
    single_numbers(&job, &w);
    ranges(&job, &w);
    drop(w);
    much(&job);
    no_memory(&job);
    many(&job);
    job.finish();
}
