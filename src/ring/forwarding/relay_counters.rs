//! The counters of a forwarder.

use ntbring_memory::{Region, Word};
use ntbring_ntb::Side;
use std::sync::atomic::{AtomicU64, Ordering};

/// The counters of a forwarder. Those of a link exist for each side.
pub struct RelayCounters {
    /// Packets passed on, by the side that they left by.
    pub chunks: [Word; 2],
    /// Those of them that were bulk.
    pub bulk: Word,
    /// The bytes of all packets passed on, by the side that they left by.
    pub bytes: [Word; 2],
    /// Requests served.
    pub served: Word,
    /// Heads returned.
    pub head_updates: Word,
    /// Doorbells rung.
    pub doorbells: Word,
    /// Times the forwarder thread has slept.
    pub sleeps: Word,
    /// Packets sent again, by a side.
    pub resent: [Word; 2],
    /// Packets that were damaged or missing, of those that came by a side.
    pub damaged: [Word; 2],
    /// Packets given up since the link on that side, which they were to take, was down.
    pub dropped: [Word; 2],
    /// Times that the ways of the host's packets have changed.
    pub reroutes: Word,
}

impl RelayCounters {
    /// Bytes of memory that they need.
    pub const BYTES: usize = 8 * 16;

    /// Counters in the first bytes of a region that was zeros once.
    pub fn new(region: &Region) -> RelayCounters {
        let word = |i: usize| Word::new(region, 8 * i);
        let both = |i: usize| [word(i), word(i + 1)];
        RelayCounters {
            chunks: both(0),
            bytes: both(2),
            served: word(4),
            head_updates: word(5),
            doorbells: word(6),
            sleeps: word(7),
            resent: both(8),
            damaged: both(10),
            dropped: both(12),
            reroutes: word(14),
            bulk: word(15),
        }
    }

    /// The counters for both sides together.
    pub fn sum(counters: &[Word; 2]) -> u64 {
        Side::BOTH.into_iter().map(|side| counters[side as usize].load(Ordering::Relaxed)).sum()
    }
}

impl Default for RelayCounters {
    fn default() -> Self {
        RelayCounters::new(&Region::anonymous(RelayCounters::BYTES))
    }
}

pub(super) fn count(counter: &AtomicU64, n: u64) {
    counter.fetch_add(n, Ordering::Relaxed);
}
