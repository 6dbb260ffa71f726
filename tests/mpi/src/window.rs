//! A window of MPI_Win_allocate, for the calls that rsmpi does not offer. Unless created with another constructor, it
//! is locked at all ranks while it lives.

use std::os::raw::{c_int, c_void};

use mpi::ffi;
use mpi::topology::SimpleCommunicator;
use mpi::traits::*;

use crate::{raw, Hosts, Job};

/// Numbers at one side of an operation: `count` times `datatype`.
#[derive(Clone, Copy)]
pub struct Shape {
    /// Number of elements.
    pub count: c_int,
    /// Datatype of an element.
    pub datatype: ffi::MPI_Datatype,
}

/// Returns the shape of `count` contiguous numbers.
pub fn row(count: usize) -> Shape {
    Shape { count: count as c_int, datatype: i64::equivalent_datatype().as_raw() }
}

/// Returns the shape of `count` numbers at a distance of `stride`. The datatype is never freed.
pub fn spread(count: usize, stride: usize) -> Shape {
    let mut datatype = row(1).datatype;
    // SAFETY: `datatype` is valid for writes.
    unsafe {
        raw::ok(ffi::MPI_Type_vector(count as c_int, 1, stride as c_int, datatype, &mut datatype), "MPI_Type_vector");
        raw::ok(ffi::MPI_Type_commit(&mut datatype), "MPI_Type_commit");
    }
    Shape { count: 1, datatype }
}

/// Returns an operation for accumulates.
pub fn op(name: &str) -> ffi::MPI_Op {
    // SAFETY: the constants are initialized by the C side at load time and never written.
    unsafe {
        match name {
            "sum" => ffi::RSMPI_SUM,
            "max" => ffi::RSMPI_MAX,
            _ => panic!("no operation {name}"),
        }
    }
}

/// Returns true if windows are ordinary memory and all shortcuts between neighbouring hosts are in use.
pub fn coherent() -> bool {
    let apart = ["NTBRING_WEAK", "NTBRING_FAULT", "NTBRING_LINK_MODEL", "NTBRING_RELIABILITY"];
    let withheld = std::env::var("NTBRING_SHORTCUTS").is_ok_and(|names| names != "all")
        || std::env::var("NTBRING_DEVICE").is_ok_and(|device| device != "emu");
    !withheld && apart.iter().all(|setting| std::env::var_os(setting).is_none())
}

/// Returns true if the ranks map each other's window memory: on one host, or on neighbouring ones if the ports between
/// them are coherent.
pub fn near(hosts: &Hosts, a: i32, b: i32) -> bool {
    hosts.distance(a, b) <= usize::from(coherent())
}

/// A window, see the module's documentation. Displacements are in numbers, regardless of the target's unit.
pub struct Window {
    win: ffi::MPI_Win,
    base: *mut i64,
    len: usize,
    locked: bool,
}

/// Returns the displacement unit of a rank, which differs between ranks.
fn unit(rank: i32) -> usize {
    if rank % 2 == 0 {
        8
    } else {
        1
    }
}

fn at(rank: i32, number: usize) -> ffi::MPI_Aint {
    (number * 8 / unit(rank)) as ffi::MPI_Aint
}

/// Tries to allocate a window: returns the code, the window and its memory.
pub fn allocate(comm: &SimpleCommunicator, bytes: usize) -> (c_int, ffi::MPI_Win, *mut i64) {
    let mut base: *mut i64 = std::ptr::null_mut();
    // SAFETY: reading the constant is safe: the C side initializes it at load time. The call overwrites the handle.
    let mut win = unsafe { ffi::RSMPI_WIN_NULL };
    let (size, place) = (bytes as ffi::MPI_Aint, std::ptr::from_mut(&mut base).cast());
    let unit = unit(comm.rank()) as c_int;
    // SAFETY: `base` and `win` are valid for writes; all other arguments are valid handles.
    let code = unsafe { ffi::MPI_Win_allocate(size, unit, ffi::RSMPI_INFO_NULL, comm.as_raw(), place, &mut win) };
    (code, win, base)
}

impl Window {
    /// Allocates a window of `len` numbers on this rank, and locks it from all ranks at all ranks. Collective.
    pub fn new(job: &Job, len: usize) -> Self {
        let mut window = Self::unlocked(job, len);
        window.lock_all();
        window
    }

    /// Allocates a window of `len` numbers on this rank that is not locked. Collective.
    pub fn unlocked(job: &Job, len: usize) -> Self {
        Self::of(&job.world, len)
    }

    /// Allocates a window of `len` numbers on this rank of a communicator that is not locked. Collective.
    pub fn of(comm: &SimpleCommunicator, len: usize) -> Self {
        let (code, win, base) = allocate(comm, len * 8);
        raw::ok(code, "MPI_Win_allocate");
        // SAFETY: the window is valid.
        unsafe { ffi::MPI_Win_set_errhandler(win, ffi::RSMPI_ERRORS_RETURN) };
        Self { win, base, len, locked: false }
    }

