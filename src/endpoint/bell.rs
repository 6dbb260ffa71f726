//! The doorbell to ring after an entry was deposited or a head returned.

use ntbring_ntb::fabric::Bells;
use ntbring_ntb::{Port, Side};
use ntbring_ring::Membership;
use std::sync::Arc;

/// A doorbell, reached in one of several ways.
#[derive(Clone)]
pub enum Bell {
    /// A doorbell of the neighbouring host on this side, rung through a port.
    Port(Side, Arc<dyn Port>, usize),
    /// A doorbell of another rank of this host, or of this rank itself.
    Local(Arc<Membership>, usize),
    /// A doorbell of a process outside the ring, or of a rank whose host is no neighbour.
    Foreign(Arc<dyn Bells>, usize),
    /// No doorbell: a reliable connection polls its own lanes, and a lost peer, or one that has ended, needs none.
    Reliable,
}

impl Bell {
    /// Describes the location of the doorbell in words.
    pub fn describe(&self) -> String {
        match self {
            Bell::Port(side, ..) => format!("the neighbour on the {side} link"),
            Bell::Local(..) => "this host".into(),
            Bell::Foreign(..) => "a process beyond the neighbours".into(),
            Bell::Reliable => "another host".into(),
        }
    }

    /// Returns the link at whose far end the doorbell is, if it is reached through a port.
    pub fn side(&self) -> Option<Side> {
        match self {
            Bell::Port(side, ..) => Some(*side),
            _ => None,
        }
    }

    /// Rings the doorbell. Returns the number of doorbells rung (0 or 1).
    #[inline]
    pub fn ring(&self) -> u64 {
        match self {
            Bell::Port(_, port, bell) => port.ring(*bell),
            Bell::Local(members, bell) => members.ring(*bell),
            Bell::Foreign(foreign, bell) => foreign.ring(*bell),
            Bell::Reliable => return 0,
        }
        1
    }
}
