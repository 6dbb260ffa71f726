//! Collectives of groups that have one rank on each host of the ring.
//!
//! | file | holds |
//! |---|---|
//! | `direction` | the two directions in which blocks travel |
//! | `group`, `groups` | small allgathers that go round the ring |
//! | `area`, `card` | memory from which neighbours read blocks, and the records of its addresses and of rounds |
//! | `shared` | the groups with shared buffers, whose collectives are in `src/shared` |
//! | `blocks`, `member`, `alltoalls` | alltoalls of neighbours that access each other's memory |

mod alltoalls;
mod area;
mod blocks;
mod card;
mod direction;
mod group;
mod groups;
mod member;
mod shared;

pub use alltoalls::Alltoalls;
pub use blocks::{AlltoallProgress, Blocks};
pub use groups::{Groups, BLOCK_MAX};
pub use shared::SharedGroups;

/// Collectives of a rank.
pub struct Collective {
    pub groups: Groups,
    pub alltoalls: Alltoalls,
    pub shared: SharedGroups,
}
