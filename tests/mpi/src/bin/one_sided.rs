//! One-sided communication: put, get and accumulate between fences, locks, fetch-and-op, compare-and-swap,
//! post-start-complete-wait.

use std::os::raw::c_int;

use mpi::ffi;
use mpi::traits::*;
use ntbring_mpi_tests::{raw, Job};

/// Number of elements in each rank's window: larger than any eager limit.
const LEN: usize = 40_000;

/// A window of `LEN` numbers on each rank.
struct Window {
    win: ffi::MPI_Win,
    base: *mut i64,
}

fn number() -> ffi::MPI_Datatype {
    i64::equivalent_datatype().as_raw()
}

impl Window {
    fn new(job: &Job) -> Self {
        let mut base: *mut i64 = std::ptr::null_mut();
        // SAFETY: reading the constant is safe: the C side initializes it at load time. The call overwrites the handle.
        let mut win = unsafe { ffi::RSMPI_WIN_NULL };
        let (bytes, place) = ((LEN * 8) as ffi::MPI_Aint, std::ptr::from_mut(&mut base).cast());
        // SAFETY: `base` and `win` are valid for writes; all other arguments are valid handles.
        let code = unsafe { ffi::MPI_Win_allocate(bytes, 8, ffi::RSMPI_INFO_NULL, job.world.as_raw(), place, &mut win) };
        raw::ok(code, "MPI_Win_allocate");
        Self { win, base }
    }

    /// Returns this rank's own number `i`; only between synchronisations.
    fn own(&self, i: usize) -> i64 {
        assert!(i < LEN, "an index within the window");
        // SAFETY: the address is within the window's memory; the access is volatile, since other processes may write
        // it.
        unsafe { self.base.add(i).read_volatile() }
    }

    fn set(&self, i: usize, value: i64) {
        assert!(i < LEN, "an index within the window");
        // SAFETY: as above.
        unsafe { self.base.add(i).write_volatile(value) }
    }

    fn fence(&self) {
        // SAFETY: the window is valid.
        raw::ok(unsafe { ffi::MPI_Win_fence(0, self.win) }, "MPI_Win_fence");
    }

    fn lock(&self, kind: u32, rank: i32) {
        // SAFETY: the window is valid, and the rank belongs to it.
        raw::ok(unsafe { ffi::MPI_Win_lock(kind as c_int, rank, 0, self.win) }, "MPI_Win_lock");
    }

    fn unlock(&self, rank: i32) {
        // SAFETY: the window is valid, and the caller has locked it at `rank`.
        raw::ok(unsafe { ffi::MPI_Win_unlock(rank, self.win) }, "MPI_Win_unlock");
    }

    fn put(&self, values: &[i64], rank: i32, at: usize) {
        assert!(at + values.len() <= LEN, "a range within the window");
        let (from, len) = (values.as_ptr().cast(), values.len() as c_int);
        // SAFETY: the range is within the window, and callers keep `values` allocated until they synchronise.
        let code = unsafe { ffi::MPI_Put(from, len, number(), rank, at as ffi::MPI_Aint, len, number(), self.win) };
        raw::ok(code, "MPI_Put");
    }

    fn get(&self, values: &mut [i64], rank: i32, at: usize) {
        assert!(at + values.len() <= LEN, "a range within the window");
        let (into, len) = (values.as_mut_ptr().cast(), values.len() as c_int);
        // SAFETY: as above.
        let code = unsafe { ffi::MPI_Get(into, len, number(), rank, at as ffi::MPI_Aint, len, number(), self.win) };
        raw::ok(code, "MPI_Get");
    }

    fn add(&self, values: &[i64], rank: i32, at: usize) {
        assert!(at + values.len() <= LEN, "a range within the window");
        let (from, len) = (values.as_ptr().cast(), values.len() as c_int);
        // SAFETY: as above.
        let code = unsafe { ffi::MPI_Accumulate(from, len, number(), rank, at as ffi::MPI_Aint, len, number(), ffi::RSMPI_SUM, self.win) };
        raw::ok(code, "MPI_Accumulate");
    }
}

