//! Lines and entries: the sizes of a lane's parts.

use crate::tag::LEN_MAX;

/// Size of a line in bytes.
pub const LINE: usize = 64;
/// Size of the tag in bytes, at the start of an entry's first line.
pub const TAG: usize = 8;
/// Largest number of lines in a lane: the sequence numbers of one lap must be distinct from those of the next.
pub const LINES_MAX: usize = 32 * 1024 - 1;
/// Smallest number of lines in a lane.
#[cfg(not(loom))]
pub const LINES_MIN: usize = 16;
/// Smallest number of lines in a lane: small enough for loom to try all interleavings of a lap.
#[cfg(loom)]
pub const LINES_MIN: usize = 8;

/// Kind of the padding entry that fills the rest of a lap. All other kinds are defined by the layers above.
pub const PAD: u8 = 0xff;

/// Number of lines that an entry with `len` bytes takes.
pub fn lines_for(len: usize) -> usize {
    (TAG + len).div_ceil(LINE)
}

/// Largest number of bytes in an entry of a lane with `lines` lines.
pub fn entry_max(lines: usize) -> usize {
    ((lines / 4).max(1) * LINE - TAG).min(LEN_MAX)
}
