//! Discovery of the hosts of running jobs, for tools.

use ntbring_host::{look_through, FileKind, FileTag};
use ntbring_ntb::software::Registers;
use ntbring_ntb::{LinkState, Side};
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
                found.insert((is, address.inode), RunningHost { is, registers: Registers::new(page) });
            }
        })?;
        Ok(found.into_values().collect())
    }

    /// Returns the link state that the host's port on `side` reports.
    pub fn link(&self, side: Side) -> LinkState {
        self.registers.link(side)
    }

    /// Makes the host's port on `side` report this link state from now on. For a link that is down at both ends, it
    /// must be set at both hosts.
    pub fn set_link(&self, side: Side, state: LinkState) {
        self.registers.set_link(side, state);
    }
}
