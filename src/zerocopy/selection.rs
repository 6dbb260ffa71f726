//! Selection of the protocol of a message and of the way in which its payload is fetched.

/// Bytes before the payload of a short message: size of `MPIDI_NTBRING_short_hdr_t`.
pub const SHORT_HEADER: usize = 16;
/// Bytes before the payload of any other MPICH message: size of `MPIDIG_hdr_t`.
pub const LONG_HEADER: usize = 48;

/// Factor by which payloads must be larger for [`Fetching::Both`] to be worth its messages if both sides have
/// payloads to copy.
const EXCHANGED: u64 = 8;

/// Transfer protocol of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// Eager: header and payload in one entry.
    Packed,
    /// Segmented eager: the header in one entry, followed at once by the payload in as many entries as it takes.
    Chunked,
    /// Rendezvous: the header in one entry (RTS); the payload when the receiver has named its destination.
    Rendezvous,
}

/// Way in which the payload of a rendezvous is fetched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fetching {
    /// Through the lane, in chunks.
    Streamed,
    /// Copied by the receiver from the sender's memory.
    Single,
    /// Copied by the receiver and the sender together.
    Both,
}

/// Condition for copies by the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SingleCopy {
    /// The kernel copies messages of more than this many bytes, unless lanes are found to be faster.
    Auto(usize),
    /// The kernel copies messages of more than this many bytes.
    Above(usize),
    /// The kernel never copies.
    Never,
}

impl SingleCopy {
    /// True if other ways are tried as well where the kernel can copy.
    pub fn is_tuned(self) -> bool {
        matches!(self, SingleCopy::Auto(_))
    }

    /// Size in bytes of the largest message that the kernel does not copy; None if it never copies.
    pub fn least(self) -> Option<usize> {
        match self {
            SingleCopy::Auto(bytes) | SingleCopy::Above(bytes) => Some(bytes),
            SingleCopy::Never => None,
        }
    }
}

/// Condition for copies by both sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SplitCopy {
    /// Both sides copy payloads of at least this many bytes, if every rank has a core.
    Auto(u64),
    /// Both sides copy payloads of at least this many bytes.
    From(u64),
    /// Both sides never copy.
    Never,
}

/// Message sizes at which the protocol changes, in bytes of header and payload together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Thresholds {
    /// Largest packed message.
    pub packed_max: usize,
    /// Largest eager message.
    pub eager_max: usize,
    /// Largest eager message to a rank whose memory can be accessed directly.
    pub near_eager_max: usize,
    /// Condition for copies by the kernel, where it can make them.
    pub single_copy: SingleCopy,
    /// Smallest payload in bytes that both sides copy; None if they never do.
    pub split_min: Option<u64>,
}

impl Thresholds {
    /// Returns the protocol of a message of `size` bytes. `reached` is true if the two ranks can and should access
    /// each other's memory directly.
    pub fn choose(&self, size: u64, reached: bool) -> Protocol {
        match size {
            n if n > self.eager_max(reached) as u64 => Protocol::Rendezvous,
            n if n <= self.packed_max as u64 => Protocol::Packed,
            _ => Protocol::Chunked,
        }
    }

    /// Largest message that is sent as one entry to any receiver, in bytes.
    #[inline]
    pub fn plain_max(&self) -> usize {
        self.packed_max.min(self.eager_max(true))
    }

    /// Largest eager message in bytes.
    pub fn eager_max(&self, reached: bool) -> usize {
        match reached {
            true => self.eager_max.min(self.near_eager_max),
            false => self.eager_max,
        }
    }

    /// Returns the way of fetching `size` wanted bytes of a rendezvous payload. `busy` is true if the receiver has
    /// open rendezvous sends of its own.
    pub fn fetching(&self, size: u64, reached: bool, busy: bool) -> Fetching {
        // If payloads are exchanged, each side has its own to copy. Halves then only cost messages, until payloads
        // are so large that halves stay in a cache where whole ones would not.
        let factor = if busy { EXCHANGED } else { 1 };
        match self.split_min {
            _ if !reached => Fetching::Streamed,
            Some(min) if size >= min.saturating_mul(factor) => Fetching::Both,
            _ => Fetching::Single,
        }
    }

    /// Returns true if a message that is sent now fits into one packed entry.
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
            single_copy: SingleCopy::Never,
            split_min: Some(5000),
        };
        let ways = |reached| [0, 100, 101, 200, 201, 1000, 1001, u64::MAX].map(|n| t.choose(n, reached));
        use Protocol::*;
        assert_eq!(ways(false), [Packed, Packed, Chunked, Chunked, Chunked, Chunked, Rendezvous, Rendezvous]);
        assert_eq!(ways(true), [Packed, Packed, Chunked, Chunked, Rendezvous, Rendezvous, Rendezvous, Rendezvous]);
        assert_eq!(t.plain_max(), 100);
        // A message for which rendezvous is chosen is never packed, however large an entry may be.
        for (t, least) in [(Thresholds { packed_max: 500, ..t }, 200), (Thresholds { packed_max: 5000, ..t }, 200)] {
            assert_eq!([200, 201].map(|n| t.choose(n, true)), [Packed, Rendezvous]);
            assert_eq!([500, 1001].map(|n| t.choose(n, false)), [Packed, Rendezvous]);
            assert_eq!(t.plain_max(), least);
        }
        assert_eq!(Thresholds { eager_max: 50, ..t }.plain_max(), 50);
        assert_eq!(t.fetching(u64::MAX, false, false), Fetching::Streamed);
        let fetching = |busy| [4999, 5000, 39_999, 40_000].map(|n| t.fetching(n, true, busy));
        use Fetching::*;
        assert_eq!(fetching(false), [Single, Both, Both, Both]);
        assert_eq!(fetching(true), [Single, Single, Single, Both]);
        assert_eq!(Thresholds { split_min: None, ..t }.fetching(u64::MAX, true, false), Single);
    }
}