impl Drop for Window {
    fn drop(&mut self) {
        // SAFETY: the window is valid; its memory is not used afterwards.
        raw::ok(unsafe { ffi::MPI_Win_free(&mut self.win) }, "MPI_Win_free");
    }
}

fn fences(job: &Job, w: &Window) {
    let (me, n) = (job.rank, job.size);
    (0..LEN).for_each(|i| w.set(i, -1));
    w.fence();
    let mine = [i64::from(me) * 1000];
    (0..n).for_each(|rank| w.put(&mine, rank, me as usize));
    w.fence();
    (0..n).for_each(|rank| assert_eq!(w.own(rank as usize), i64::from(rank) * 1000, "what rank {rank} put"));
    w.fence();

    // Large transfers: to the right, then back from the opposite rank.
    let long: Vec<i64> = (0..LEN as i64 - 100).map(|i| i * 3 + i64::from(me)).collect();
    w.put(&long, job.ahead(1), 100);
    w.fence();
    let left = i64::from(job.ahead(-1));
    (100..LEN).for_each(|i| assert_eq!(w.own(i), (i as i64 - 100) * 3 + left, "number {i} of a large put"));
    let (opposite, mut got) = (job.ahead(n / 2), vec![0; LEN - 100]);
    w.get(&mut got, opposite, 100);
    w.fence();
    let writer = i64::from((opposite - 1).rem_euclid(n));
    got.iter().zip(0..).for_each(|(x, i)| assert_eq!(*x, i * 3 + writer, "number {i} of a large get"));

    // Every rank adds to the numbers of every rank.
    (0..LEN).for_each(|i| w.set(i, 5));
    w.fence();
    let ones = vec![i64::from(me) + 1; 9000];
    (0..n).for_each(|rank| w.add(&ones, rank, 7));
    w.fence();
    let sum = 5 + i64::from(n) * i64::from(n + 1) / 2;
    (7..9007).for_each(|i| assert_eq!(w.own(i), sum, "number {i} after all have added to it"));
    assert_eq!((w.own(6), w.own(9007)), (5, 5), "numbers beside those that were added to");
    w.fence();
}

/// Draws tickets from a counter of rank `owner`: each number is drawn once.
fn counters(job: &Job, w: &Window, owner: i32) {
    const EACH: i64 = 30;
    w.set(0, 0);
    w.set(1, 0);
    w.set(2, -1);
    job.world.barrier();
    let one = 1_i64;
    let mut tickets = [0_i64; EACH as usize];
    for ticket in &mut tickets {
        w.lock(ffi::MPI_LOCK_SHARED, owner);
        let (from, into) = (std::ptr::from_ref(&one).cast(), std::ptr::from_mut(ticket).cast());
        // SAFETY: both buffers outlive the unlock.
        raw::ok(unsafe { ffi::MPI_Fetch_and_op(from, into, number(), owner, 0, ffi::RSMPI_SUM, w.win) }, "MPI_Fetch_and_op");
        w.unlock(owner);
    }
    assert!(tickets.windows(2).all(|pair| pair[0] < pair[1]), "one rank's tickets grow: {tickets:?}");
    let mut all = vec![0_i64; tickets.len() * job.size as usize];
    job.world.all_gather_into(&tickets[..], &mut all[..]);
    all.sort_unstable();
    assert!(all.iter().zip(0..).all(|(ticket, i)| *ticket == i), "each ticket is drawn once: {all:?}");

    // Reading, changing and writing back under an exclusive lock loses no update.
    for _ in 0..10 {
        let mut value = [0];
        w.lock(ffi::MPI_LOCK_EXCLUSIVE, owner);
        w.get(&mut value, owner, 1);
        // SAFETY: the window is valid and locked at `owner`.
        raw::ok(unsafe { ffi::MPI_Win_flush(owner, w.win) }, "MPI_Win_flush");
        value[0] += 1;
        w.put(&value, owner, 1);
        w.unlock(owner);
    }
    // Exactly one rank's compare-and-swap succeeds.
    let (mine, free, mut before) = (i64::from(job.rank), -1_i64, 0_i64);
    w.lock(ffi::MPI_LOCK_SHARED, owner);
    let (new, old, into) = (std::ptr::from_ref(&mine).cast(), std::ptr::from_ref(&free).cast(), std::ptr::from_mut(&mut before).cast());
    // SAFETY: the three buffers outlive the unlock.
    raw::ok(unsafe { ffi::MPI_Compare_and_swap(new, old, into, number(), owner, 2, w.win) }, "MPI_Compare_and_swap");
    w.unlock(owner);
    let mut winners = 0;
    job.world.all_reduce_into(&i32::from(before == -1), &mut winners, mpi::collective::SystemOperation::sum());
    assert_eq!(winners, 1, "ranks whose compare-and-swap succeeded");

    let mut end = [0; 3];
    w.lock(ffi::MPI_LOCK_SHARED, owner);
    w.get(&mut end, owner, 0);
    w.unlock(owner);
    assert_eq!(end[..2], [EACH * i64::from(job.size), 10 * i64::from(job.size)], "the counters at the end");
    assert!((0..i64::from(job.size)).contains(&end[2]), "the winner's rank, {}", end[2]);
    job.world.barrier();
}

