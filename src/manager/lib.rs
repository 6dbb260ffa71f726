//! The network manager: hosts find each other, agree on a master, and get ids and routes from it.
//! Works on any graph of hosts with up to four ports each. (After the network manager of PEARL,
//! Tsukuba 2012; docs/protocol.md, "Network manager", has the packets and the arguments.)
//!
//! Nothing in here does I/O, has a thread or looks at a clock: events and the current time in,
//! actions out.
//!
//! | file | holds |
//! |---|---|
//! | `machine`, `role` | the manager of one host: what it does on an event, as master and as standby |
//! | `events` | what goes into it and what comes out |
//! | `ports` | which ports are up, and who is at the other end |
//! | `discovery` | breadth-first search with port-routed packets |
//! | `graph` | hosts and links as a manager has found them |
//! | `routes` | local ids and the routes of all pairs, evenly split; which class a hop has |
//! | `deadlock` | whether what waits for what has a cycle |
//! | `table` | what the master tells a host: ids and routes; in pieces |
//! | `packet`, `record`, `path` | what is on the wire |
//! | `shape` | descriptions of networks: `ring:8`, `torus:4x4`, a list of links |
//! | `network` | managers of a described network that talk through memory, in virtual time |
//! | `survey` | what there is to know about a network whose managers have agreed |

pub mod deadlock;
mod discovery;
mod events;
mod graph;
mod machine;
pub mod network;
pub mod packet;
mod path;
mod ports;
pub mod record;
mod role;
pub mod routes;
pub mod shape;
pub mod survey;
pub mod table;

#[cfg(test)]
mod tests;

pub use events::{Action, Event, ManagerError};
pub use graph::Graph;
pub use machine::Manager;
pub use path::{Path, HOPS_MAX};
pub use table::Table;

use serde::Serialize;
use std::fmt;
use std::time::Duration;

/// Ports that a host can have.
pub const PORTS: usize = 4;

/// The most hosts that one network can have. Those further away than these are not seen.
pub const HOSTS_MAX: usize = 64;

/// The most classes of lanes that routes can be given.
pub const CLASSES_MAX: u8 = 4;

/// A host's hardware id. No two hosts of a network may have the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct Hwid(pub u64);

impl fmt::Display for Hwid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            small @ 0..=99_999 => write!(f, "{small}"),
            large => write!(f, "{large:#x}"),
        }
    }
}

/// The id that the master has given a host: 1 to [`HOSTS_MAX`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct Lid(pub u8);

impl fmt::Display for Lid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// What all managers of a network have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Rules {
    /// Classes of lanes that forwarders have, 1 to [`CLASSES_MAX`].
    pub classes: u8,
    /// How long an answer is waited for before the question is put again.
    pub patience: Duration,
    /// How often a question is put.
    pub tries: u8,
    /// Time between two looks of a standby at its master.
    pub poll: Duration,
}

impl Default for Rules {
    fn default() -> Self {
        Rules { classes: 2, patience: Duration::from_millis(10), tries: 3, poll: Duration::from_millis(100) }
    }
}
