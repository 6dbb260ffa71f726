//! What a host says of itself: its id, its ports, and what it thinks of the network.

use super::packet::PacketError;
use super::{Hwid, Lid, HOSTS_MAX, PORTS};
use bytes::{Buf, BufMut};
use serde::Serialize;
use std::cmp::{Ordering, Reverse};

/// The largest epoch that is believed: a number beyond it can only be an error, and might leave no larger one.
pub const EPOCH_MAX: u64 = 1 << 48;

/// Which table is newer: by its epoch; of two masters that had the same, the smaller one's wins; of two that
/// one master has made with the same, because it forgot the first when it was switched off, either may.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct Stamp {
    /// Grows with every new table of a network.
    pub epoch: u64,
    /// Who has made it.
    pub master: Hwid,
    /// Of what is in it and in those that were made with it.
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

/// What is at the other end of a port's cable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Peer {
    /// The host there.
    pub hwid: Hwid,
    /// Its port.
    pub port: u8,
    /// What a hop over this link costs, in a unit that is the same everywhere; not 0.
    pub weight: u32,
}

/// The ports of a host: those over which a neighbour has been met.
pub type Ports = [Option<Peer>; PORTS];

/// What a host says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Record {
    /// Who it is.
    pub hwid: Hwid,
    /// Which table it has.
    pub stamp: Stamp,
    /// Whom it takes for the master.
    pub master: Hwid,
    /// Its local id in that table.
    pub lid: Lid,
    /// Whether a job uses it: then it should keep that.
    pub busy: bool,
    /// Its ports.
    pub ports: Ports,
}

impl Record {
    /// Bytes of a record.
    pub const LEN: usize = 40 + PORTS * Self::PORT;
    /// Bytes of a port in it.
    const PORT: usize = 16;

    /// Appends it, as docs/protocol.md says.
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

    /// The record that these bytes are.
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
