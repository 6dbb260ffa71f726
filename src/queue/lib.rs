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
//! the lane seems full. The consumer writes the true head into the producer's memory once per half lane. An entry may
//! therefore take at most a quarter of the lane: together with the padding before a wrap it then always fits into the
//! space that is known to be free.
//!
//! [Boards](BoardWriter) are allgather mailboxes beside the lanes; they carry data that ranks pass around the ring in
//! rounds.
//!
//! **Ordering.** The producer writes bytes, fence, tag, fence. This is correct on links that reorder and split posted
//! writes between fences. An entry never wraps: a `PAD` entry fills the rest of the lap.

mod board;
mod checked;
mod consumer;
mod copies;
mod corrupt;
mod engine;
mod line;
mod producer;
mod reliability;
mod tag;

pub use board::{post_max, BoardLayout, BoardReader, BoardWriter, CoreId, Posted, PLACE};
pub use checked::GaveUp;
pub use consumer::{Beginning, Consumer, Entry, Taken};
pub use corrupt::{Corrupt, Damage};
pub use line::{entry_max, lines_for, LINE, LINES_MAX, LINES_MIN, PAD, TAG};
pub use producer::{Producer, Slot};
pub use reliability::Reliability;
pub use tag::{Tag, LEN_MAX, META_MAX};

#[cfg(test)]
mod tests;
