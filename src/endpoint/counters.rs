//! The counters of a rank: one table for the line of NTBRING_STATS and for what tools read.

use super::Endpoint;
use ntbring_ntb::fault::Injected;
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
    own: fn(&Endpoint) -> u64,
    /// Reads the part of the host's forwarder; it is added in the host's first rank.
    relay: fn(&RelayCounters) -> u64,
}

const fn counter(name: &'static str, meaning: &'static str, own: fn(&Endpoint) -> u64) -> Counter {
    Counter { name, meaning, own, relay: |_| 0 }
}

impl Counter {
    /// Adds the forwarder's part to a counter.
    const fn and(self, relay: fn(&RelayCounters) -> u64) -> Counter {
        Counter { relay, ..self }
    }

    /// Returns the part that the forwarder has counted.
    pub(super) fn relayed(&self, relay: &RelayCounters) -> u64 {
        (self.relay)(relay)
    }
}

/// All counters. Messages and bytes are those sent, unless the text says otherwise; sizes include MPICH's headers.
pub const COUNTERS: &[Counter] = &[
    counter("msgs_local", "messages to ranks of the same host and to processes outside the ring", |e| {
        e.sent(|distance| distance == 0).0
    }),
    counter("msgs_direct", "messages to neighbouring hosts", |e| e.sent(|distance| distance == 1).0),
    counter("msgs_relayed", "messages to hosts further away", |e| e.sent(|distance| distance > 1).0),
    counter("bytes_local", "bytes to ranks of the same host and to processes outside the ring", |e| {
        e.sent(|distance| distance == 0).1
    }),
    counter("bytes_direct", "bytes to neighbouring hosts", |e| e.sent(|distance| distance == 1).1),
    counter("bytes_relayed", "bytes to hosts further away", |e| e.sent(|distance| distance > 1).1),
    counter("msgs_packed", "messages that were one entry of a lane", |e| e.out.packed),
    counter("msgs_separate", "messages that were sent as a header and pieces", |e| e.out.separate),
    counter("msgs_offered", "messages whose payload the receiver fetched", |e| e.offers.offered),
    counter("msgs_held", "messages that waited until the receiver had asked for earlier ones", |e| e.out.held_ever),
    counter("fetches_streamed", "payloads that this rank had to have sent through a lane", |e| e.offers.streamed),
    counter("bytes_single_copy", "bytes that this rank has copied itself, from or to another process", |e| {
        e.offers.copied
    }),
    counter("msgs_received", "messages received", |e| e.inbound.msgs),
    counter("bytes_received", "bytes received", |e| e.inbound.bytes),
    counter("forwarded_chunks", "entries that this rank or its host's transfer thread has passed on", none)
        .and(|relay| RelayCounters::sum(&relay.chunks)),
    counter("forwarded_bulk", "those of them that were pieces of large payloads", none)
        .and(|relay| relay.bulk.load(Ordering::Relaxed)),
    counter("forwarded_bytes", "bytes of all of them", none).and(|relay| RelayCounters::sum(&relay.bytes)),
    counter("segments_own", "pieces of window memory that this rank has created", |e| e.segments.own),
    counter("segments_near", "pieces of window memory of others that it has mapped", |e| e.segments.near),
    counter("operations_remote", "one-sided operations that other hosts were asked to do on their memory", |e| {
        e.remotes.begun
    }),
    counter("requests_served", "pieces of such operations that this rank's host has done for others", none)
        .and(|relay| load(&relay.served)),
    counter(
        "collectives_shared",
        "times that blocks went from neighbour to neighbour, for small collectives and between the parts of exchanges",
        |e| e.groups.begun,
    ),
    counter("collectives_exchanged", "alltoalls for which ranks read the memory of their neighbours", |e| {
        e.exchanges.ended
    }),
    counter("head_updates", "heads returned to producers; in a host's first rank its forwarder's too", |e| {
        e.inbound.head_updates + e.out.writes().1
    })
    .and(|relay| load(&relay.head_updates)),
    counter("doorbells", "doorbells rung; in a host's first rank its forwarder's too", |e| {
        e.out.writes().0 + e.inbound.doorbells + e.groups.doorbells
    })
    .and(|relay| load(&relay.doorbells)),
    counter("resent", "entries of lanes sent again since they were lost or damaged (NTBRING_RELIABILITY=retry)", |e| {
        e.out.mended().0
    })
    .and(|relay| RelayCounters::sum(&relay.resent)),
    counter("damaged", "entries of lanes that were found lost or damaged", |e| e.inbound.damaged() + e.out.mended().1)
        .and(|relay| RelayCounters::sum(&relay.damaged)),
    counter(
        "repeated",
        "entries sent again end to end, since the way to their receiver had changed or lost them",
        |e| e.out.mended().2,
    ),
    counter("dropped", "entries given up by this rank's host since the link that they were to take was down", none)
        .and(|relay| RelayCounters::sum(&relay.dropped)),
    counter("reroutes", "times that the ways of this rank's host have changed since links went down or came up", none)
        .and(|relay| load(&relay.reroutes)),
    counter("overlaps", "times that something large went on while this rank was not in MPI", |e| e.interim.steps),
    counter("sleeps", "times that this rank has slept until a doorbell rang", |e| e.idle.sleeps()),
    counter("transfer_sleeps", "times that its host's transfer thread has", none).and(|relay| load(&relay.sleeps)),
    counter("faults_flipped", "bits that NTBRING_FAULT has flipped in what this process sent", |e| {
        e.injected(|i| &i.flips)
    }),
    counter("faults_dropped", "writes that it has lost", |e| e.injected(|i| &i.drops)),
    counter("faults_doubled", "writes that it has doubled", |e| e.injected(|i| &i.doubles)),
    counter("faults_delayed", "writes and rings that it has delayed", |e| e.injected(|i| &i.delays)),
    counter("faults_bells", "rings that it has lost", |e| e.injected(|i| &i.bells)),
    counter("faults_outages", "writes and rings that were lost on links that were down", |e| {
        e.injected(|i| &i.outages)
    }),
];

