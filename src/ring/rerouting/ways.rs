//! The routing table of a host: the side by which its packets leave for each other host. It is one word in the host's
//! memory, which the host's forwarder writes and all its ranks read.
//!
//! | bits | hold |
//! |---|---|
//! | 0-15 | bit h: packets for host h go right, else left |
//! | 16-31 | bit h: host h can be reached |
//! | 32-63 | generation: number of changes; 0 until routes are published |
//!
//! All routes are in one word, so a reader always sees a consistent table. A second word holds, for diagnosis only, the
//! state that the host's manager has agreed on with the others: its local id (bits 0-7), and the host that is the
//! master (bits 8-15).

use crate::topology::HOSTS_MAX;
use ntbring_manager::Lid;
use ntbring_memory::{InWindow, OutWindow, Region};
use ntbring_ntb::Side;

const REACHED: u32 = 16;
const GENERATION: u32 = 32;

// The word has one bit for each host.
const _: () = assert!(HOSTS_MAX <= 16);

/// Routing table of a host.
pub struct Ways {
    read: InWindow,
    write: OutWindow,
}

impl Ways {
    /// Bytes of memory that the table needs.
    pub const BYTES: usize = 16;

    /// Opens the table in the first bytes of a region that was zeros once.
    pub fn new(region: Region) -> Ways {
        Ways { read: InWindow::new(region.clone()), write: OutWindow::new(region) }
    }

    /// Publishes the state that the host's manager has agreed on with the others: the host's local id, and the host
    /// that is the master.
    pub fn agree(&self, lid: Lid, master: usize) {
        self.write.store(8, u64::from(lid.0) | (master as u64) << 8);
    }

    /// Returns the local id of the host, and the host that is the master; None if no manager is running.
    pub fn agreed(&self) -> Option<(Lid, usize)> {
        let word = self.read.load(8);
        (word != 0).then_some((Lid(word as u8), (word >> 8 & 0xff) as usize))
    }

    /// Returns the current routes. Costs one load.
    #[inline]
    pub fn read(&self) -> Snapshot {
        Snapshot(self.read.load(0))
    }

    /// Publishes the side by which each host is reached from now on; None marks an unreachable host. Only the host's
    /// forwarder may call this. Returns true and raises the generation if any route has changed.
    pub fn publish(&self, sides: &[Option<Side>]) -> bool {
        let old = self.read();
        let bits = sides.iter().take(HOSTS_MAX).enumerate().fold(0, |bits, (host, side)| match side {
            Some(Side::Right) => bits | 1 << host | 1 << (host as u32 + REACHED),
            Some(Side::Left) => bits | 1 << (host as u32 + REACHED),
            None => bits,
        });
        if old.is_published() && old.0 as u32 == bits {
            return false;
        }
        // The generation wraps after 2^32 changes; 0 is skipped, since it means that nothing is published.
        let generation = old.generation().wrapping_add(1).max(1);
        self.write.store(0, u64::from(generation) << GENERATION | u64::from(bits));
        true
    }
}

/// Routes as they were at one time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Snapshot(u64);

impl Snapshot {
    /// Returns true if routes are published. Until then packets take the shorter way ([`crate::Topology::direction`]).
    #[inline]
    pub fn is_published(self) -> bool {
        self.generation() != 0
    }

    /// Returns the generation, which differs from an earlier one if any route has changed.
    #[inline]
    pub fn generation(self) -> u32 {
        (self.0 >> GENERATION) as u32
    }

    /// Returns the side by which packets leave for a host; None if the host is unreachable at present. The result for
    /// the own host has no meaning.
    #[inline]
    pub fn side(self, host: usize) -> Option<Side> {
        let bit = |at: usize| self.0 >> at & 1 != 0;
        match host {
            HOSTS_MAX.. => None,
            _ if !bit(host + REACHED as usize) => None,
            _ if bit(host) => Some(Side::Right),
            _ => Some(Side::Left),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Side::{Left, Right};

    #[test]
    fn nothing_is_said_before_it_is_published() {
        let ways = Ways::new(Region::anonymous(Ways::BYTES));
        assert!(!ways.read().is_published());
        // A table without any reachable host counts as published, too.
        assert!(ways.publish(&[None; 3]));
        assert!(ways.read().is_published());
        assert_eq!(ways.read().side(1), None);
    }

    #[test]
    fn all_of_the_hosts_ranks_read_what_its_forwarder_has_published() {
        let memory = Region::anonymous(Ways::BYTES);
        let (forwarder, rank) = (Ways::new(memory.clone()), Ways::new(memory));
        let sides: Vec<_> = (0..HOSTS_MAX).map(|host| [Some(Left), Some(Right), None][host % 3]).collect();
        forwarder.publish(&sides);
        let found: Vec<_> = (0..HOSTS_MAX).map(|host| rank.read().side(host)).collect();
        assert_eq!(found, sides);
        assert_eq!(rank.read().side(HOSTS_MAX), None);
    }

    #[test]
    fn what_managers_agree_on_is_beside_it() {
        let ways = Ways::new(Region::anonymous(Ways::BYTES));
        ways.publish(&[Some(Left)]);
        assert_eq!(ways.agreed(), None);
        ways.agree(Lid(16), 15);
        assert_eq!((ways.agreed(), ways.read().generation()), (Some((Lid(16), 15)), 1));
    }

    #[test]
    fn the_generation_counts_changes() {
        let ways = Ways::new(Region::anonymous(Ways::BYTES));
        let mut generation = 0;
        for (sides, changed) in [
            ([Some(Right), Some(Left)], true),
            ([Some(Right), Some(Left)], false),
            ([Some(Right), Some(Right)], true),
            ([Some(Right), None], true),
            ([Some(Right), None], false),
        ] {
            assert_eq!(ways.publish(&sides), changed);
            generation += u32::from(changed);
            assert_eq!(ways.read().generation(), generation);
        }
    }

    #[test]
    fn the_generation_never_becomes_none_again() {
        let memory = Region::anonymous(Ways::BYTES);
        OutWindow::new(memory.clone()).store(0, u64::from(u32::MAX) << GENERATION);
        let ways = Ways::new(memory);
        assert!(ways.publish(&[Some(Left)]));
        assert_eq!(ways.read().generation(), 1);
    }
}
