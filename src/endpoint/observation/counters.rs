//! The counters of a rank: one table for the line of NTBRING_STATS and for the readings of tools.

use super::totals::{LinkTotals, Totals};
use ntbring_ntb::Side;
use ntbring_ring::relay::RelayCounters;
use std::sync::atomic::{AtomicU64, Ordering};

/// A monotonic counter of a rank.
pub struct Counter {
    /// Name, as in the line of NTBRING_STATS.
    pub name: &'static str,
    /// Description of the counted quantity.
    pub meaning: &'static str,
    /// Reads the part that the rank counts itself.
    own: fn(&Totals) -> u64,
    /// Reads the part of the host's forwarder; it is added in the host's first rank.
    relay: fn(&RelayCounters) -> u64,
}

const fn counter(name: &'static str, meaning: &'static str, own: fn(&Totals) -> u64) -> Counter {
    Counter { name, meaning, own, relay: |_| 0 }
}

impl Counter {
    /// Adds the forwarder's part to a counter.
    const fn and(self, relay: fn(&RelayCounters) -> u64) -> Counter {
        Counter { relay, ..self }
    }

    /// Returns the part that the rank has counted.
    pub(crate) fn own(&self, totals: &Totals) -> u64 {
        (self.own)(totals)
    }

    /// Returns the part that the forwarder has counted.
    pub(crate) fn relayed(&self, relay: &RelayCounters) -> u64 {
        (self.relay)(relay)
    }
}

/// All counters. Messages and bytes are those sent, unless the text says otherwise; sizes include MPICH's headers.
pub const COUNTERS: &[Counter] = &[
    counter("msgs_local", "messages to ranks of the same host and to processes outside the ring", |t| t.local.msgs),
    counter("msgs_direct", "messages to neighbouring hosts, and to others past the hosts between", |t| t.direct.msgs),
    counter("msgs_relayed", "messages to hosts further away that were relayed", |t| t.relayed.msgs),
    counter("bytes_local", "bytes to ranks of the same host and to processes outside the ring", |t| t.local.bytes),
    counter("bytes_direct", "bytes of the messages in msgs_direct", |t| t.direct.bytes),
    counter("bytes_relayed", "bytes of the messages in msgs_relayed", |t| t.relayed.bytes),
    counter("msgs_packed", "messages that were one entry of a lane", |t| t.packed),
    counter("msgs_chunked", "messages that were sent as a header and chunks", |t| t.chunked),
    counter("msgs_rendezvous", "messages whose payload the receiver fetched (rendezvous)", |t| t.offered),
    counter("msgs_held", "messages that waited for credit of the receiver", |t| t.held),
    counter("fetches_streamed", "rendezvous payloads that this rank received through a lane", |t| t.streamed),
    counter("bytes_single_copy", "bytes that this rank has copied from or to another process by kernel copies", |t| {
        t.copied
    }),
    counter("msgs_received", "messages received", |t| t.received.msgs),
    counter("bytes_received", "bytes received", |t| t.received.bytes),
    counter("forwarded_chunks", "entries that this rank or its host's forwarder thread has forwarded", none)
        .and(|relay| RelayCounters::sum(&relay.chunks)),
    counter("forwarded_bulk", "forwarded entries that were chunks of large payloads", none)
        .and(|relay| relay.bulk.load(Ordering::Relaxed)),
    counter("forwarded_bytes", "bytes of all forwarded entries", none).and(|relay| RelayCounters::sum(&relay.bytes)),
    counter("segments_own", "segments of window memory that this rank has created", |t| t.segments_own),
    counter("segments_mapped", "segments of other ranks that this rank has mapped", |t| t.segments_mapped),
    counter(
        "operations_remote",
        "one-sided operations that other hosts performed on their memory for this rank",
        |t| t.remote,
    ),
    counter(
        "requests_served",
        "requests of other hosts' one-sided operations that this rank's host has performed",
        none,
    )
    .and(|relay| load(&relay.served)),
    counter("small_allgathers", "allgathers of small blocks, for small collectives; not counted as messages", |t| {
        t.small_allgathers
    }),
    counter(
        "shared_collectives",
        "collectives through buffers that all ranks of a communicator map; not counted as messages",
        |t| t.shared_collectives,
    ),
    counter(
        "head_updates",
        "heads returned to producers; in a host's first rank including those of its forwarder",
        |t| t.head_updates,
    )
    .and(|relay| load(&relay.head_updates)),
    counter("doorbells", "doorbells rung; in a host's first rank including those of its forwarder", |t| t.doorbells)
        .and(|relay| load(&relay.doorbells)),
    counter(
        "resent",
        "lane entries retransmitted because they were lost or damaged (NTBRING_RELIABILITY=retry)",
        |t| t.resent,
    )
    .and(|relay| RelayCounters::sum(&relay.resent)),
    counter("damaged", "lane entries that were found lost or damaged", |t| t.damaged)
        .and(|relay| RelayCounters::sum(&relay.damaged)),
    counter(
        "repeated",
        "entries retransmitted end to end, because the route to their receiver had changed or lost them",
        |t| t.repeated,
    ),
    counter("dropped", "entries dropped by this rank's host because the link on their route was down", none)
        .and(|relay| RelayCounters::sum(&relay.dropped)),
    counter("reroutes", "changes of the routes of this rank's host because links went down or came up", none)
        .and(|relay| load(&relay.reroutes)),
    counter("overlaps", "steps of asynchronous progress of large payloads while this rank was not in MPI", |t| {
        t.overlaps
    }),
    counter("sleeps", "sleeps of this rank until a doorbell rang", |t| t.sleeps),
    counter("forwarder_sleeps", "sleeps of the forwarder thread of this rank's host", none)
        .and(|relay| load(&relay.sleeps)),
    counter("faults_flipped", "bits that NTBRING_FAULT has flipped in data that this process sent", |t| t.faults.flips),
    counter("faults_dropped", "writes that NTBRING_FAULT has dropped", |t| t.faults.drops),
    counter("faults_doubled", "writes that NTBRING_FAULT has doubled", |t| t.faults.doubles),
    counter("faults_delayed", "writes and doorbell rings that NTBRING_FAULT has delayed", |t| t.faults.delays),
    counter("faults_bells", "doorbell rings that NTBRING_FAULT has dropped", |t| t.faults.bells),
    counter("faults_outages", "writes and doorbell rings that were lost on links that were down", |t| t.faults.outages),
];

