//! Another PE, or this one, as the target of operations.

use super::{Memory, MEMORIES};
use crate::abi::{self, ntbring_segment_address_t};
use crate::world::Segment;
use std::sync::atomic::{compiler_fence, fence, AtomicU32, Ordering};

/// A place in the symmetric memory of every PE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The kind of memory.
    pub memory: Memory,
    /// Offset in it, bytes.
    pub at: usize,
}

impl Place {
    /// Returns the place `bytes` behind this one.
    pub fn plus(self, bytes: usize) -> Place {
        Place { at: self.at + bytes, ..self }
    }
}

/// A PE.
pub struct Peer {
    /// Number of the PE.
    pub pe: usize,
    /// True if its memory is mapped.
    pub near: bool,
    /// Addresses at which its memory is mapped, by kind; 0 if it is not.
    pub base: [usize; MEMORIES],
    /// Numbers of threads that wait until its memory changes, by kind; null if it is not mapped.
    pub sleepers: [*const AtomicU32; MEMORIES],
    /// True if a full fence is needed between a change and a look at the sleepers.
    pub needs_fence: bool,
    /// Mappings, by kind.
    pub mapped: [Option<Segment>; MEMORIES],
    /// Addresses of its segments, by kind.
    pub addresses: [ntbring_segment_address_t; MEMORIES],
    /// Number of its host.
    pub host: i32,
}

impl Peer {
    /// Returns the address of a place in the PE's memory, which is mapped.
    #[inline(always)]
    pub fn address(&self, place: Place) -> usize {
        self.base[place.memory as usize] + place.at
    }

    /// Wakes the threads of the PE that sleep until memory of this kind changes. To be called after a change.
    #[inline(always)]
    pub fn wake(&self, memory: Memory) {
        match self.needs_fence {
            true => fence(Ordering::SeqCst),
            false => compiler_fence(Ordering::SeqCst),
        }
        // SAFETY: the PE is near, so the word is mapped as long as the world exists.
        if unsafe { (*self.sleepers[memory as usize]).load(Ordering::Relaxed) } != 0 {
            self.ring(memory);
        }
    }

    #[cold]
    #[inline(never)]
    fn ring(&self, memory: Memory) {
        if let Some(segment) = &self.mapped[memory as usize] {
            // SAFETY: the segment is mapped.
            unsafe { abi::ntbring_segment_ring(segment.raw()) };
        }
    }
}
