//! The hosts of running jobs, found from outside: by tools.

use ntbring_host::{look_through, FileKind, Introduction};
use ntbring_ntb::software::Registers;
use ntbring_ntb::{LinkState, Side};
use std::collections::BTreeMap;
use std::io;

/// A host of a running job.
pub struct RunningHost {
    /// Its place in the job.
    pub is: Introduction,
    registers: Registers,
}

impl RunningHost {
    /// All hosts of this user's jobs on this machine, by job and number. A job with several VCIs has each of its hosts
    /// more than once.
    pub fn all() -> io::Result<Vec<RunningHost>> {
        let mut found = BTreeMap::new();
        look_through(|inode, kind, memory| {
            if let (FileKind::Windows(is), Ok(page)) = (kind, memory.first_page()) {
                found.insert((is, inode), RunningHost { is, registers: Registers::new(page) });
            }
        })?;
        Ok(found.into_values().collect())
    }

    /// The state of the link that its port on a side reports.
    pub fn link(&self, side: Side) -> LinkState {
        self.registers.link(side)
    }

    /// Makes its port on a side report this state of the link from now on. A link is down at both ends only if both hosts are told.
    pub fn set_link(&self, side: Side, state: LinkState) {
        self.registers.set_link(side, state);
    }
}
