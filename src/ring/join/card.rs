//! The card: the address record that every rank publishes before it joins.

use crate::ports::RingPorts;
use crate::protocol::{PROTOCOL_VERSION, THREADS_MAX};
use bytes::{Buf, BufMut};
use ntbring_host::FileAddress;
use ntbring_ntb::fabric::{FabricAddress, PortAddress};
use ntbring_ntb::Side;

/// Bit at which the number of threads begins, in the word whose bit 0 is set if there is host memory.
const THREADS: u32 = 8;
/// Bits at which the numbers of the left and the right port begin, in the same word.
const PORTS: [u32; 2] = [16, 24];

/// Bit of that word at which the kind of device begins.
const DEVICE: u32 = 32;

/// The part of a card that concerns a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostCard {
    /// The address of its windows.
    pub fabric: FabricAddress,
    /// The ports that lead to its neighbours.
    pub ports: RingPorts,
    /// The address of the memory that its processes share.
    pub memory: FileAddress,
}

impl HostCard {
    /// Returns the address of the port that leads to the host's neighbour on `side`.
    pub fn port(&self, side: Side) -> PortAddress {
        PortAddress { host: self.fabric, port: self.ports.on(side) }
    }
}

/// Card of a rank, which all other ranks receive before they can connect: 140 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Card {
    /// Protocol version.
    pub version: u32,
    /// Process id of the rank.
    pub pid: u32,
    /// Identifies the machine and the process namespace that the rank is in.
    pub machine: u64,
    /// Hash of the name of the rank's host if hosts of one machine count as separate; otherwise 0.
    pub host_name: u32,
    /// Number of forwarder threads of the host, if the rank is the first there.
    pub threads: u8,
    /// Code of the kind of device that the rank uses ([`ntbring_ntb::settings::Device::kind`]).
    pub device: u8,
    /// The host's windows and ports, and the memory that its processes share, if the rank is the first of its host.
    pub host: Option<HostCard>,
    /// Address of the mailbox in which processes of other jobs leave announcements for the rank.
    pub mailbox: FileAddress,
    /// Address in the rank's process from which other ranks copy to test whether the kernel allows that.
    pub probe: u64,
    /// Cores that the rank's process may run on: bit n stands for all cores whose number is n modulo 128.
    pub cores: u128,
}

impl Card {
    /// Size of an encoded card, bytes.
    pub const LEN: usize = 140;
    const MAGIC: [u8; 8] = *b"ntbcard\x09";

    /// Number of bytes at the start of the magic number that are the same in cards of all versions.
    const MAGIC_OF_ALL: usize = 7;

    /// Size of the fields that are at the same place in cards of all versions: magic number and protocol version.
    const FIRST: usize = 12;

    /// Encodes the card.
    pub fn bytes(&self) -> [u8; Card::LEN] {
        let none = HostCard {
            fabric: FabricAddress([0; FabricAddress::LEN]),
            ports: RingPorts::default(),
            memory: FileAddress { pid: 0, fd: 0, inode: 0, token: 0 },
        };
        let host = self.host.unwrap_or(none);
        let mut bytes = [0; Card::LEN];
        let mut to = &mut bytes[..];
        to.put_slice(&Self::MAGIC);
        to.put_u32_le(self.version);
        to.put_u32_le(self.pid);
        to.put_u64_le(self.machine);
        to.put_u32_le(self.host_name);
        let [left, right] = Side::BOTH.map(|side| u64::from(host.ports.on(side).get()) << PORTS[side as usize]);
        let (device, threads) = (u64::from(self.device) << DEVICE, u64::from(self.threads) << THREADS);
        to.put_u64_le(left | right | device | threads | u64::from(self.host.is_some()));
        host.memory.put(&mut to);
        to.put_slice(&host.fabric.0);
        self.mailbox.put(&mut to);
        to.put_u64_le(self.probe);
        to.put_u128_le(self.cores);
        bytes
    }

    /// Decodes a card. Returns a description of the defect if the bytes are not a card of this version of the protocol.
    pub fn parse(mut bytes: &[u8]) -> Result<Card, String> {
        let all = bytes.len();
        if all < Self::FIRST || !bytes.starts_with(&Self::MAGIC[..Self::MAGIC_OF_ALL]) {
            return Err("it is not an address of ntbring".into());
        }
        bytes.advance(Self::MAGIC.len());
        // Nothing but the version can be relied on before it has been compared, not even the size.
        let version = bytes.get_u32_le();
        if version != u32::from(PROTOCOL_VERSION) {
            return Err(format!("it speaks protocol version {version}, this rank {PROTOCOL_VERSION}"));
        }
        if all < Card::LEN {
            return Err(format!("{all} bytes, {} are needed", Card::LEN));
        }
        let pid = bytes.get_u32_le();
        let machine = bytes.get_u64_le();
        let host_name = bytes.get_u32_le();
        let word = bytes.get_u64_le();
        let (has_host, threads) = (word & 1 == 1, (word >> THREADS) as u8);
        let device = (word >> DEVICE) as u8;
        if !(1..=THREADS_MAX as u8).contains(&threads) {
            return Err(format!("{threads} threads, 1 to {THREADS_MAX} are possible"));
        }
        let [left, right] = PORTS.map(|bit| (word >> bit) as u8);
        let ports = RingPorts::new(left, right).ok_or_else(|| format!("its ports are {left} and {right}"))?;
        let memory = FileAddress::get(&mut bytes);
        let mut fabric = FabricAddress([0; FabricAddress::LEN]);
        bytes.copy_to_slice(&mut fabric.0);
        let mailbox = FileAddress::get(&mut bytes);
        let (probe, cores) = (bytes.get_u64_le(), bytes.get_u128_le());
        let host = has_host.then_some(HostCard { fabric, ports, memory });
        Ok(Card { version, pid, machine, host_name, threads, device, host, mailbox, probe, cores })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn card() -> Card {
        let file = FileAddress { pid: 5, fd: 3, inode: 7, token: 11 };
        let host = Some(HostCard {
            fabric: FabricAddress([9; FabricAddress::LEN]),
            ports: RingPorts::new(2, 3).unwrap(),
            memory: file,
        });
        let version = PROTOCOL_VERSION.into();
        Card {
            version,
            pid: 5,
            machine: 1,
            host_name: 4,
            threads: 2,
            device: 3,
            host,
            mailbox: file,
            probe: 8,
            cores: 1 << 100,
        }
    }

    #[test]
    fn a_card_of_another_version_is_refused_for_its_version_whatever_else_it_holds() {
        let mut bytes = card().bytes();
        assert_eq!(Card::parse(&bytes), Ok(card()));
        bytes[8..12].copy_from_slice(&99u32.to_le_bytes());
        // Cards of other versions may have other sizes, other magic numbers and other fields.
        bytes[7] = 8;
        bytes[12..].fill(0xff);
        for len in [Card::FIRST, 100, Card::LEN] {
            let text = Card::parse(&bytes[..len]).unwrap_err();
            assert_eq!(text, format!("it speaks protocol version 99, this rank {PROTOCOL_VERSION}"));
        }
    }

    #[test]
    fn a_number_of_threads_that_is_impossible_is_named() {
        for threads in [0, THREADS_MAX as u8 + 1] {
            let text = Card::parse(&Card { threads, ..card() }.bytes()).unwrap_err();
            assert!(text.starts_with(&format!("{threads} threads")), "{text}");
        }
    }
}
