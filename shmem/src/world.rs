//! The job as this PE sees it, between initialisation and finalisation.

use crate::allocator::Allocator;
use crate::contexts::Contexts;
use crate::fail;
use crate::handles::Ctx;
use crate::locks::LocalLocks;
use crate::reach::Pes;
use crate::symmetric::Peer;
use crate::teams::Teams;
use ntbring_shmem_api::environment::Settings;
use std::ffi::c_int;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::Mutex;

/// The job. The fields are in this order in memory: where the world begins, its PEs do, so one address serves for both.
#[repr(C)]
pub struct World {
    /// The PEs, and their symmetric memory.
    pub pes: Pes,
    /// Largest size of the heap, bytes.
    pub heap_size: usize,
    /// Allocated parts of the heap.
    pub heap: Mutex<Allocator>,
    /// Values of the environment variables.
    pub settings: Settings,
    /// Communication contexts.
    pub contexts: Contexts,
    /// Teams.
    pub teams: Teams,
    /// Locks that threads of this PE hold or wait for.
    pub locks: LocalLocks,
}

static WORLD: AtomicPtr<World> = AtomicPtr::new(std::ptr::null_mut());

/// Returns the job; None before initialisation and after finalisation.
#[inline(always)]
pub fn current() -> Option<&'static World> {
    // SAFETY: null, or a box that lives until finalisation, during which the program makes no other calls.
    unsafe { WORLD.load(Ordering::Acquire).as_ref() }
}

/// Returns the job for the function `name`, which needs it; ends the program if there is none.
#[inline(always)]
pub fn world(name: &'static str) -> &'static World {
    match current() {
        Some(world) => world,
        None => fail::call(name, "the library is not initialised: call shmem_init first, and shmem_finalize last"),
    }
}

/// Makes `new` the job.
pub fn begin(new: World) {
    WORLD.store(Box::into_raw(Box::new(new)), Ordering::Release);
}

/// Ends the job and returns it.
pub fn end() -> Option<Box<World>> {
    let old = WORLD.swap(std::ptr::null_mut(), Ordering::AcqRel);
    // SAFETY: made by `Box::into_raw`, and taken once; the program makes no other calls during finalisation.
    (!old.is_null()).then(|| unsafe { Box::from_raw(old) })
}

impl World {
    /// Returns the PE that `pe` is in a context. Ends the program if there is none.
    #[inline(always)]
    pub fn target(&self, name: &'static str, ctx: Ctx, pe: c_int) -> &Peer {
        match self.pes.peers.get(pe as u32 as usize) {
            Some(peer) if ctx == Ctx::DEFAULT => peer,
            _ => self.target_in_context(name, ctx, pe),
        }
    }

    #[cold]
    fn target_in_context(&self, name: &'static str, ctx: Ctx, pe: c_int) -> &Peer {
        if ctx == Ctx::DEFAULT {
            fail::call(name, format_args!("PE {pe} does not exist: PEs are 0 to {}", self.pes.n() - 1));
        }
        let context = self.contexts.get(name, ctx);
        let Some(team) = context.team() else { return self.target(name, Ctx::DEFAULT, pe) };
        match usize::try_from(pe).ok().and_then(|pe| team.members().get(pe)) {
            Some(&member) => &self.pes.peers[member],
            None => {
                let last = team.members().len() - 1;
                fail::call(name, format_args!("PE {pe} does not exist in the context's team: its PEs are 0 to {last}"))
            }
        }
    }
}
