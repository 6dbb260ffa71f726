//! Whom to ring when something was deposited, or a head returned.

use ntbring_ntb::fabric::Bells;
use ntbring_ntb::{Port, Side};
use ntbring_ring::Membership;
use std::sync::Arc;

/// A doorbell, wherever it is.
#[derive(Clone)]
pub(super) enum Bell {
    /// Of a neighbour, through a port.
    Port(Arc<dyn Port>, usize),
    /// Of another rank of this host, or of this rank itself.
    Local(Arc<Membership>, usize),
    /// Of a process outside the ring.
    Foreign(Arc<dyn Bells>, usize),
    /// Of nobody: a carrier sees by itself what there is, and who is gone does not.
    Carrier,
}

impl Bell {
    /// Where it is, for people.
    pub fn describe(&self) -> String {
        match self {
            Bell::Port(port, _) => format!("the neighbour on the {} link", port.side()),
            Bell::Local(..) => "this host".into(),
            Bell::Foreign(..) => "another job".into(),
            Bell::Carrier => "another host".into(),
        }
    }

    /// The link that it is at the other end of, if it is.
    pub fn side(&self) -> Option<Side> {
        match self {
            Bell::Port(port, _) => Some(port.side()),
            _ => None,
        }
    }

    /// Rings it. Returns how many rings that were.
    #[inline]
    pub fn ring(&self) -> u64 {
        match self {
            Bell::Port(port, bell) => port.ring(*bell),
            Bell::Local(members, bell) => members.ring(*bell),
            Bell::Foreign(foreign, bell) => foreign.ring(*bell),
            Bell::Carrier => return 0,
        }
        1
    }
}
