//! The layout of a member's buffer.
//!
//! ```text
//! | progress, core, given up | sleep word | small cells | tags of cells | cells of even collectives | of odd ones |
//!   64 bytes                   64 bytes     64 each       64 each         from byte 9216 on
//!
//! a cell: | bytes |    a small cell: | tag, sizes | up to 40 bytes |
//!                                      24 bytes
//! ```
//!
//! A collective's cells lie one behind the other, and are as large as its largest post: then the processor fetches the next
//! cell ahead, as it does with any memory that is read in order.

/// Bytes of a cache line.
pub const LINE: usize = 64;
/// Number of cells that a collective uses in turn.
pub const CELLS: usize = 4;
/// Offset of the word that tells how far the member has read: a [`tag`].
pub const PROGRESS: usize = 0;
/// Offset of the word that names the core on which the member began the latest collective, plus 1; 0 if it does not tell.
pub const CORE: usize = 8;
/// Offset of the number of the latest collective that the member has given up because of a failure.
pub const GIVEN_UP: usize = 16;
/// Offset of the word that is 1 while the member may sleep.
pub const ASLEEP: usize = LINE;
/// Largest number of bytes in a small cell.
pub const INLINE: usize = LINE - 3 * 8;
/// Number of small cells: a collective whose posts are so small uses one, so members may be that many of them ahead.
pub const SMALL: u64 = 64;

/// Memory for all buffers of a group, bytes, if its cells need not be smaller or larger than the limits below.
const GROUP_BYTES: usize = 16 << 20;
/// Limits of the size of a cell, bytes: that of the largest post.
const CELL: std::ops::RangeInclusive<usize> = (8 << 10)..=(256 << 10);

/// Bits of a tag for the position in a collective.
const POSITION_BITS: u32 = 24;

/// Returns the tag of post `position` of a collective; tags grow.
pub const fn tag(collective: u64, position: u64) -> u64 {
    collective << POSITION_BITS | position
}

/// Offset of the cells' tags, one line for each.
const TAGS: usize = 2 * LINE + SMALL as usize * LINE;
/// Offset of the cells. Not at the beginning of a page, where many buffers of programs lie: processors copy slowly between
/// addresses that lie almost at the same place of their pages.
const CONTENTS: usize = 8192 + 1024;

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
        CONTENTS + 2 * CELLS * self.cell
    }

    /// Returns the place of a post of `len` bytes, of a collective (they are numbered from 1) whose posts are `stride`
    /// bytes apart.
    pub(crate) fn place(self, collective: u64, position: u64, len: usize, stride: usize) -> Place {
        if position == 0 && len <= INLINE {
            let cell = 2 * LINE + (collective % SMALL) as usize * LINE;
            let read = tag((collective + 1).saturating_sub(SMALL), 0);
            return Place { cell, contents: cell + LINE - INLINE, read };
        }
        let (half, number) = (collective as usize % 2 * CELLS, position as usize % CELLS);
        let (cell, contents) = (TAGS + (half + number) * LINE, CONTENTS + half * self.cell + number * stride);
        // What the cell held before: a post of the collective before the previous one, or of this one.
        let read = match position < CELLS as u64 {
            true => tag(collective - 1, 0),
            false => tag(collective, position - CELLS as u64 + 1),
        };
        Place { cell, contents, read }
    }
}

/// The place of a post.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// Offset of the tag.
    pub cell: usize,
    /// Offset of the bytes.
    pub contents: usize,
    /// The cell may be written once the progress of every other member is at least this.
    pub read: u64,
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
            let place = |collective, position, len| layout.place(collective, position, len, layout.cell());
            let large = (1..=2).flat_map(|c| (0..CELLS as u64).map(move |i| (c, i, INLINE + 1)));
            let large: Vec<_> = large.map(|(c, i, len)| place(c, i, len)).collect();
            let small = (1..=SMALL).map(|c| (place(c, 0, INLINE).cell, LINE));
            let tags = large.iter().map(|place| (place.cell, LINE));
            let contents = large.iter().map(|place| (place.contents, layout.cell()));
            let mut ranges: Vec<_> = small.chain(tags).chain(contents).collect();
            ranges.sort_unstable();
            let end = ranges.iter().fold(2 * LINE, |end, &(at, size)| {
                assert!(at == end || at == CONTENTS && end < at, "{at} after {end}");
                at + size
            });
            assert_eq!(end, layout.bytes());
            assert_eq!(place(7, 6, 100), Place { read: tag(7, 3), ..place(1, 2, 100) });
            assert_eq!(layout.place(1, 2, 100, 128).contents - layout.place(1, 0, 100, 128).contents, 256);
        }
        let before = |collective, position, len| Layout::new(2).place(collective, position, len, 128).read;
        assert_eq!([before(1, 0, 8), before(63, 0, 8), before(64, 0, 8)], [0, 0, tag(1, 0)]);
        assert_eq!([before(5, 0, 100), before(5, 6, 8)], [tag(4, 0), tag(5, 3)]);
        assert!(tag(2, 0) > tag(1, POSTS_MAX) && tag(1, 2) > tag(1, 1));
    }
}
