//! Into how large pieces a payload is cut that streams through a lane.
//!
//! Large pieces are copied faster: a processor's string copy has its full speed only after some ten KiB. But until the first piece
//! is there, the receiver has nothing to do, and after the last one the sender. So a piece is a part of what is left to be
//! sent: a payload alone is cut finer, and the more so towards its end, than several that wait for each other.

/// Bytes of all pieces that others bring further, or that links carry: the next hop begins when it has all of a piece.
const FAR: usize = 16 << 10;

/// The least and the most bytes of a piece between neighbours in coherent memory.
const NEAR: (usize, usize) = (32 << 10, 128 << 10);

/// A piece is such a part of what is left.
const PARTS: u64 = 16;

/// Pieces begin at multiples of this, if payloads do and lanes are not too small.
const GRAIN: u64 = 4096;

/// How large pieces are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut {
    least: usize,
    most: usize,
}

impl Cut {
    /// As the user has set it. Otherwise as is good to neighbours in coherent memory (`near`), or to anybody else.
    pub fn new(set: Option<usize>, near: bool) -> Cut {
        match (set, near) {
            (Some(bytes), _) => Cut { least: bytes, most: bytes },
            (None, false) => Cut { least: FAR, most: FAR },
            (None, true) => Cut { least: NEAR.0, most: NEAR.1 },
        }
    }

    /// The same, but no piece has more bytes than this.
    pub fn within(self, most: usize) -> Cut {
        Cut { least: self.least.min(most), most: self.most.min(most) }
    }

    /// Whether all pieces are alike.
    pub fn is_even(self) -> bool {
        self.least == self.most
    }

    /// Most bytes of any piece.
    pub fn most(self) -> usize {
        self.most
    }

    /// Most bytes of the next piece, if so many are left to be sent.
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
        let near = Cut::new(None, true);
        for (left, piece) in [(0, 32), (64, 32), (512, 32), (1024, 64), (1536, 96), (2048, 128), (1 << 40, 128)] {
            assert_eq!(near.piece(left << 10), piece << 10, "{left} KiB are left");
        }
        assert_eq!(near.within(50_000).piece(1 << 30), 50_000);
        assert_eq!(near.within(20_000).piece(0), 20_000);
    }

    #[test]
    fn what_is_set_or_goes_far_is_cut_evenly() {
        for (cut, piece) in [(Cut::new(Some(1000), true), 1000), (Cut::new(None, false), FAR)] {
            assert!(cut.is_even());
            assert_eq!([0, 1 << 20, u64::MAX >> 1].map(|left| cut.piece(left)), [piece; 3]);
        }
    }
}
