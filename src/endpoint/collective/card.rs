//! The records that the members of a group exchange about their alltoalls, as blocks of small allgathers.

use ntbring_host::SegmentAddress;
use ntbring_rma::{address, words};

/// The record that each member sends before the first alltoall of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AreaAddress {
    /// Address of the member's area; None if it has none, and the group cannot use this algorithm.
    pub area: Option<SegmentAddress>,
    /// Smallest block, in bytes, for which kernel copies may be used; None if they may not be used at all.
    pub kernel_from: Option<u64>,
}

/// The record that each member sends at the beginning of an alltoall.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BlockAddresses {
    /// Bytes of a block.
    pub size: u64,
    /// Address of the blocks that the member sends.
    pub from: u64,
    /// Address of the room for the blocks that it receives.
    pub to: u64,
}

/// The record that each member sends at the end of a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RoundStatus {
    /// True if the member has had no error so far.
    pub ok: bool,
    /// Classes of block sizes for which the member prefers kernel copies, from the next alltoall on; one bit for each
    /// class.
    pub for_kernel: u8,
}

/// A record with a fixed encoding of `N` bytes.
pub trait BlockRecord<const N: usize>: Sized {
    /// Encodes the record.
    fn write(&self) -> [u8; N];
    /// Decodes a record.
    fn read(bytes: &[u8; N]) -> Self;
}

fn join<const W: usize, const N: usize>(words: [u64; W]) -> [u8; N] {
    let mut bytes = [0; N];
    bytes.chunks_exact_mut(8).zip(words).for_each(|(at, word)| at.copy_from_slice(&word.to_le_bytes()));
    bytes
}

fn word(bytes: &[u8], i: usize) -> u64 {
    let mut word = [0; 8];
    word.copy_from_slice(&bytes[8 * i..8 * i + 8]);
    u64::from_le_bytes(word)
}

impl BlockRecord<40> for AreaAddress {
    fn write(&self) -> [u8; 40] {
        // All-zero words stand for no area: no file has this address.
        let [a, b, c, d] = self.area.as_ref().map_or([0; 4], words);
        join([a, b, c, d, self.kernel_from.unwrap_or(u64::MAX)])
    }

    fn read(bytes: &[u8; 40]) -> AreaAddress {
        let at = [0, 1, 2, 3].map(|i| word(bytes, i));
        let area = (at != [0; 4]).then(|| address(at));
        AreaAddress { area, kernel_from: Some(word(bytes, 4)).filter(|&from| from != u64::MAX) }
    }
}

impl BlockRecord<24> for BlockAddresses {
    fn write(&self) -> [u8; 24] {
        join([self.size, self.from, self.to])
    }

    fn read(bytes: &[u8; 24]) -> BlockAddresses {
        let [size, from, to] = [0, 1, 2].map(|i| word(bytes, i));
        BlockAddresses { size, from, to }
    }
}

impl BlockRecord<2> for RoundStatus {
    fn write(&self) -> [u8; 2] {
        [self.ok.into(), self.for_kernel]
    }

    fn read(&[ok, for_kernel]: &[u8; 2]) -> RoundStatus {
        RoundStatus { ok: ok != 0, for_kernel }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_told_is_understood(at in any::<[u64; 4]>(), numbers in any::<[u64; 4]>(), ok: bool, for_kernel: u8) {
            let [size, from, to, least] = numbers;
            let card = BlockAddresses { size, from, to };
            prop_assert_eq!(BlockAddresses::read(&card.write()), card);
            let note = RoundStatus { ok, for_kernel };
            prop_assert_eq!(RoundStatus::read(&note.write()), note);
            for area in [None, Some(address(at)).filter(|_| at != [0; 4])] {
                for kernel_from in [None, Some(least).filter(|&least| least != u64::MAX)] {
                    let told = AreaAddress { area, kernel_from };
                    prop_assert_eq!(AreaAddress::read(&told.write()), told);
                }
            }
        }
    }
}
