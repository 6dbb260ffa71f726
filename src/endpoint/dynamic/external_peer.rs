//! One process outside the ring, and its departure.

use crate::bell::Bell;
use ntbring_host::{FileAddress, HostMemory};
use ntbring_ring::external_peer::{ExternalAddress, LaneState, Way};
use ntbring_ring::PeerLoss;

/// A lane to or from a process outside the ring, as this process sees it.
pub struct ExternalLane {
    /// State of the lane's two ends.
    pub state: LaneState,
    /// The doorbell of the lane's other end: the peer's, or that of a gateway.
    pub bell: Bell,
    /// Address of the mailbox of the process at the lane's other end: the peer, or a gateway.
    pub end: FileAddress,
}

/// A process outside the ring.
pub struct ExternalPeer {
    pub address: ExternalAddress,
    /// The way to it.
    pub way: Way,
    /// The lane to it, if there is one.
    pub to: Option<ExternalLane>,
    /// The lane from it, if there is one.
    pub from: Option<ExternalLane>,
    /// The memory of the lane to it, until the other end has opened it through this process's descriptor.
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
    /// Returns the lanes to and from the peer.
    pub fn lanes(&self) -> impl Iterator<Item = &ExternalLane> {
        [&self.to, &self.from].into_iter().flatten()
    }

    /// True if the peer has left in the regular way.
    pub fn has_left(&self) -> bool {
        self.lanes().any(|lane| lane.state.has_left())
    }

    /// True if the peer has closed its lanes, or a gateway has on its behalf. While a gateway may still deliver what
    /// the peer has sent, the lane from the peer is open.
    pub fn is_closed(&self) -> bool {
        match (self.way, &self.from) {
            (Way::Gateway { .. }, Some(from)) => from.state.is_closed(),
            _ => self.lanes().any(|lane| lane.state.is_closed()),
        }
    }

    /// True if the peer has left or died, as far as can be seen right now. A peer is lost, too, if a gateway has died
    /// on the way to it.
    pub fn is_gone(&self) -> bool {
        self.is_closed()
            || match self.way {
                Way::None => true,
                Way::Direct => self.address.mailbox.is_gone(),
                Way::Gateway { .. } => self.lanes().any(|lane| lane.end.is_gone()),
            }
    }

    /// True if everything in the lane to the peer outlives this process. `produced` is the number of bytes that the
    /// entries sent occupy in the lane.
    pub fn has_reached(&self, produced: u64) -> bool {
        let Some(lane) = &self.to else { return true };
        match self.way {
            Way::None => true,
            Way::Direct => lane.state.is_open() || produced == 0,
            Way::Gateway { .. } => lane.state.delivered() >= produced || lane.state.is_closed(),
        }
    }

    /// Returns the cause of the loss of this peer, which has number `peer`, if it was lost.
    pub fn loss(&self, peer: u32) -> Option<PeerLoss> {
        let pid = self.address.mailbox.pid;
        if !self.is_gone() {
            return None;
        }
        // This is read afterwards: the peer may have left meanwhile.
        Some(match self.way {
            _ if self.has_left() => PeerLoss::ExternalPeerLeft { peer, pid },
            Way::None => PeerLoss::ExternalPeerUnreachable { peer, pid },
            _ => PeerLoss::ExternalPeerDied { peer, pid },
        })
    }
}
