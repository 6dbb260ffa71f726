//! Discovery of the hosts of running jobs, for tools.

use ntbring_host::{look_through, FileKind, FileTag};
use ntbring_ntb::software::Registers;
use ntbring_ntb::{LinkState, PortIndex, PortList};
use std::collections::BTreeMap;
use std::io;

/// A host of a running job.
pub struct RunningHost {
    /// The host's position in its job.
    pub is: FileTag,
    registers: Registers,
}

impl RunningHost {
    /// Returns all hosts of this user's jobs on this machine, ordered by job and host number. A job with several VCIs
    /// (virtual communication interfaces of MPICH) lists each of its hosts more than once.
    pub fn all() -> io::Result<Vec<RunningHost>> {
        let mut found = BTreeMap::new();
        look_through(|address, kind, memory| {
            if let (FileKind::Windows(is), Ok(page)) = (kind, memory.first_page()) {
                let host = Registers::open(page).map(|registers| RunningHost { is, registers });
                found.extend(host.map(|host| ((is, address.inode), host)));
            }
        })?;
        Ok(found.into_values().collect())
    }

    /// Returns the ports that the host uses, in the order in which it has chosen them.
    pub fn ports(&self) -> PortList {
        self.registers.ports()
    }

    /// Returns the link state that a port of the host reports; None if the host does not use the port.
    pub fn link(&self, port: PortIndex) -> Option<LinkState> {
        Some(self.registers.link(self.registers.bank(port)?))
    }

    /// Makes a port of the host report this link state from now on, if the host uses the port. For a link that is down
    /// at both ends, it must be set at both hosts.
    pub fn set_link(&self, port: PortIndex, state: LinkState) {
        self.registers.bank(port).into_iter().for_each(|bank| self.registers.set_link(bank, state));
    }
}
