//! How a message travels, chosen by its size (selective zero-copy, MPI-VMMC, KAIST 2000).
//!
//! | way | sizes | sender | receiver |
//! |---|---|---|---|
//! | [`Way::Packed`] | small | header and payload are one contiguous write | copies once, out of the lane |
//! | [`Way::Separate`] | medium | the header goes first, the payload follows in pieces from where it lies | copies each piece once |
//! | [`Way::Rendezvous`] | large | asks first; then as `Separate` | each piece goes straight from the lane to the user's buffer |
//!
//! No way copies the payload at the sender before it is written to the window; payload that is
//! not contiguous is packed into the window.

mod payload;

pub use payload::{PackFailed, PackFn, Payload};

/// How a message travels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Header and payload in one entry.
    Packed,
    /// The header in one entry, the payload in as many as it takes; sent at once.
    Separate,
    /// The same, but only once the receiver has named the place for it.
    Rendezvous,
}

/// The sizes where one way ends and the next begins, in bytes of header + payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Thresholds {
    /// The largest packed message.
    pub packed_max: usize,
    /// The largest message that is sent without asking.
    pub eager_max: usize,
}

impl Thresholds {
    /// The way of a message of which nothing has been said to the receiver yet.
    pub fn choose(&self, header: usize, payload: u64) -> Way {
        match header as u64 + payload {
            n if n <= self.packed_max as u64 => Way::Packed,
            n if n <= self.eager_max as u64 => Way::Separate,
            _ => Way::Rendezvous,
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
        let t = Thresholds { packed_max: 100, eager_max: 1000 };
        assert_eq!(t.choose(48, 52), Way::Packed);
        assert_eq!(t.choose(48, 53), Way::Separate);
        assert_eq!(t.choose(48, 952), Way::Separate);
        assert_eq!(t.choose(48, 953), Way::Rendezvous);
        assert_eq!(t.choose(48, u64::MAX - 48), Way::Rendezvous);
    }
}
