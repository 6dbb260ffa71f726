//! Address of a process for processes of other jobs.

use bytes::{Buf, BufMut};
use ntbring_host::{FileAddress, Place};
use ntbring_ntb::fabric::FabricAddress;

/// Address of a process for senders of other jobs: 88 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExternalAddress {
    /// Address of the process's mailbox, whose token also distinguishes processes.
    pub mailbox: FileAddress,
    /// Its job, and where it runs.
    pub place: Place,
    /// Address of the windows of its host, which also identifies the host's interrupt vectors.
    pub host: FabricAddress,
    /// Number of the process's doorbell at its host.
    pub doorbell: u32,
}

impl ExternalAddress {
    /// Size of an encoded address, bytes.
    pub const LEN: usize = 88;
    const MAGIC: u64 = u64::from_le_bytes(*b"ntbgues\x05");

    /// Returns true if both processes are on one host: they open each other's memory files.
    pub fn is_near(&self, other: &ExternalAddress) -> bool {
        self.place.is_near(&other.place)
    }

    /// Encodes the address.
    pub fn bytes(&self) -> [u8; ExternalAddress::LEN] {
        let mut bytes = [0; ExternalAddress::LEN];
        let mut to = &mut bytes[..];
        to.put_u64_le(Self::MAGIC);
        self.mailbox.put(&mut to);
        to.put_u64_le(self.place.machine);
        to.put_slice(&self.host.0);
        to.put_u32_le(self.doorbell);
        to.put_u32_le(self.place.host_name);
        to.put_u64_le(self.place.job);
        bytes
    }

    /// Decodes an address; None if the bytes are not a valid one.
    pub fn parse(mut bytes: &[u8]) -> Option<ExternalAddress> {
        if bytes.len() < ExternalAddress::LEN || bytes.get_u64_le() != Self::MAGIC {
            return None;
        }
        let mailbox = FileAddress::get(&mut bytes);
        let machine = bytes.get_u64_le();
        let mut host = FabricAddress([0; FabricAddress::LEN]);
        bytes.copy_to_slice(&mut host.0);
        let (doorbell, host_name, job) = (bytes.get_u32_le(), bytes.get_u32_le(), bytes.get_u64_le());
        let valid = (doorbell as usize) < ntbring_ntb::DOORBELLS;
        let place = Place { job, machine, host_name };
        valid.then_some(ExternalAddress { mailbox, place, host, doorbell })
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Returns the address of a process, given numbers for its mailbox, machine and host.
    pub(crate) fn address(process: u64, machine: u64, host_name: u32) -> ExternalAddress {
        let mailbox = FileAddress { pid: process as u32, fd: 3, inode: process * 7, token: process * 11 };
        let host = FabricAddress([7; FabricAddress::LEN]);
        let place = Place { job: 0x1234_5678_9abc, machine, host_name };
        ExternalAddress { mailbox, place, host, doorbell: 5 }
    }

    #[test]
    fn addresses_survive_their_bytes() {
        let address = address(1, 9, 6);
        assert_eq!(ExternalAddress::parse(&address.bytes()), Some(address));
        assert_eq!(ExternalAddress::parse(&[0; ExternalAddress::LEN]), None);
        assert_eq!(ExternalAddress::parse(b"short"), None);
    }
}
