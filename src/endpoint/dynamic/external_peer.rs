//! One process outside the ring, and its departure.

use crate::bell::Bell;
use ntbring_host::HostMemory;
use ntbring_ring::external_peer::{ExternalAddress, LaneState};
use ntbring_ring::PeerLoss;

/// A process outside the ring.
pub struct ExternalPeer {
    pub address: ExternalAddress,
    pub bell: Bell,
    /// State of the lane to it, if there is one.
    pub to: Option<LaneState>,
    /// State of the lane from it, if there is one.
    pub from: Option<LaneState>,
    /// The memory of the lane to it, until the peer has opened it through this process's descriptor.
    pub unopened: Option<HostMemory>,
    pub stage: Stage,
}

/// Progress of an external peer's departure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Stage {
    /// The peer has not left.
    Here,
    /// The peer sends nothing more, but some of its entries may not have been taken yet.
    Leaving(PeerLoss),
    /// All lanes have been found empty since the peer left.
    Through(PeerLoss),
    /// The loss was reported to the application, and nothing refers to the peer's lanes any more.
    Gone(PeerLoss),
    /// The application has dropped it, too: another external peer may get its number.
    Dropped(PeerLoss),
}

impl ExternalPeer {
    /// True if the peer has left in the regular way.
    pub fn has_left(&self) -> bool {
        [&self.to, &self.from].into_iter().flatten().any(LaneState::has_left)
    }

    /// True if the peer has left or died, as far as can be seen right now.
    pub fn is_gone(&self) -> bool {
        self.has_left() || self.address.mailbox.is_gone()
    }

    /// Returns the cause of the loss of this peer, which has number `peer`, if it was lost.
    pub fn loss(&self, peer: u32) -> Option<PeerLoss> {
        let pid = self.address.mailbox.pid;
        if !self.is_gone() {
            return None;
        }
        // This is read afterwards: the peer may have left meanwhile.
        Some(if self.has_left() {
            PeerLoss::ExternalPeerLeft { peer, pid }
        } else {
            PeerLoss::ExternalPeerDied { peer, pid }
        })
    }
}
