//! Chunk size of a payload that streams through a lane.
//!
//! Large chunks are copied faster: a processor's string copy reaches its full speed only after some ten KiB. But the
//! receiver is idle until the first chunk is there, and the sender after the last one. A chunk is therefore a
//! fraction of the remaining bytes: a single payload is divided into smaller chunks than several that wait for each
//! other, and the chunks get smaller towards its end.

/// Size in bytes of all chunks that cross links or forwarders: the next hop begins when it has the whole chunk.
const FAR: usize = 16 << 10;

/// Smallest and largest size in bytes of a chunk between neighbours in coherent memory.
const NEAR: (usize, usize) = (16 << 10, 128 << 10);

/// A chunk is 1/`PARTS` of the remaining bytes.
const PARTS: u64 = 16;

/// Chunks begin at multiples of this, if payloads do and lanes are not too small.
const GRAIN: u64 = 4096;

/// Policy for chunk sizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChunkSize {
    least: usize,
    most: usize,
}

impl ChunkSize {
    /// Returns the policy for the user's chunk size in bytes. Without one it depends on whether both ranks are
    /// neighbours in coherent memory (`near`).
    pub fn new(set: Option<usize>, near: bool) -> ChunkSize {
        match (set, near) {
            (Some(bytes), _) => ChunkSize { least: bytes, most: bytes },
            (None, false) => ChunkSize { least: FAR, most: FAR },
            (None, true) => ChunkSize { least: NEAR.0, most: NEAR.1 },
        }
    }

    /// Returns this policy with chunks of at most `most` bytes.
    pub fn within(self, most: usize) -> ChunkSize {
        ChunkSize { least: self.least.min(most), most: self.most.min(most) }
    }

    /// Returns true if all chunks have the same size.
    pub fn is_even(self) -> bool {
        self.least == self.most
    }

    /// Largest size of a chunk in bytes.
    pub fn most(self) -> usize {
        self.most
    }

    /// Returns the largest size in bytes of the next chunk when `left` bytes remain to be sent.
    #[inline]
    pub fn piece(self, left: u64) -> usize {
        ((left / PARTS).next_multiple_of(GRAIN) as usize).clamp(self.least, self.most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_more_is_left_the_larger_is_a_piece() {
        let near = ChunkSize::new(None, true);
        for (left, piece) in [(0, 16), (64, 16), (512, 32), (1024, 64), (1536, 96), (2048, 128), (1 << 40, 128)] {
            assert_eq!(near.piece(left << 10), piece << 10, "{left} KiB are left");
        }
        assert_eq!(near.within(50_000).piece(1 << 30), 50_000);
        assert_eq!(near.within(10_000).piece(0), 10_000);
    }

    #[test]
    fn what_is_set_or_goes_far_is_cut_evenly() {
        for (cut, piece) in [(ChunkSize::new(Some(1000), true), 1000), (ChunkSize::new(None, false), FAR)] {
            assert!(cut.is_even());
            assert_eq!([0, 1 << 20, u64::MAX >> 1].map(|left| cut.piece(left)), [piece; 3]);
        }
    }
}
