//! The record that a host sends to others: its id, its ports, and its view of the network.

use super::format::PacketError;
use super::{Hwid, Lid, HOSTS_MAX, PORTS};
use bytes::{Buf, BufMut};
use serde::Serialize;
use std::cmp::{Ordering, Reverse};

/// Largest epoch that is accepted. A larger number can only be an error, and might leave no larger epoch to use.
pub const EPOCH_MAX: u64 = 1 << 48;

/// Version of a table. Tables are ordered by epoch. Of two masters with the same epoch, the table of the smaller id
/// is newer. One master can make two tables with the same epoch if it lost its state when it was switched off; then
/// either may be newer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct Stamp {
    /// Number that grows with every new table of a network.
    pub epoch: u64,
    /// Master that computed the table.
    pub master: Hwid,
    /// Digest of the table and of those computed together with it.
    pub digest: u32,
}

impl Ord for Stamp {
    fn cmp(&self, other: &Stamp) -> Ordering {
        let key = |stamp: &Stamp| (stamp.epoch, Reverse(stamp.master), stamp.digest);
        key(self).cmp(&key(other))
    }
}

impl PartialOrd for Stamp {
    fn partial_cmp(&self, other: &Stamp) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// The neighbour at the other end of a port's cable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Peer {
    /// Hardware id of the neighbour.
    pub hwid: Hwid,
    /// Port of the neighbour.
    pub port: u8,
    /// Cost of a hop over this link, in a unit that is the same everywhere; not 0.
    pub weight: u32,
}

/// The ports of a host, with the neighbours that were found at them.
pub type Ports = [Option<Peer>; PORTS];

/// Self-description of a host, as sent to others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Record {
    /// Hardware id of the host.
    pub hwid: Hwid,
    /// Version of its routing table.
    pub stamp: Stamp,
    /// The host that it considers the master.
    pub master: Hwid,
    /// Local id of the host in its table.
    pub lid: Lid,
    /// True if a job uses the host, so that it should keep its local id.
    pub busy: bool,
    /// Ports of the host.
    pub ports: Ports,
}

impl Record {
    /// Size of an encoded record in bytes.
    pub const LEN: usize = 40 + PORTS * Self::PORT;
    /// Size of an encoded port in bytes.
    const PORT: usize = 16;

    /// Appends the encoded record to `to`; docs/protocol.md has the format.
    pub fn put(&self, to: &mut impl BufMut) {
        to.put_u64_le(self.hwid.0);
        to.put_u64_le(self.stamp.epoch);
        to.put_u64_le(self.stamp.master.0);
        to.put_u64_le(self.master.0);
        to.put_u32_le(self.stamp.digest);
        to.put_u8(self.busy.into());
        to.put_u8(self.lid.0);
        to.put_u16_le(0);
        for port in &self.ports {
            let peer = port.unwrap_or(Peer { hwid: Hwid(0), port: 0, weight: 0 });
            to.put_u64_le(peer.hwid.0);
            to.put_u32_le(peer.weight);
            to.put_u32_le(peer.port.into());
        }
    }

    /// Decodes a record.
    pub fn parse(mut bytes: &[u8]) -> Result<Record, PacketError> {
        if bytes.len() != Record::LEN {
            return Err(PacketError::Length { what: "a record", len: bytes.len() });
        }
        let hwid = Hwid(bytes.get_u64_le());
        let (epoch, maker, master) = (bytes.get_u64_le(), Hwid(bytes.get_u64_le()), Hwid(bytes.get_u64_le()));
        let stamp = Stamp { epoch, master: maker, digest: bytes.get_u32_le() };
        let (busy, lid, zero) = (bytes.get_u8(), Lid(bytes.get_u8()), bytes.get_u16_le());
        if stamp.epoch > EPOCH_MAX {
            return Err(PacketError::Value("epoch"));
        }
        if busy > 1 || zero != 0 {
            return Err(PacketError::Value("busy"));
        }
        if !(1..=HOSTS_MAX).contains(&usize::from(lid.0)) {
            return Err(PacketError::Value("local id"));
        }
        let mut ports = Ports::default();
        for place in &mut ports {
            let (peer, weight, port) = (Hwid(bytes.get_u64_le()), bytes.get_u32_le(), bytes.get_u32_le());
            *place = match weight {
                0 if peer.0 == 0 && port == 0 => None,
                1.. if port < PORTS as u32 => Some(Peer { hwid: peer, port: port as u8, weight }),
                _ => return Err(PacketError::Value("port")),
            };
        }
        Ok(Record { hwid, stamp, master, lid, busy: busy == 1, ports })
    }
}
