//! The card with which each PE describes itself to the others at the start.

use crate::abi::ntbring_segment_address_t;
use crate::symmetric::MEMORIES;

/// A PE's card.
#[derive(Clone, Debug, PartialEq)]
pub struct Card {
    /// Version of the card and of everything that PEs write into each other's memory.
    pub version: u64,
    /// Largest size of the heap, bytes.
    pub heap: u64,
    /// Size of the symmetric globals, bytes; 0 if there are none.
    pub globals: u64,
    /// Identity of the executable.
    pub executable: u64,
    /// 1 if this PE can map the memory of all others.
    pub all_near: u64,
    /// Mailboxes for small collectives that this PE offers, a bit for each.
    pub mailboxes: u64,
    /// Words of the addresses of the segments.
    pub segments: [[u64; 4]; MEMORIES],
}

/// Number of words of a card.
const WORDS: usize = 6 + 4 * MEMORIES;

impl Card {
    /// Encodes the card.
    pub fn bytes(&self) -> Vec<u8> {
        let head = [self.version, self.heap, self.globals, self.executable, self.all_near, self.mailboxes];
        head.into_iter().chain(self.segments.into_iter().flatten()).flat_map(u64::to_le_bytes).collect()
    }

    /// Decodes a card; None if it has another size.
    pub fn parse(bytes: &[u8]) -> Option<Card> {
        let words: Vec<u64> =
            bytes.chunks(8).map(|word| Some(u64::from_le_bytes(word.try_into().ok()?))).collect::<Option<_>>()?;
        let words: [u64; WORDS] = words.try_into().ok()?;
        let [version, heap, globals, executable, all_near, mailboxes, segments @ ..] = words;
        let segment = |memory: usize| std::array::from_fn(|i| segments[4 * memory + i]);
        Some(Card { version, heap, globals, executable, all_near, mailboxes, segments: std::array::from_fn(segment) })
    }

    /// Returns true if the PE has a kind of memory.
    pub fn has(&self, memory: usize) -> bool {
        self.segments[memory] != [0; 4]
    }

    /// Returns the address of a segment.
    pub fn address(&self, memory: usize) -> ntbring_segment_address_t {
        ntbring_segment_address_t { words: self.segments[memory] }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cards_survive_their_bytes() {
        let segments = std::array::from_fn(|memory| std::array::from_fn(|i| (10 * memory + i) as u64 | 1 << 63));
        let card = Card { version: 1, heap: 2, globals: 3, executable: 4, all_near: 5, mailboxes: 6, segments };
        assert_eq!(Card::parse(&card.bytes()), Some(card.clone()));
        assert_eq!(Card::parse(&card.bytes()[1..]), None);
        assert_eq!(Card::parse(&[card.bytes(), vec![0; 8]].concat()), None);
    }
}
