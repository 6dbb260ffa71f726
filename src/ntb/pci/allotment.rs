//! Division of a host's windows among jobs.

use std::collections::BTreeMap;

/// A range of a window, bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// Offset in the window.
    pub offset: u64,
    /// Size.
    pub len: u64,
}

/// Free and used ranges of one window, in units of a page. The first page belongs to the adapter itself.
#[derive(Debug)]
pub struct Ranges {
    size: u64,
    /// Sizes of the used ranges by their offsets.
    used: BTreeMap<u64, u64>,
}

/// Size of a page: the unit of ranges, bytes.
pub const PAGE: u64 = 4096;

impl Ranges {
    /// Returns the ranges of a window of `size` bytes; the first `reserved` bytes, a multiple of a page, are used.
    pub fn new(size: u64, reserved: u64) -> Ranges {
        Ranges { size: size / PAGE * PAGE, used: BTreeMap::from([(0, reserved)]) }
    }

    /// Takes a range of at least `len` bytes; None if there is none.
    pub fn take(&mut self, len: u64) -> Option<Range> {
        let len = len.checked_next_multiple_of(PAGE)?;
        let mut free = 0;
        for (&offset, &used) in &self.used {
            if offset - free >= len {
                break;
            }
            free = offset + used;
        }
        if self.size.saturating_sub(free) < len {
            return None;
        }
        self.used.insert(free, len);
        Some(Range { offset: free, len })
    }

    /// Returns a range.
    pub fn give_back(&mut self, range: Range) {
        self.used.remove(&range.offset);
    }

    /// Returns the number of free bytes, which may lie in several ranges.
    pub fn free(&self) -> u64 {
        self.size - self.used.values().sum::<u64>().min(self.size)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_do_not_overlap_and_are_used_again() {
        let mut ranges = Ranges::new(64 * PAGE + 100, PAGE);
        let mut taken: Vec<Range> = Vec::new();
        let mut random = fastrand::Rng::with_seed(7);
        for _ in 0..10_000 {
            if random.bool() {
                let len = random.u64(1..8 * PAGE);
                match ranges.take(len) {
                    Some(range) => {
                        assert!(range.len >= len && range.offset >= PAGE && range.offset + range.len <= 64 * PAGE);
                        let overlaps = |other: &Range| {
                            range.offset < other.offset + other.len && other.offset < range.offset + range.len
                        };
                        assert!(!taken.iter().any(overlaps));
                        taken.push(range);
                    }
                    None => assert!(ranges.free() < 64 * PAGE / 2 || len > 2 * PAGE),
                }
            } else if !taken.is_empty() {
                ranges.give_back(taken.swap_remove(random.usize(..taken.len())));
            }
            assert_eq!(ranges.free(), 63 * PAGE - taken.iter().map(|range| range.len).sum::<u64>());
        }
        taken.drain(..).for_each(|range| ranges.give_back(range));
        assert_eq!(ranges.take(63 * PAGE), Some(Range { offset: PAGE, len: 63 * PAGE }));
        assert_eq!(ranges.take(1), None);
        assert_eq!(ranges.take(u64::MAX), None);
    }
}
