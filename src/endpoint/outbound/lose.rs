//! Ranks that are lost: what waits for them is forgotten, as is what is sent to them later.

use super::{Outbound, LOST};
use ntbring_ntb::Side;

impl Outbound {
    /// Returns true if a rank is lost.
    #[inline]
    pub fn is_lost(&self, rank: u32) -> bool {
        self.flows.get(rank as usize).is_some_and(|flow| flow.line.outbox == LOST)
    }

    /// Forgets what waits for a rank, and all that will.
    pub fn lose(&mut self, rank: u32) {
        self.held -= self.flows[rank as usize].lose(LOST);
        if let Some(caretaker) = &self.caretaker {
            caretaker.carrier().lose(rank);
        }
    }

    /// Forgets what was sent by a side.
    pub fn close(&mut self, side: Side) {
        self.outboxes
            .iter_mut()
            .filter(|outbox| outbox.bell.side() == Some(side))
            .for_each(|outbox| outbox.is_cut_off = true);
    }
}
