//! Registers behind BAR 0, and the layout of the shared memory behind BAR 2.
//!
//! Each host owns one half of the memory. Only its neighbour writes there, except for the first page of the first half,
//! in which hosts claim their halves.
//!
//! | offset in a half | holds |
//! |---|---|
//! | 0 | first half: the claims (`claim`) |
//! | 4096 | words for the owner: the neighbour's presence and beat, scratchpads, counts of doorbells |
//! | 8192 | the window of the owner |

use crate::allotment::PAGE;
use crate::chip::Aperture;

/// The id of this peer (32 bits), which the server has chosen.
pub const IV_POSITION: u64 = 8;
/// Interrupts another peer (32 bits): its id in the upper half, the vector in the lower one.
pub const DOORBELL: u64 = 12;

/// Capability MSI-X of the configuration space.
pub const MSIX: u8 = 0x11;

/// Number of the base address register of the shared memory.
pub const MEMORY: u8 = 2;
/// Least size of the shared memory, bytes.
pub const MEMORY_MIN: u64 = 1 << 20;

/// Size of the claims and of the words, bytes each.
pub const WORDS: u64 = PAGE;

/// Offsets in the words of a host, bytes; each is a 64-bit word.
pub const PRESENCE: usize = 0;
pub const BEAT: usize = 8;
pub const SCRATCHPAD: usize = 64;
pub const RINGS: usize = 128;

/// Returns the place of the words of the owner of a half, in a memory of `size` bytes.
pub fn words(size: u64, side: usize) -> u64 {
    side as u64 * (size / 2) + PAGE
}

/// Returns the place of the window of the owner of a half, in a memory of `size` bytes.
pub fn window(size: u64, side: usize) -> Aperture {
    let offset = words(size, side) + WORDS;
    Aperture { bar: MEMORY, offset, size: size / 2 - PAGE - WORDS }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_of_the_memory_do_not_overlap() {
        for size in [MEMORY_MIN, 64 << 20] {
            let [first, second] = [0, 1].map(|side| window(size, side));
            assert!(words(size, 0) >= PAGE, "the claims lie before the words");
            assert_eq!(first.offset, words(size, 0) + WORDS);
            assert_eq!(first.offset + first.size, size / 2);
            assert!(words(size, 1) >= size / 2 && second.offset == words(size, 1) + WORDS);
            assert_eq!((second.offset + second.size, first.size), (size, second.size));
        }
    }
}
