//! The quantities that a rank has counted, as the coordinator collects them from the parts.

use ntbring_ntb::fault::Injected;
use std::sync::atomic::Ordering;

/// Messages and bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Number of messages.
    pub msgs: u64,
    /// Number of bytes.
    pub bytes: u64,
}

/// Numbers of injected faults.
#[derive(Clone, Copy, Debug, Default)]
pub struct Faults {
    /// Bits flipped.
    pub flips: u64,
    /// Writes lost.
    pub drops: u64,
    /// Writes doubled.
    pub doubles: u64,
    /// Writes and rings delayed.
    pub delays: u64,
    /// Rings lost.
    pub bells: u64,
    /// Writes and rings lost on links that were down.
    pub outages: u64,
}

impl From<&Injected> for Faults {
    fn from(injected: &Injected) -> Faults {
        let [flips, drops, doubles, delays, bells, outages] =
            [&injected.flips, &injected.drops, &injected.doubles, &injected.delays, &injected.bells, &injected.outages]
                .map(|counter| counter.load(Ordering::Relaxed));
        Faults { flips, drops, doubles, delays, bells, outages }
    }
}

/// All quantities that a rank counts itself; [`super::COUNTERS`] describes them.
#[derive(Clone, Copy, Debug, Default)]
pub struct Totals {
    /// Sent to ranks of the same host and to processes outside the ring.
    pub local: Traffic,
    /// Sent to neighbouring hosts, and to others past the hosts between.
    pub direct: Traffic,
    /// Sent to hosts further away round the ring.
    pub relayed: Traffic,
    /// Messages that were one entry of a lane.
    pub packed: u64,
    /// Messages that were sent as a header and chunks.
    pub chunked: u64,
    /// Messages whose payload was offered.
    pub offered: u64,
    /// Messages that have waited for credit.
    pub held: u64,
    /// Offers that were streamed to this rank.
    pub streamed: u64,
    /// Bytes copied by the kernel.
    pub copied: u64,
    /// Received.
    pub received: Traffic,
    /// Segments created.
    pub segments_own: u64,
    /// Segments of other ranks mapped.
    pub segments_mapped: u64,
    /// One-sided operations on segments of other hosts.
    pub remote: u64,
    /// Small allgathers.
    pub small_allgathers: u64,
    /// Collectives through shared buffers.
    pub shared_collectives: u64,
    /// Heads returned.
    pub head_updates: u64,
    /// Doorbells rung.
    pub doorbells: u64,
    /// Entries retransmitted over a link.
    pub resent: u64,
    /// Entries found lost or damaged.
    pub damaged: u64,
    /// Entries retransmitted end to end.
    pub repeated: u64,
    /// Steps of asynchronous progress.
    pub overlaps: u64,
    /// Sleeps.
    pub sleeps: u64,
    /// Injected faults.
    pub faults: Faults,
}

/// All quantities that a rank counts itself for one link; [`super::LINK_COUNTERS`] describes them.
#[derive(Clone, Copy, Debug, Default)]
pub struct LinkTotals {
    /// Bytes of lane space sent.
    pub sent_bytes: u64,
    /// Entries retransmitted.
    pub resent: u64,
    /// Entries that have arrived damaged.
    pub damaged: u64,
}
