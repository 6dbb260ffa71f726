//! The counters of a rank: one table for the line of NTBRING_STATS and for what tools read.

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
    counter("msgs_direct", "messages to neighbouring hosts", |t| t.direct.msgs),
    counter("msgs_relayed", "messages to hosts further away", |t| t.relayed.msgs),
    counter("bytes_local", "bytes to ranks of the same host and to processes outside the ring", |t| t.local.bytes),
    counter("bytes_direct", "bytes to neighbouring hosts", |t| t.direct.bytes),
    counter("bytes_relayed", "bytes to hosts further away", |t| t.relayed.bytes),
    counter("msgs_packed", "messages that were one entry of a lane", |t| t.packed),
    counter("msgs_chunked", "messages that were sent as a header and pieces", |t| t.chunked),
    counter("msgs_rendezvous", "messages whose payload the receiver fetched", |t| t.offered),
    counter("msgs_held", "messages that waited until the receiver had asked for earlier ones", |t| t.held),
    counter("fetches_streamed", "payloads that this rank had to have sent through a lane", |t| t.streamed),
    counter("bytes_single_copy", "bytes that this rank has copied itself, from or to another process", |t| t.copied),
    counter("msgs_received", "messages received", |t| t.received.msgs),
    counter("bytes_received", "bytes received", |t| t.received.bytes),
    counter("forwarded_chunks", "entries that this rank or its host's forwarder thread has passed on", none)
        .and(|relay| RelayCounters::sum(&relay.chunks)),
    counter("forwarded_bulk", "those of them that were pieces of large payloads", none)
        .and(|relay| relay.bulk.load(Ordering::Relaxed)),
    counter("forwarded_bytes", "bytes of all of them", none).and(|relay| RelayCounters::sum(&relay.bytes)),
    counter("segments_own", "pieces of window memory that this rank has created", |t| t.segments_own),
    counter("segments_mapped", "pieces of window memory of others that it has mapped", |t| t.segments_mapped),
    counter("operations_remote", "one-sided operations that other hosts were asked to do on their memory", |t| {
        t.remote
    }),
    counter("requests_served", "pieces of such operations that this rank's host has done for others", none)
        .and(|relay| load(&relay.served)),
    counter(
        "small_allgathers",
        "times that blocks went from neighbour to neighbour, for small collectives and between the parts of exchanges",
        |t| t.shared,
    ),
    counter("mapped_alltoalls", "alltoalls for which ranks read the memory of their neighbours", |t| t.exchanged),
    counter("head_updates", "heads returned to producers; in a host's first rank its forwarder's too", |t| {
        t.head_updates
    })
    .and(|relay| load(&relay.head_updates)),
    counter("doorbells", "doorbells rung; in a host's first rank its forwarder's too", |t| t.doorbells)
        .and(|relay| load(&relay.doorbells)),
    counter("resent", "entries of lanes sent again since they were lost or damaged (NTBRING_RELIABILITY=retry)", |t| {
        t.resent
    })
    .and(|relay| RelayCounters::sum(&relay.resent)),
    counter("damaged", "entries of lanes that were found lost or damaged", |t| t.damaged)
        .and(|relay| RelayCounters::sum(&relay.damaged)),
    counter(
        "repeated",
        "entries sent again end to end, since the way to their receiver had changed or lost them",
        |t| t.repeated,
    ),
    counter("dropped", "entries given up by this rank's host since the link that they were to take was down", none)
        .and(|relay| RelayCounters::sum(&relay.dropped)),
    counter("reroutes", "times that the ways of this rank's host have changed since links went down or came up", none)
        .and(|relay| load(&relay.reroutes)),
    counter("overlaps", "times that something large went on while this rank was not in MPI", |t| t.overlaps),
    counter("sleeps", "times that this rank has slept until a doorbell rang", |t| t.sleeps),
    counter("forwarder_sleeps", "times that its host's forwarder thread has", none).and(|relay| load(&relay.sleeps)),
    counter("faults_flipped", "bits that NTBRING_FAULT has flipped in what this process sent", |t| t.faults.flips),
    counter("faults_dropped", "writes that it has lost", |t| t.faults.drops),
    counter("faults_doubled", "writes that it has doubled", |t| t.faults.doubles),
    counter("faults_delayed", "writes and rings that it has delayed", |t| t.faults.delays),
    counter("faults_bells", "rings that it has lost", |t| t.faults.bells),
    counter("faults_outages", "writes and rings that were lost on links that were down", |t| t.faults.outages),
];

/// A counter of the traffic that a host sends by one link.
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
        meaning: "bytes of lanes that this rank has filled by it, with tags and padding",
        own: |t| t.sent_bytes,
        relay: |_, _| 0,
    },
    LinkCounter {
        name: "forwarded_chunks",
        meaning: "entries that its host's forwarder has passed on by it",
        own: |_| 0,
        relay: |relay, side| load(&relay.chunks[side]),
    },
    LinkCounter {
        name: "forwarded_bytes",
        meaning: "bytes of them",
        own: |_| 0,
        relay: |relay, side| load(&relay.bytes[side]),
    },
    LinkCounter {
        name: "resent",
        meaning: "entries sent again by it since they were lost or damaged",
        own: |t| t.resent,
        relay: |relay, side| load(&relay.resent[side]),
    },
    LinkCounter {
        name: "damaged",
        meaning: "entries that came by it and were found lost or damaged",
        own: |t| t.damaged,
        relay: |relay, side| load(&relay.damaged[side]),
    },
    LinkCounter {
        name: "dropped",
        meaning: "entries given up since it was down",
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
