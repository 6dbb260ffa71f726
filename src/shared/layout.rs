//! The layout of a member's buffer.
//!
//! ```text
//! | progress, core | sleep word | cells of even collectives | cells of odd collectives |    a cell: | tag, sizes, few bytes | bytes |
//!   64 bytes         64 bytes                                                                           64 bytes
//! ```

/// Bytes of a cache line.
pub const LINE: usize = 64;
/// Number of cells that a collective uses in turn.
pub const CELLS: usize = 4;
/// Offset of the word that tells how far the member has read: a [`tag`].
pub const PROGRESS: usize = 0;
/// Offset of the word that names the core on which the member began the latest collective, plus 1; 0 if it does not tell.
pub const CORE: usize = 8;
/// Offset of the word that is 1 while the member may sleep.
pub const ASLEEP: usize = LINE;
/// Largest number of bytes that lie in the first line of a cell.
pub const INLINE: usize = LINE - 3 * 8;

/// Memory for all buffers of a group, bytes, if its cells need not be smaller or larger than the limits below.
const GROUP_BYTES: usize = 8 << 20;
/// Limits of the size of a cell, bytes.
const CELL: std::ops::RangeInclusive<usize> = (8 << 10)..=(128 << 10);

/// Bits of a tag for the position in a collective.
const POSITION_BITS: u32 = 24;

/// Returns the tag of post `position` of a collective; tags grow.
pub const fn tag(collective: u64, position: u64) -> u64 {
    collective << POSITION_BITS | position
}

/// Largest number of posts in a collective.
pub const POSTS_MAX: u64 = 1 << (POSITION_BITS - 1);

/// The layout of the buffers of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    cell: usize,
}

impl Layout {
    /// Returns the layout for a number of members.
    pub fn new(members: usize) -> Layout {
        let wanted = (GROUP_BYTES / members.max(1) / (2 * CELLS)).next_power_of_two();
        Layout { cell: wanted.clamp(*CELL.start(), *CELL.end()) }
    }

    /// Returns the number of bytes for the contents of a cell.
    pub fn cell(self) -> usize {
        self.cell
    }

    /// Returns the size of a buffer, bytes.
    pub fn bytes(self) -> usize {
        2 * LINE + 2 * CELLS * (LINE + self.cell)
    }

    /// Returns the offset of the cell of a post.
    pub(crate) fn offset(self, collective: u64, position: u64) -> usize {
        let number = (collective as usize % 2) * CELLS + position as usize % CELLS;
        2 * LINE + number * (LINE + self.cell)
    }

    /// Returns the offset of a post's bytes, of which there are `len` in all.
    pub(crate) fn contents(self, collective: u64, position: u64, len: usize) -> usize {
        let first = self.offset(collective, position);
        first + if len <= INLINE { LINE - INLINE } else { LINE }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_lie_apart_and_fill_the_buffer() {
        for members in [2, 3, 8, 16, 64, 1000] {
            let layout = Layout::new(members);
            assert!(
                CELL.contains(&layout.cell()) && members * layout.bytes() <= (GROUP_BYTES * 9 / 8).max(members << 17)
            );
            let mut offsets: Vec<_> =
                (0..2).flat_map(|c| (0..CELLS as u64).map(move |i| layout.offset(c, i))).collect();
            offsets.push(layout.bytes());
            offsets.sort_unstable();
            assert!(offsets.windows(2).all(|pair| pair[1] - pair[0] == LINE + layout.cell()));
            assert_eq!(layout.offset(7, 6), layout.offset(1, 2));
        }
        assert!(tag(2, 0) > tag(1, POSTS_MAX) && tag(1, 2) > tag(1, 1));
    }
}
