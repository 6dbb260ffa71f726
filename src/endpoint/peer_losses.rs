//! The peers that are lost to a rank, because they have died or links have gone down.

use ntbring_ring::PeerLoss;

/// The peers that are lost to a rank.
#[derive(Default)]
pub struct PeerLosses {
    known: Vec<PeerLoss>,
    /// Number of failures that were seen, and of those that were handled.
    seen: usize,
    settled: usize,
}

impl PeerLosses {
    /// Returns the cause of the loss of a rank, if it was lost.
    pub fn of(&self, rank: u32) -> Option<PeerLoss> {
        self.known.iter().find(|loss| loss.rank() == rank).copied()
    }

    /// Records the number of failures that have been observed when a poll that looked at all lanes found nothing.
    /// Returns true if they must be handled now. Packets of dead ranks, and those that a link has delivered, are taken
    /// first: losses count from the second such poll on after they were seen.
    pub fn are_due(&mut self, extent: usize) -> bool {
        let due = std::mem::replace(&mut self.seen, extent) == extent && self.settled != extent;
        if due {
            self.settled = extent;
        }
        due
    }

    /// Adds a loss. Returns false if the rank was lost before.
    pub fn add(&mut self, loss: PeerLoss) -> bool {
        let new = self.of(loss.rank()).is_none();
        if new {
            self.known.push(loss);
        }
        new
    }

    /// Returns the first loss for which `wanted` holds.
    pub fn find(&self, wanted: impl Fn(&PeerLoss) -> bool) -> Option<PeerLoss> {
        self.known.iter().find(|loss| wanted(loss)).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_is_handled_once_at_the_second_poll_after_it_was_seen() {
        let mut peer_losses = PeerLosses::default();
        assert_eq!(
            [1, 1, 1, 2, 3, 3, 3].map(|extent| peer_losses.are_due(extent)),
            [false, true, false, false, false, true, false]
        );
    }

    #[test]
    fn a_rank_is_lost_for_one_cause_only() {
        let mut peer_losses = PeerLosses::default();
        let (left, died) =
            (PeerLoss::ExternalPeerLeft { peer: 4, pid: 1 }, PeerLoss::ExternalPeerDied { peer: 4, pid: 1 });
        assert!(peer_losses.add(left) && !peer_losses.add(died));
        assert_eq!((peer_losses.of(4), peer_losses.of(5)), (Some(left), None));
        assert_eq!(peer_losses.find(|loss| *loss == died), None);
    }
}
