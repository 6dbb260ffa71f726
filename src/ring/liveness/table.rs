//! The table in a host's memory in which its monitor publishes its knowledge for the ranks of the host.

use super::view::LivenessView;
use crate::topology::Topology;
use ntbring_memory::{InWindow, OutWindow, Region};
use std::sync::Arc;
use std::time::Duration;

/// Silence of a host after which its neighbours warn of it.
pub const WARN_AFTER: Duration = Duration::from_secs(2);

/// The table of a host. The knowledge itself is followed by a word for each host, its silence in milliseconds, and by a
/// word that is set when the ranks have left the job.
#[derive(Clone)]
pub(crate) struct Table {
    topology: Arc<Topology>,
    read: InWindow,
    write: OutWindow,
}

impl Table {
    /// Returns the size of the table, bytes.
    pub fn bytes(topology: &Topology) -> usize {
        Self::left_at(topology) + 8
    }

    fn left_at(topology: &Topology) -> usize {
        LivenessView::bytes(topology) + 8 * topology.hosts()
    }

    /// Returns the table at an offset in the memory of a host.
    pub fn new(topology: &Arc<Topology>, memory: &Region, offset: usize) -> Table {
        let region = memory.part(offset, Table::bytes(topology));
        Table { topology: topology.clone(), read: InWindow::new(region.clone()), write: OutWindow::new(region) }
    }

    /// Publishes knowledge, and the time for which each host has been silent.
    pub fn publish(&self, view: &LivenessView, silences: &[Duration]) {
        view.write(&self.write);
        for (host, silence) in silences.iter().enumerate() {
            self.write.store(LivenessView::bytes(&self.topology) + 8 * host, silence.as_millis() as u64);
        }
    }

    /// Returns the ranks whose processes have ended, as far as the monitor knows.
    pub fn ended(&self) -> Vec<u32> {
        let mut view = LivenessView::new(&self.topology);
        view.read(&self.read);
        (0..self.topology.size() as u32).filter(|&rank| view.has_ended(rank)).collect()
    }

    /// Returns the number of keep-alives of a host.
    pub fn beats(&self, host: usize) -> u32 {
        let mut view = LivenessView::new(&self.topology);
        view.read(&self.read);
        view.beats(host)
    }

    /// Informs the monitor that the ranks of the host have left the job, so that it ends.
    pub fn leave(&self) {
        self.write.store(Self::left_at(&self.topology), 1);
    }

    /// Returns true if the ranks of the host have left the job.
    pub fn is_left(&self) -> bool {
        self.read.load(Self::left_at(&self.topology)) != 0
    }

    /// Returns the time for which a host has been silent.
    pub fn silence(&self, host: usize) -> Duration {
        Duration::from_millis(self.read.load(LivenessView::bytes(&self.topology) + 8 * host))
    }

    /// Returns the hosts that have been silent for at least [`WARN_AFTER`], with the time since their last keep-alive.
    pub fn silent(&self) -> Vec<(usize, Duration)> {
        let silences = (0..self.topology.hosts()).map(|host| (host, self.silence(host)));
        silences.filter(|(_, silence)| *silence >= WARN_AFTER).collect()
    }
}