/// Post, start, complete, wait: every rank puts into the right neighbour's window.
fn pairwise(job: &Job, w: &Window) {
    let world = job.world.group();
    let (left, right) = (world.include(&[job.ahead(-1)]), world.include(&[job.ahead(1)]));
    let values: Vec<i64> = (0..3000).map(|i| i + i64::from(job.rank) * 10_000).collect();
    // SAFETY: groups and window are valid; `values` outlives the epoch.
    unsafe {
        raw::ok(ffi::MPI_Win_post(left.as_raw(), 0, w.win), "MPI_Win_post");
        raw::ok(ffi::MPI_Win_start(right.as_raw(), 0, w.win), "MPI_Win_start");
        w.put(&values, job.ahead(1), 50);
        raw::ok(ffi::MPI_Win_complete(w.win), "MPI_Win_complete");
        raw::ok(ffi::MPI_Win_wait(w.win), "MPI_Win_wait");
    }
    let base = i64::from(job.ahead(-1)) * 10_000;
    (0..3000).for_each(|i| assert_eq!(w.own(50 + i), i as i64 + base, "number {i} of a put between post and wait"));
    job.world.barrier();
}

/// MPI_Win_test must succeed here: the matching MPI_Win_complete was called before the barrier.
fn tested(job: &Job, w: &Window) {
    let world = job.world.group();
    let (first, others) = (world.include(&[0]), world.exclude(&[0]));
    for turn in 0..20 {
        // SAFETY: groups and window are valid.
        unsafe {
            if job.rank == 0 {
                raw::ok(ffi::MPI_Win_start(others.as_raw(), 0, w.win), "MPI_Win_start");
                raw::ok(ffi::MPI_Win_complete(w.win), "MPI_Win_complete");
                job.world.barrier();
            } else {
                let mut flag = 0;
                raw::ok(ffi::MPI_Win_post(first.as_raw(), 0, w.win), "MPI_Win_post");
                job.world.barrier();
                raw::ok(ffi::MPI_Win_test(w.win, &mut flag), "MPI_Win_test");
                assert_ne!(flag, 0, "a window that was completed before a barrier, in turn {turn}");
            }
        }
    }
    job.world.barrier();
}

fn main() {
    let job = Job::start("one_sided");
    let window = Window::new(&job);
    fences(&job, &window);
    counters(&job, &window, 0);
    counters(&job, &window, job.size - 1);
    pairwise(&job, &window);
    // At larger distances a barrier may overtake earlier messages by more time than a test waits.
    if job.size <= 3 {
        tested(&job, &window);
    }
    drop(window);
    job.finish();
}
