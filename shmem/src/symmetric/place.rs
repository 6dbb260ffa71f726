//! Kinds of symmetric memory, and places in it.

use crate::fail;

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

/// Returns the number of bytes of `n` elements, arguments of the function `name`. Ends the program if no memory is that
/// large.
#[inline(always)]
pub fn size<T>(name: &'static str, n: usize) -> usize {
    match n.checked_mul(size_of::<T>()) {
        Some(bytes) if bytes <= isize::MAX as usize => bytes,
        _ => fail::call(name, format_args!("{n} elements of {} bytes are more than memory can have", size_of::<T>())),
    }
}
