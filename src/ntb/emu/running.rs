//! The hosts of running jobs, found from outside: by tools.

use ntbring_host::look_through;
use ntbring_memory::Region;
use ntbring_ntb::software::Registers;
use ntbring_ntb::{LinkState, Side};
use std::collections::BTreeMap;
use std::io;

/// What a host says of itself to whoever looks at its register page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Introduction {
    /// The process of the job's rank 0.
    pub job: u32,
    /// The host's number in the ring.
    pub host: u8,
    /// Hosts in the ring.
    pub hosts: u8,
    /// Whether its links can be taken down: whether its ports have faults.
    pub faulty: bool,
}

impl Introduction {
    pub(crate) fn word(self) -> u64 {
        let [host, hosts, faulty] = [self.host, self.hosts, u8::from(self.faulty)].map(u64::from);
        u64::from(self.job) | host << 32 | hosts << 40 | faulty << 48
    }

    pub(crate) fn parse(word: u64) -> Option<Introduction> {
        let [host, hosts, faulty] = [32, 40, 48].map(|bits| (word >> bits) as u8);
        let sound = hosts > host && faulty <= 1 && word >> KIND == 0;
        sound.then_some(Introduction { job: word as u32, host, hosts, faulty: faulty == 1 })
    }
}

/// Where in that word other kinds of memory have a number; a host has 0.
const KIND: u32 = 56;

/// A host of a running job.
pub struct RunningHost {
    /// What it says of itself.
    pub is: Introduction,
    registers: Registers,
    notes: Region,
}

impl RunningHost {
    /// All hosts of this user's jobs on this machine, by job and number. A job with several VCIs has each of its hosts
    /// more than once.
    pub fn all() -> io::Result<Vec<RunningHost>> {
        let mut found = BTreeMap::new();
        look_through(|inode, memory| {
            let Some(is) = memory.kind().ok().and_then(Introduction::parse) else { return };
            if let (Ok(page), Ok(notes)) = (memory.first_page(), memory.notes()) {
                found.insert((is, inode), RunningHost { is, registers: Registers::new(page), notes });
            }
        })?;
        Ok(found.into_values().collect())
    }

    /// The two words that its processes have left.
    pub fn notes(&self) -> Region {
        self.notes.clone()
    }

    /// What its port on a side says of the link.
    pub fn link(&self, side: Side) -> LinkState {
        self.registers.link(side)
    }

    /// Its port on a side says this of the link from now on. Whoever wants a link down at both ends tells both hosts.
    pub fn set_link(&self, side: Side, state: LinkState) {
        self.registers.set_link(side, state);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn introductions_survive_their_word() {
        for faulty in [false, true] {
            let is = Introduction { job: 4_000_000_000, host: 15, hosts: 16, faulty };
            assert_eq!(Introduction::parse(is.word()), Some(is));
        }
        assert_eq!(Introduction::parse(0), None);
    }
}
