//! Lanes: circular queues in a window, one producer on one side of the link, one consumer on the
//! other (the receive queues of MPI-VMMC, KAIST 2000).
//!
//! A lane is an array of 64-byte lines. An entry takes one or more contiguous lines; its first
//! word is its tag, the bytes follow:
//!
//! ```text
//! line   0              1              2              3          ...
//!        | tag | bytes ............................ | tag | bytes |
//! ```
//!
//! **No tail is sent.** The consumer looks at the word where the next entry must begin. It is
//! valid if it carries the sequence number that the consumer expects. What else may lie there:
//! zero (never used, or cleared), or the tag of the lap before, whose number is lower. It can not
//! be a piece of an old entry's bytes, since the producer remembers which lines hold bytes rather
//! than a tag, and clears the word after an entry *before* it publishes that entry. So small
//! messages cost no extra write, and large ones one word.
//!
//! **The head is returned lazily.** The producer works against a copy of the head that it only
//! looks at when the lane seems full; the consumer writes the true head into the producer's memory
//! once per half lane, or sooner if the tag of an entry [asks](Tag::asks) for it. Therefore an entry may take at most a quarter of the lane: together with
//! the filling before a wrap it then always fits into what is known to be free.
//!
//! Beside the lanes lie [boards](BoardWriter), for what goes round the ring in turns.
//!
//! **Ordering.** Bytes, fence, tag, fence: right on links that reorder and split posted writes
//! between fences. An entry never wraps; the rest of the lap is filled by a `PAD` entry, which may be most of it (`pieces`).

mod board;
mod checked;
mod consumer;
mod pace;
mod pieces;
mod producer;
mod reliability;
mod tag;

pub use board::{post_max, BoardPlan, BoardReader, BoardWriter, Posted, PLACE};
pub use checked::{Damage, GaveUp, Reliability};
pub use consumer::{Consumer, Entry, Taken};
pub use producer::{Producer, Slot};
pub use tag::{Tag, LEN_MAX, META_MAX};

/// Bytes in a line.
pub const LINE: usize = 64;
/// Bytes of an entry's first line that its tag takes.
pub const TAG: usize = 8;
/// The most lines that a lane may have: sequence numbers of one lap must be distinct from those
/// of the next.
pub const LINES_MAX: usize = 32 * 1024 - 1;
/// The fewest lines a lane may have.
#[cfg(not(loom))]
pub const LINES_MIN: usize = 16;
/// The fewest lines a lane may have: small enough for all interleavings of a lap to be tried.
#[cfg(loom)]
pub const LINES_MIN: usize = 8;

/// The kind that fills the rest of a lap. Every other kind belongs to the layers above.
pub const PAD: u8 = 0xff;

/// What a peer wrote into a lane that the protocol does not allow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Corrupt {
    /// Neither a tag nor zero.
    #[error("line {line} holds {word:#018x}, which is no tag")]
    NoTag {
        /// Where.
        line: usize,
        /// What.
        word: u64,
    },
    /// A tag from the future or the distant past.
    #[error("line {line} has sequence number {found}, {expected} was expected")]
    Sequence {
        /// Where.
        line: usize,
        /// What was expected.
        expected: u16,
        /// What is there.
        found: u16,
    },
    /// An entry that is too long, or reaches beyond the end of the lane.
    #[error("the entry at line {line} claims {len} bytes, at most {max} are possible there")]
    Length {
        /// Where.
        line: usize,
        /// What it claims.
        len: usize,
        /// What is possible.
        max: usize,
    },
    /// An entry that was lost or damaged on its way.
    #[error("the entry at line {line} {damage}: the link has lost or changed it")]
    Damaged {
        /// Where.
        line: usize,
        /// What is wrong.
        damage: Damage,
    },
    /// Neither what a place of a board may hold before this turn nor in it.
    #[error("place {place} of a board holds {word:#018x} in turn {turn}")]
    Place {
        /// Where.
        place: usize,
        /// What.
        word: u64,
        /// When.
        turn: u32,
    },
}

/// Number of lines that an entry with `len` bytes takes.
pub fn lines_for(len: usize) -> usize {
    (TAG + len).div_ceil(LINE)
}

/// The most bytes that an entry may have in a lane of `lines` lines.
pub fn entry_max(lines: usize) -> usize {
    ((lines / 4).max(1) * LINE - TAG).min(LEN_MAX)
}

#[cfg(test)]
mod tests;
