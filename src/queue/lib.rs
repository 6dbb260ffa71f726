//! Lanes: single-producer, single-consumer ring buffers in an NTB window, with the producer on one side of the link
//! and the consumer on the other (the receive queues of MPI-VMMC, KAIST 2000).
//!
//! A lane is an array of 64-byte lines. An entry (a slot of variable size that holds one message) takes one or more
//! contiguous lines. Its first word is its tag, and the message bytes follow:
//!
//! ```text
//! line   0              1              2              3          ...
//!        | tag | bytes ............................ | tag | bytes |
//! ```
//!
//! A *lap* is one pass of the producer over the lines of the lane, from line 0 to the wrap.
//!
//! **The tail is not transmitted.** The consumer reads the word at which the next entry must begin. The word is a
//! valid tag if it carries the sequence number that the consumer expects. Otherwise the word is zero (never used, or
//! cleared) or the tag of an entry of the previous lap, which has a lower sequence number. It cannot be part of the
//! bytes of an old entry: the producer remembers which lines hold bytes rather than a tag, and clears the word after
//! an entry *before* it publishes that entry. Small messages therefore cost no extra write, and large ones cost one
//! extra word.
//!
//! **The head is returned lazily.** The producer works with a cached copy of the head, which it refreshes only when
//! the lane seems full. The consumer writes the true head into the producer's memory once per half lane, or sooner if
//! the tag of an entry [requests](Tag::asks) it. An entry may therefore take at most a quarter of the lane: together
//! with the padding before a wrap it then always fits into the space that is known to be free.
//!
//! [Boards](BoardWriter) are allgather mailboxes beside the lanes; they carry data that ranks pass around the ring in
//! rounds.
//!
//! **Ordering.** The producer writes bytes, fence, tag, fence. This is correct on links that reorder and split posted
//! writes between fences. An entry never wraps: a `PAD` entry fills the rest of the lap, which may be most of it (see
//! `pieces`).

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

/// Protocol violation found in data that a peer wrote into a lane or a board.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Corrupt {
    /// The word is neither a tag nor zero.
    #[error("line {line} holds {word:#018x}, which is not a tag")]
    NoTag {
        /// Line at which the word was read.
        line: usize,
        /// The word that was read.
        word: u64,
    },
    /// The sequence number of the tag belongs neither to this lap nor to the previous one.
    #[error("line {line} has sequence number {found}, {expected} was expected")]
    Sequence {
        /// Line at which the tag was read.
        line: usize,
        /// Sequence number that the consumer expects.
        expected: u16,
        /// Sequence number in the tag.
        found: u16,
    },
    /// The entry is too long, or reaches beyond the end of the lane.
    #[error("the entry at line {line} claims {len} bytes, at most {max} are possible there")]
    Length {
        /// Line at which the entry begins.
        line: usize,
        /// Length in bytes that the tag claims.
        len: usize,
        /// Largest length in bytes that is possible at this line.
        max: usize,
    },
    /// The entry was lost or damaged on the link.
    #[error("the entry at line {line} {damage}: the link has lost or changed it")]
    Damaged {
        /// Line at which the entry begins.
        line: usize,
        /// Kind of damage.
        damage: Damage,
    },
    /// The tag of a board's slot is valid neither for this round nor for the time before it.
    #[error("slot {place} of an allgather mailbox holds {word:#018x} in round {turn}")]
    Place {
        /// Index of the slot.
        place: usize,
        /// The word that was read.
        word: u64,
        /// Number of the round.
        turn: u32,
    },
}

/// Number of lines that an entry with `len` bytes takes.
pub fn lines_for(len: usize) -> usize {
    (TAG + len).div_ceil(LINE)
}

/// Largest number of bytes in an entry of a lane with `lines` lines.
pub fn entry_max(lines: usize) -> usize {
    ((lines / 4).max(1) * LINE - TAG).min(LEN_MAX)
}

#[cfg(test)]
mod tests;
