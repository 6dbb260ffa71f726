//! External peers: processes that are not of this job, such as those of a spawned job.
//!
//! The sender creates a lane of its own (a memory file like a host's). Each direction has its own lane. A process of
//! the same host opens the lane itself. For a process of another host a *gateway* opens it, the forwarder of a job's
//! first rank on this host, and passes its entries on through the ring to the gateway on the other host, which copies
//! them into a lane to the receiver ([`crate::gateway`]).
//!
//! | file | holds |
//! |---|---|
//! | `address` | address of a process for processes of other jobs |
//! | `lane` | a lane between two processes of different jobs, and its two ends |
//! | `reach` | the way from this process to an external peer |

mod address;
mod lane;
mod reach;

pub use address::ExternalAddress;
pub use lane::{create_lane, open_lane, Announcement, Ending, ExternalReceiver, ExternalSender, LaneState};
pub use reach::{Reach, Way};

#[cfg(test)]
pub(crate) use address::tests::address as address_for_tests;
