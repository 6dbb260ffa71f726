//! Checksums of entries, and control words.

/// Size of an entry's checksum in bytes.
pub(crate) const CHECK: usize = 4;

/// Returns the checksum of an entry; `place` is the absolute number of its first line, counted over all laps.
pub(super) fn checksum(place: u64, tag: u64, bytes: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&[place.to_le_bytes(), tag.to_le_bytes()].concat()), bytes)
}

/// Purpose of a control word.
#[derive(Clone, Copy)]
pub(super) enum Word {
    Head = 1,
    Tail = 2,
    Complaint = 3,
}

/// Bits of a place in a control word. They count further than the lines of a lane, so that the lap is unambiguous.
const PLACE_BITS: u32 = 20;
const PLACE_MASK: u64 = (1 << PLACE_BITS) - 1;

/// Encodes a control word from a place and 12 more bits. The upper half of the word is the checksum.
pub(super) fn seal(word: Word, place: u64, more: u32) -> u64 {
    let value = (place & PLACE_MASK) as u32 | more << PLACE_BITS;
    u64::from(value) | u64::from(check_of(word, value)) << 32
}

/// Decodes a control word: returns its place, which must be `base` or at most `most` lines beyond it, and the 12 more
/// bits. Returns None if the checksum is wrong or the place is out of range.
pub(super) fn unseal(word: Word, sealed: u64, base: u64, most: u64) -> Option<(u64, u32)> {
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
