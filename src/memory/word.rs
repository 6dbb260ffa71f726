//! A word that several threads or processes use at once.

use super::Region;
use std::ops::Deref;
use std::sync::atomic::AtomicU64;

/// One word of a region, as the atomic that it is.
pub struct Word(Region);

impl Word {
    /// The word at `offset`. Panics if that is beyond the end or misaligned.
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
