//! The ring of hosts: its topology, the procedure of joining it, and the forwarding of packets for hosts that are not
//! neighbours.
//!
//! | folder or file | holds |
//! |---|---|
//! | `topology` | hosts and ranks, distances and directions |
//! | `ports` | the ports of a host that are its left and its right one |
//! | `protocol` | version of the protocol, numbers of doorbells |
//! | `settings`, `policy` | settings of the ring; properties of its links, which follow from them and from the ports |
//! | `layout` | layout of windows and of host memory: lanes (ring buffers), boards and credits |
//! | `join` | the steps by which a process joins the ring: cards, handshake, links |
//! | `link` | a link of a host, and the ends of its lanes |
//! | `membership` | the handle that a process in the ring holds |
//! | `forwarding` | forwarding of packets in transit, by side and class, in threads of its own |
//! | `rerouting` | routes around links that are down |
//! | `failures` | peers that are unreachable because ranks have died or links have gone down |
//! | `liveness` | keep-alives and obituaries between hosts whose processes cannot be watched |
//! | `external_peer` | processes outside the job, such as those of a spawned job |
//! | `gateway` | messages between jobs whose processes are on different hosts |
//! | `fuzzing` | entries of the fuzzers to state machines that are private |
//!
//! The network manager itself (discovery, master, local ids, routes, on any graph of hosts) is the crate
//! `ntbring_manager`. The number of cores that a job has, the sessions of its ranks and the back-off of waits without a
//! doorbell are in `ntbring_host`.

pub mod external_peer;
mod failures;
mod forwarding;
#[doc(hidden)]
pub mod fuzzing;
mod gateway;
pub mod join;
pub mod layout;
mod link;
pub mod liveness;
mod membership;
mod policy;
mod ports;
mod protocol;
mod rerouting;
pub mod settings;
pub mod topology;

pub use failures::{Dead, Failures, LinkSet, OutageFlood, PathFailure, PeerLoss};
pub use forwarding::{forwarder_threads, relay, thread_split};
pub use join::{handshake, JoinError};
pub use membership::{DirectLane, HeldSegment, Membership, Writer};
pub use policy::LinkPolicy;
pub use ports::RingPorts;
pub use protocol::{rank_doorbell, FORWARDER_DOORBELL, PROTOCOL_VERSION};
pub use rerouting::{manager_driver, routing_table};
pub use settings::{JoinSettings, RingSettings};
pub use topology::Topology;
