//! Entries of the fuzzers to state machines that are private.

use crate::liveness::view::LivenessView;
use crate::topology::Topology;
use ntbring_memory::{InWindow, OutWindow, Region};

pub use crate::gateway::hostile::tunnels;

/// Lets a neighbour write any words into the table of liveness.
pub fn liveness(data: &[u8]) {
    let topology = Topology::simulated(40);
    let region = Region::anonymous(LivenessView::bytes(&topology));
    let (hostile, table, len) = (OutWindow::new(region.clone()), InWindow::new(region.clone()), region.len());
    let mut view = LivenessView::new(&topology);
    for step in data.chunks_exact(10) {
        let at = 8 * (usize::from(step[0]) % (len / 8));
        let value = u32::from_le_bytes([step[2], step[3], step[4], step[5]]);
        match step[1] % 2 {
            0 => hostile.store(at, u64::from(!value) << 32 | u64::from(value)),
            _ => hostile.store(at, u64::from_le_bytes([&step[2..], &[0; 0]].concat().try_into().expect("8 bytes"))),
        }
        let before = view.clone();
        let has_news = view.read(&table);
        assert!((0..40).all(|rank| view.has_ended(rank) || !before.has_ended(rank)), "knowledge only grows");
        assert!(has_news || view.has_ended(0) == before.has_ended(0));
    }
}
