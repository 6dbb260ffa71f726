//! Whom to ring when something was deposited, or a head returned.

use crate::ntb::emu::ForeignBell;
use crate::ntb::Port;
use crate::ring::Membership;
use std::sync::Arc;

/// A doorbell, wherever it is.
#[derive(Clone)]
pub(super) enum Bell {
    /// Of a neighbour, through a port.
    Port(Arc<dyn Port>, usize),
    /// Of another rank of this host, or of this rank itself.
    Local(Arc<Membership>, usize),
    /// Of a process outside the ring.
    Foreign(Arc<ForeignBell>, usize),
}

impl Bell {
    #[inline]
    pub fn ring(&self) {
        match self {
            Bell::Port(port, bell) => port.ring(*bell),
            Bell::Local(members, bell) => members.ring(*bell),
            Bell::Foreign(foreign, bell) => foreign.ring(*bell),
        }
    }
}
