//! Which way a host's packets go to each other host at present: one word in the host's memory, which its forwarder
//! writes and all its ranks read.
//!
//! | bits | hold |
//! |---|---|
//! | 0-15 | bit h: packets for host h go right, else left |
//! | 16-31 | bit h: host h can be reached |
//! | 32-63 | generation: counts the changes; 0 as long as nothing was published |
//!
//! Everything is in one word, so whoever reads it sees ways that belong together. A second word says what the host's manager
//! has agreed on with the others, for people: its local id (bits 0-7), and the host that is the master (8-15).

use super::topology::HOSTS_MAX;
use ntbring_manager::Lid;
use ntbring_memory::{InWindow, OutWindow, Region};
use ntbring_ntb::Side;

const REACHED: u32 = 16;
const GENERATION: u32 = 32;

// A bit for each host.
const _: () = assert!(HOSTS_MAX <= 16);

/// The word of a host.
pub struct Ways {
    read: InWindow,
    write: OutWindow,
}

impl Ways {
    /// Bytes of memory that it needs.
    pub const BYTES: usize = 16;

    /// The word in the first bytes of a region that was zeros once.
    pub fn new(region: Region) -> Ways {
        Ways { read: InWindow::new(region.clone()), write: OutWindow::new(region) }
    }

    /// Says what its manager has agreed on with the others: the host's local id, and the host that is the master.
    pub fn agree(&self, lid: Lid, master: usize) {
        self.write.store(8, u64::from(lid.0) | (master as u64) << 8);
    }

    /// The local id of the host, and the host that is the master; None if no manager is at work.
    pub fn agreed(&self) -> Option<(Lid, usize)> {
        let word = self.read.load(8);
        (word != 0).then_some((Lid(word as u8), (word >> 8 & 0xff) as usize))
    }

    /// What it says now. One load.
    #[inline]
    pub fn read(&self) -> Snapshot {
        Snapshot(self.read.load(0))
    }

    /// Says by which side each host is reached from now on, None if it cannot be. For the host's forwarder only. The
    /// generation is raised if anything is different from before; then this returns true.
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
        // After 2^32 changes it begins again; 0 is left out.
        let generation = old.generation().wrapping_add(1).max(1);
        self.write.store(0, u64::from(generation) << GENERATION | u64::from(bits));
        true
    }
}

/// What the word said at one time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Snapshot(u64);

impl Snapshot {
    /// Whether it says anything: until then packets go the shorter way ([`super::Topology::direction`]).
    #[inline]
    pub fn is_published(self) -> bool {
        self.generation() != 0
    }

    /// Another one than before if any way has changed.
    #[inline]
    pub fn generation(self) -> u32 {
        (self.0 >> GENERATION) as u32
    }

    /// The side by which packets leave for a host; None if there is no way to it at present. Of the own host it says
    /// nothing of use.
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
        // Also if there is no way to anybody.
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
