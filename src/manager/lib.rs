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
//! | `packet`, `record`, `path`, `format` | wire formats, and errors in received bytes |
//! | `ids`, `rules` | limits, ids of hosts, parameters |
//! | `shape` | descriptions of networks: `ring:8`, `torus:4x4`, a list of links |
//! | `network` | managers of a described network that communicate through memory, in virtual time |
//! | `survey` | statistics of a network whose managers have agreed |

pub mod deadlock;
mod discovery;
mod events;
mod format;
mod graph;
mod ids;
mod machine;
pub mod network;
pub mod packet;
mod path;
mod ports;
pub mod record;
mod role;
pub mod routes;
mod rules;
pub mod shape;
pub mod survey;
pub mod table;

#[cfg(test)]
mod tests;

pub use events::{Action, Event, ManagerError};
pub use format::{PacketError, HEADER, PACKET_MAX, PAYLOAD_MAX};
pub use graph::Graph;
pub use ids::{class_step, Hwid, Lid, CLASSES_MAX, HOSTS_MAX, PORTS};
pub use machine::Manager;
pub use path::{Path, HOPS_MAX};
pub use rules::Rules;
pub use table::Table;
