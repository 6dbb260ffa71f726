//! One-sided operations: on segments of ranks that this rank can map, and on segments of all other ranks, whose hosts
//! perform them.
//!
//! | file | holds |
//! |---|---|
//! | `segments` | segments of this rank, and mapped ones of other ranks |
//! | `locking` | the lock of a segment, whose holder may die |
//! | `remotes` | operations on segments of other hosts |

mod locking;
mod remotes;
mod segments;

pub use remotes::{Operation, Remotes};
pub use segments::Segments;

/// One-sided operations of a rank.
pub struct OneSided {
    pub segments: Segments,
    pub remotes: Remotes,
}
