//! One process outside the ring, and its departure.

use crate::bell::Bell;
use ntbring_host::HostMemory;
use ntbring_ring::guest::{GuestAddress, Signs};
use ntbring_ring::Loss;

/// A process outside the ring.
pub struct Guest {
    pub address: GuestAddress,
    pub bell: Bell,
    /// State of the lane to it, if there is one.
    pub to: Option<Signs>,
    /// State of the lane from it, if there is one.
    pub from: Option<Signs>,
    /// The memory of the lane to it, until it has opened that: it opens it through this process's descriptor.
    pub unopened: Option<HostMemory>,
    pub stage: Stage,
}

/// Progress of a guest's departure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Stage {
    /// It has not left.
    Here,
    /// It sends nothing more, but some of what it sent may not have been taken yet.
    Leaving(Loss),
    /// All lanes have been found empty since then.
    Through(Loss),
    /// The application was told, and nothing refers to its lanes any more.
    Gone(Loss),
    /// The application has forgotten it, too: another guest may get its number.
    Dropped(Loss),
}

impl Guest {
    /// True if it has left in the regular way.
    pub fn has_left(&self) -> bool {
        [&self.to, &self.from].into_iter().flatten().any(Signs::has_left)
    }

    /// True if it has left or died, as far as can be seen right now.
    pub fn is_gone(&self) -> bool {
        self.has_left() || self.address.mailbox.is_gone()
    }

    /// Returns the cause of its loss as peer number `peer`, if it was lost.
    pub fn loss(&self, peer: u32) -> Option<Loss> {
        let pid = self.address.mailbox.pid;
        if !self.is_gone() {
            return None;
        }
        // This is read afterwards: it may have left meanwhile.
        Some(if self.has_left() { Loss::GuestLeft { peer, pid } } else { Loss::GuestDied { peer, pid } })
    }
}
