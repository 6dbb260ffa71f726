//! How a message travels, chosen by its size and by what lies between the ranks (selective
//! zero-copy, MPI-VMMC, KAIST 2000).
//!
//! | way | sizes | sender | receiver |
//! |---|---|---|---|
//! | [`Way::Packed`] | small | header and payload are one contiguous write | copies once, out of the lane |
//! | [`Way::Separate`] | medium | the header goes first, the payload follows in pieces from where it lies | copies each piece once |
//! | [`Way::Offered`] | large | sends the header, and where the payload lies | fetches it when it is known where to |
//!
//! An offered payload is fetched in one of three ways:
//!
//! | fetching | where | who copies |
//! |---|---|---|
//! | [`Fetching::Streamed`] | everywhere | the sender into the lane, the receiver from there straight to the user's buffer |
//! | [`Fetching::Single`] | coherent memory | the receiver, from user's buffer to user's buffer |
//! | [`Fetching::Both`] | coherent memory | each of them a half of it, at the same time |
//!
//! Which of them is the fastest in coherent memory is found out on the way ([`contest`]); if it is the lane, the sender is told so,
//! and offers only what it would offer to anybody.
//!
//! How large the pieces are that stream is told by [`Cut`].
//!
//! No way copies the payload at the sender before it is written to the window; payload that is
//! not contiguous is packed into the window.

pub mod contest;
mod cut;
mod payload;
pub mod table;

pub use cut::Cut;
pub use payload::{PackFailed, PackFn, Payload};
pub use table::{BothCopy, Limits, SingleCopy};

/// Bytes that a message of the short kind has before its payload: `MPIDI_NTBRING_short_hdr_t`.
pub const SHORT_HEADER: usize = 16;
/// Bytes that a message of MPICH's own has before its payload: `MPIDIG_hdr_t`.
pub const LONG_HEADER: usize = 48;

/// How much larger payloads must be for halves to be worth their messages if both sides have something to copy.
const EXCHANGED: u64 = 8;

/// How a message travels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Header and payload in one entry.
    Packed,
    /// The header in one entry, the payload in as many as it takes; sent at once.
    Separate,
    /// The header in one entry; the payload when the receiver has named the place for it.
    Offered,
}

/// How a payload that was offered gets to its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fetching {
    /// Through the lane, in pieces.
    Streamed,
    /// Copied by the receiver from the sender's memory.
    Single,
    /// Copied by the receiver and the sender together.
    Both,
}

/// The sizes where one way ends and the next begins, in bytes of header + payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Thresholds {
    /// The largest packed message.
    pub packed_max: usize,
    /// The largest message that is sent without asking.
    pub eager_max: usize,
    /// The largest message that is sent without asking to a rank whose memory can be reached.
    pub near_eager_max: usize,
    /// Whether lanes are tried, too, where the kernel can copy.
    pub contested: bool,
    /// The smallest payload that both sides copy; None if they never do.
    pub both_min: Option<u64>,
}

impl Thresholds {
    /// The way of a message; `reached` if the two ranks reach each other's memory, and should use that.
    pub fn choose(&self, size: u64, reached: bool) -> Way {
        match size {
            n if n > self.eager_max(reached) as u64 => Way::Offered,
            n if n <= self.packed_max as u64 => Way::Packed,
            _ => Way::Separate,
        }
    }

    /// The largest message that goes as one entry whoever it is for.
    #[inline]
    pub fn plain_max(&self) -> usize {
        self.packed_max.min(self.eager_max(true))
    }

    /// The largest message that is sent without asking.
    pub fn eager_max(&self, reached: bool) -> usize {
        match reached {
            true => self.eager_max.min(self.near_eager_max),
            false => self.eager_max,
        }
    }

    /// How an offered payload of which `size` bytes are wanted is fetched; `busy` if the receiver has offers of its own open.
    pub fn fetching(&self, size: u64, reached: bool, busy: bool) -> Fetching {
        // Where payloads are exchanged each side has its own to copy. Halves then only cost messages, until they are so large
        // that they stay in a cache where wholes would not.
        let factor = if busy { EXCHANGED } else { 1 };
        match self.both_min {
            _ if !reached => Fetching::Streamed,
            Some(min) if size >= min.saturating_mul(factor) => Fetching::Both,
            _ => Fetching::Single,
        }
    }

    /// Whether a message that is to be sent now goes as one entry.
    #[inline]
    pub fn packs(&self, header: usize, payload: u64) -> bool {
        header as u64 + payload <= self.packed_max as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_way_ends_at_its_threshold() {
        let t = Thresholds {
            packed_max: 100,
            eager_max: 1000,
            near_eager_max: 200,
            contested: false,
            both_min: Some(5000),
        };
        let ways = |reached| [0, 100, 101, 200, 201, 1000, 1001, u64::MAX].map(|n| t.choose(n, reached));
        use Way::*;
        assert_eq!(ways(false), [Packed, Packed, Separate, Separate, Separate, Separate, Offered, Offered]);
        assert_eq!(ways(true), [Packed, Packed, Separate, Separate, Offered, Offered, Offered, Offered]);
        assert_eq!(t.plain_max(), 100);
        // What may be offered is not packed, however large an entry may be.
        for (t, least) in [(Thresholds { packed_max: 500, ..t }, 200), (Thresholds { packed_max: 5000, ..t }, 200)] {
            assert_eq!([200, 201].map(|n| t.choose(n, true)), [Packed, Offered]);
            assert_eq!([500, 1001].map(|n| t.choose(n, false)), [Packed, Offered]);
            assert_eq!(t.plain_max(), least);
        }
        assert_eq!(Thresholds { eager_max: 50, ..t }.plain_max(), 50);
        assert_eq!(t.fetching(u64::MAX, false, false), Fetching::Streamed);
        let fetching = |busy| [4999, 5000, 39_999, 40_000].map(|n| t.fetching(n, true, busy));
        use Fetching::*;
        assert_eq!(fetching(false), [Single, Both, Both, Both]);
        assert_eq!(fetching(true), [Single, Single, Single, Both]);
        assert_eq!(Thresholds { both_min: None, ..t }.fetching(u64::MAX, true, false), Single);
    }
}
