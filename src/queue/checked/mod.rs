//! Lanes over links that may lose, corrupt or duplicate data (the error handling of SPAX, ETRI 1995, applied to
//! lanes).
//!
//! An entry carries a CRC32C after its bytes, over its place, its tag and its bytes. The data at which the next entry
//! must begin is therefore either that entry, complete, or the entry is not there yet. The place of an entry is the
//! absolute number of its first line, counted over all laps, and the producer keeps every entry until the consumer
//! has acknowledged it. So there is nothing to resynchronise: a damaged entry is written to its place again.
//!
//! Three control words, each with a checksum of its own, are repeated until they have taken effect:
//!
//! | word | memory | meaning |
//! |---|---|---|
//! | head | producer | number of lines consumed; sent as soon as the lane is empty |
//! | tail | consumer | number of lines produced; sent if nothing was consumed for a while |
//! | complaint | producer | negative acknowledgement: the entry at this place is missing or damaged |
//!
//! A consumer that finds no entry missing when it reads a new tail sends its head again, since the producer does not
//! know it.
//!
//! Under [`Reliability::Detect`] nothing is retransmitted, and a damaged or missing entry is an error of the consumer
//! instead.

mod consumer;
mod producer;
mod word;

pub(super) use consumer::{Finding, Verifier};
pub use producer::GaveUp;
pub(super) use producer::RetransmitBuffer;
pub(super) use word::CHECK;
