//! A set of links of a ring.

use crate::topology::HOSTS_MAX;

/// Scratchpad that carries the set. A rank that has joined has already read the value that the handshake wrote there.
pub(crate) const NEWS: usize = 0;

// The set has one bit for each link, in half a scratchpad.
const _: () = assert!(HOSTS_MAX <= 16);

/// Set of links of a ring. A link has the number of the host that it is to the right of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkSet(u16);

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

    /// Returns the scratchpad encoding: the bits once plain and once inverted, so that no other value is taken for a
    /// set.
    pub(crate) fn word(self) -> u32 {
        u32::from(!self.0) << 16 | u32::from(self.0)
    }

    /// Decodes a scratchpad in a ring of `hosts` hosts. Returns the empty set if the word is not a valid encoding.
    pub(crate) fn parse(word: u32, hosts: usize) -> LinkSet {
        let set = LinkSet(word as u16);
        match set.word() == word && u32::from(set.0) >> hosts == 0 {
            true => set,
            false => LinkSet::default(),
        }
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

    #[test]
    fn sets_survive_their_word_and_nothing_else_is_one() {
        for links in [vec![], vec![0], vec![15], vec![0, 7, 15]] {
            let set: LinkSet = links.iter().copied().collect();
            assert_eq!((LinkSet::parse(set.word(), 16), set.len()), (set, links.len()));
            assert!((0..16).all(|link| set.contains(link) == links.contains(&link)));
            for bit in 0..32 {
                assert!(LinkSet::parse(set.word() ^ 1 << bit, 16).is_empty(), "{links:?} with bit {bit} flipped");
            }
        }
        // A link that does not exist; a register that was never written, and the value that the handshake leaves.
        let fourth: LinkSet = [4].into_iter().collect();
        for word in [fourth.word(), 0, u32::MAX, 0x4e54 << 16 | u32::from(crate::protocol::PROTOCOL_VERSION)] {
            assert!(LinkSet::parse(word, 4).is_empty(), "{word:x}");
        }
    }
}
