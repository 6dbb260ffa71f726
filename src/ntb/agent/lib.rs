//! The agent of a host with adapters, `ntbringd`. It owns the adapters, so that ranks need no privileges, and gives each
//! job a slice of their windows; ranks access only the memory of their slices.
//!
//! | module | holds |
//! |---|---|
//! | `message` | requests and replies, with descriptors, over a Unix socket |
//! | `server` | the agent's side: a thread for each process that is connected |
//! | `clients` | the processes that are connected, and which of them have ended |
//! | `connection` | the connection of a process to the agent |
//! | `client` | the backend of ranks: `NTBRING_DEVICE=pci` |
//! | `memory`, `segments` | memory of processes that neighbours write directly, at the agent's side and at a rank's |

mod client;
mod clients;
mod connection;
mod memory;
mod message;
mod segments;
mod server;

pub use client::AgentBackend;
pub use message::{MessageError, VERSION};
pub use server::{Policy, Server};
