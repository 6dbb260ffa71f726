//! The bulletin of a rank, from which tools read its counters while it runs.

use super::figures::{meaning, Figures};
use ntbring_host::Bulletin;

/// The bulletin of a rank.
pub struct Publisher {
    bulletin: Bulletin,
    /// Number of times that tools had asked for the counters when they were last published.
    asked: u64,
}

impl Publisher {
    pub fn new(bulletin: Bulletin) -> Publisher {
        Publisher { bulletin, asked: 0 }
    }

    /// True if a tool has asked for the counters since they were last published.
    pub fn is_asked(&self) -> bool {
        self.bulletin.asked() != self.asked
    }

    /// Publishes the counters.
    #[cold]
    pub fn publish(&mut self, figures: &Figures) {
        self.asked = self.bulletin.asked();
        self.bulletin.write(meaning(), &figures.words());
    }
}
