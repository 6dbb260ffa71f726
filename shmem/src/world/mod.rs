//! The job as this PE sees it, between initialisation and finalisation.

mod own;
mod peer;
mod segment;
mod sleepers;
mod writer;

pub use own::{OwnMemory, OwnSegment};
pub use peer::{Peer, Place};
pub use segment::Segment;
pub use sleepers::Sleepers;
pub use writer::Writer;

use crate::contexts::Contexts;
use crate::fail;
use crate::handles::Ctx;
use crate::heap::Allocator;
use crate::locks::LocalLocks;
use crate::reach::Link;
use crate::teams::{Introductions, Teams};
use ntbring_shmem_api::environment::Settings;
use std::ffi::c_int;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};
use std::sync::Mutex;

/// The kinds of symmetric memory of a PE, each of which is a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Memory {
    /// The symmetric heap.
    Heap = 0,
    /// The global and static objects of the program.
    Globals = 1,
    /// Memory of the library: flags and blocks of collectives.
    Control = 2,
}

/// Number of kinds.
pub const MEMORIES: usize = 3;

/// The job.
pub struct World {
    /// Number of this PE.
    pub me: usize,
    /// All PEs.
    pub peers: Box<[Peer]>,
    /// Address of the symmetric heap at this PE.
    pub heap_base: usize,
    /// Largest size of the heap, bytes.
    pub heap_size: usize,
    /// Number of bytes of the heap that are backed by memory. It only grows.
    pub heap_backed: AtomicUsize,
    /// Address of the symmetric globals at this PE.
    pub globals_base: usize,
    /// Number of bytes of the symmetric globals; 0 if there are none.
    pub globals_size: usize,
    /// Address of the library's memory at this PE.
    pub control_base: usize,
    /// Segments of this PE, by kind; None if there are no symmetric globals.
    pub segments: [Option<Segment>; MEMORIES],
    /// True if each PE can map the memory of all others.
    pub all_near: bool,
    /// PEs whose memory can only be written.
    pub written: Box<[usize]>,
    /// Held by a thread that waits until stores to these have arrived.
    pub arrivals: Mutex<()>,
    /// Sleeping PEs among those that write each other's memory.
    pub sleepers: Sleepers,
    /// The endpoint in the ring.
    pub link: Link,
    /// Allocated parts of the heap.
    pub heap: Mutex<Allocator>,
    /// Allocated parts of the library's memory.
    pub control: Mutex<Allocator>,
    /// Number of bytes of the library's memory that are backed.
    pub control_backed: AtomicUsize,
    /// Values of the environment variables.
    pub settings: Settings,
    /// Communication contexts.
    pub contexts: Contexts,
    /// Teams.
    pub teams: Teams,
    /// Introductions of PEs of active sets.
    pub introductions: Introductions,
    /// Locks that threads of this PE hold or wait for.
    pub locks: LocalLocks,
}

// SAFETY: raw addresses in it are those of mappings that live as long as it; all access through them is by copies and
// atomic operations, and everything else is synchronised.
unsafe impl Send for World {}
// SAFETY: as above.
unsafe impl Sync for World {}

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
    /// Returns the number of PEs.
    #[inline(always)]
    pub fn n(&self) -> usize {
        self.peers.len()
    }

    /// Returns the PE that `pe` is in a context. Ends the program if there is none.
    #[inline(always)]
    pub fn target(&self, name: &'static str, ctx: Ctx, pe: c_int) -> &Peer {
        match self.peers.get(pe as u32 as usize) {
            Some(peer) if ctx == Ctx::DEFAULT => peer,
            _ => self.target_in_context(name, ctx, pe),
        }
    }

    #[cold]
    fn target_in_context(&self, name: &'static str, ctx: Ctx, pe: c_int) -> &Peer {
        if ctx == Ctx::DEFAULT {
            fail::call(name, format_args!("PE {pe} does not exist: PEs are 0 to {}", self.n() - 1));
        }
        let context = self.contexts.get(name, ctx);
        let Some(team) = context.team() else { return self.target(name, Ctx::DEFAULT, pe) };
        match usize::try_from(pe).ok().and_then(|pe| team.members().get(pe)) {
            Some(&member) => &self.peers[member],
            None => {
                let last = team.members().len() - 1;
                fail::call(name, format_args!("PE {pe} does not exist in the context's team: its PEs are 0 to {last}"))
            }
        }
    }

    /// Returns the place of `len` bytes at a local symmetric address; None if they are not symmetric.
    #[inline(always)]
    pub fn find(&self, address: usize, len: usize) -> Option<Place> {
        let (at, backed) = (address.wrapping_sub(self.heap_base), self.heap_backed.load(Ordering::Relaxed));
        if at < backed && len <= backed - at {
            return Some(Place { memory: Memory::Heap, at });
        }
        let (at, size) = (address.wrapping_sub(self.globals_base), self.globals_size);
        (at < size && len <= size - at).then_some(Place { memory: Memory::Globals, at })
    }

    /// Returns the place of `len` bytes at a local symmetric address, the argument `what` of function `name`. Ends the
    /// program if they are not symmetric.
    #[inline(always)]
    pub fn locate(&self, name: &'static str, what: &'static str, address: usize, len: usize) -> Place {
        match self.find(address, len) {
            Some(place) => place,
            None => self.not_symmetric(name, what, address, len),
        }
    }

    #[cold]
    #[inline(never)]
    fn not_symmetric(&self, name: &str, what: &str, address: usize, len: usize) -> ! {
        let backed = self.heap_backed.load(Ordering::Relaxed);
        let globals = match self.globals_size {
            0 => "there are no symmetric globals".to_string(),
            size => format!("the program's globals at {:#x} ({size} bytes)", self.globals_base),
        };
        fail::call(
            name,
            format_args!(
                "{what}: the {len} bytes at {address:#x} are not symmetric. Symmetric are the heap at {:#x} ({backed} \
                 bytes in use) and {globals}",
                self.heap_base
            ),
        )
    }

    /// Returns this PE's own segment of a kind of memory.
    #[inline(always)]
    pub fn segment(&self, memory: Memory) -> &Segment {
        self.segments[memory as usize].as_ref().expect("symmetric memory has a segment")
    }

    /// Returns the address of a place at this PE.
    #[inline(always)]
    pub fn address(&self, place: Place) -> usize {
        place.at + [self.heap_base, self.globals_base, self.control_base][place.memory as usize]
    }
}
