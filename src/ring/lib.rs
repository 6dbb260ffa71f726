//! The ring of hosts: who is where, joining it, and carrying what is for hosts further away.
//!
//! | file | holds |
//! |---|---|
//! | `topology` | hosts and ranks, distances and directions |
//! | `manager` | the network manager: discovery, master, local ids, routes, on any graph of hosts |
//! | `plan` | how a window is divided into lanes and credits |
//! | `handshake` | what two neighbours tell each other through the scratchpads (no I/O inside) |
//! | `join` | a process's way into the ring |
//! | `card`, `meeting`, `link` | what it publishes for that, whom it waits for, what it then holds |
//! | `membership` | what a process in the ring holds of it |
//! | `error` | what can be in the way of that |
//! | `dress` | what is put around its ports: models, faults, records |
//! | `nap` | how long to sleep for what nobody rings for |
//! | `near` | who may do what with whose memory |
//! | `losses` | who cannot be reached any more when ranks have died, or links have gone down |
//! | `outages` | which links that are, and how all hosts hear of it |
//! | `cores` | how many cores the job has, and which of them no rank is bound to |
//! | `sessions` | whether ranks that wait can make room for each other |
//! | `guest` | processes outside the ring, such as those of a spawned job |
//! | `relay`, `track` | forwarding what is in transit, to each side and of each class |
//! | `route`, `tally` | where a packet comes from and goes; how much there was |
//! | `cast` | packets for several hosts |
//! | `desk` | what all tracks of a host share |
//! | `steward`, `probation` | the network manager in a job: which links are up, and what follows from that |
//! | `ways` | which way packets go at present, for all ranks of a host |
//! | `served` | operations on window memory that the host carries out for others |
//! | `transfer`, `crew` | the threads that forward while the host's ranks compute; which of them does what |

mod card;
pub mod cast;
pub mod crew;
mod desk;
mod dress;
mod error;
pub mod guest;
pub mod handshake;
pub mod join;
mod link;
mod losses;
mod meeting;
mod membership;
mod near;
mod outages;
pub mod plan;
mod probation;
pub mod relay;
mod route;
pub mod served;
pub mod settings;
pub mod steward;
mod tally;
pub mod topology;
mod track;
pub mod transfer;
pub mod ways;

pub use join::JoinError;
pub use losses::{Damage, Dead, Loss, Obstacle};
pub use membership::Membership;
pub use outages::{Herald, LinkSet};
pub use settings::{JoinSettings, RingSettings};
pub use topology::Topology;

/// Version of everything that hosts exchange: handshake, layout of windows, packets.
pub const PROTOCOL_VERSION: u16 = 20;

/// The doorbell of the first of the threads that forward at a host. The others have those after it ([`crew::thread_of`]).
pub const FORWARDER_DOORBELL: usize = 0;

/// The doorbell of a rank, by its number within its host. Ranks beyond the twelfth share.
pub fn rank_doorbell(local: usize) -> usize {
    crew::THREADS_MAX + local % (ntbring_ntb::DOORBELLS - crew::THREADS_MAX)
}
