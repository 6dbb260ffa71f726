//! The routing table of a host: the side by which its packets leave for each other host. It is a line of the host's
//! memory, which the host's forwarder writes and all its ranks read.
//!
//! | words | hold |
//! |---|---|
//! | 0 | generation: number of changes; 0 until routes are published |
//! | 1 | for diagnosis only, the state on which the host's manager has agreed with the others: the host's local id (bits 0-7), and the host that is the master (bits 8-15) |
//! | 2, 3 | routes of even generations: bit h of the first says that packets for host h go right, else left; bit h of the second says that host h can be reached |
//! | 4, 5 | routes of odd generations |
//!
//! New routes are written beside the current ones, and then the generation. A reader that finds another generation
//! after it has read the routes reads again, so it always gets the routes of one generation.

use crate::topology::HOSTS_MAX;
use ntbring_manager::Lid;
use ntbring_memory::{InWindow, OutWindow, Region};
use ntbring_ntb::Side;

const GENERATION: usize = 0;
const AGREED: usize = 8;

// A word has one bit for each host.
const _: () = assert!(HOSTS_MAX <= 64);

/// Returns the offset of the routes of a generation, bytes.
#[inline]
fn routes_at(generation: u32) -> usize {
    16 + 16 * (generation as usize % 2)
}

/// Routing table of a host.
pub struct RoutingTable {
    read: InWindow,
    write: OutWindow,
}

impl RoutingTable {
    /// Bytes of memory that the table needs.
    pub const BYTES: usize = 48;

    /// Opens the table in the first bytes of a region that was zeros once.
    pub fn new(region: Region) -> RoutingTable {
        RoutingTable { read: InWindow::new(region.clone()), write: OutWindow::new(region) }
    }

    /// Publishes the state that the host's manager has agreed on with the others: the host's local id, and the host
    /// that is the master.
    pub fn agree(&self, lid: Lid, master: usize) {
        self.write.store(AGREED, u64::from(lid.0) | (master as u64) << 8);
    }

    /// Returns the local id of the host, and the host that is the master; None if no manager is running.
    pub fn agreed(&self) -> Option<(Lid, usize)> {
        let word = self.read.load(AGREED);
        (word != 0).then_some((Lid(word as u8), (word >> 8 & 0xff) as usize))
    }

    /// Returns the current routes.
    #[inline]
    pub fn read(&self) -> Snapshot {
        let mut generation = self.read.load(GENERATION) as u32;
        loop {
            let at = routes_at(generation);
            let (right, reached) = (self.read.load(at), self.read.load(at + 8));
            let after = self.read.load(GENERATION) as u32;
            if after == generation {
                return Snapshot { generation, right, reached };
            }
            generation = after;
        }
    }

    /// Publishes the side by which each host is reached from now on; None marks an unreachable host. Only the host's
    /// forwarder may call this. Returns true and raises the generation if any route has changed.
    pub fn publish(&self, sides: &[Option<Side>]) -> bool {
        let old = self.read();
        let bits = |is: fn(&Option<Side>) -> bool| {
            let set = sides.iter().take(HOSTS_MAX).enumerate().filter(|(_, side)| is(side));
            set.fold(0, |bits, (host, _)| bits | 1u64 << host)
        };
        let (right, reached) = (bits(|side| *side == Some(Side::Right)), bits(Option::is_some));
        if old.is_published() && (old.right, old.reached) == (right, reached) {
            return false;
        }
        // The generation wraps after 2^32 changes; 0 is skipped, since it means that nothing is published, and 1 with
        // it, so that the new routes never overwrite the current ones.
        let generation = match old.generation.wrapping_add(1) {
            0 => 2,
            next => next,
        };
        let at = routes_at(generation);
        self.write.store(at, right);
        self.write.store(at + 8, reached);
        self.write.store(GENERATION, generation.into());
        true
    }
}

/// The routes of one generation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Snapshot {
    generation: u32,
    right: u64,
    reached: u64,
}

