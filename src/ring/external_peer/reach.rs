//! The way from a process to an external peer.

use super::ExternalAddress;
use ntbring_host::{FileAddress, Mailbox, Place};
use ntbring_ntb::fabric::{Backend, Bells, FabricAddress};
use ntbring_ntb::NtbError;
use std::sync::Arc;

/// A process's surroundings, from which the way to an external peer follows.
#[derive(Clone, Copy)]
pub struct Reach<'a> {
    /// Address of this process.
    pub me: &'a ExternalAddress,
    /// Addresses of all ranks of this process's job, in rank order.
    pub ranks: &'a [ExternalAddress],
    /// Address of the first rank of this process's host if it has a gateway.
    pub gateway: Option<&'a ExternalAddress>,
    /// The backend that opens doorbells.
    pub backend: &'a dyn Backend,
}

/// The way to an external peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// There is none: no ring of the two jobs leads to the peer's host, or the peer's job has ended.
    None,
    /// The peer is on this host: it reads a lane itself.
    Direct,
    /// A gateway, whose mailbox is at this address, passes messages on. The doorbell wakes it.
    Gateway {
        /// Address of the gateway's mailbox.
        mailbox: FileAddress,
        /// Windows of the gateway's host, in its own job.
        host: FabricAddress,
    },
}

impl Reach<'_> {
    /// Returns the way to an external peer. A gateway of this job is taken if the job has a rank on the peer's host,
    /// and otherwise one of the peer's job if that has a rank on this host.
    pub fn way_to(&self, peer: &ExternalAddress) -> Way {
        if self.me.is_near(peer) {
            return Way::Direct;
        }
        let own = self.gateway.filter(|_| self.ranks.iter().any(|rank| rank.is_near(peer)));
        if let Some(gateway) = own {
            return Way::Gateway { mailbox: gateway.mailbox, host: gateway.host };
        }
        match Mailbox::of_gateway(Place { job: peer.place.job, ..self.me.place }) {
            Ok(Some((mailbox, host))) => Way::Gateway { mailbox, host: FabricAddress(host) },
            Ok(None) => Way::None,
            Err(error) => {
                log::warn!("cannot look for gateways of another job: {error}");
                Way::None
            }
        }
    }

    /// Opens the doorbells of a host of another job; `owner` is the mailbox of a process there. Returns None if that
    /// process has ended.
    pub fn bells(&self, host: &FabricAddress, owner: &FileAddress) -> Result<Option<Arc<dyn Bells>>, NtbError> {
        match self.backend.bells(host) {
            Ok(bells) => Ok(Some(bells)),
            Err(_) if owner.is_gone() => Ok(None),
            Err(error) => Err(error),
        }
    }
}
