//! The lane of each peer's flow, and peers that come and go.

use super::allowance::Allowance;
use super::flow::Flow;
use super::lanes::Lanes;
use super::line::put_bare;
use super::line::FlowQueue;
use super::outbound::{Counts, Outbound};
use super::outbox::{Outbox, LOST, NOWHERE};
use crate::bell::Bell;
use crate::flow_control::CreditPolicy;
use crate::wire::Packet;
use ntbring_queue::Producer;
use ntbring_ring::layout::{Class, End};
use ntbring_ring::relay::Route;
use ntbring_ring::{rank_doorbell, DirectLane, Membership};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

/// Number of packets that are relayed to a rank before a lane past the hosts between is opened, which takes as long as
/// some tens of them.
const DETOURS: u32 = 8;

/// Longest wait for a copy engine that reads payloads for a lost peer.
const ENGINE_LIMIT: Duration = Duration::from_secs(5);

impl Outbound {
    /// Attaches the lanes of a rank. `chunk` is the chunk size of the settings. `packet_max` bytes fit into all lanes
    /// on the way to any rank; `connections` are the lanes to ranks of other hosts that a reliable connection empties,
    /// if those over links are not used.
    pub fn new(
        members: &Arc<Membership>,
        chunk: Option<usize>,
        credit_policy: CreditPolicy,
        packet_max: usize,
        connections: Option<Vec<(u32, Producer)>>,
    ) -> Outbound {
        let topology = members.topology();
        let (host, me) = (members.host(), End::Rank(topology.local_of(members.rank())));
        let checked = members.policy().is_checked();
        let mut lanes = Lanes::new(chunk, packet_max, checked, topology.size());
        let mut flows: Vec<Flow> = (0..topology.size()).map(|_| Flow::default()).collect();
        for (local, &rank) in topology.ranks_of(host).iter().enumerate() {
            let bell = Bell::Local(members.clone(), rank_doorbell(local));
            flows[rank as usize].line.outbox = lanes.push(members.local_producer(local), bell, true);
        }
        let links = members.links().filter(|_| connections.is_none());
        for (rank, lane) in connections.into_iter().flatten() {
            flows[rank as usize].line.outbox = lanes.push(lane, Bell::Reliable, false);
        }
        for link in links.into_iter().flatten() {
            let side = link.side();
            let next = link.neighbour();
            for (local, &rank) in topology.ranks_of(next).iter().enumerate() {
                if topology.direction(host, next) == side {
                    let bell = Bell::Port(link.side(), link.port(), rank_doorbell(local));
                    let lane = link.producer(me, End::Rank(local), false);
                    flows[rank as usize].line.outbox = lanes.push(lane, bell, members.policy().is_coherent());
                }
            }
            let bell = |class| Bell::Port(link.side(), link.port(), link.bell(side, class));
            let transit = lanes.push(link.producer(me, End::Forwarder, false), bell(Class::Urgent), false);
            let bulk = link.bulk_producer(me, End::Forwarder, false);
            let bulk = bulk.map(|lane| lanes.push(lane, bell(Class::Bulk), false));
            for rank in 0..topology.size() as u32 {
                let dest = topology.host_of(rank);
                if dest == host || topology.direction(host, dest) != side {
                    continue;
                }
                lanes.requests[rank as usize] = transit;
                if topology.distance(host, dest) >= 2 {
                    let flow = &mut flows[rank as usize];
                    flow.line.outbox = transit;
                    flow.bulk = bulk.map(|bulk| Box::new(FlowQueue::bulk(bulk)));
                    flow.route = Some(Route { src: members.rank(), dst: rank });
                    flow.detours = members.has_direct_lane(rank).then_some(DETOURS);
                }
            }
        }
        for (rank, flow) in flows.iter_mut().enumerate() {
            flow.distance = topology.distance(host, topology.host_of(rank as u32));
            flow.relays = flow.distance >= 2;
            flow.allowance = Allowance::new(credit_policy.share);
        }
        Outbound {
            lanes,
            flows,
            work: VecDeque::new(),
            sent: VecDeque::new(),
            members: members.clone(),
            me: members.rank(),
            credit_policy,
            held: 0,
            stalls: 0,
            packs: true,
            retransmit_thread: None,
            turns: 0,
            copying: false,
            counts: Counts::default(),
            vci: 0,
        }
    }

    /// Makes room for peers up to this number.
    pub fn admit(&mut self, peer: usize) {
        while self.flows.len() <= peer {
            self.flows.push(Flow::nowhere(NOWHERE, Allowance::new(self.credit_policy.share)));
        }
    }

