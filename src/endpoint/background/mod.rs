//! Threads beside a rank that forward for its host or make its large payloads progress, and the results of the latter.
//!
//! | file | holds |
//! |---|---|
//! | `threads` | starting the threads |
//! | `async_progress` | results of asynchronous progress, and arrivals that wait for the rank |

mod async_progress;
mod threads;

use ntbring_ring::forwarder_threads::ForwarderThreads;
use ntbring_ring::relay::RelayCounters;
use std::sync::Arc;

pub use async_progress::AsyncProgress;
pub use threads::{start_forwarding, start_progress_thread};

/// The threads of a rank, except those that retransmit.
pub struct Background {
    /// The host's forwarder, if it runs in this process.
    pub forwarder_threads: Option<ForwarderThreads>,
    /// The counters of the forwarder.
    pub relay: Arc<RelayCounters>,
    pub async_progress: AsyncProgress,
}
