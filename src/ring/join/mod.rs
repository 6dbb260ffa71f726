//! Joining the ring: from a process with its own memory to a member with links to its neighbours.
//!
//! | file | holds |
//! |---|---|
//! | `candidate` | the process that joins, and the order of the steps |
//! | `card`, `cards` | the record that every rank publishes, and the facts derived from the records of all ranks |
//! | `decorate`, `ports` | decorators around ports; opening the ports of a host |
//! | `greeting`, `handshake`, `join_handshakes` | parameters that neighbours exchange; the waits for the exchange |
//! | `connect` | links over the ports, with their windows |
//! | `kernel_copy` | kernel copies from and to other ranks |
//! | `error` | errors of joining |

mod candidate;
mod card;
mod cards;
mod connect;
mod decorate;
mod error;
mod greeting;
pub mod handshake;
mod join_handshakes;
mod kernel_copy;
mod ports;

pub use crate::link::Link;
pub use candidate::Candidate;
pub use card::{Card, HostCard};
pub use error::JoinError;