/// A counter of the traffic that a host sends by one link.
pub struct LinkCounter {
    /// Name, as in the line of NTBRING_STATS.
    pub name: &'static str,
    /// Description of the counted quantity.
    pub meaning: &'static str,
    own: fn(&Endpoint, Side) -> u64,
    relay: fn(&RelayCounters, usize) -> u64,
}

/// All counters of a link.
pub const LINK_COUNTERS: &[LinkCounter] = &[
    LinkCounter {
        name: "sent_bytes",
        meaning: "bytes of lanes that this rank has filled by it, with tags and padding",
        own: |e, side| e.out.crossed(side)[0],
        relay: |_, _| 0,
    },
    LinkCounter {
        name: "forwarded_chunks",
        meaning: "entries that its host's forwarder has passed on by it",
        own: |_, _| 0,
        relay: |relay, side| load(&relay.chunks[side]),
    },
    LinkCounter {
        name: "forwarded_bytes",
        meaning: "bytes of them",
        own: |_, _| 0,
        relay: |relay, side| load(&relay.bytes[side]),
    },
    LinkCounter {
        name: "resent",
        meaning: "entries sent again by it since they were lost or damaged",
        own: |e, side| e.out.crossed(side)[1],
        relay: |relay, side| load(&relay.resent[side]),
    },
    LinkCounter {
        name: "damaged",
        meaning: "entries that came by it and were found lost or damaged",
        own: |e, side| e.out.crossed(side)[2] + e.inbound.damaged_by(side),
        relay: |relay, side| load(&relay.damaged[side]),
    },
    LinkCounter {
        name: "dropped",
        meaning: "entries given up since it was down",
        own: |_, _| 0,
        relay: |relay, side| load(&relay.dropped[side]),
    },
];

impl LinkCounter {
    /// Returns the part that the forwarder has counted.
    pub(super) fn relayed(&self, relay: &RelayCounters, side: Side) -> u64 {
        (self.relay)(relay, side as usize)
    }
}

fn none(_: &Endpoint) -> u64 {
    0
}

fn load(counter: &AtomicU64) -> u64 {
    counter.load(Ordering::Relaxed)
}

impl Endpoint {
    /// Returns the value of a counter.
    pub fn count(&self, counter: &Counter) -> u64 {
        self.count_own(counter) + counter.relayed(&self.relay)
    }

    /// Returns the rank's own part of a counter.
    pub(super) fn count_own(&self, counter: &Counter) -> u64 {
        (counter.own)(self)
    }

    /// Returns the rank's own part of a link's counter.
    pub(super) fn count_link(&self, counter: &LinkCounter, side: Side) -> u64 {
        (counter.own)(self, side)
    }

    /// Returns the value of a counter of injected faults.
    fn injected(&self, which: fn(&Injected) -> &AtomicU64) -> u64 {
        self.members.injector().map_or(0, |injector| load(which(injector.injected())))
    }

    /// Returns the messages and bytes sent to ranks whose distance in hops satisfies `wanted`.
    fn sent(&self, wanted: fn(usize) -> bool) -> (u64, u64) {
        let flows = self.out.flows.iter().filter(|flow| wanted(flow.distance));
        flows.fold((0, 0), |(msgs, bytes), flow| (msgs + flow.msgs, bytes + flow.bytes))
    }
}
