//! The card: the address record that every rank publishes before it joins.

use crate::protocol::THREADS_MAX;
use bytes::{Buf, BufMut};
use ntbring_host::FileAddress;
use ntbring_ntb::fabric::FabricAddress;

/// Bit at which the number of threads begins, in the word whose bit 0 is set if there is host memory.
const THREADS: u32 = 8;

/// Bit of that word at which the kind of device begins.
const DEVICE: u32 = 16;

/// The part of a card that concerns a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostCard {
    /// The address of its windows.
    pub fabric: FabricAddress,
    /// The address of the memory that its processes share.
    pub memory: FileAddress,
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
    /// Addresses of the host's windows and of the memory that its processes share, if the rank is the first of its
    /// host.
    pub host: Option<HostCard>,
    /// Address of the mailbox in which processes of other jobs leave announcements for the rank.
    pub mailbox: FileAddress,
    /// Address in the rank's process from which other ranks copy to test whether the kernel allows that (CMA).
    pub probe: u64,
    /// Cores that the rank's process may run on: bit n stands for all cores whose number is n modulo 128.
    pub cores: u128,
}

impl Card {
    /// Size of an encoded card, bytes.
    pub const LEN: usize = 140;
    const MAGIC: u64 = u64::from_le_bytes(*b"ntbcard\x08");

    /// Encodes the card.
    pub fn bytes(&self) -> [u8; Card::LEN] {
        let none = HostCard {
            fabric: FabricAddress([0; FabricAddress::LEN]),
            memory: FileAddress { pid: 0, fd: 0, inode: 0, token: 0 },
        };
        let host = self.host.unwrap_or(none);
        let mut bytes = [0; Card::LEN];
        let mut to = &mut bytes[..];
        to.put_u64_le(Self::MAGIC);
        to.put_u32_le(self.version);
        to.put_u32_le(self.pid);
        to.put_u64_le(self.machine);
        to.put_u32_le(self.host_name);
        let (device, threads) = (u64::from(self.device) << DEVICE, u64::from(self.threads) << THREADS);
        to.put_u64_le(device | threads | u64::from(self.host.is_some()));
        host.memory.put(&mut to);
        to.put_slice(&host.fabric.0);
        self.mailbox.put(&mut to);
        to.put_u64_le(self.probe);
        to.put_u128_le(self.cores);
        bytes
    }

    /// Decodes a card. Returns a description of the defect if the bytes are not a card.
    pub fn parse(mut bytes: &[u8]) -> Result<Card, String> {
        if bytes.len() < Card::LEN {
            return Err(format!("{} bytes, {} are needed", bytes.len(), Card::LEN));
        }
        if bytes.get_u64_le() != Self::MAGIC {
            return Err("it is not an address of ntbring".into());
        }
        let (version, pid) = (bytes.get_u32_le(), bytes.get_u32_le());
        let machine = bytes.get_u64_le();
        let host_name = bytes.get_u32_le();
        let word = bytes.get_u64_le();
        let (has_host, threads) = (word & 1 == 1, (word >> THREADS) as u8);
        let device = (word >> DEVICE) as u8;
        if !(1..=THREADS_MAX as u8).contains(&threads) {
            return Err(format!("{threads} threads, 1 to {THREADS_MAX} are possible"));
        }
        let memory = FileAddress::get(&mut bytes);
        let mut fabric = FabricAddress([0; FabricAddress::LEN]);
        bytes.copy_to_slice(&mut fabric.0);
        let mailbox = FileAddress::get(&mut bytes);
        let (probe, cores) = (bytes.get_u64_le(), bytes.get_u128_le());
        let host = has_host.then_some(HostCard { fabric, memory });
        Ok(Card { version, pid, machine, host_name, threads, device, host, mailbox, probe, cores })
    }
}
