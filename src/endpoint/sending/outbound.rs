//! All flows of a rank: messages that are sent at once, and those that wait for room.
//!
//! A message that finds no room waits, and all later ones of the same flow behind it. A chunked message keeps its place
//! only until its header is sent; later messages may pass between its chunks, so a large one does not hold up small
//! ones. Messages without credit wait apart (`held`).

use super::flow::Flow;
use super::lanes::Lanes;
use super::line::{put_message, Opening, Waiting, TURN_BYTES};
use super::message::{Message, Released, Sent};
use super::outbox::{Outbox, LOST, NOWHERE};
use crate::error::EndpointError;
use crate::flow_control::CreditPolicy;
use crate::observation::{Histogram, Reason, Waits};
use crate::reliable::RetransmitThread;
use crate::wire::{Packet, HANDLERS};
use ntbring_memory::ForeignBytes;
use ntbring_ntb::Side;
use ntbring_ring::relay::Route;
use ntbring_ring::Membership;
use ntbring_rma::Request;
use ntbring_timeline::Way;
use ntbring_zerocopy::{Payload, Thresholds};
use smallvec::SmallVec;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

/// Chunks of one flow that are sent before another flow has its turn.
const TURN: usize = 8;

/// Numbers of messages sent.
#[derive(Default)]
pub struct Counts {
    /// Payload sizes of messages that were one entry of a lane.
    pub packed: Histogram,
    /// Payload sizes of messages that were sent as a header and chunks.
    pub chunked: Histogram,
    /// Messages that have waited for credit.
    pub held: u64,
    /// Times for which they have waited.
    pub held_for: Histogram,
}

/// All flows of a rank.
pub struct Outbound {
    pub(super) lanes: Lanes,
    pub(super) flows: Vec<Flow>,
    /// Ranks whose flow has something waiting.
    pub(super) work: VecDeque<u32>,
    pub(super) sent: VecDeque<Released>,
    pub(super) members: Arc<Membership>,
    /// This rank.
    pub(super) me: u32,
    pub credit_policy: CreditPolicy,
    /// Messages that wait for credit, in all flows.
    pub(super) held: usize,
    /// Number of times that this rank has asked for credit.
    pub(super) stalls: u32,
    /// True if an engine was copying chunks when they were last looked at.
    pub(super) copying: bool,
    /// True if payloads can be packed at present.
    pub packs: bool,
    /// The thread that carries the entries in the outboxes of other hosts to them, where links retransmit what they
    /// have lost.
    pub retransmit_thread: Option<RetransmitThread>,
    /// Number of turns in which something was put into a lane.
    pub(super) turns: u64,
    pub(super) counts: Counts,
    /// Index of the endpoint, for the timeline.
    pub vci: u8,
}

impl Outbound {
    /// Returns the outgoing lanes.
    pub fn lanes(&self) -> &Lanes {
        &self.lanes
    }

    /// Returns the outgoing lanes.
    pub fn lanes_mut(&mut self) -> &mut Lanes {
        &mut self.lanes
    }

    /// Returns the numbers of messages sent so far.
    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    /// True if messages wait for credit.
    pub fn is_holding(&self) -> bool {
        self.held > 0
    }

