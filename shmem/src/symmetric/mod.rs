//! Symmetric memory: its kinds and places, and the PEs that have it, as libntbring maps or writes it.

mod own;
mod peer;
mod place;
mod segment;
mod writer;

pub use own::{OwnMemory, OwnSegment};
pub use peer::Peer;
pub use place::{size, Memory, Place, MEMORIES};
pub use segment::Segment;
pub use writer::Writer;