impl Snapshot {
    /// Returns true if routes are published. Until then packets take the shorter way ([`crate::Topology::direction`]).
    #[inline]
    pub fn is_published(self) -> bool {
        self.generation != 0
    }

    /// Returns the generation, which differs from an earlier one if any route has changed.
    #[inline]
    pub fn generation(self) -> u32 {
        self.generation
    }

    /// Returns the side by which packets leave for a host; None if the host is unreachable at present. The result for
    /// the own host has no meaning.
    #[inline]
    pub fn side(self, host: usize) -> Option<Side> {
        match host {
            HOSTS_MAX.. => None,
            _ if self.reached >> host & 1 == 0 => None,
            _ if self.right >> host & 1 != 0 => Some(Side::Right),
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
        let routes = RoutingTable::new(Region::anonymous(RoutingTable::BYTES));
        assert!(!routes.read().is_published());
        // A table without any reachable host counts as published, too.
        assert!(routes.publish(&[None; 3]));
        assert!(routes.read().is_published());
        assert_eq!(routes.read().side(1), None);
    }

    #[test]
    fn all_of_the_hosts_ranks_read_what_its_forwarder_has_published() {
        let memory = Region::anonymous(RoutingTable::BYTES);
        let (forwarder, rank) = (RoutingTable::new(memory.clone()), RoutingTable::new(memory));
        let sides: Vec<_> = (0..HOSTS_MAX).map(|host| [Some(Left), Some(Right), None][host % 3]).collect();
        forwarder.publish(&sides);
        let found: Vec<_> = (0..HOSTS_MAX).map(|host| rank.read().side(host)).collect();
        assert_eq!(found, sides);
        assert_eq!(rank.read().side(HOSTS_MAX), None);
    }

    #[test]
    fn what_managers_agree_on_is_beside_it() {
        let routes = RoutingTable::new(Region::anonymous(RoutingTable::BYTES));
        routes.publish(&[Some(Left)]);
        assert_eq!(routes.agreed(), None);
        routes.agree(Lid(64), 63);
        assert_eq!((routes.agreed(), routes.read().generation()), (Some((Lid(64), 63)), 1));
    }

    #[test]
    fn the_generation_counts_changes() {
        let routes = RoutingTable::new(Region::anonymous(RoutingTable::BYTES));
        let mut generation = 0;
        for (sides, changed) in [
            ([Some(Right), Some(Left)], true),
            ([Some(Right), Some(Left)], false),
            ([Some(Right), Some(Right)], true),
            ([Some(Right), None], true),
            ([Some(Right), None], false),
        ] {
            assert_eq!(routes.publish(&sides), changed);
            generation += u32::from(changed);
            assert_eq!(routes.read().generation(), generation);
        }
    }

    #[test]
    fn the_generation_never_becomes_none_again() {
        let memory = Region::anonymous(RoutingTable::BYTES);
        OutWindow::new(memory.clone()).store(GENERATION, u64::from(u32::MAX));
        let routes = RoutingTable::new(memory);
        assert!(routes.publish(&[Some(Left)]));
        assert!(routes.read().is_published());
        assert_ne!(routes_at(routes.read().generation()), routes_at(u32::MAX));
    }

    #[test]
    fn a_reader_never_mixes_two_generations() {
        let memory = Region::anonymous(RoutingTable::BYTES);
        let (forwarder, rank) = (RoutingTable::new(memory.clone()), RoutingTable::new(memory));
        let all = [[Some(Left); HOSTS_MAX], [Some(Right); HOSTS_MAX], [None; HOSTS_MAX]];
        std::thread::scope(|scope| {
            let writer = scope.spawn(move || (0..3000).for_each(|i| assert!(forwarder.publish(&all[i % 3]))));
            while !writer.is_finished() {
                let now = rank.read();
                assert!((1..HOSTS_MAX).all(|host| now.side(host) == now.side(0)), "{now:?}");
            }
        });
    }
}
