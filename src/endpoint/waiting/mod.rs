//! Waiting: the back-off of a rank while nothing arrives.
//!
//! | file | holds |
//! |---|---|
//! | `idle` | spinning, yielding and sleeping; noticing that a process has died or a link has gone down |
//! | `polls` | the choice of the lanes and checks that each poll includes |
//! | `spins` | the number of polls between two yields |
//! | `wait_times` | how long waits last |
//! | `receive_timeout` | the receive timeout of tests with injected faults |
//! | `flush_state` | a rank that waits to leave |

mod flush_state;
mod idle;
mod polls;
mod receive_timeout;
mod spins;
mod wait_times;

use std::sync::Arc;

pub use flush_state::FlushState;
pub use idle::Idle;
pub use polls::{Polls, TESTS};
pub use receive_timeout::ReceiveTimeout;

/// The state that a rank needs for waiting.
pub struct Waiting {
    pub idle: Arc<Idle>,
    pub polls: Polls,
    /// None without injected faults.
    pub receive_timeout: Option<ReceiveTimeout>,
    pub flush_state: FlushState,
}
