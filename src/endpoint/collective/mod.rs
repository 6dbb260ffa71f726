//! Small allgathers of groups that have one rank on each host of the ring.
//!
//! | file | holds |
//! |---|---|
//! | `direction` | the two directions in which blocks travel |
//! | `group`, `groups` | small allgathers that go round the ring |
//! | `shared` | the groups with shared buffers, whose collectives are in `src/shared` |

mod direction;
mod group;
mod groups;
mod shared;

pub use groups::{Groups, BLOCK_MAX};
pub use shared::SharedGroups;
