//! A reliable connection between ranks of different hosts, end to end, for links that may lose data or go down
//! (`NTBRING_RELIABILITY=retry`).
//!
//! Every pair of ranks has a *connection*: a lane in each direction that lies in the sender's own memory, and a copy
//! of it in the receiver's memory. Both are ordinary lanes, so the code that sends and receives messages sees no
//! difference. The carrier transfers the entries from the lane to its copy as *parcels* (segments of the connection),
//! by the route round the ring that is currently available. The sender's lane keeps every entry until the receiver
//! has acknowledged it; if the route changes, all unacknowledged entries are retransmitted by the new route. The
//! receiver's carrier accepts each entry once, in order, and drops duplicates. (docs/protocol.md, "End to end")
//!
//! | file | holds |
//! |---|---|
//! | `sender`, `receiver` | the two halves of a connection, without I/O |
//! | `parcel` | the format of a parcel |
//! | `hop` | the lanes over one link, in which parcels travel |
//! | `connections` | all connections of a rank |
//! | `caretaker` | the thread that steps the carrier while the rank computes |

mod caretaker;
mod connections;
mod halves;
mod hop;
pub mod parcel;
pub mod receiver;
pub mod sender;
#[cfg(test)]
mod tests;

pub use crate::error::Odd;
pub(crate) use caretaker::Caretaker;
pub(crate) use connections::{Carrier, Ends};
pub use halves::{receiving_half, sending_half};
pub use parcel::{Parcel, Place};
pub use receiver::Receiver;
pub use sender::{Outgoing, Sender};
