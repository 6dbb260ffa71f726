//! Which lanes a rank sends into, and what fits into them.

use super::flow::{Flow, Line};
use super::held::Allowance;
use super::{Outbound, Outbox, NOWHERE};
use crate::bell::Bell;
use crate::credit::Tariff;
use crate::wire::PREFIX_MAX;
use crate::Settings;
use ntbring_queue::Producer;
use ntbring_ring::plan::{Class, End};
use ntbring_ring::relay::Route;
use ntbring_ring::{rank_doorbell, Membership};
use ntbring_zerocopy::Cut;
use std::collections::VecDeque;
use std::sync::Arc;

impl Outbound {
    /// Of a rank. `packet_max` bytes fit into all lanes on the way to anybody; `connections` are the lanes to ranks of
    /// other hosts that a carrier empties, if those over links are not used.
    pub fn new(
        members: &Arc<Membership>,
        settings: &Settings,
        tariff: Tariff,
        packet_max: usize,
        connections: Option<Vec<(u32, Producer)>>,
    ) -> Outbound {
        let topology = members.topology();
        let (host, me) = (members.host(), End::Rank(topology.local_of(members.rank())));
        let mut outboxes = Vec::new();
        let mut flows: Vec<Flow> = (0..topology.size()).map(|_| Flow::default()).collect();
        let mut requests = vec![NOWHERE; topology.size()];
        // What others bring further has to fit into their lanes, too.
        let cut = |near| Cut::new(settings.ring.chunk, near).within(packet_max - PREFIX_MAX);
        let mut boxed = |lane: Producer, bell: Bell, near: bool| {
            outboxes.push(Outbox::new(lane, bell, cut(near)));
            outboxes.len() - 1
        };
        for (local, &rank) in topology.ranks_of(host).iter().enumerate() {
            let bell = Bell::Local(members.clone(), rank_doorbell(local));
            flows[rank as usize].line.outbox = boxed(members.local_producer(local), bell, true);
        }
        // Ranks that take turns on a core had better fill a lane in each.
        let near = !members.is_crowded();
        let policy = members.policy();
        let links = members.links().filter(|_| connections.is_none());
        for (rank, lane) in connections.into_iter().flatten() {
            flows[rank as usize].line.outbox = boxed(lane, Bell::Carrier, false);
        }
        for link in links.into_iter().flatten() {
            let side = link.side();
            let next = link.neighbour();
            for (local, &rank) in topology.ranks_of(next).iter().enumerate() {
                if topology.direction(host, next) == side {
                    let bell = Bell::Port(link.port(), rank_doorbell(local));
                    let lane = link.producer(me, End::Rank(local), false);
                    let lane = if near && policy.is_coherent() { lane.near() } else { lane };
                    flows[rank as usize].line.outbox = boxed(lane, bell, policy.is_coherent());
                }
            }
            let bell = |class| Bell::Port(link.port(), link.bell(side, class));
            let transit = boxed(link.producer(me, End::Forwarder, false), bell(Class::Urgent), false);
            let bulk = link.bulk_producer(me, End::Forwarder, false);
            let bulk = bulk.map(|lane| boxed(lane, bell(Class::Bulk), false));
            for rank in 0..topology.size() as u32 {
                let dest = topology.host_of(rank);
                if dest == host || topology.direction(host, dest) != side {
                    continue;
                }
                requests[rank as usize] = transit;
                if topology.distance(host, dest) >= 2 {
                    let flow = &mut flows[rank as usize];
                    flow.line.outbox = transit;
                    flow.bulk = bulk.map(|bulk| Box::new(Line::bulk(bulk)));
                    flow.route = Some(Route { src: members.rank(), dst: rank });
                }
            }
        }
        for (rank, flow) in flows.iter_mut().enumerate() {
            flow.distance = topology.distance(host, topology.host_of(rank as u32));
            flow.allowance = Allowance::new(tariff.share);
        }
        let (work, sent) = (VecDeque::new(), VecDeque::new());
        Outbound {
            outboxes,
            flows,
            requests,
            work,
            sent,
            me: members.rank(),
            tariff,
            held: 0,
            held_ever: 0,
            stalls: 0,
            cuts: [false, true].map(cut),
            packet_max,
            checked: policy.is_checked(),
            packs: true,
            caretaker: None,
            doorbells: 0,
            turns: 0,
            packed: 0,
            separate: 0,
        }
    }

    fn smallest_entry(&self) -> usize {
        self.outboxes.iter().map(|o| o.lane.entry_max()).min().unwrap_or(0).min(self.packet_max)
    }

    /// Bytes of the smallest lane.
    pub fn smallest_lane(&self) -> usize {
        self.outboxes.iter().map(|o| o.lane.lines() * ntbring_queue::LINE).min().unwrap_or(0)
    }

    /// Most bytes of a piece that others bring further, where the lane is not too small for that.
    pub fn chunk(&self) -> usize {
        self.cuts[0].most()
    }

    /// Most bytes of any piece.
    pub fn chunk_max(&self) -> usize {
        self.outboxes.iter().map(|outbox| outbox.cut.most()).max().unwrap_or(0)
    }

    /// The largest header, bytes.
    pub fn header_max(&self) -> usize {
        (self.smallest_entry() - PREFIX_MAX) / 8 * 8
    }

    /// The most that header and payload may have together to fit into one entry of every lane.
    pub fn packed_limit(&self) -> usize {
        self.smallest_entry() - PREFIX_MAX
    }

    /// Makes room for peers up to this number.
    pub fn admit(&mut self, peer: usize) {
        while self.flows.len() <= peer {
            self.flows.push(Flow::nowhere(NOWHERE, Allowance::new(self.tariff.share)));
        }
    }

    /// Gives a flow its lane.
    pub fn connect(&mut self, peer: u32, lane: Producer, bell: Bell) {
        self.flows[peer as usize].line.outbox = self.outboxes.len();
        self.outboxes.push(Outbox::new(lane, bell, self.cuts[1]));
    }

    /// Takes the lane away from a peer outside the job, which is lost.
    pub fn disconnect(&mut self, peer: u32) {
        let place = self.flows[peer as usize].line.outbox;
        self.lose(peer);
        if place < self.outboxes.len() {
            self.outboxes.swap_remove(place);
            // The last one is of such a peer, too, and has no other flow.
            let moved = self.outboxes.len();
            let flow = self.flows.iter_mut().find(|flow| flow.line.outbox == moved);
            flow.into_iter().for_each(|flow| flow.line.outbox = place);
        }
    }

    /// Gives the flow of a lost peer to another, which has no lane yet. Its counters stay.
    pub fn renew(&mut self, peer: u32) {
        let Flow { listed, msgs, bytes, .. } = self.flows[peer as usize];
        let new = Flow::nowhere(NOWHERE, Allowance::new(self.tariff.share));
        self.flows[peer as usize] = Flow { listed, msgs, bytes, ..new };
    }

    /// Returns true if anything was ever deposited for a peer.
    pub fn has_used(&self, peer: u32) -> bool {
        self.outboxes.get(self.flows[peer as usize].line.outbox).is_some_and(|o| o.lane.is_used())
    }
}
