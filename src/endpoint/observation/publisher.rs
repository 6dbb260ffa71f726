//! The stats page of a rank, from which tools read its counters while it runs.

use super::figures::{meaning, Figures};
use ntbring_host::StatsPage;

/// The stats page of a rank.
pub struct Publisher {
    stats_page: StatsPage,
    /// Number of times that tools had asked for the counters when they were last published.
    asked: u64,
}

impl Publisher {
    pub fn new(stats_page: StatsPage) -> Publisher {
        Publisher { stats_page, asked: 0 }
    }

    /// True if a tool has asked for the counters since they were last published.
    pub fn is_asked(&self) -> bool {
        self.stats_page.asked() != self.asked
    }

    /// Publishes the counters.
    #[cold]
    pub fn publish(&mut self, figures: &Figures) {
        self.asked = self.stats_page.asked();
        self.stats_page.write(meaning(), &figures.words());
    }
}
