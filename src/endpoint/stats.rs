//! Counters, and the JSON line they become when the rank leaves the ring.

use super::Endpoint;
use serde::Serialize;
use std::fs::OpenOptions;
use std::io::Write;
use std::sync::atomic::Ordering;

/// One rank's line of NTBRING_STATS. Messages and bytes are those sent; sizes include MPICH's headers. `local` are
/// those to ranks of the same host and to processes outside the ring. `msgs_held` had to wait until the receiver had
/// asked for earlier ones. `fetches_streamed` counts payloads that this rank had to have sent through a lane,
/// `bytes_single_copy` what it has copied itself, from or to another process. `segments_own` and `segments_near` count
/// the pieces of window memory that it created, and mapped of others. What goes straight to them is not counted.
/// `operations_remote` are operations that this rank had other hosts do on theirs, `requests_served` those that its
/// host's forwarder has done for others, in pieces. `collectives_shared` are small collectives whose blocks went from
/// neighbour to neighbour, which no other counter of messages includes. `head_updates` and `doorbells` are of the rank
/// and, in a host's first rank, of the host's forwarder too.
#[derive(Serialize)]
struct Line {
    rank: u32,
    host: usize,
    hosts: usize,
    size: usize,
    lane_bytes: usize,
    msgs_local: u64,
    msgs_direct: u64,
    msgs_relayed: u64,
    bytes_local: u64,
    bytes_direct: u64,
    bytes_relayed: u64,
    msgs_packed: u64,
    msgs_separate: u64,
    msgs_offered: u64,
    msgs_held: u64,
    fetches_streamed: u64,
    bytes_single_copy: u64,
    msgs_received: u64,
    bytes_received: u64,
    forwarded_chunks: u64,
    forwarded_bytes: u64,
    segments_own: u64,
    segments_near: u64,
    operations_remote: u64,
    requests_served: u64,
    collectives_shared: u64,
    head_updates: u64,
    doorbells: u64,
    sleeps: u64,
    transfer_sleeps: u64,
    peers: Vec<Peer>,
}

/// What went to one rank.
#[derive(Serialize)]
struct Peer {
    rank: usize,
    host: usize,
    distance: usize,
    msgs: u64,
    bytes: u64,
}

impl Endpoint {
    fn line(&self) -> Line {
        let topology = self.members.topology();
        let load = |counter: &std::sync::atomic::AtomicU64| counter.load(Ordering::Relaxed);
        let sum = |wanted: fn(usize) -> bool| {
            let flows = self.out.flows.iter().filter(|f| wanted(f.distance));
            flows.fold((0, 0), |(m, b), f| (m + f.msgs, b + f.bytes))
        };
        let (msgs_local, bytes_local) = sum(|d| d == 0);
        let (msgs_direct, bytes_direct) = sum(|d| d == 1);
        let (msgs_relayed, bytes_relayed) = sum(|d| d > 1);
        let peers = self.out.flows[..topology.size()].iter().enumerate().filter(|(_, f)| f.msgs > 0);
        Line {
            rank: self.members.rank(),
            host: self.members.host(),
            hosts: topology.hosts(),
            size: topology.size(),
            lane_bytes: self.out.smallest_lane(),
            msgs_local,
            msgs_direct,
            msgs_relayed,
            bytes_local,
            bytes_direct,
            bytes_relayed,
            msgs_packed: self.out.packed,
            msgs_separate: self.out.separate,
            msgs_offered: self.offers.offered,
            msgs_held: self.out.held_ever,
            fetches_streamed: self.offers.streamed,
            bytes_single_copy: self.offers.copied,
            msgs_received: self.inbound.msgs,
            bytes_received: self.inbound.bytes,
            forwarded_chunks: load(&self.relay.chunks),
            forwarded_bytes: load(&self.relay.bytes),
            segments_own: self.segments.own,
            segments_near: self.segments.near,
            operations_remote: self.remotes.begun,
            requests_served: load(&self.relay.served),
            collectives_shared: self.groups.begun,
            head_updates: self.inbound.head_updates + load(&self.relay.head_updates),
            doorbells: self.out.doorbells
                + self.inbound.doorbells
                + self.groups.doorbells
                + load(&self.relay.doorbells),
            sleeps: self.idle.sleeps(),
            transfer_sleeps: load(&self.relay.sleeps),
            peers: peers
                .map(|(rank, f)| Peer {
                    rank,
                    host: topology.host_of(rank as u32),
                    distance: f.distance,
                    msgs: f.msgs,
                    bytes: f.bytes,
                })
                .collect(),
        }
    }

    /// Appends the line to the file of NTBRING_STATS, if there is one. It goes out in one write,
    /// so that ranks that share the file do not mix.
    pub(super) fn write_stats(&self) {
        let Some(path) = &self.settings.stats else { return };
        let result = serde_json::to_string(&self.line()).map_err(std::io::Error::from).and_then(|mut line| {
            line.push('\n');
            OpenOptions::new().append(true).create(true).open(path)?.write_all(line.as_bytes())
        });
        if let Err(error) = result {
            log::error!("NTBRING_STATS={}: {error}", path.display());
        }
    }
}