    /// Locks the window at all ranks.
    pub fn lock_all(&mut self) {
        // SAFETY: the window is valid and not locked.
        raw::ok(unsafe { ffi::MPI_Win_lock_all(0, self.win) }, "MPI_Win_lock_all");
        self.locked = true;
    }

    /// Unlocks the window at all ranks.
    pub fn unlock_all(&mut self) {
        // SAFETY: the window is valid and locked.
        raw::ok(unsafe { ffi::MPI_Win_unlock_all(self.win) }, "MPI_Win_unlock_all");
        self.locked = false;
    }

    /// Locks the window at one rank, exclusively if `alone`.
    pub fn lock(&self, rank: i32, alone: bool) {
        let kind = if alone { ffi::MPI_LOCK_EXCLUSIVE } else { ffi::MPI_LOCK_SHARED } as c_int;
        // SAFETY: the window is valid and not locked at that rank.
        raw::ok(unsafe { ffi::MPI_Win_lock(kind, rank, 0, self.win) }, "MPI_Win_lock");
    }

    /// Unlocks the window at one rank.
    pub fn unlock(&self, rank: i32) {
        // SAFETY: the window is valid and locked at that rank.
        raw::ok(unsafe { ffi::MPI_Win_unlock(rank, self.win) }, "MPI_Win_unlock");
    }

    /// Ends an epoch of all ranks and begins the next.
    pub fn fence(&self) {
        // SAFETY: the window is valid and not locked.
        raw::ok(unsafe { ffi::MPI_Win_fence(0, self.win) }, "MPI_Win_fence");
    }

    /// Exposes this rank's memory to other ranks of `comm`, until they have completed their accesses.
    pub fn expose(&self, comm: &SimpleCommunicator, to: &[i32]) {
        let group = comm.group().include(to);
        // SAFETY: the window is valid and not locked, and the group is valid.
        unsafe {
            raw::ok(ffi::MPI_Win_post(group.as_raw(), 0, self.win), "MPI_Win_post");
            raw::ok(ffi::MPI_Win_wait(self.win), "MPI_Win_wait");
        }
    }

    /// Accesses the memory of ranks of `comm` that expose it.
    pub fn access(&self, comm: &SimpleCommunicator, of: &[i32], operations: impl FnOnce(&Self)) {
        let group = comm.group().include(of);
        // SAFETY: the window is valid and not locked, and the group is valid.
        raw::ok(unsafe { ffi::MPI_Win_start(group.as_raw(), 0, self.win) }, "MPI_Win_start");
        operations(self);
        // SAFETY: the window is valid, and its access epoch has begun.
        raw::ok(unsafe { ffi::MPI_Win_complete(self.win) }, "MPI_Win_complete");
    }

    /// Returns this rank's own number `i`.
    pub fn own(&self, i: usize) -> i64 {
        assert!(i < self.len, "an index within the window");
        // SAFETY: the address is within the window's memory; the access is volatile, since other processes write it.
        unsafe { self.base.add(i).read_volatile() }
    }

    /// Sets this rank's own number `i`.
    pub fn set(&self, i: usize, value: i64) {
        assert!(i < self.len, "an index within the window");
        // SAFETY: as above.
        unsafe { self.base.add(i).write_volatile(value) }
    }

    /// Completes the pending operations to `rank`.
    pub fn flush(&self, rank: i32) {
        // SAFETY: the window is valid and locked.
        raw::ok(unsafe { ffi::MPI_Win_flush(rank, self.win) }, "MPI_Win_flush");
    }

    /// Completes all operations, and waits until the other ranks have done so.
    pub fn settle(&self, job: &Job) {
        self.settle_on(&job.world);
    }

    /// Does the same for a window of another communicator.
    pub fn settle_on(&self, comm: &SimpleCommunicator) {
        // SAFETY: the window is valid and locked.
        raw::ok(unsafe { ffi::MPI_Win_flush_all(self.win) }, "MPI_Win_flush_all");
        comm.barrier();
        // SAFETY: as above.
        raw::ok(unsafe { ffi::MPI_Win_sync(self.win) }, "MPI_Win_sync");
    }

    /// Puts numbers and returns the code.
    pub fn try_put(&self, from: &[i64], shape: Shape, rank: i32, number: usize, there: Shape) -> c_int {
        let (p, disp) = (from.as_ptr().cast(), at(rank, number));
        // SAFETY: `from` has the shape, and callers keep it allocated until they flush.
        unsafe { ffi::MPI_Put(p, shape.count, shape.datatype, rank, disp, there.count, there.datatype, self.win) }
    }

    /// Puts numbers.
    pub fn put(&self, from: &[i64], shape: Shape, rank: i32, number: usize, there: Shape) {
        raw::ok(self.try_put(from, shape, rank, number, there), "MPI_Put");
    }

    /// Gets numbers and flushes.
    pub fn get(&self, into: &mut [i64], shape: Shape, rank: i32, number: usize, there: Shape) {
        let (p, disp) = (into.as_mut_ptr().cast(), at(rank, number));
        // SAFETY: `into` has the shape and outlives the flush.
        let code = unsafe { ffi::MPI_Get(p, shape.count, shape.datatype, rank, disp, there.count, there.datatype, self.win) };
        raw::ok(code, "MPI_Get");
        self.flush(rank);
    }

