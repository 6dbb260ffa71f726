//! The network manager: hosts discover each other, agree on a master, and get ids and routes from it. It works on any
//! graph of hosts with up to four ports each. (After the network manager of PEARL, Tsukuba 2012; docs/protocol.md,
//! "Network manager", has the packets and the arguments.)
//!
//! The manager is sans-IO: it does no I/O, has no threads and does not read the clock. Events and the current time
//! are its input, actions are its output.
//!
//! | file | contents |
//! |---|---|
//! | `machine`, `role` | the manager of one host: its reactions to events, as master and as standby |
//! | `events` | input and output of a manager |
//! | `ports` | state of a host's ports and the neighbours found at them |
//! | `discovery` | breadth-first search with port-routed packets |
//! | `graph` | hosts and links as found by a manager |
//! | `routes` | local ids and the routes of all pairs, evenly balanced; the class of each hop |
//! | `deadlock` | detection of cycles in a wait-for graph |
//! | `table` | the routing table that the master sends to a host: ids and routes; transferred in chunks |
//! | `packet`, `record`, `path` | wire formats |
//! | `shape` | descriptions of networks: `ring:8`, `torus:4x4`, a list of links |
//! | `network` | managers of a described network that communicate through memory, in virtual time |
//! | `survey` | statistics of a network whose managers have agreed |

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

/// Number of ports that a host can have.
pub const PORTS: usize = 4;

/// Largest number of hosts in one network. More distant hosts are not discovered.
pub const HOSTS_MAX: usize = 64;

/// Largest number of lane classes that routes can use.
pub const CLASSES_MAX: u8 = 4;

/// Hardware id of a host, unique in its network.
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

/// Local id, assigned to a host by the master: 1 to [`HOSTS_MAX`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct Lid(pub u8);

impl fmt::Display for Lid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Parameters that all managers of a network share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Rules {
    /// Number of lane classes that forwarders have, 1 to [`CLASSES_MAX`].
    pub classes: u8,
    /// Time to wait for a reply before the request is repeated.
    pub patience: Duration,
    /// Largest number of times that a request is sent.
    pub tries: u8,
    /// Interval of the keep-alive requests from a standby to its master.
    pub poll: Duration,
}

impl Default for Rules {
    fn default() -> Self {
        Rules { classes: 2, patience: Duration::from_millis(10), tries: 3, poll: Duration::from_millis(100) }
    }
}