    /// Returns for each peer its distance in hops, true if its messages are relayed now, and the messages and bytes that
    /// were sent to it directly and relayed.
    pub fn traffic(&self) -> impl Iterator<Item = (usize, bool, [(u64, u64); 2])> + '_ {
        self.flows.iter().map(|flow| (flow.distance, flow.relays, flow.traffic()))
    }

    pub fn has_work(&self) -> bool {
        !self.work.is_empty() || !self.sent.is_empty()
    }

    /// Returns true if any message waits for room.
    pub fn is_sending(&self) -> bool {
        !self.work.is_empty()
    }

    pub fn take_sent(&mut self) -> Option<Released> {
        self.sent.pop_front()
    }

    /// Counts a message that is going to be sent the given way. Returns an error if it cannot be sent at all.
    pub fn check(&mut self, m: &Message<'_>, way: Way) -> Result<(), EndpointError> {
        let Some(flow) = self.flows.get_mut(m.dest as usize) else {
            return Err(EndpointError::Argument(format!("there is no rank {}", m.dest)));
        };
        if m.head.handler >= HANDLERS {
            return Err(EndpointError::Argument(format!("there is no handler {}", m.head.handler)));
        }
        if flow.line.outbox == NOWHERE {
            return Err(EndpointError::Argument(format!("peer {} was never added", m.dest)));
        }
        flow.msgs += 1;
        flow.bytes += m.header.len() as u64 + m.payload.len();
        let at = ntbring_timeline::begin();
        if at != 0 {
            self.record(at, m.dest, m.head, m.header, m.payload.len(), way);
        }
        let most = self.lanes.header_max();
        if m.header.len() > most {
            let text = format!("a header of {} bytes, at most {most} are possible", m.header.len());
            return Err(EndpointError::Argument(text));
        }
        Ok(())
    }

    /// Deposits a message at once, if it is one entry and there is room.
    #[inline]
    pub fn send_now(&mut self, m: &Message<'_>, thresholds: &Thresholds) -> Result<bool, EndpointError> {
        self.shorten(m.dest);
        let at = ntbring_timeline::begin();
        let Some(flow) = self.flows.get_mut(m.dest as usize) else { return Ok(false) };
        let Some(outbox) = self.lanes.boxes.get_mut(flow.line.outbox) else { return Ok(false) };
        let cost = self.credit_policy.cost(m.head.handler, m.payload.len());
        if !flow.is_clear()
            || !flow.allowance.admits(cost)
            || m.head.handler >= HANDLERS
            || !thresholds.packs(m.header.len(), m.payload.len())
            || !put_message(&mut outbox.lane, flow.route, m.head, m.header, &m.payload)?
        {
            return Ok(false);
        }
        flow.msgs += 1;
        flow.bytes += m.header.len() as u64 + m.payload.len();
        flow.allowance.spend(cost);
        self.lanes.doorbells += outbox.bell.ring();
        self.counts.packed.count(m.payload.len());
        if at != 0 {
            self.record(at, m.dest, m.head, m.header, m.payload.len(), Way::Packed);
        }
        Ok(true)
    }

    #[inline]
    pub fn send(&mut self, m: Message<'_>, thresholds: &Thresholds) -> Result<Sent, EndpointError> {
        let done = self.send_now(&m, thresholds)?
            || !thresholds.packs(m.header.len(), m.payload.len()) && self.send_pieces(&m);
        match done {
            true => Ok(Sent::Done),
            false => self.keep(m, thresholds),
        }
    }

    /// Queues a message that cannot be deposited as one entry right now.
    fn keep(&mut self, m: Message<'_>, thresholds: &Thresholds) -> Result<Sent, EndpointError> {
        // A header alone always fits.
        let whole = m.payload.is_empty() || thresholds.packs(m.header.len(), m.payload.len());
        self.check(&m, if whole { Way::Packed } else { Way::Chunked })?;
        let dest = m.dest;
        if self.is_lost(dest) {
            return Ok(if m.payload.is_empty() && m.cookie == 0 { Sent::Done } else { Sent::Pending });
        }
        let (empty, size, cookie) = (m.payload.is_empty(), m.payload.len(), m.cookie);
        let header = SmallVec::from_slice(m.header);
        let before = self.sent.len();
        let cost = self.credit_policy.cost(m.head.handler, m.payload.len());
        let held = !self.flows[dest as usize].allowance.admits(cost);
        // A message without credit has to wait, even if it is nothing but a header.
        let awaited = !empty || held && cookie != 0;
        let waiting = match whole {
            true => Waiting::Whole { head: m.head, header, payload: m.payload, cookie, awaited },
            false => Waiting::Pieces { opening: Opening::Begin(m.head), header, payload: m.payload, cookie },
        };
        match whole {
            true => self.counts.packed.count(size),
            false => self.counts.chunked.count(size),
        }
        if held {
            self.hold(dest, waiting, cost)?;
            return Ok(if awaited { Sent::Pending } else { Sent::Done });
        }
        self.flows[dest as usize].allowance.spend(cost);
        self.queue(dest, waiting)?;
        // The whole message may have found room after all.
        let mine = |released: &Released| !released.offered && released.cookie == cookie;
        let done = (before..self.sent.len()).find(|&i| !empty && mine(&self.sent[i]));
        if let Some(i) = done {
            self.sent.remove(i);
        }
        Ok(if empty || done.is_some() { Sent::Done } else { Sent::Pending })
    }

    /// Queues a packet for a rank, and sends as many packets as there is room for.
    pub(super) fn queue(&mut self, dest: u32, waiting: Waiting) -> Result<(), EndpointError> {
        if self.flows.get(dest as usize).is_none_or(|flow| flow.line.outbox == NOWHERE) {
            return Err(EndpointError::Argument(format!("there is no lane to peer {dest}")));
        }
        if self.is_lost(dest) {
            return Ok(());
        }
        self.shorten(dest);
        self.flows[dest as usize].line_of(&waiting).waiting.push_back(waiting);
        let idle = self.serve(dest)?;
        if !idle && !self.flows[dest as usize].listed {
            self.flows[dest as usize].listed = true;
            self.work.push_back(dest);
        }
        Ok(())
    }

    /// Sends an entry without payload, after what was sent before.
    pub fn send_bare(&mut self, dest: u32, packet: Packet, header: &[u8]) -> Result<(), EndpointError> {
        self.queue(dest, Waiting::Bare { packet, header: SmallVec::from_slice(header) })
    }

    /// Deposits a request to the forwarder of a rank's host, if there is room for it.
    pub fn request(&mut self, dest: u32, request: &Request, operands: ForeignBytes) -> bool {
        self.lanes.request(Route { src: self.me, dst: dest }, request, operands)
    }

    /// Sends the payload of an offer, which the receiver fetches by this number.
    pub fn feed(&mut self, dest: u32, fetch: u32, payload: Payload, cookie: usize) -> Result<(), EndpointError> {
        let opening = Opening::Feed(fetch);
        self.queue(dest, Waiting::Pieces { opening, header: SmallVec::new(), payload, cookie })
    }

    /// Sends as many waiting messages as there is room for. Returns true if any was sent, or if an engine is copying
    /// one: no doorbell rings when it has finished, so the caller must not sleep.
    pub fn advance(&mut self) -> Result<bool, EndpointError> {
        let before = (self.lanes.doorbells, self.turns);
        self.copying = false;
        for _ in 0..self.work.len() {
            let Some(dest) = self.work.pop_front() else { break };
            match self.serve(dest) {
                Ok(true) => self.flows[dest as usize].listed = false,
                Ok(false) => self.work.push_back(dest),
                Err(error) => {
                    self.work.push_back(dest);
                    return Err(error);
                }
            }
        }
        Ok((self.lanes.doorbells, self.turns) != before || self.copying)
    }

    /// Gives one flow a turn: first waiting messages are sent, then a chunk of each stream, and so on. Returns true if
    /// nothing is left to be sent.
    fn serve(&mut self, dest: u32) -> Result<bool, EndpointError> {
        let flow = &mut self.flows[dest as usize];
        if flow.line.outbox == LOST {
            return Ok(true);
        }
        for line in std::iter::once(&mut flow.line).chain(flow.bulk.as_deref_mut()) {
            if !self.packs && line.is_packed() {
                continue;
            }
            let Outbox { lane, bell, cut, .. } = &mut self.lanes.boxes[line.outbox];
            let mut sent = 0;
            for _ in 0..TURN {
                let Some(bytes) = line.put_some(lane, flow.route, *cut, &mut self.sent)? else { break };
                self.turns += 1;
                self.lanes.doorbells += bell.ring();
                sent += bytes;
                if sent >= TURN_BYTES {
                    break;
                }
            }
            self.copying |= lane.is_copying();
        }
        let idle = flow.is_idle();
        self.carry(dest);
        Ok(idle)
    }
    /// Sends entries in the lane to a rank of another host at once, if that lane belongs to a reliable connection.
    pub fn carry(&self, dest: u32) {
        let elsewhere = |flow: &Flow| flow.distance > 0;
        if let Some(retransmit_thread) =
            self.retransmit_thread.as_ref().filter(|_| self.flows.get(dest as usize).is_some_and(elsewhere))
        {
            retransmit_thread.reliable().send(dest, Instant::now());
        }
    }

    /// Returns three counts: entries that links had lost or damaged on their way to the neighbours; on their way to
    /// this rank, as far as a reliable connection knows; and entries retransmitted end to end.
    pub fn mended(&self) -> (u64, u64, u64) {
        match &self.retransmit_thread {
            Some(retransmit_thread) => retransmit_thread.reliable().mended(),
            None => (self.lanes.resent(), 0, 0),
        }
    }

    /// Returns for one link: bytes of lane space sent by it, entries retransmitted over it, and entries that arrived
    /// damaged, as far as a reliable connection knows.
    pub fn crossed(&self, side: Side) -> [u64; 3] {
        match &self.retransmit_thread {
            Some(retransmit_thread) => retransmit_thread.reliable().crossed(side),
            None => self.lanes.crossed(side),
        }
    }

    /// Returns the number of doorbells rung, and of heads returned by a reliable connection.
    pub fn writes(&self) -> (u64, u64) {
        let (doorbells, heads) =
            self.retransmit_thread.as_ref().map_or((0, 0), |retransmit_thread| retransmit_thread.reliable().writes());
        (self.lanes.doorbells + doorbells, heads)
    }

    /// Adds what waits to be sent.
    pub fn waits(&self, waits: &mut Waits) {
        for (rank, flow) in self.flows.iter().enumerate() {
            let (room, credit) = flow.left();
            waits.add(Reason::Room, Some(rank as u32), room.0, room.1);
            waits.add(Reason::Credit, Some(rank as u32), credit.0, credit.1);
        }
    }

    /// Returns a line on every flow in which something waits, for the diagnosis of a hang.
    pub fn describe(&self) -> Vec<String> {
        let waiting = self.flows.iter().enumerate().filter(|(_, f)| !f.is_idle() || f.allowance.len() > 0);
        let mut lines: Vec<String> = waiting
            .map(|(rank, f)| format!("to rank {rank}: {}; lane: {}", f.describe(), self.lanes.fill(f.line.outbox)))
            .collect();
        if lines.is_empty() {
            lines.push("nothing waits to be sent".into());
        }
        lines
    }
}
