//! The hosts and processes of jobs that are running, found from outside.

use super::bulletin::Bulletin;
use super::memory::Memory;
use super::registers::Registers;
use crate::ntb::{LinkState, Region, Side};
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

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
    pub(super) fn word(self) -> u64 {
        let [host, hosts, faulty] = [self.host, self.hosts, u8::from(self.faulty)].map(u64::from);
        u64::from(self.job) | host << 32 | hosts << 40 | faulty << 48
    }

    pub(super) fn parse(word: u64) -> Option<Introduction> {
        let [host, hosts, faulty] = [32, 40, 48].map(|bits| (word >> bits) as u8);
        let sound = hosts > host && faulty <= 1 && word >> KIND == 0;
        sound.then_some(Introduction { job: word as u32, host, hosts, faulty: faulty == 1 })
    }

    /// The word in the mailbox of a process of a job.
    pub(super) fn of_process(job: u32) -> u64 {
        u64::from(job) | PROCESS << KIND
    }

    pub(super) fn parse_process(word: u64) -> Option<u32> {
        (word >> 32 == PROCESS << (KIND - 32)).then_some(word as u32)
    }
}

/// Where in that word it says what the memory is: that of a host, or the mailbox of a process.
const KIND: u32 = 56;
const PROCESS: u64 = 1;

/// A host of a running job.
pub struct RunningHost {
    /// What it says of itself.
    pub is: Introduction,
    registers: Registers,
}

impl RunningHost {
    /// All hosts of this user's jobs on this machine, by job and number. A job with several VCIs has each of its hosts
    /// more than once.
    pub fn all() -> io::Result<Vec<RunningHost>> {
        let mut found = BTreeMap::new();
        look_through(|inode, memory| {
            let Ok(registers) = memory.registers() else { return };
            if let Some(is) = registers.introduction() {
                found.insert((is, inode), RunningHost { is, registers });
            }
        })?;
        Ok(found.into_values().collect())
    }

    /// The two words that its processes have left.
    pub fn notes(&self) -> Region {
        self.registers.notes()
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

/// A process of a running job: one of its VCIs.
pub struct RunningProcess {
    /// The process of the job's rank 0.
    pub job: u32,
    /// What it says of itself.
    pub bulletin: Bulletin,
}

impl RunningProcess {
    /// All processes of this user's jobs on this machine.
    pub fn all() -> io::Result<Vec<RunningProcess>> {
        let mut found = BTreeMap::new();
        look_through(|inode, memory| {
            let job = memory.registers().ok().and_then(|registers| registers.process());
            if let Some((job, bulletin)) = job.zip(Bulletin::of(memory).ok()) {
                found.insert((job, inode), RunningProcess { job, bulletin });
            }
        })?;
        Ok(found.into_values().collect())
    }
}

/// Looks at all memory of this user's jobs, at some of it more than once: with its inode.
fn look_through(mut take: impl FnMut(u64, &Memory)) -> io::Result<()> {
    let me = nix::unistd::geteuid().as_raw();
    for process in fs::read_dir("/proc")?.flatten() {
        let Some(pid) = process.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else { continue };
        if process.metadata().is_ok_and(|meta| meta.uid() == me) {
            // A process that ends meanwhile has none.
            for descriptor in fs::read_dir(process.path().join("fd")).into_iter().flatten().flatten() {
                if let Some((memory, inode)) = found(pid, &descriptor.path()) {
                    take(inode, &memory);
                }
            }
        }
    }
    Ok(())
}

/// The memory that a descriptor is, if it is a job's, and its inode.
fn found(pid: u32, descriptor: &Path) -> Option<(Memory, u64)> {
    // It has no name.
    match fs::read_link(descriptor).ok()?.to_string_lossy().ends_with(" (deleted)") {
        true => Memory::found(pid, descriptor),
        false => None,
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

    #[test]
    fn hosts_are_no_processes() {
        let is = Introduction { job: 4_000_000_000, host: 15, hosts: 16, faulty: true };
        assert_eq!(Introduction::parse_process(is.word()), None);
        let process = Introduction::of_process(4_000_000_000);
        assert_eq!((Introduction::parse_process(process), Introduction::parse(process)), (Some(4_000_000_000), None));
        assert_eq!(Introduction::parse_process(0), None);
    }
}
