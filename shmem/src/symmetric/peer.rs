//! Another PE, or this one, as the target of operations.

use super::{Memory, Place, Segment, Writer, MEMORIES};
use crate::abi::{self, ntbring_segment_address_t};
use std::ptr;
use std::sync::atomic::{compiler_fence, fence, AtomicBool, AtomicU32, AtomicU64, Ordering};

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
    /// Mappings, by kind; of this PE, its own segments.
    pub mapped: [Option<Segment>; MEMORIES],
    /// Memory that can only be written, by kind; none if it is mapped. A PE with any such memory has a writer of its
    /// control memory.
    pub writers: [Option<Writer>; MEMORIES],
    /// True if stores through these have not arrived yet, as far as this PE knows, other than to control memory.
    pub is_stored_to: AtomicBool,
    /// Number of requests to the PE that are not answered, if it has writers.
    pub requests: AtomicU64,
    /// The latest sleep of the PE from which this one has woken it.
    pub woken: AtomicU64,
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

    /// Returns the writer of a kind of memory.
    #[inline]
    pub fn writer(&self, memory: Memory) -> Option<&Writer> {
        self.writers[memory as usize].as_ref()
    }

    /// Returns the counter of requests to the PE; null if they need not be counted.
    pub fn open_requests(&self) -> *const AtomicU64 {
        if self.writer(Memory::Control).is_some() {
            &self.requests
        } else {
            ptr::null()
        }
    }

    /// Wakes the threads of the PE that sleep until memory of this kind changes. To be called after a change.
    #[inline(always)]
    pub fn wake(&self, memory: Memory) {
        match self.needs_fence {
            true => fence(Ordering::SeqCst),
            false => compiler_fence(Ordering::SeqCst),
        }
        // SAFETY: the PE is near, so the word is mapped as long as this value exists.
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