    /// Gives a flow its lane.
    pub fn connect(&mut self, peer: u32, lane: Producer, bell: Bell) {
        self.flows[peer as usize].line.outbox = self.lanes.push(lane, bell, true);
    }

    /// Leads the flow to a rank past the hosts between, once it has carried some packets: the packet that announces it
    /// is the last one that is relayed. Where there can be no such lane, the flow stays as it is.
    #[inline(always)]
    pub(super) fn shorten(&mut self, dest: u32) {
        let Some(flow) = self.flows.get_mut(dest as usize) else { return };
        let Some(left) = &mut flow.detours else { return };
        *left = left.saturating_sub(1);
        if *left == 0 && flow.is_idle() {
            self.open_direct(dest);
        }
    }

    #[cold]
    fn open_direct(&mut self, dest: u32) {
        let flow = &mut self.flows[dest as usize];
        let Some(Outbox { lane, bell, .. }) = self.lanes.boxes.get_mut(flow.line.outbox) else { return };
        // The next packet tries again.
        if !lane.has_room(1, 1) {
            return;
        }
        flow.detours = None;
        match self.members.direct_producer(dest) {
            Ok(DirectLane { bell: None, .. }) => {}
            Ok(DirectLane { end, bell: Some((bells, doorbell)) }) => {
                let put = put_bare(lane, flow.route, Packet::Direct, &[]);
                debug_assert!(put, "there is room for it");
                self.lanes.doorbells += bell.ring();
                flow.redirect(self.lanes.push(end, Bell::Foreign(bells, doorbell), true));
            }
            Err(error) => log::info!("rank {}: messages to rank {dest} stay relayed: {error}", self.me),
        }
    }

    /// Takes the lane away from a peer outside the job, which is lost.
    pub fn disconnect(&mut self, peer: u32) {
        let place = self.flows[peer as usize].line.outbox;
        self.lose(peer);
        let boxes = &mut self.lanes.boxes;
        if place < boxes.len() {
            boxes.swap_remove(place);
            // The last one is of such a peer, or a lane past hosts, and has no other flow.
            let moved = boxes.len();
            let flow = self.flows.iter_mut().find(|flow| flow.line.outbox == moved);
            flow.into_iter().for_each(|flow| flow.line.outbox = place);
        }
    }

    /// Gives the flow of a lost peer to another, which has no lane yet. Its counters stay.
    pub fn renew(&mut self, peer: u32) {
        let Flow { listed, msgs, bytes, .. } = self.flows[peer as usize];
        let new = Flow::nowhere(NOWHERE, Allowance::new(self.credit_policy.share));
        self.flows[peer as usize] = Flow { listed, msgs, bytes, ..new };
    }

    /// Returns the number of bytes that the entries sent to a peer occupy in its lane, over all laps.
    pub fn produced_for(&self, peer: u32) -> u64 {
        let outbox = self.flows.get(peer as usize).and_then(|flow| self.lanes.boxes.get(flow.line.outbox));
        outbox.map_or(0, |outbox| outbox.lane.produced())
    }

    /// Returns true if a rank is lost.
    #[inline]
    pub fn is_lost(&self, rank: u32) -> bool {
        self.flows.get(rank as usize).is_some_and(|flow| flow.line.outbox == LOST)
    }

    /// Drops the packets that wait for a rank, and all that are sent to it later. An engine that is reading payloads
    /// for it finishes first.
    pub fn lose(&mut self, rank: u32) {
        let bulk = self.flows[rank as usize].bulk.as_ref().map(|line| line.outbox);
        if let Some(outbox) = bulk.and_then(|outbox| self.lanes.boxes.get_mut(outbox)) {
            if !outbox.lane.finish_copies(ENGINE_LIMIT) {
                log::error!(
                    "rank {}: the adapter's copy engine has not completed its copies for rank {rank} within {} s, and \
                     may still read their payloads",
                    self.me,
                    ENGINE_LIMIT.as_secs()
                );
            }
        }
        self.held -= self.flows[rank as usize].lose(LOST);
        if let Some(retransmit_thread) = &self.retransmit_thread {
            retransmit_thread.reliable().lose(rank);
        }
    }

    /// Returns the lane to a rank.
    #[cfg(test)]
    pub fn lane_to(&mut self, rank: u32) -> &mut Producer {
        &mut self.lanes.boxes[self.flows[rank as usize].line.outbox].lane
    }
}
