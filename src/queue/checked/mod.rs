//! Lanes over links that may lose, damage or double what crosses them (the error handling of SPAX,
//! ETRI 1995, brought to lanes).
//!
//! An entry carries a CRC32C behind its bytes, over its place, its tag and its bytes. So whatever
//! the consumer finds where the next entry must begin either is that entry, whole, or is not there
//! yet. Places are absolute, and the producer keeps what it has not been told is consumed, so there
//! is nothing to resynchronise: what is damaged is written to its place once more.
//!
//! Three words, each with a checksum of its own and repeated until it has done its work:
//!
//! | word | lies with | says |
//! |---|---|---|
//! | head | producer | so much is consumed; given as soon as the lane is empty |
//! | tail | consumer | so much is out; given when nothing was consumed for a while. Who has all of it repeats its head |
//! | complaint | producer | the entry here is missing or damaged |
//!
//! Under [`Reliability::Detect`] nothing is kept, and a complaint is an error of the consumer instead.

mod consumer;
mod producer;

pub(super) use consumer::{Finding, Verifier};
pub use producer::GaveUp;
pub(super) use producer::Keeper;

/// How far lanes trust the links they cross.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reliability {
    /// Entirely: links check themselves, as PCIe does.
    #[default]
    Off,
    /// What was lost or damaged is an error.
    Detect,
    /// It is sent again.
    Retry,
}

impl Reliability {
    /// Bytes of every entry that are not the caller's.
    pub fn trailer(self) -> usize {
        if self == Reliability::Off {
            0
        } else {
            CHECK
        }
    }
}

/// What is wrong with an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Damage {
    /// It is not there, though it was announced.
    Missing = 1,
    /// Its checksum is wrong.
    Checksum = 2,
}

impl std::fmt::Display for Damage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Damage::Missing => "was announced, but is not there",
            Damage::Checksum => "has a wrong checksum",
        })
    }
}

/// Bytes that the checksum of an entry takes.
pub(super) const CHECK: usize = 4;

/// The checksum of the entry that begins at the `place`th line that was ever produced.
fn checksum(place: u64, tag: u64, bytes: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&[place.to_le_bytes(), tag.to_le_bytes()].concat()), bytes)
}

/// What a word is for.
#[derive(Clone, Copy)]
enum Word {
    Head = 1,
    Tail = 2,
    Complaint = 3,
}

/// Bits of a place in a word: more than there are lines in a lane, so it is clear which lap is meant.
const PLACE_BITS: u32 = 20;
const PLACE_MASK: u64 = (1 << PLACE_BITS) - 1;

/// A word that says a place, and 12 bits more; the upper half is the checksum.
fn seal(word: Word, place: u64, more: u32) -> u64 {
    let value = (place & PLACE_MASK) as u32 | more << PLACE_BITS;
    u64::from(value) | u64::from(check_of(word, value)) << 32
}

/// What such a word says, if nothing has happened to it: the place at `base` or at most `most` lines
/// beyond it, and the rest.
fn unseal(word: Word, sealed: u64, base: u64, most: u64) -> Option<(u64, u32)> {
    let value = sealed as u32;
    let beyond = u64::from(value).wrapping_sub(base) & PLACE_MASK;
    ((sealed >> 32) as u32 == check_of(word, value) && beyond <= most).then_some((base + beyond, value >> PLACE_BITS))
}

fn check_of(word: Word, value: u32) -> u32 {
    let [a, b, c, d] = value.to_le_bytes();
    crc32c::crc32c(&[word as u8, a, b, c, d])
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn words_say_what_was_sealed(base: u32, beyond in 0u64..32768, more in 0u32..4096) {
            let place = u64::from(base) + beyond;
            let sealed = seal(Word::Tail, place, more);
            prop_assert_eq!(unseal(Word::Tail, sealed, base.into(), 32768), Some((place, more)));
            prop_assert_eq!(unseal(Word::Head, sealed, base.into(), 32768), None);
        }

        #[test]
        fn a_flipped_bit_is_noticed(place: u32, bit in 0u32..64) {
            let sealed = seal(Word::Head, place.into(), 0) ^ 1 << bit;
            prop_assert_eq!(unseal(Word::Head, sealed, place.into(), u64::MAX), None);
        }
    }

    #[test]
    fn a_word_of_the_past_says_nothing() {
        assert_eq!(unseal(Word::Head, seal(Word::Head, 99, 0), 100, 32768), None);
        assert_eq!(unseal(Word::Head, 0, 0, 32768), None);
    }
}
