//! A 64-bit word that several threads or processes access concurrently.

use super::Region;
use std::ops::Deref;
use std::sync::atomic::AtomicU64;

/// One 64-bit word of a region; dereferences to an [`AtomicU64`] and keeps the mapping alive.
pub struct Word(Region);

impl Word {
    /// Returns the word at `offset`. Panics if the offset is beyond the end or misaligned.
    pub fn new(region: &Region, offset: usize) -> Word {
        Word(region.part(offset, 8))
    }
}

impl Deref for Word {
    type Target = AtomicU64;

    fn deref(&self) -> &AtomicU64 {
        self.0.word(0)
    }
}
