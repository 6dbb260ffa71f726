//! The counters of a forwarder.

use ntbring_memory::{Region, Word};
use ntbring_ntb::Side;
use std::sync::atomic::{AtomicU64, Ordering};

/// The counters of a forwarder. Those of a link exist for each side.
pub struct RelayCounters {
    /// Number of packets forwarded, by the side to which they left.
    pub chunks: [Word; 2],
    /// Number of these packets that were bulk.
    pub bulk: Word,
    /// Number of bytes of all packets forwarded, by the side to which they left.
    pub bytes: [Word; 2],
    /// Number of requests served.
    pub served: Word,
    /// Number of times that a head was returned to a sender.
    pub head_updates: Word,
    /// Number of doorbells rung.
    pub doorbells: Word,
    /// Number of times that a forwarder thread has slept.
    pub sleeps: Word,
    /// Number of packets retransmitted, by the side to which they left.
    pub resent: [Word; 2],
    /// Number of packets that were damaged or missing, by the side on which they arrived.
    pub damaged: [Word; 2],
    /// Number of packets dropped since the link that they were to take was down, by the side of that link.
    pub dropped: [Word; 2],
    /// Number of times that the routes of the host's packets have changed.
    pub reroutes: Word,
}

impl RelayCounters {
    /// Bytes of memory that the counters need.
    pub const BYTES: usize = 8 * 16;

    /// Returns the counters in the first bytes of a region, which must have been zero at first.
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

    /// Returns the sum of a counter's values for both sides.
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
