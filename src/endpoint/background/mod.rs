//! Threads beside a rank that forward for its host or make its large payloads progress, and the results of the latter.
//!
//! | file | holds |
//! |---|---|
//! | `threads` | starting the threads |
//! | `interim` | results of asynchronous progress, and arrivals that wait for the rank |

mod interim;
mod threads;

use ntbring_ring::relay::RelayCounters;
use ntbring_ring::transfer::Transfer;
use std::sync::Arc;

pub use interim::Interim;
pub use threads::{start_deputy, start_forwarding};

/// The threads of a rank, except those that retransmit.
pub struct Background {
    /// The host's forwarder, if it runs in this process.
    pub transfer: Option<Transfer>,
    /// The counters of the forwarder.
    pub relay: Arc<RelayCounters>,
    pub interim: Interim,
}
