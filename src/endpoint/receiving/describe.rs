//! Descriptions and counters of the lanes to a rank.

use super::inbound::Inbound;
use crate::arrival::Target;
use crate::observation::{Reason, Waits};
use ntbring_ntb::Side;

impl Inbound {
    /// Returns the number of entries that a link had lost or damaged on their way here.
    pub fn damaged_by(&self, side: Side) -> u64 {
        let by = self.boxes.iter().filter(|inbox| inbox.bell.side() == Some(side));
        by.map(|inbox| inbox.lane.damaged()).sum()
    }

    /// Returns the number of entries that were found lost or damaged.
    pub fn damaged(&self) -> u64 {
        self.boxes.iter().map(|inbox| inbox.lane.damaged()).sum()
    }

    /// Adds the payloads that have begun to arrive. Those of rendezvous are left to [`crate::rendezvous::Offers`].
    pub fn waits(&self, waits: &mut Waits) {
        for (src, row) in self.streams.iter().enumerate() {
            let open = row.iter().flat_map(|row| row.iter().flatten());
            let eager = open.filter(|open| !matches!(open.target, Target::Fetch(_)));
            eager.for_each(|open| waits.add(Reason::Payload, Some(src as u32), 1, open.left));
        }
    }

    /// Returns a line for each lane that is not empty, and for each open stream.
    pub fn describe(&self) -> Vec<String> {
        let mut lines: Vec<String> = self
            .boxes
            .iter()
            .filter(|b| !b.lane.is_empty() || b.lane.held() > 0)
            .map(|b| format!("from {}: entry {} is there, {} held", b.describe(), b.lane.sequence(), b.lane.held()))
            .collect();
        for inbox in &self.boxes {
            if let Some((lines_on, ahead)) = inbox.lane.gap() {
                let (from, next) = (inbox.describe(), inbox.lane.sequence());
                let later = next.wrapping_add(ahead);
                lines.push(format!(
                    "from {from}: entry {next} is not there, but entry {later} seems to be, {lines_on} lines further on: \
                     a write was lost"
                ));
            }
        }
        for (src, row) in self.streams.iter().enumerate() {
            for (id, open) in row.iter().flat_map(|r| r.iter()).enumerate() {
                if let Some(open) = open {
                    lines.push(format!("from rank {src}: stream {id} lacks {} bytes", open.left));
                }
            }
        }
        if lines.is_empty() {
            lines.push("all arrivals have been taken".into());
        }
        lines
    }
}
