//! The PEs of the job, as this one reaches their symmetric memory.

use super::{Link, Pending, Sleepers};
use crate::fail;
use crate::symmetric::{Memory, Peer, Place, Segment, MEMORIES};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Mutex;

/// The PEs, their memory, and the link to them.
pub struct Pes {
    /// Number of this PE.
    pub me: usize,
    /// All PEs.
    pub peers: Box<[Peer]>,
    /// Addresses of this PE's memory as the program uses it, by kind.
    pub base: [usize; MEMORIES],
    /// Number of bytes of the heap that are backed by memory. It only grows.
    pub heap_backed: AtomicUsize,
    /// Number of bytes of the symmetric globals; 0 if there are none.
    pub globals_size: usize,
    /// True if each PE can map the memory of all others.
    pub all_near: bool,
    /// PEs whose memory can only be written.
    pub written: Box<[usize]>,
    /// Held by a thread that waits until stores to these have arrived.
    pub arrivals: Mutex<()>,
    /// Sleeping PEs among those that write each other's memory.
    pub sleepers: Sleepers,
    /// Operations that are not complete.
    pub pending: Pending,
    /// The endpoint in the ring.
    pub link: Link,
}

// SAFETY: raw addresses in it are those of mappings that live as long as it; all access through them is by copies and
// atomic operations, and everything else is synchronised.
unsafe impl Send for Pes {}
// SAFETY: as above.
unsafe impl Sync for Pes {}

impl Pes {
    /// Returns the number of PEs.
    #[inline(always)]
    pub fn n(&self) -> usize {
        self.peers.len()
    }

    /// Returns the place of `len` bytes at a local symmetric address; None if they are not symmetric.
    #[inline(always)]
    pub fn find(&self, address: usize, len: usize) -> Option<Place> {
        let heap = address.wrapping_sub(self.base[Memory::Heap as usize]);
        let backed = self.heap_backed.load(Ordering::Relaxed);
        if heap < backed && len <= backed - heap {
            return Some(Place { memory: Memory::Heap, at: heap });
        }
        let (at, size) = (address.wrapping_sub(self.base[Memory::Globals as usize]), self.globals_size);
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
        let [heap, globals, _] = self.base;
        let globals = match self.globals_size {
            0 => "there are no symmetric globals".to_string(),
            size => format!("the program's globals at {globals:#x} ({size} bytes)"),
        };
        fail::call(
            name,
            format_args!(
                "{what}: the {len} bytes at {address:#x} are not symmetric. Symmetric are the heap at {heap:#x} \
                 ({backed} bytes in use) and {globals}"
            ),
        )
    }

    /// Returns this PE's own segment of a kind of memory, which it has.
    #[inline(always)]
    pub fn segment(&self, memory: Memory) -> &Segment {
        self.peers[self.me].mapped[memory as usize].as_ref().expect("symmetric memory has a segment")
    }

    /// Returns the address of a place at this PE.
    #[inline(always)]
    pub fn address(&self, place: Place) -> usize {
        place.at + self.base[place.memory as usize]
    }
}
