//! Short messages to all ranks of several hosts at once.

use super::arrival::Arrival;
use super::wire::Packet;
use super::{Endpoint, EndpointError};
use ntbring_ring::cast::{HostSet, CAST_MAX};

/// The most bytes of a message to several hosts.
pub const MULTICAST_MAX: usize = CAST_MAX;

impl Endpoint {
    /// Sends bytes to all ranks of these hosts but this one, or keeps them until there is room. They arrive as
    /// [`Packet::Cast`], those of one sender at one rank in the order in which they were sent; between them and messages there
    /// is no order. Receivers need not have asked for them: what is not taken holds up what comes behind it, so they
    /// are for what everybody expects, such as the rounds of a collective.
    ///
    /// Hosts pass it on to each other, and each link carries it once. Where there are no forwarders, since all hosts are
    /// neighbours, or links may be gone round, each rank is sent its own.
    pub fn multicast(&mut self, hosts: HostSet, bytes: &[u8]) -> Result<(), EndpointError> {
        let (topology, host, me) = (self.members.topology().clone(), self.members.host(), self.members.rank());
        if bytes.len() > MULTICAST_MAX {
            let text = format!("{} bytes to several hosts, at most {MULTICAST_MAX} are possible", bytes.len());
            return Err(EndpointError::Argument(text));
        }
        if let Some(none) = hosts.hosts().find(|&to| to >= topology.hosts()) {
            return Err(EndpointError::Argument(format!("there is no host {none}")));
        }
        let relayed = self.members.is_served() && self.out.caretaker.is_none();
        let apart: Vec<usize> = hosts.hosts().filter(|&to| to == host || !relayed).collect();
        for &rank in apart.iter().flat_map(|&to| topology.ranks_of(to)).filter(|&&rank| rank != me) {
            let packet = Packet::Cast { hosts, payload: bytes.len() };
            self.out.send_bare(rank, packet, bytes)?;
        }
        if relayed {
            self.out.cast(hosts.parted(&topology, host), bytes);
        }
        Ok(())
    }

    /// The bytes of a message to several hosts that has arrived and was not released.
    pub fn multicast_bytes(&self, arrival: &Arrival) -> Vec<u8> {
        let Packet::Cast { payload, .. } = arrival.packet else { return Vec::new() };
        let mut bytes = vec![0; payload];
        self.inbound.read(arrival.token.lane, arrival.offset, &mut bytes);
        bytes
    }
}