    /// Accumulates numbers.
    pub fn accumulate(&self, op: ffi::MPI_Op, from: &[i64], shape: Shape, rank: i32, number: usize, there: Shape) {
        let (p, disp) = (from.as_ptr().cast(), at(rank, number));
        // SAFETY: `from` has the shape, and callers keep it allocated until they flush.
        let code = unsafe { ffi::MPI_Accumulate(p, shape.count, shape.datatype, rank, disp, there.count, there.datatype, op, self.win) };
        raw::ok(code, "MPI_Accumulate");
    }

    /// Accumulates numbers and returns the old values, both in the same shape.
    #[allow(clippy::too_many_arguments)]
    pub fn get_accumulate(&self, op: ffi::MPI_Op, from: &[i64], into: &mut [i64], shape: Shape, rank: i32, number: usize, there: Shape) {
        let (p, r, disp) = (from.as_ptr().cast(), into.as_mut_ptr().cast(), at(rank, number));
        let (n, t) = (shape.count, shape.datatype);
        // SAFETY: both slices have the shape and outlive the flush.
        let code = unsafe { ffi::MPI_Get_accumulate(p, n, t, r, n, t, rank, disp, there.count, there.datatype, op, self.win) };
        raw::ok(code, "MPI_Get_accumulate");
        self.flush(rank);
    }

    /// Accumulates `value` to one number and returns its old value.
    pub fn fetch(&self, op: ffi::MPI_Op, value: i64, rank: i32, number: usize) -> i64 {
        let mut before = i64::MIN;
        let (from, into): (*const c_void, *mut c_void) = (std::ptr::from_ref(&value).cast(), std::ptr::from_mut(&mut before).cast());
        // SAFETY: both buffers outlive the flush.
        let code = unsafe { ffi::MPI_Fetch_and_op(from, into, row(1).datatype, rank, at(rank, number), op, self.win) };
        raw::ok(code, "MPI_Fetch_and_op");
        self.flush(rank);
        before
    }

    /// Sets one number to `new` if it equals `old`, and returns its old value.
    pub fn swap(&self, old: i64, new: i64, rank: i32, number: usize) -> i64 {
        let mut before = i64::MIN;
        let (new, old): (*const c_void, *const c_void) = (std::ptr::from_ref(&new).cast(), std::ptr::from_ref(&old).cast());
        let into = std::ptr::from_mut(&mut before).cast();
        // SAFETY: the three buffers outlive the flush.
        let code = unsafe { ffi::MPI_Compare_and_swap(new, old, into, row(1).datatype, rank, at(rank, number), self.win) };
        raw::ok(code, "MPI_Compare_and_swap");
        self.flush(rank);
        before
    }

    /// Runs the operations that have requests, on rows: put or get, then accumulate and get_accumulate, each waited
    /// for.
    pub fn with_requests(&self, values: &[i64], rank: i32, number: usize) -> [Vec<i64>; 2] {
        let (n, t, disp) = (values.len() as c_int, row(1).datatype, at(rank, number));
        let from: *const c_void = values.as_ptr().cast();
        let (mut got, mut before) = (vec![0; values.len()], vec![0; values.len()]);
        let (into, result) = (got.as_mut_ptr().cast(), before.as_mut_ptr().cast());
        let mut request = raw::no_request();
        // SAFETY: the slices outlive the waits; a put is complete at the target before the next operation.
        unsafe {
            raw::ok(ffi::MPI_Rput(from, n, t, rank, disp, n, t, self.win, &mut request), "MPI_Rput");
            raw::ok(raw::wait(&mut request).0, "MPI_Wait");
            self.flush(rank);
            raw::ok(ffi::MPI_Raccumulate(from, n, t, rank, disp, n, t, op("sum"), self.win, &mut request), "MPI_Raccumulate");
            raw::ok(raw::wait(&mut request).0, "MPI_Wait");
            self.flush(rank);
            raw::ok(ffi::MPI_Rget(into, n, t, rank, disp, n, t, self.win, &mut request), "MPI_Rget");
            raw::ok(raw::wait(&mut request).0, "MPI_Wait");
            let code = ffi::MPI_Rget_accumulate(from, n, t, result, n, t, rank, disp, n, t, op("max"), self.win, &mut request);
            raw::ok(code, "MPI_Rget_accumulate");
            raw::ok(raw::wait(&mut request).0, "MPI_Wait");
        }
        self.flush(rank);
        [got, before]
    }
}

impl Drop for Window {
    fn drop(&mut self) {
        // SAFETY: the window is valid; its memory is not used afterwards.
        unsafe {
            if self.locked {
                raw::ok(ffi::MPI_Win_unlock_all(self.win), "MPI_Win_unlock_all");
            }
            raw::ok(ffi::MPI_Win_free(&mut self.win), "MPI_Win_free");
        }
    }
}
