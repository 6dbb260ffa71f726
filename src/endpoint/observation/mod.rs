//! Observation of a rank: counters, statistics and the dump of its state.
//!
//! | file | holds |
//! |---|---|
//! | `totals` | the quantities that a rank has counted |
//! | `counters` | the table of counters: names and meanings of these quantities |
//! | `figures` | the values of all counters, as words of a stats page and as a line of NTBRING_STATS |
//! | `histogram` | sizes of messages and times of operations, by powers of two |
//! | `state` | for whom a rank waits, and which messages it keeps |
//! | `publisher` | the stats page from which tools read the counters |
//! | `dump` | the signal on which a rank writes its state |

mod counters;
mod dump;
mod figures;
mod histogram;
mod publisher;
mod state;
mod totals;

pub use counters::{Counter, LinkCounter, COUNTERS, LINK_COUNTERS};
pub use dump::Trigger;
pub use figures::{Figures, LinkFigures, Peer};
pub use histogram::{Histogram, Sizes, TimeKind, Times, CLASSES, TIMES};
pub use publisher::Publisher;
pub use state::{Queues, ReadQueues, Reason, State, Wait, Waits};
pub use totals::{Faults, LinkTotals, Totals, Traffic};

/// The parts of a rank that observe it.
pub struct Observation {
    pub publisher: Publisher,
    pub dump: Trigger,
    /// Reads the queues of the endpoint's caller, if it has any.
    pub read_queues: Option<ReadQueues>,
    /// Index of the endpoint among those of its process.
    pub vci: u32,
}
