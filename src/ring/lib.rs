//! The ring of hosts: its topology, the procedure of joining it, and the forwarding of packets for hosts that are not
//! neighbours.
//!
//! | file | holds |
//! |---|---|
//! | `topology` | hosts and ranks, distances and directions |
//! | `plan` | layout of a window: lanes (ring buffers), boards and credits |
//! | `handshake` | exchange of parameters between two neighbours through the scratchpads (no I/O inside) |
//! | `join` | the steps by which a process joins the ring |
//! | `card`, `meeting`, `link` | a rank's published card, the waits for other ranks, and the resulting links |
//! | `membership` | the handle that a process in the ring holds |
//! | `error` | errors of joining |
//! | `dress` | the decorators around a host's ports: link model, faults, access records |
//! | `near` | which peers' memory a process may map or copy from and to |
//! | `losses` | peers that are unreachable because ranks have died or links have gone down |
//! | `outages` | the set of links that are down, and its propagation to all hosts |
//! | `guest` | processes outside the ring, such as those of a spawned job |
//! | `relay`, `track` | forwarding of packets in transit, by side and class |
//! | `route`, `tally` | source and destination of a packet; counters of a forwarder |
//! | `desk` | state that all tracks of a host share |
//! | `steward`, `probation` | driver of the network manager in a job; hysteresis of link states |
//! | `ways` | the current routes of a host, published to all its ranks |
//! | `liveness` | keep-alives and obituaries between hosts whose processes cannot be watched |
//! | `settings` | settings of the ring |
//! | `transfer`, `crew` | transfer threads, which forward while the host's ranks compute; their division of tracks |
//!
//! The network manager itself (discovery, master, local ids, routes, on any graph of hosts) is the crate
//! `ntbring_manager`. The number of cores that a job has, the sessions of its ranks and the back-off of waits without a
//! doorbell are in `ntbring_host`.

mod card;
pub mod crew;
mod desk;
mod dress;
mod error;
pub mod guest;
pub mod handshake;
pub mod join;
mod link;
pub mod liveness;
mod losses;
mod meeting;
mod membership;
mod near;
mod outages;
pub mod plan;
mod probation;
pub mod relay;
mod route;
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

/// Version of the protocol between hosts: handshake, layout of windows, packets.
pub const PROTOCOL_VERSION: u16 = 21;

/// Doorbell number of a host's first transfer thread. The host's other transfer threads have the next numbers
/// ([`crew::thread_of`]).
pub const FORWARDER_DOORBELL: usize = 0;

/// Returns the doorbell number of a rank, given its index among the ranks of its host. Ranks beyond the twelfth share
/// doorbells.
pub fn rank_doorbell(local: usize) -> usize {
    crew::THREADS_MAX + local % (ntbring_ntb::DOORBELLS - crew::THREADS_MAX)
}
