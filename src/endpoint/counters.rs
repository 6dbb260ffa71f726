//! The counters of a rank: one table for the line of NTBRING_STATS and for what tools read.

use super::Endpoint;
use std::sync::atomic::{AtomicU64, Ordering};

/// Something that a rank counts. It never becomes less.
pub struct Counter {
    /// As in the line of NTBRING_STATS.
    pub name: &'static str,
    /// What is counted.
    pub meaning: &'static str,
    read: fn(&Endpoint) -> u64,
}

const fn counter(name: &'static str, meaning: &'static str, read: fn(&Endpoint) -> u64) -> Counter {
    Counter { name, meaning, read }
}

/// All of them. Messages and bytes are those sent, if nothing else is said; sizes include MPICH's headers.
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
    counter("forwarded_chunks", "entries that this rank or its host's transfer thread has passed on", |e| {
        load(&e.relay.chunks)
    }),
    counter("forwarded_bytes", "bytes of them", |e| load(&e.relay.bytes)),
    counter("segments_own", "pieces of window memory that this rank has created", |e| e.segments.own),
    counter("segments_near", "pieces of window memory of others that it has mapped", |e| e.segments.near),
    counter("operations_remote", "one-sided operations that other hosts were asked to do on their memory", |e| {
        e.remotes.begun
    }),
    counter("requests_served", "pieces of such operations that this rank's host has done for others", |e| {
        load(&e.relay.served)
    }),
    counter("collectives_shared", "small collectives whose blocks went from neighbour to neighbour", |e| {
        e.groups.begun
    }),
    counter("head_updates", "heads returned to producers; in a host's first rank its forwarder's too", |e| {
        e.inbound.head_updates + load(&e.relay.head_updates)
    }),
    counter("doorbells", "doorbells rung; in a host's first rank its forwarder's too", |e| {
        e.out.doorbells + e.inbound.doorbells + e.groups.doorbells + load(&e.relay.doorbells)
    }),
    counter("sleeps", "times that this rank has slept until a doorbell rang", |e| e.idle.sleeps()),
    counter("transfer_sleeps", "times that its host's transfer thread has", |e| load(&e.relay.sleeps)),
];

fn load(counter: &AtomicU64) -> u64 {
    counter.load(Ordering::Relaxed)
}

impl Endpoint {
    /// What a counter stands at.
    pub fn count(&self, counter: &Counter) -> u64 {
        (counter.read)(self)
    }

    /// Messages and bytes to ranks at such distances.
    fn sent(&self, wanted: fn(usize) -> bool) -> (u64, u64) {
        let flows = self.out.flows.iter().filter(|flow| wanted(flow.distance));
        flows.fold((0, 0), |(msgs, bytes), flow| (msgs + flow.msgs, bytes + flow.bytes))
    }
}
