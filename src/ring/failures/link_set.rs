//! A set of links of a ring.

use crate::topology::HOSTS_MAX;
use ntbring_memory::{InWindow, OutWindow};

// The set has one bit for each link.
const _: () = assert!(HOSTS_MAX <= 64);

/// Set of links of a ring. A link has the number of the host that it is to the right of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkSet(u64);

impl LinkSet {
    /// Adds a link to the set.
    pub fn insert(&mut self, link: usize) {
        self.0 |= 1 << link;
    }

    /// Returns true if the set contains a link.
    pub fn contains(self, link: usize) -> bool {
        self.0 >> link & 1 != 0
    }

    /// Returns the number of links in the set.
    pub fn len(self) -> usize {
        self.0.count_ones() as usize
    }

    /// Returns true if the set is empty.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Returns the union of both sets.
    pub fn and(self, others: LinkSet) -> LinkSet {
        LinkSet(self.0 | others.0)
    }

    /// Writes the set into two words of a neighbour's window.
    pub(crate) fn write(self, to: &OutWindow) {
        to.store(0, self.0);
        to.store(8, !self.0);
        to.fence();
    }

    /// Reads a set of a ring of `hosts` hosts. A link is in the set if both words contain it: words that were never
    /// written hold the empty set, and while a larger set is being written, either the old or the new set is read.
    pub(crate) fn read(from: &InWindow, hosts: usize) -> LinkSet {
        LinkSet(from.load(0) & !from.load(8) & (u64::MAX >> (64 - hosts)))
    }
}

impl FromIterator<usize> for LinkSet {
    fn from_iter<I: IntoIterator<Item = usize>>(links: I) -> LinkSet {
        links.into_iter().fold(LinkSet::default(), |mut set, link| {
            set.insert(link);
            set
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ntbring_memory::Region;

    #[test]
    fn sets_survive_their_words_and_no_bit_of_one_word_is_believed() {
        for links in [vec![], vec![0], vec![63], vec![0, 7, 15, 16, 33, 63]] {
            let memory = Region::anonymous(16);
            let (write, read) = (OutWindow::new(memory.clone()), InWindow::new(memory));
            assert!(LinkSet::read(&read, 64).is_empty(), "nothing was written yet");
            let set: LinkSet = links.iter().copied().collect();
            set.write(&write);
            assert_eq!((LinkSet::read(&read, 64), set.len()), (set, links.len()));
            assert!((0..64).all(|link| set.contains(link) == links.contains(&link)));
            for (word, bit) in (0..64).flat_map(|bit| [(0, bit), (8, bit)]) {
                let value = read.load(word);
                write.store(word, value ^ 1 << bit);
                assert_eq!(LinkSet::read(&read, 64).and(set), set, "bit {bit} of word {word}");
                write.store(word, value);
            }
            // Links that do not exist.
            assert!((1..64).all(|hosts| (hosts..64).all(|link| !LinkSet::read(&read, hosts).contains(link))));
        }
    }

    #[test]
    fn a_set_that_grows_is_never_read_as_a_smaller_one() {
        let memory = Region::anonymous(16);
        let (write, read) = (OutWindow::new(memory.clone()), InWindow::new(memory));
        let (small, large): (LinkSet, LinkSet) = ([3].into_iter().collect(), [3, 40].into_iter().collect());
        small.write(&write);
        write.store(0, large.0);
        assert_eq!(LinkSet::read(&read, 64), small);
        write.store(8, !large.0);
        assert_eq!(LinkSet::read(&read, 64), large);
    }
}
