//! Threads beside a rank, and the work that they do for it.
//!
//! | file | holds |
//! |---|---|
//! | `threads` | starting the threads |
//! | `progress_thread` | the kind of thread that retransmits while the rank does not poll |
//! | `linger` | such a thread for a rank that has left |
//! | `interim` | results of asynchronous progress, and arrivals that wait for the rank |

mod interim;
mod linger;
mod progress_thread;
mod threads;

use ntbring_ring::relay::RelayCounters;
use ntbring_ring::transfer::Transfer;
use std::sync::Arc;

pub use interim::Interim;
pub use linger::Linger;
pub use progress_thread::ProgressThread;
pub use threads::{start_deputy, start_forwarding, take_care};

/// The threads of a rank, except that of a carrier.
pub struct Background {
    /// The host's forwarder, if it runs in this process.
    pub transfer: Option<Transfer>,
    /// The counters of the forwarder.
    pub relay: Arc<RelayCounters>,
    pub interim: Interim,
    /// Retransmits recent packets, once the caller calls nothing any more but `drop`.
    pub lingering: Option<Linger>,
}
