//! Waiting: what a rank does while nothing arrives.
//!
//! | file | holds |
//! |---|---|
//! | `idle` | spinning, yielding and sleeping; noticing that a process has died or a link has gone down |
//! | `polls` | which polls look at what |
//! | `patience` | the receive timeout of tests with injected faults |
//! | `farewell` | a rank that waits to leave |

mod farewell;
mod idle;
mod patience;
mod polls;

use std::sync::Arc;

pub use farewell::Farewell;
pub use idle::Idle;
pub use patience::Patience;
pub use polls::{Polls, TESTS};

/// All that a rank needs for waiting.
pub struct Waiting {
    pub idle: Arc<Idle>,
    pub polls: Polls,
    /// None without injected faults.
    pub patience: Option<Patience>,
    pub farewell: Farewell,
}
