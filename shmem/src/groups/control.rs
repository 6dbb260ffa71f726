//! Memory of the library, in which groups have parts.

use crate::allocator::Allocator;
use crate::reach::Pes;
use crate::symmetric::{Memory, Place};
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

/// Size of a line of flags, at the start of which parts begin, bytes.
pub const LINE: usize = 64;

/// This PE's control memory.
pub struct Control {
    /// The allocated parts, and the number of bytes that are backed.
    state: Mutex<(Allocator, usize)>,
}

impl Control {
    /// Creates the state of memory of which the range `free` is not in use, and the first `backed` bytes are backed.
    pub fn new(free: Range<usize>, backed: usize) -> Control {
        Control { state: Mutex::new((Allocator::new(free), backed)) }
    }

    /// Allocates `len` bytes, which are 0, and returns their offset; None if there is no memory.
    pub fn allocate(&self, pes: &Pes, len: usize) -> Option<usize> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let (allocator, backed) = &mut *state;
        let at = allocator.allocate(len, LINE)?;
        if at + len > *backed {
            if pes.segment(Memory::Control).grow(*backed, at + len - *backed).is_err() {
                allocator.free(at);
                return None;
            }
            *backed = at + len;
        }
        let address = pes.address(Place { memory: Memory::Control, at });
        // SAFETY: the part was just allocated and is backed; no other PE knows it yet.
        unsafe { std::ptr::write_bytes(address as *mut u8, 0, len) };
        Some(at)
    }

    /// Frees the bytes at an offset that [`Control::allocate`] has returned.
    pub fn free(&self, at: usize) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).0.free(at);
    }
}
