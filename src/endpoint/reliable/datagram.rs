//! The format of datagrams: each has one entry of a connection's lane, or none, and an acknowledgement for the other
//! direction.
//!
//! ```text
//! route 8 | place: lines 8, entries 8 | has: lines 8, entries 8 | head 8 | flags 8 | tag 8 | the entry's bytes
//! ```

use bytes::Buf;
use ntbring_ring::relay::Route;

/// The kind that marks an entry of a hop's lane as a datagram; such entries are always routed.
pub const DATAGRAM: u8 = 15;

/// Flag: an entry's tag and bytes follow.
const ENTRY: u64 = 1;
/// Flag: the sender requests an acknowledgement.
const ASKS: u64 = 2;
/// Flag: a negative acknowledgement; the entry after `has` was lost.
const LACKS: u64 = 4;

/// A position in the lane of a connection, as the totals of what precedes it. These numbers never wrap, so a datagram
/// that was delayed in the lane of a dead link for any time is still recognised as old.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// Lines before the position.
    pub lines: u64,
    /// Entries before the position, padding entries included.
    pub entries: u64,
}

impl Place {
    /// Returns the position behind an entry of `lines` lines that begins here.
    pub fn after(self, lines: usize) -> Place {
        Place { lines: self.lines + lines as u64, entries: self.entries + 1 }
    }
}

/// The head of a datagram.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Datagram {
    /// Position of the entry, or of the next one to be sent if the datagram has none.
    pub place: Place,
    /// Acknowledgement: everything before this position has arrived from the other side.
    pub has: Place,
    /// The line up to which the consumer has consumed the other side's entries.
    pub head: u64,
    /// True if the sender requests an acknowledgement.
    pub asks: bool,
    /// True if the entry at `has` was lost (negative acknowledgement).
    pub lacks: bool,
    /// The tag of the entry; None for a datagram without an entry.
    pub tag: Option<u64>,
}

impl Datagram {
    /// Bytes of the head, including its route; an entry's bytes follow.
    pub const HEAD: usize = Route::LEN + 56;

    /// True if the datagram must stay in order with those sent before it. Pure acknowledgements may overtake and be
    /// overtaken.
    pub fn is_ordered(&self) -> bool {
        self.tag.is_some() || self.asks
    }

    /// Encodes the head, route first. The tag's bytes are zero if there is no entry.
    pub fn bytes(&self, route: Route) -> [u8; Datagram::HEAD] {
        let flag = |set: bool, flag: u64| if set { flag } else { 0 };
        let flags = flag(self.tag.is_some(), ENTRY) | flag(self.asks, ASKS) | flag(self.lacks, LACKS);
        let Datagram { place, has, head, tag, .. } = *self;
        let words = [place.lines, place.entries, has.lines, has.entries, head, flags, tag.unwrap_or(0)];
        let mut bytes = [0; Datagram::HEAD];
        bytes[..Route::LEN].copy_from_slice(&route.bytes());
        for (to, word) in bytes[Route::LEN..].chunks_exact_mut(8).zip(words) {
            to.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    /// Decodes the head at the start of a datagram; None if it is invalid.
    pub fn parse(bytes: [u8; Datagram::HEAD]) -> Option<(Route, Datagram)> {
        let (route, mut rest) = bytes.split_first_chunk()?;
        let mut next = || rest.get_u64_le();
        let place = Place { lines: next(), entries: next() };
        let has = Place { lines: next(), entries: next() };
        let (head, flags, tag) = (next(), next(), next());
        let datagram = Datagram {
            place,
            has,
            head,
            asks: flags & ASKS != 0,
            lacks: flags & LACKS != 0,
            tag: (flags & ENTRY != 0).then_some(tag),
        };
        let possible = flags & !(ENTRY | ASKS | LACKS) == 0 && (tag == 0 || datagram.tag.is_some());
        possible.then_some((Route::parse(*route), datagram))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn datagrams_survive_their_bytes(
            [lines, entries, had, number, head] in any::<[u64; 5]>(), (asks, lacks) in any::<(bool, bool)>(),
            tag in proptest::option::of(1u64..),
        ) {
            let (place, has) = (Place { lines, entries }, Place { lines: had, entries: number });
            let datagram = Datagram { place, has, head, asks, lacks, tag };
            let route = Route { src: 3, dst: 77 };
            prop_assert_eq!(Datagram::parse(datagram.bytes(route)), Some((route, datagram)));
        }

        #[test]
        fn no_bytes_are_too_odd(words in any::<[u64; 7]>(), flags in 0u64..10, malformed: bool, src: u32, dst: u32) {
            let mut all = Datagram::default().bytes(Route { src, dst });
            for (to, word) in all[8..].chunks_exact_mut(8).zip(words) {
                to.copy_from_slice(&word.to_le_bytes());
            }
            if !malformed {
                all[48..56].copy_from_slice(&flags.to_le_bytes());
            }
            if let Some((route, datagram)) = Datagram::parse(all) {
                prop_assert_eq!(datagram.bytes(route), all);
            }
        }
    }
}
