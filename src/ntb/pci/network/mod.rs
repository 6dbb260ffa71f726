//! The network of all hosts that cables connect: a link-state protocol, without I/O.
//!
//! Each host's agent announces itself, its links and the circuits that it wants ([`Announcement`]). Agents pass all
//! announcements that they know on to their neighbours, so each of them has the same [`Map`] of the network. A circuit
//! ([`Circuit`]) joins two hosts that no cable joins: it names the hosts on its way, whose agents forward the writes.

mod announcement;
mod map;

pub use announcement::{Announcement, Cable, Circuit, Step};
pub use map::Map;
