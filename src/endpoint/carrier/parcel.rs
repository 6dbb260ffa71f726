//! What carriers send each other: one entry of a connection's lane, or none, and how far the other direction has come.
//!
//! ```text
//! route 8 | place: lines 8, entries 8 | has: lines 8, entries 8 | head 8 | flags 8 | tag 8 | the entry's bytes
//! ```

use bytes::Buf;
use ntbring_ring::relay::Route;

/// The kind of a hop lane's entries that are parcels; they are all routed.
pub const PARCEL: u8 = 15;

/// An entry's tag and bytes follow.
const ENTRY: u64 = 1;
/// The sender asks how far the receiver has come.
const ASKS: u64 = 2;
/// What comes next for the sender of this parcel was lost.
const LACKS: u64 = 4;

/// Where in the lane of a connection something is: what was before it. These numbers never wrap: a parcel may lie in the
/// lane of a link that is down for as long as it likes, and is still known to be old when it comes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// Lines before it.
    pub lines: u64,
    /// Entries before it, fillings included.
    pub entries: u64,
}

impl Place {
    /// Behind an entry of so many lines.
    pub fn after(self, lines: usize) -> Place {
        Place { lines: self.lines + lines as u64, entries: self.entries + 1 }
    }
}

/// The head of a parcel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Parcel {
    /// Where the entry is, or the next one if there is none.
    pub place: Place,
    /// What has come from the other side.
    pub has: Place,
    /// The line up to which that was consumed.
    pub head: u64,
    /// The sender wants to know how far the receiver has come.
    pub asks: bool,
    /// The sender lacks what comes next for it.
    pub lacks: bool,
    /// The tag of the entry, if there is one.
    pub tag: Option<u64>,
}

impl Parcel {
    /// Bytes before an entry's, its route included.
    pub const HEAD: usize = Route::LEN + 56;

    /// Whether it says something about what was sent before it: others may overtake, and be overtaken.
    pub fn is_ordered(&self) -> bool {
        self.tag.is_some() || self.asks
    }

    /// As bytes, route first; the tag's are zero if there is no entry.
    pub fn bytes(&self, route: Route) -> [u8; Parcel::HEAD] {
        let flag = |set: bool, flag: u64| if set { flag } else { 0 };
        let flags = flag(self.tag.is_some(), ENTRY) | flag(self.asks, ASKS) | flag(self.lacks, LACKS);
        let Parcel { place, has, head, tag, .. } = *self;
        let words = [place.lines, place.entries, has.lines, has.entries, head, flags, tag.unwrap_or(0)];
        let mut bytes = [0; Parcel::HEAD];
        bytes[..Route::LEN].copy_from_slice(&route.bytes());
        for (to, word) in bytes[Route::LEN..].chunks_exact_mut(8).zip(words) {
            to.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    /// The parcel that these bytes begin with; None if it cannot be one.
    pub fn parse(bytes: [u8; Parcel::HEAD]) -> Option<(Route, Parcel)> {
        let (route, mut rest) = bytes.split_first_chunk()?;
        let mut next = || rest.get_u64_le();
        let place = Place { lines: next(), entries: next() };
        let has = Place { lines: next(), entries: next() };
        let (head, flags, tag) = (next(), next(), next());
        let parcel = Parcel {
            place,
            has,
            head,
            asks: flags & ASKS != 0,
            lacks: flags & LACKS != 0,
            tag: (flags & ENTRY != 0).then_some(tag),
        };
        let possible = flags & !(ENTRY | ASKS | LACKS) == 0 && (tag == 0 || parcel.tag.is_some());
        possible.then_some((Route::parse(*route), parcel))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn parcels_survive_their_bytes(
            [lines, entries, had, number, head] in any::<[u64; 5]>(), (asks, lacks) in any::<(bool, bool)>(),
            tag in proptest::option::of(1u64..),
        ) {
            let (place, has) = (Place { lines, entries }, Place { lines: had, entries: number });
            let parcel = Parcel { place, has, head, asks, lacks, tag };
            let route = Route { src: 3, dst: 77 };
            prop_assert_eq!(Parcel::parse(parcel.bytes(route)), Some((route, parcel)));
        }

        #[test]
        fn no_bytes_are_too_odd(words in any::<[u64; 7]>(), flags in 0u64..10, odd: bool, src: u32, dst: u32) {
            let mut all = Parcel::default().bytes(Route { src, dst });
            for (to, word) in all[8..].chunks_exact_mut(8).zip(words) {
                to.copy_from_slice(&word.to_le_bytes());
            }
            if !odd {
                all[48..56].copy_from_slice(&flags.to_le_bytes());
            }
            if let Some((route, parcel)) = Parcel::parse(all) {
                prop_assert_eq!(parcel.bytes(route), all);
            }
        }
    }
}
