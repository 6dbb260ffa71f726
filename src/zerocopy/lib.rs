//! Protocol selection: the way in which a message is transferred, chosen by its size and by the connection between
//! the ranks (selective zero-copy, MPI-VMMC, KAIST 2000).
//!
//! | variant | protocol | sizes | sender | receiver |
//! |---|---|---|---|---|
//! | [`Protocol::Packed`] | eager | small | writes header and payload contiguously | copies once from the lane |
//! | [`Protocol::Chunked`] | segmented eager | medium | writes the header, then chunks | copies each chunk once |
//! | [`Protocol::Rendezvous`] | rendezvous | large | sends an RTS: header, payload address | fetches the payload when matched |
//!
//! The payload of a rendezvous is fetched in one of three ways:
//!
//! | fetching | requires | copies |
//! |---|---|---|
//! | [`Fetching::Streamed`] | nothing | by the sender into the lane, by the receiver from it to the user's buffer |
//! | [`Fetching::Single`] | coherent memory | by the receiver, from user buffer to user buffer |
//! | [`Fetching::Both`] | coherent memory | by both, one half of the payload each, at the same time |
//!
//! In coherent memory the fastest of them is determined at run time ([`copy_tuner`]). If it is the lane, the sender is
//! informed and uses rendezvous only for messages for which it would use it with any receiver.
//!
//! [`ChunkSize`] determines the size of the chunks.
//!
//! The sender never copies a payload before it is written to the window; a non-contiguous payload is packed into the
//! window.

mod chunk_size;
pub mod copy_tuner;
mod payload;
mod selection;
pub mod table;

pub use chunk_size::ChunkSize;
pub use payload::{PackFailed, PackFn, Packed, Payload};
pub use selection::{Fetching, Protocol, SingleCopy, SplitCopy, Thresholds, LONG_HEADER, SHORT_HEADER};
pub use table::Limits;
