//! This PE's memory as the target of operations that it carries out itself for far PEs.

use super::{Memory, Segment, MEMORIES};
use crate::abi::{self, ntbring_segment_address_t, ntbring_segment_t};
use std::sync::atomic::{fence, AtomicU32, Ordering};

/// The kinds of memory, in the order of their numbers.
const KINDS: [Memory; MEMORIES] = [Memory::Heap, Memory::Globals, Memory::Control];

/// This PE's segments.
pub struct OwnMemory {
    /// Token, address, size and sleepers of each; None if there is no such memory.
    segments: [Option<OwnSegment>; MEMORIES],
}

/// A segment.
pub struct OwnSegment {
    /// Random number in its address.
    token: u64,
    base: usize,
    size: usize,
    sleepers: *const AtomicU32,
    raw: *mut ntbring_segment_t,
}

impl OwnMemory {
    /// Takes over the description of segments, which must stay mapped.
    pub fn new(segments: [Option<OwnSegment>; MEMORIES]) -> OwnMemory {
        OwnMemory { segments }
    }

    /// Returns the kind and the address of the memory with a token that has `len` bytes at `offset`; None if there is
    /// none.
    pub fn find(&self, token: u64, offset: usize, len: usize) -> Option<(Memory, usize)> {
        let is_it = |segment: &OwnSegment| segment.token == token && offset <= segment.size;
        let found = KINDS
            .into_iter()
            .find_map(|kind| Some((kind, self.segments[kind as usize].as_ref()?)).filter(|(_, s)| is_it(s)));
        found.filter(|(_, segment)| len <= segment.size - offset).map(|(kind, segment)| (kind, segment.base))
    }

    /// Wakes the threads that wait until memory of this kind changes.
    pub fn wake(&self, memory: Memory) {
        let Some(segment) = &self.segments[memory as usize] else { return };
        fence(Ordering::SeqCst);
        // SAFETY: the segment is mapped as long as this value exists.
        unsafe {
            if (*segment.sleepers).load(Ordering::Relaxed) != 0 {
                abi::ntbring_segment_ring(segment.raw);
            }
        }
    }
}

impl OwnSegment {
    /// Describes a segment of `size` bytes.
    pub fn of(segment: &Segment, address: &ntbring_segment_address_t, size: usize) -> OwnSegment {
        // The token is the third word of an address.
        let token = address.words[2];
        OwnSegment { token, base: segment.base(), size, sleepers: segment.sleepers().0, raw: segment.raw() }
    }
}
