//! Observation of a rank: counters, statistics and the dump of its state.
//!
//! | file | holds |
//! |---|---|
//! | `totals` | the quantities that a rank has counted |
//! | `counters` | the table of counters: names and meanings of these quantities |
//! | `figures` | the values of all counters, as words of a stats page and as a line of NTBRING_STATS |
//! | `publisher` | the stats page from which tools read the counters |
//! | `dump` | the signal on which a rank writes its state |

mod counters;
mod dump;
mod figures;
mod publisher;
mod totals;

pub use counters::{Counter, LinkCounter, COUNTERS, LINK_COUNTERS};
pub use dump::Trigger;
pub use figures::{Figures, LinkFigures, Peer};
pub use publisher::Publisher;
pub use totals::{Faults, LinkTotals, Totals, Traffic};

/// The parts of a rank that observe it.
pub struct Observation {
    pub publisher: Publisher,
    pub dump: Trigger,
    /// Index of the endpoint among those of its process.
    pub vci: u32,
}
