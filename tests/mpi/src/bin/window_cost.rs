//! Windows of every kind, one after another and many at once: none leaves a descriptor, a mapping or memory behind, and
//! many at once hold no descriptors.

use std::os::raw::c_void;

use mpi::ffi;
use mpi::topology::SimpleCommunicator;
use mpi::traits::*;
use ntbring_mpi_tests::raw::ok;
use ntbring_mpi_tests::{Hosts, Job, Usage};

/// Number of windows one after another: before the first count of resources, and before the second.
const FIRST: usize = 40;
const MORE: usize = 400;
/// Number of windows at once.
const MANY: usize = 150;
const NUMBERS: usize = 64;
/// Number of mappings that the heap may use.
const ARENAS: usize = 6;

#[derive(Clone, Copy, Debug)]
enum Kind {
    Allocated,
    Shared,
    Created,
    Dynamic,
}

const KINDS: [Kind; 4] = [Kind::Allocated, Kind::Shared, Kind::Created, Kind::Dynamic];

struct Window {
    kind: Kind,
    win: ffi::MPI_Win,
    base: *mut i64,
    /// Memory of windows whose memory is not allocated by MPI.
    own: Vec<i64>,
}

impl Window {
    fn new(comm: &SimpleCommunicator, kind: Kind) -> Self {
        let (comm, size) = (comm.as_raw(), (8 * NUMBERS) as ffi::MPI_Aint);
        // SAFETY: the constant is initialized by the C side at load time and never written.
        let info = unsafe { ffi::RSMPI_INFO_NULL };
        let mut own = vec![0_i64; NUMBERS];
        let mut base = own.as_mut_ptr();
        let place: *mut c_void = std::ptr::from_mut(&mut base).cast();
        // SAFETY: reading the constant is safe: the C side initializes it at load time. The calls overwrite the handle.
        let mut win = unsafe { ffi::RSMPI_WIN_NULL };
        // SAFETY: all results have valid destinations, and the memory lives as long as the window.
        unsafe {
            match kind {
                Kind::Allocated => ok(ffi::MPI_Win_allocate(size, 8, info, comm, place, &mut win), "MPI_Win_allocate"),
                Kind::Shared => ok(ffi::MPI_Win_allocate_shared(size, 8, info, comm, place, &mut win), "MPI_Win_allocate_shared"),
                Kind::Created => ok(ffi::MPI_Win_create(base.cast(), size, 8, info, comm, &mut win), "MPI_Win_create"),
                Kind::Dynamic => {
                    ok(ffi::MPI_Win_create_dynamic(info, comm, &mut win), "MPI_Win_create_dynamic");
                    ok(ffi::MPI_Win_attach(win, base.cast(), size), "MPI_Win_attach");
                }
            }
        }
        Self { kind, win, base, own }
    }

    /// Every rank adds to a number of the next one, and of the one after that.
    fn fill(&self, comm: &SimpleCommunicator, salt: i64) {
        let (me, n) = (comm.rank(), comm.size());
        let number = i64::equivalent_datatype().as_raw();
        let mut places = vec![0; n as usize];
        comm.all_gather_into(&(self.base as ffi::MPI_Aint), &mut places[..]);
        let at = |rank: i32, i: usize| match self.kind {
            Kind::Dynamic => places[rank as usize] + 8 * i as ffi::MPI_Aint,
            _ => i as ffi::MPI_Aint,
        };
        let value = salt + i64::from(me);
        let from = (&raw const value).cast();
        // SAFETY: the window has these numbers at each rank; fences separate the accesses.
        let found = unsafe {
            ok(ffi::MPI_Win_fence(0, self.win), "MPI_Win_fence");
            self.base.write_bytes(0, NUMBERS);
            ok(ffi::MPI_Win_fence(0, self.win), "MPI_Win_fence");
            for (to, i) in [((me + 1) % n, 0), ((me + 2) % n, 1)] {
                ok(ffi::MPI_Accumulate(from, 1, number, to, at(to, i), 1, number, ffi::RSMPI_SUM, self.win), "MPI_Accumulate");
            }
            ok(ffi::MPI_Win_fence(0, self.win), "MPI_Win_fence");
            [self.base.read_volatile(), self.base.add(1).read_volatile()]
        };
        let sent = |back: i32| salt + i64::from((me - back).rem_euclid(n));
        assert_eq!(found, [sent(1), sent(2)], "{:?} {salt}", self.kind);
    }

    fn free(mut self, comm: &SimpleCommunicator) {
        // SAFETY: the window is valid, and no rank accesses it afterwards.
        unsafe {
            if let Kind::Dynamic = self.kind {
                comm.barrier();
                ok(ffi::MPI_Win_detach(self.win, self.own.as_ptr().cast()), "MPI_Win_detach");
            }
            ok(ffi::MPI_Win_free(&mut self.win), "MPI_Win_free");
        }
    }
}

fn one_after_another(comm: &SimpleCommunicator, kind: Kind, count: usize) {
    for i in 0..count {
        let window = Window::new(comm, kind);
        if i % 10 == 0 {
            window.fill(comm, i as i64);
        }
        window.free(comm);
    }
}

fn check(job: &Job, hosts: usize, comm: &SimpleCommunicator, kind: Kind) {
    one_after_another(comm, kind, FIRST);
    let before = Usage::now();
    one_after_another(comm, kind, MORE);
    let after = Usage::now();
    let gone = |now: &Usage| now.descriptors == before.descriptors && now.mappings <= before.mappings + ARENAS;
    assert!(gone(&after), "{before:?}, and {after:?} after {MORE} windows, {kind:?}");
    let grown = |of: fn(&Usage) -> usize| of(&after).saturating_sub(of(&before));
    // Less than 100 bytes and less than a seventh of a page for each. Lanes of forwarders are touched as they are used.
    let (heap, resident) = (grown(|usage| usage.heap), grown(|usage| usage.resident));
    let limit = if hosts <= 3 { 600 * MORE } else { usize::MAX };
    assert!(heap < 100 * MORE && resident < limit, "{heap} bytes of heap, {resident} resident more after {MORE} windows, {kind:?}");
    let windows: Vec<Window> = (0..MANY).map(|_| Window::new(comm, kind)).collect();
    let during = Usage::now();
    assert_eq!(during.descriptors, before.descriptors, "descriptors with {MANY} windows, {kind:?}");
    // One for each rank that maps the memory, and one for the host's forwarder.
    let near = 2 * (job.size as usize).min(5);
    assert!(during.mappings <= before.mappings + near * MANY, "{} mappings with {MANY} windows, {kind:?}", during.mappings);
    windows.iter().enumerate().step_by(10).for_each(|(i, window)| window.fill(comm, i as i64));
    windows.into_iter().rev().for_each(|window| window.free(comm));
    let end = Usage::now();
    assert!(gone(&end), "{before:?}, and {end:?} after {MANY} windows at once, {kind:?}");
}

fn main() {
    let job = Job::start("window_cost");
    let host = job.world.split_shared(job.rank);
    let hosts = Hosts::discover(&job.world).count;
    for kind in KINDS {
        let comm = if let Kind::Shared = kind { &host } else { &job.world };
        check(&job, hosts, comm, kind);
        job.world.barrier();
    }
    drop(host);
    job.finish();
}
