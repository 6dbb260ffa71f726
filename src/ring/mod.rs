//! The ring of hosts: who is where, joining it, and carrying what is for hosts further away.
//!
//! | file | holds |
//! |---|---|
//! | `topology` | hosts and ranks, distances and directions |
//! | `plan` | how a window is divided into lanes and credits |
//! | `handshake` | what two neighbours tell each other through the scratchpads (no I/O inside) |
//! | `join` | a process's way into the ring |
//! | `card`, `meeting`, `link` | what it publishes for that, whom it waits for, what it then holds |
//! | `error` | what can be in the way of that |
//! | `near` | who may do what with whose memory |
//! | `cores` | how many cores the job has, and which of them no rank is bound to |
//! | `guest` | processes outside the ring, such as those of a spawned job |
//! | `relay` | forwarding what is in transit |
//! | `served` | operations on window memory that the host carries out for others |
//! | `transfer` | the thread that forwards while the host's ranks compute |

mod card;
pub mod cores;
mod error;
pub mod guest;
pub mod handshake;
pub mod join;
mod link;
mod meeting;
mod near;
pub mod plan;
pub mod relay;
pub mod served;
pub mod topology;
pub mod transfer;

pub use join::{JoinError, Membership};
pub use topology::Topology;

/// Version of everything that hosts exchange: handshake, layout of windows, packets.
pub const PROTOCOL_VERSION: u16 = 8;

/// The doorbell of a host's forwarder.
pub const FORWARDER_DOORBELL: usize = 0;

/// The doorbell of a rank, by its number within its host. Ranks beyond the fifteenth share.
pub fn rank_doorbell(local: usize) -> usize {
    1 + local % (crate::ntb::DOORBELLS - 1)
}
