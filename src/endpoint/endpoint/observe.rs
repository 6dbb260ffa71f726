//! Counters, statistics and the description of a rank's state, collected from all parts.

use super::Endpoint;
use crate::observation::{
    Counter, Faults, Figures, LinkFigures, LinkTotals, Peer, Queues, Reason, Sizes, State, Times, Totals, Traffic,
    Waits, COUNTERS, LINK_COUNTERS,
};
use ntbring_ntb::Side;
use std::sync::atomic::Ordering;

impl Endpoint {
    /// Returns the value of a counter.
    pub fn count(&self, counter: &Counter) -> u64 {
        counter.own(&self.totals()) + counter.relayed(&self.background.relay)
    }

    /// Returns the totals of this rank's counters.
    fn totals(&self) -> Totals {
        let mut by_distance = [Traffic::default(); 3];
        for (distance, _, traffic) in self.out.traffic() {
            for (place, (msgs, bytes)) in [distance.min(1), 2].into_iter().zip(traffic) {
                let of = &mut by_distance[place];
                (of.msgs, of.bytes) = (of.msgs + msgs, of.bytes + bytes);
            }
        }
        let [local, direct, relayed] = by_distance;
        let (counts, groups) = (self.out.counts(), &self.groups);
        let ((doorbells, heads), (resent, damaged, repeated)) = (self.out.writes(), self.out.mended());
        let injector = self.members.injector();
        Totals {
            local,
            direct,
            relayed,
            packed: counts.packed.total(),
            chunked: counts.chunked.total(),
            offered: self.offers.offered.total(),
            held: counts.held,
            streamed: self.offers.streamed,
            copied: self.offers.copied,
            received: Traffic { msgs: self.inbound.msgs, bytes: self.inbound.bytes + self.offers.received },
            segments_own: self.onesided.segments.own,
            segments_mapped: self.onesided.segments.near,
            remote: self.onesided.remotes.begun,
            small_allgathers: groups.begun,
            shared_collectives: self.shared_groups.calls.load(Ordering::Relaxed),
            head_updates: self.inbound.head_updates + heads,
            doorbells: doorbells + self.inbound.doorbells + groups.doorbells,
            resent,
            damaged: self.inbound.damaged() + damaged,
            repeated,
            overlaps: self.background.async_progress.steps,
            sleeps: self.waiting.idle.sleeps(),
            faults: injector.map_or_else(Faults::default, |injector| injector.injected().into()),
        }
    }

    /// Returns the totals of this rank's counters for the link on one side.
    fn link_totals(&self, side: Side) -> LinkTotals {
        let [sent_bytes, resent, damaged] = self.out.crossed(side);
        LinkTotals { sent_bytes, resent, damaged: damaged + self.inbound.damaged_by(side) }
    }

    /// Returns what the rank waits for and keeps. The caller's queues are read only if a tool has `asked` for them,
    /// because that takes the longer the longer they are.
    fn state(&self, asked: bool) -> State {
        let mut waits = Waits::default();
        let read = self.observation.read_queues.as_ref().filter(|_| asked);
        let queues = read.map_or_else(Queues::default, |read| read(self.out.traffic().count()));
        waits.add_receives(&queues.receives);
        self.out.waits(&mut waits);
        self.inbound.waits(&mut waits);
        self.offers.waits(&mut waits);
        let collectives = self.groups.awaited().chain(self.shared_groups.awaited().map(|(rank, _)| rank));
        collectives.for_each(|rank| waits.add(Reason::Collective, Some(rank), 1, 0));
        State {
            waiting_us: self.waiting.idle.waiting().as_micros() as u64,
            unexpected_msgs: queues.unexpected_msgs,
            unexpected_bytes: queues.unexpected_bytes,
            waits: waits.list(),
        }
    }

    /// Returns the rank's own counters.
    fn figures(&self) -> Figures {
        let topology = self.members.topology();
        let traffic = self.out.traffic().take(topology.size()).enumerate();
        let peers = traffic.map(|(rank, (distance, relayed, [direct, around]))| Peer {
            rank: rank as u64,
            host: topology.host_of(rank as u32) as u64,
            distance: distance as u64,
            relayed,
            msgs: direct.0 + around.0,
            bytes: direct.1 + around.1,
        });
        let peers = peers.filter(|peer| peer.msgs > 0);
        let links = self.members.links().into_iter().flatten().map(|link| {
            let totals = self.link_totals(link.side());
            let counters = LINK_COUNTERS.iter().map(|counter| counter.own(&totals)).collect();
            LinkFigures { side: link.side(), to: link.neighbour() as u64, counters }
        });
        let (totals, counts) = (self.totals(), self.out.counts());
        Figures {
            rank: self.members.rank().into(),
            vci: self.observation.vci.into(),
            host: self.members.host() as u64,
            hosts: topology.hosts() as u64,
            size: topology.size() as u64,
            lane_bytes: self.out.lanes().smallest() as u64,
            counters: COUNTERS.iter().map(|counter| counter.own(&totals)).collect(),
            sizes: Sizes { packed: counts.packed, chunked: counts.chunked, rendezvous: self.offers.offered },
            times: Times([self.waiting.idle.wait_times(), self.offers.sent, self.offers.fetched, counts.held_for]),
            state: None,
            links: links.collect(),
            peers: peers.collect(),
        }
    }

    /// Publishes the rank's counters and its state in its stats page; `asked` if a tool waits for them.
    #[cold]
    pub(super) fn publish_figures(&mut self, asked: bool) {
        let figures = Figures { state: Some(self.state(asked)), ..self.figures() };
        self.observation.publisher.publish(&figures);
    }

    /// Appends the line to the file of NTBRING_STATS, if there is one.
    pub(super) fn write_stats(&self) {
        if let Some(path) = &self.settings.endpoint.stats {
            self.figures().and(&self.background.relay).append(path);
        }
    }

    /// Returns the state as lines, each of which names the rank.
    pub fn describe(&self) -> String {
        let topology = self.members.topology();
        let vci = match self.observation.vci {
            0 => String::new(),
            vci => format!(", VCI {vci},"),
        };
        let (rank, host) = (self.members.rank(), self.members.host());
        let who = format!("ntbring rank {rank}{vci} on host {host} of {}", topology.hosts());
        let mut lines = self.out.describe();
        lines.extend(
            self.out.retransmit_thread.iter().flat_map(|retransmit_thread| retransmit_thread.reliable().describe()),
        );
        lines.extend(self.inbound.describe());
        lines.extend(self.credits.describe());
        lines.push(self.offers.describe());
        lines.push(self.onesided.remotes.describe());
        lines.extend(self.groups.describe());
        lines.extend(self.shared_groups.describe());
        lines.extend(self.dynamic.external_peers.describe(|peer| self.out.produced_for(peer)));
        lines.extend(self.dynamic.dpm_messages.describe());
        lines.extend(self.background.forwarder_threads.iter().flat_map(|t| t.describe()));
        lines.extend(self.members.injector().map(|i| format!("faults injected: {}", i.injected())));
        let (sleeps, heads) = (self.waiting.idle.sleeps(), self.inbound.head_updates);
        lines.push(format!("slept {sleeps} times, returned {heads} heads"));
        lines.iter().map(|line| format!("{who}: {line}\n")).collect()
    }
}
