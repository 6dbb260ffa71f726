//! Joining the ring: from a process with its own memory to a member with links to its neighbours.
//!
//! | file | holds |
//! |---|---|
//! | `candidate` | the process that joins, and the order of the steps |
//! | `card`, `cards` | the record that every rank publishes, and what follows from all of them |
//! | `dress`, `ports` | decorators around ports; opening the ports of a host |
//! | `greeting`, `handshake`, `meeting` | exchange of parameters between two neighbours (no I/O inside), and the waits for it |
//! | `connect` | links over the ports, with their windows |
//! | `reach` | kernel copies from and to other ranks |
//! | `error` | errors of joining |

mod candidate;
mod card;
mod cards;
mod connect;
mod dress;
mod error;
mod greeting;
pub mod handshake;
mod meeting;
mod ports;
mod reach;

pub use crate::link::Link;
pub use candidate::Candidate;
pub use card::{Card, HostCard};
pub use error::JoinError;
