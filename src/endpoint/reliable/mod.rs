//! Reliable connections between ranks of different hosts, end to end, for links that may lose data or go down
//! (`NTBRING_RELIABILITY=retry`).
//!
//! Every pair of ranks has a *connection*: a lane in each direction that lies in the sender's own memory, and a copy of
//! it in the receiver's memory. Both are ordinary lanes, so the code that sends and receives messages sees no
//! difference. The connection transfers the entries from the lane to its copy as *datagrams* (segments of the
//! connection), by the route round the ring that is currently available. The sender's lane keeps every entry until the
//! receiver has acknowledged it; if the route changes, all unacknowledged entries are retransmitted by the new route.
//! The receiver's end of the connection accepts each entry once, in order, and drops duplicates. (docs/protocol.md,
//! "End to end")
//!
//! | file | holds |
//! |---|---|
//! | `sender`, `receiver` | the two halves of a connection, without I/O |
//! | `datagram` | the format of a datagram |
//! | `hop` | the lanes over one link, in which datagrams travel |
//! | `connections` | all connections of a rank |
//! | `retransmit_thread` | the thread that steps the connections while the rank computes |

mod connections;
pub mod datagram;
mod halves;
mod hop;
pub mod receiver;
mod retransmit_thread;
pub mod sender;
#[cfg(test)]
mod tests;

pub use crate::error::Malformed;
pub(crate) use connections::{Ends, ReliableConnections};
pub use datagram::{Datagram, Place};
pub use halves::{receiving_half, sending_half};
pub use receiver::Receiver;
pub(crate) use retransmit_thread::RetransmitThread;
pub use sender::{Outgoing, Sender};
