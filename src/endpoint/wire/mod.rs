//! The packets that ranks exchange as entries of lanes.
//!
//! An entry's bytes are, each part only if the kind says so:
//! route (8, see `ring::relay`), extension (8), up to four words of the kind's own, MPICH's
//! header, payload.
//!
//! The tag's `meta` holds the handler (6 bits) and the header's size in words (9 bits), so that a
//! plain message needs nothing but its tag. A header of another size and VCIs other than 0 need
//! the extension. In a `CHUNK` meta is the number of the stream, and whether its payload begins the entry's second line.

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
pub(crate) use tag::{plain, plain_chunk, plain_meta};
pub use tag::{BEGIN, CHUNK, HANDLERS, MESSAGE, PREFIX_MAX, STREAMS};
