//! The packets that ranks exchange as entries of lanes.
//!
//! The bytes of an entry are the following parts, each only if the kind calls for it: route (8 bytes, see
//! `ring::relay`), extension (8), up to four words of the kind's own, MPICH's header, payload.
//!
//! The tag's `meta` holds the handler (6 bits) and the header's size in words (9 bits), so that a plain message needs
//! nothing but its tag. A header of another size and VCIs other than 0 need the extension. The meta of a `CHUNK` is the
//! number of the stream, and a bit that is set if the payload begins in the entry's second line.

mod error;
mod packet;
mod parse;
mod parts;
mod prefix;
mod tag;
#[cfg(test)]
mod tests;

pub use error::WireError;
pub use packet::Packet;
pub use parts::{DpmId, DpmKind, Head, Offer, Request};
pub use prefix::Prefix;
pub(crate) use tag::{plain, plain_chunk, plain_meta, tag_of, APART, APART_MIN, TAG_END};
pub use tag::{BEGIN, CHUNK, HANDLERS, MESSAGE, PREFIX_MAX, STREAMS};