/// A counter of the traffic that a host sends over one link.
pub struct LinkCounter {
    /// Name, as in the line of NTBRING_STATS.
    pub name: &'static str,
    /// Description of the counted quantity.
    pub meaning: &'static str,
    own: fn(&LinkTotals) -> u64,
    relay: fn(&RelayCounters, usize) -> u64,
}

/// All counters of a link.
pub const LINK_COUNTERS: &[LinkCounter] = &[
    LinkCounter {
        name: "sent_bytes",
        meaning: "bytes of lane space that this rank has sent over the link, with tags and padding",
        own: |t| t.sent_bytes,
        relay: |_, _| 0,
    },
    LinkCounter {
        name: "forwarded_chunks",
        meaning: "entries that the host's forwarder has forwarded over the link",
        own: |_| 0,
        relay: |relay, side| load(&relay.chunks[side]),
    },
    LinkCounter {
        name: "forwarded_bytes",
        meaning: "bytes of the forwarded entries",
        own: |_| 0,
        relay: |relay, side| load(&relay.bytes[side]),
    },
    LinkCounter {
        name: "resent",
        meaning: "entries retransmitted over the link because they were lost or damaged",
        own: |t| t.resent,
        relay: |relay, side| load(&relay.resent[side]),
    },
    LinkCounter {
        name: "damaged",
        meaning: "entries from the link that were found lost or damaged",
        own: |t| t.damaged,
        relay: |relay, side| load(&relay.damaged[side]),
    },
    LinkCounter {
        name: "dropped",
        meaning: "entries dropped because the link was down",
        own: |_| 0,
        relay: |relay, side| load(&relay.dropped[side]),
    },
];

impl LinkCounter {
    /// Returns the part that the rank has counted.
    pub(crate) fn own(&self, totals: &LinkTotals) -> u64 {
        (self.own)(totals)
    }

    /// Returns the part that the forwarder has counted.
    pub(crate) fn relayed(&self, relay: &RelayCounters, side: Side) -> u64 {
        (self.relay)(relay, side as usize)
    }
}

fn none(_: &Totals) -> u64 {
    0
}

fn load(counter: &AtomicU64) -> u64 {
    counter.load(Ordering::Relaxed)
}
