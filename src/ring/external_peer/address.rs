//! Address of a process for processes of other jobs.

use bytes::{Buf, BufMut};
use ntbring_host::{FileAddress, Place};
use ntbring_ntb::fabric::FabricAddress;

/// Address of a process for senders of other jobs: 88 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExternalAddress {
    /// Address of the process's mailbox, whose token also distinguishes processes.
    pub mailbox: FileAddress,
    /// Machine and process namespace of the process ([`ntbring_host::machine`]).
    pub machine: u64,
    /// Address of the windows of its host, which also identifies the host's interrupt vectors.
    pub host: FabricAddress,
    /// Number of the process's doorbell at its host.
    pub doorbell: u32,
    /// Hash of the host's name ([`ntbring_host::host_name`]) if the shortcut `processes` is withheld, so that hosts of
    /// one machine count as separate; otherwise 0.
    pub host_name: u32,
    /// Token of the mailbox of the job's rank 0, which identifies the job.
    pub job: u64,
}

impl ExternalAddress {
    /// Size of an encoded address, bytes.
    pub const LEN: usize = 88;
    const MAGIC: u64 = u64::from_le_bytes(*b"ntbgues\x05");

    /// Returns true if both processes are on one host: they open each other's memory files.
    pub fn is_near(&self, other: &ExternalAddress) -> bool {
        self.place().is_near(&other.place())
    }

    /// Returns the place of the process.
    pub fn place(&self) -> Place {
        Place { job: self.job, machine: self.machine, host_name: self.host_name }
    }

    /// Encodes the address.
    pub fn bytes(&self) -> [u8; ExternalAddress::LEN] {
        let mut bytes = [0; ExternalAddress::LEN];
        let mut to = &mut bytes[..];
        to.put_u64_le(Self::MAGIC);
        self.mailbox.put(&mut to);
        to.put_u64_le(self.machine);
        to.put_slice(&self.host.0);
        to.put_u32_le(self.doorbell);
        to.put_u32_le(self.host_name);
        to.put_u64_le(self.job);
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
        valid.then_some(ExternalAddress { mailbox, machine, host, doorbell, host_name, job })
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Returns the address of a process, given numbers for its mailbox, machine and host.
    pub(crate) fn address(process: u64, machine: u64, host_name: u32) -> ExternalAddress {
        let mailbox = FileAddress { pid: process as u32, fd: 3, inode: process * 7, token: process * 11 };
        let host = FabricAddress([7; FabricAddress::LEN]);
        ExternalAddress { mailbox, machine, host, doorbell: 5, host_name, job: 0x1234_5678_9abc }
    }

    #[test]
    fn addresses_survive_their_bytes() {
        let address = address(1, 9, 6);
        assert_eq!(ExternalAddress::parse(&address.bytes()), Some(address));
        assert_eq!(ExternalAddress::parse(&[0; ExternalAddress::LEN]), None);
        assert_eq!(ExternalAddress::parse(b"short"), None);
    }

    #[test]
    fn processes_are_near_on_one_machine_unless_its_hosts_count_as_separate() {
        for (a, b, near) in [
            ((1, 0), (1, 0), true),
            ((1, 0), (2, 0), false),
            ((1, 5), (1, 5), true),
            ((1, 5), (1, 6), false),
            ((1, 0), (1, 6), true),
            ((1, 5), (2, 5), false),
        ] {
            let [a, b] = [a, b].map(|(machine, name)| address(1, machine, name));
            assert_eq!((a.is_near(&b), b.is_near(&a)), (near, near), "{a:?} {b:?}");
        }
    }
}
