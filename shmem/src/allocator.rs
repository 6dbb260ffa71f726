//! A best-fit allocator of ranges of numbers, with its book-keeping outside of the memory that it manages.
//!
//! It is deterministic: PEs that make the same calls get the same ranges.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// Sizes are multiples of this, bytes, and so are the offsets of all ranges.
const GRAIN: usize = 64;

/// Allocated and free ranges of a range of numbers.
pub struct Allocator {
    /// Length of the whole, bytes.
    size: usize,
    /// Free ranges: offset and length. No two of them touch.
    free: BTreeMap<usize, usize>,
    /// The same by length and offset.
    by_length: BTreeSet<(usize, usize)>,
    /// Allocated ranges: offset and requested length.
    used: BTreeMap<usize, usize>,
}

impl Allocator {
    /// Creates the allocator of a range, which begins and ends at multiples of 64.
    pub fn new(range: Range<usize>) -> Allocator {
        debug_assert!(range.start.is_multiple_of(GRAIN) && range.end.is_multiple_of(GRAIN));
        let size = range.len();
        let mut new = Allocator { size, free: BTreeMap::new(), by_length: BTreeSet::new(), used: BTreeMap::new() };
        new.insert(range.start, size);
        new
    }

    /// Allocates `len` bytes at a multiple of `align`, a power of two. Returns their offset; None if there is no room.
    pub fn allocate(&mut self, len: usize, align: usize) -> Option<usize> {
        let padded = len.max(1).checked_next_multiple_of(GRAIN)?;
        let align = align.max(GRAIN);
        let fits = |&&(length, offset): &&(usize, usize)| {
            offset
                .checked_next_multiple_of(align)
                .is_some_and(|at| at - offset <= length && padded <= length - (at - offset))
        };
        let &(length, offset) = self.by_length.range((padded, 0)..).find(fits)?;
        let at = offset.next_multiple_of(align);
        self.remove(offset, length);
        self.insert(offset, at - offset);
        self.insert(at + padded, offset + length - at - padded);
        self.used.insert(at, len);
        Some(at)
    }

    /// Frees the range at `offset`. Returns its length; None if no range begins there.
    pub fn free(&mut self, offset: usize) -> Option<usize> {
        let len = self.used.remove(&offset)?;
        let (mut from, mut to) = (offset, offset + len.max(1).next_multiple_of(GRAIN));
        if let Some((&before, &length)) = self.free.range(..from).next_back().filter(|&(&o, &l)| o + l == from) {
            self.remove(before, length);
            from = before;
        }
        if let Some(&length) = self.free.get(&to) {
            self.remove(to, length);
            to += length;
        }
        self.insert(from, to - from);
        Some(len)
    }

    /// Changes the length of the range at `offset` to one for which its memory suffices, and frees the rest. Returns false
    /// if it does not suffice.
    pub fn shrink(&mut self, offset: usize, len: usize) -> bool {
        let padded = |len: usize| len.max(1).checked_next_multiple_of(GRAIN).unwrap_or(usize::MAX);
        let Some(before) = self.used.get_mut(&offset).filter(|before| padded(**before) >= padded(len)) else {
            return false;
        };
        let rest = padded(*before) - padded(len);
        *before = len;
        if rest > 0 {
            // The rest becomes a range of its own, which is freed.
            self.used.insert(offset + padded(len), rest);
            self.free(offset + padded(len));
        }
        true
    }

    /// Returns the requested length of the range at `offset`; None if no range begins there.
    pub fn len_of(&self, offset: usize) -> Option<usize> {
        self.used.get(&offset).copied()
    }

    /// Returns the number of bytes that are allocated.
    pub fn used(&self) -> usize {
        self.size - self.free.values().sum::<usize>()
    }

    /// Returns the length of the largest free range.
    pub fn largest_free(&self) -> usize {
        self.by_length.last().map_or(0, |&(length, _)| length)
    }

    fn insert(&mut self, offset: usize, length: usize) {
        if length > 0 {
            self.free.insert(offset, length);
            self.by_length.insert((length, offset));
        }
    }

    fn remove(&mut self, offset: usize, length: usize) {
        self.free.remove(&offset);
        self.by_length.remove(&(length, offset));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn ranges_never_overlap_and_everything_comes_back(
            steps in prop::collection::vec((0usize..5000, 0u32..13, any::<prop::sample::Index>(), any::<bool>()), 1..200)
        ) {
            const SIZE: usize = 1 << 16;
            let mut allocator = Allocator::new(0..SIZE);
            let mut held: Vec<(usize, usize)> = Vec::new();
            for (len, align, which, frees) in steps {
                if frees && !held.is_empty() {
                    let (at, len) = held.swap_remove(which.index(held.len()));
                    prop_assert_eq!(allocator.len_of(at), Some(len));
                    prop_assert_eq!(allocator.free(at), Some(len));
                    prop_assert_eq!(allocator.free(at), None);
                } else if let Some(at) = allocator.allocate(len, 1 << align) {
                    prop_assert!(at % (1 << align) == 0 && at + len <= SIZE);
                    let apart = |&(other, n): &(usize, usize)| at + len.max(1) <= other || other + n.max(1) <= at;
                    prop_assert!(held.iter().all(apart));
                    held.push((at, len));
                } else {
                    prop_assert!(allocator.largest_free() < len.max(1).next_multiple_of(GRAIN) + (1 << align));
                }
                let padded: usize = held.iter().map(|&(_, n)| n.max(1).next_multiple_of(GRAIN)).sum();
                prop_assert_eq!(allocator.used(), padded);
            }
            held.iter().for_each(|&(at, _)| assert!(allocator.free(at).is_some()));
            prop_assert_eq!((allocator.used(), allocator.largest_free()), (0, SIZE));
        }
    }

    #[test]
    fn a_range_shrinks_in_its_place_and_does_not_grow() {
        let mut allocator = Allocator::new(0..1024);
        assert_eq!((allocator.allocate(300, 1), allocator.allocate(64, 1)), (Some(0), Some(320)));
        assert!(allocator.shrink(0, 310) && allocator.shrink(0, 320) && !allocator.shrink(0, 321));
        assert!(allocator.shrink(0, 100) && !allocator.shrink(64, 1));
        assert_eq!((allocator.used(), allocator.len_of(0)), (192, Some(100)));
        assert_eq!(allocator.allocate(192, 1), Some(128));
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let mut allocator = Allocator::new(0..1024);
        assert_eq!(allocator.allocate(usize::MAX, 1), None);
        assert_eq!(allocator.allocate(1025, 1), None);
        assert_eq!(allocator.allocate(1024, 4096), Some(0));
        assert_eq!(allocator.allocate(1, 1), None);
        assert_eq!(allocator.free(64), None);
    }
}
