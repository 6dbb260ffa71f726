//! Sending: one flow to each rank, and what waits in it for room in its lane.
//!
//! A message that finds no room waits, and all later ones of the same flow behind it. A message in
//! pieces keeps its place only until its header is sent; later messages may pass between its
//! pieces, so a large one does not hold up small ones.

use super::bell::Bell;
use super::wire::{plain_meta, Head, Packet, HANDLERS, MESSAGE, PREFIX_MAX, STREAMS};
use super::EndpointError;
use crate::queue::Producer;
use crate::ring::plan::End;
use crate::ring::relay::Route;
use crate::ring::{rank_doorbell, Membership, FORWARDER_DOORBELL};
use crate::zerocopy::{Payload, Thresholds};
use smallvec::SmallVec;
use std::collections::VecDeque;
use std::sync::Arc;

/// A message to be sent.
pub struct Message<'a> {
    /// The rank it is for.
    pub dest: u32,
    /// About it.
    pub head: Head,
    /// MPICH's header; copied if it has to wait.
    pub header: &'a [u8],
    /// Its payload; left where it is if it has to wait.
    pub payload: Payload,
    /// Given back in [`super::Event::Sent`].
    pub cookie: usize,
}

/// What became of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sent {
    /// Its payload is not needed any more.
    Done,
    /// Its payload is needed until an event with its cookie.
    Pending,
}

/// A payload that is not needed any more.
pub(super) struct Released {
    pub cookie: usize,
    pub handler: u16,
}

/// Messages of one flow that may be under way in pieces at once.
const STREAMS_AT_ONCE: usize = 8;
/// Pieces of one flow that are sent before another flow has its turn.
const TURN: usize = 8;

/// The outbox of a peer to which there is no lane.
const NOWHERE: usize = usize::MAX;

struct Outbox {
    lane: Producer,
    bell: Bell,
}

struct Waiting {
    head: Head,
    header: SmallVec<[u8; 64]>,
    payload: Payload,
    cookie: usize,
}

struct Stream {
    id: u8,
    head: Head,
    payload: Payload,
    offset: u64,
    cookie: usize,
}

#[derive(Default)]
pub(super) struct Flow {
    outbox: usize,
    route: Option<Route>,
    pub distance: usize,
    waiting: VecDeque<Waiting>,
    streams: Vec<Stream>,
    /// One bit for each stream number in use.
    used: u16,
    listed: bool,
    pub msgs: u64,
    pub bytes: u64,
}

/// All flows of a rank.
pub(super) struct Outbound {
    outboxes: Vec<Outbox>,
    pub flows: Vec<Flow>,
    /// Ranks whose flow has something waiting.
    work: VecDeque<u32>,
    sent: VecDeque<Released>,
    chunk: usize,
    /// What fits into all lanes on the way to anybody.
    packet_max: usize,
    pub doorbells: u64,
    pub packed: u64,
    pub separate: u64,
}

impl Outbound {
    pub fn new(members: &Arc<Membership>, chunk: usize) -> Outbound {
        let topology = members.topology();
        let (host, me) = (members.host(), End::Rank(topology.local_of(members.rank())));
        let mut outboxes = Vec::new();
        let mut flows: Vec<Flow> = (0..topology.size()).map(|_| Flow::default()).collect();
        let mut boxed = |lane: Producer, bell: Bell| {
            outboxes.push(Outbox { lane, bell });
            outboxes.len() - 1
        };
        for (local, &rank) in topology.ranks_of(host).iter().enumerate() {
            let bell = Bell::Local(members.clone(), rank_doorbell(local));
            flows[rank as usize].outbox = boxed(members.local_producer(local), bell);
        }
        for link in members.links().into_iter().flatten() {
            let side = link.side();
            let next = link.neighbour();
            for (local, &rank) in topology.ranks_of(next).iter().enumerate() {
                if topology.direction(host, next) == side {
                    let bell = Bell::Port(link.port(), rank_doorbell(local));
                    flows[rank as usize].outbox = boxed(link.producer(me, End::Rank(local), false), bell);
                }
            }
            let bell = Bell::Port(link.port(), FORWARDER_DOORBELL);
            let transit = boxed(link.producer(me, End::Forwarder, false), bell);
            for rank in 0..topology.size() as u32 {
                let dest = topology.host_of(rank);
                if topology.distance(host, dest) >= 2 && topology.direction(host, dest) == side {
                    let flow = &mut flows[rank as usize];
                    flow.outbox = transit;
                    flow.route = Some(Route { src: members.rank(), dst: rank });
                }
            }
        }
        for (rank, flow) in flows.iter_mut().enumerate() {
            flow.distance = topology.distance(host, topology.host_of(rank as u32));
        }
        let (work, sent) = (VecDeque::new(), VecDeque::new());
        let packet_max = members.packet_max();
        let mut out = Outbound { outboxes, flows, work, sent, chunk, packet_max, doorbells: 0, packed: 0, separate: 0 };
        out.chunk = chunk.min(out.smallest_entry() - PREFIX_MAX);
        out
    }

    fn smallest_entry(&self) -> usize {
        self.outboxes.iter().map(|o| o.lane.entry_max()).min().unwrap_or(0).min(self.packet_max)
    }

    /// Bytes of the smallest lane.
    pub fn smallest_lane(&self) -> usize {
        self.outboxes.iter().map(|o| o.lane.lines() * crate::queue::LINE).min().unwrap_or(0)
    }

    /// Most bytes of a piece.
    pub fn chunk(&self) -> usize {
        self.chunk
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
            self.flows.push(Flow { outbox: NOWHERE, ..Flow::default() });
        }
    }

    /// Gives a flow its lane.
    pub fn connect(&mut self, peer: u32, lane: Producer, bell: Bell) {
        self.flows[peer as usize].outbox = self.outboxes.len();
        self.outboxes.push(Outbox { lane, bell });
    }

    pub fn has_work(&self) -> bool {
        !self.work.is_empty() || !self.sent.is_empty()
    }

    pub fn take_sent(&mut self) -> Option<Released> {
        self.sent.pop_front()
    }

    #[inline]
    pub fn send(&mut self, m: Message<'_>, thresholds: &Thresholds) -> Result<Sent, EndpointError> {
        let Some(flow) = self.flows.get_mut(m.dest as usize) else {
            return Err(EndpointError::Argument(format!("there is no rank {}", m.dest)));
        };
        if m.head.handler >= HANDLERS {
            return Err(EndpointError::Argument(format!("there is no handler {}", m.head.handler)));
        }
        let Some(outbox) = self.outboxes.get_mut(flow.outbox) else {
            return Err(EndpointError::Argument(format!("peer {} was never added", m.dest)));
        };
        flow.msgs += 1;
        flow.bytes += m.header.len() as u64 + m.payload.len();
        if flow.waiting.is_empty()
            && thresholds.packs(m.header.len(), m.payload.len())
            && put_message(&mut outbox.lane, flow.route, m.head, m.header, &m.payload)?
        {
            outbox.bell.ring();
            self.doorbells += 1;
            self.packed += 1;
            return Ok(Sent::Done);
        }
        self.keep(m, thresholds)
    }

    /// Takes a message that cannot be deposited as one entry right now.
    fn keep(&mut self, m: Message<'_>, thresholds: &Thresholds) -> Result<Sent, EndpointError> {
        if m.header.len() > self.header_max() {
            let text = format!("a header of {} bytes, at most {} are possible", m.header.len(), self.header_max());
            return Err(EndpointError::Argument(text));
        }
        let dest = m.dest;
        let (empty, cookie) = (m.payload.is_empty(), m.cookie);
        let flow = &mut self.flows[dest as usize];
        let header = SmallVec::from_slice(m.header);
        flow.waiting.push_back(Waiting { head: m.head, header, payload: m.payload, cookie });
        let before = self.sent.len();
        let idle = self.serve(dest, thresholds)?;
        if !idle && !self.flows[dest as usize].listed {
            self.flows[dest as usize].listed = true;
            self.work.push_back(dest);
        }
        // All of it may have found room after all.
        let done = (before..self.sent.len()).find(|&i| !empty && self.sent[i].cookie == cookie);
        if let Some(i) = done {
            self.sent.remove(i);
        }
        Ok(if empty || done.is_some() { Sent::Done } else { Sent::Pending })
    }

    /// Sends of what waits as much as there is room for. Whether there was room for anything.
    pub fn advance(&mut self, thresholds: &Thresholds) -> Result<bool, EndpointError> {
        let before = self.doorbells;
        for _ in 0..self.work.len() {
            let Some(dest) = self.work.pop_front() else { break };
            match self.serve(dest, thresholds) {
                Ok(true) => self.flows[dest as usize].listed = false,
                Ok(false) => self.work.push_back(dest),
                Err(error) => {
                    self.work.push_back(dest);
                    return Err(error);
                }
            }
        }
        Ok(self.doorbells != before)
    }

    /// A turn for one flow: first messages that wait, then a piece of each stream, and again.
    /// True if nothing is left to be sent.
    fn serve(&mut self, dest: u32, thresholds: &Thresholds) -> Result<bool, EndpointError> {
        let flow = &mut self.flows[dest as usize];
        let Outbox { lane, bell } = &mut self.outboxes[flow.outbox];
        for _ in 0..TURN {
            let mut moved = false;
            while let Some(w) = flow.waiting.front() {
                // A header alone always fits, and has no pieces.
                if w.payload.is_empty() || thresholds.packs(w.header.len(), w.payload.len()) {
                    if !put_message(lane, flow.route, w.head, &w.header, &w.payload)? {
                        break;
                    }
                    self.packed += 1;
                    if !w.payload.is_empty() {
                        self.sent.push_back(Released { cookie: w.cookie, handler: w.head.handler });
                    }
                } else {
                    if flow.streams.len() >= STREAMS_AT_ONCE {
                        break;
                    }
                    let id = flow.used.trailing_ones() as u8;
                    debug_assert!((id as usize) < STREAMS);
                    if !put_begin(lane, flow.route, w, id) {
                        break;
                    }
                    self.separate += 1;
                    flow.used |= 1 << id;
                    let (head, payload, cookie) = (w.head, w.payload, w.cookie);
                    flow.streams.push(Stream { id, head, payload, offset: 0, cookie });
                }
                flow.waiting.pop_front();
                moved = true;
            }
            let mut i = 0;
            while i < flow.streams.len() {
                let stream = &mut flow.streams[i];
                if !put_chunk(lane, flow.route, stream, self.chunk)? {
                    break;
                }
                moved = true;
                if stream.offset == stream.payload.len() {
                    let stream = flow.streams.remove(i);
                    flow.used &= !(1 << stream.id);
                    self.sent.push_back(Released { cookie: stream.cookie, handler: stream.head.handler });
                } else {
                    i += 1;
                }
            }
            if !moved {
                break;
            }
            bell.ring();
            self.doorbells += 1;
            // The piece that was refused comes first next time.
            if flow.streams.len() > 1 && i < flow.streams.len() {
                flow.streams.rotate_left(i);
            }
        }
        Ok(flow.waiting.is_empty() && flow.streams.is_empty())
    }

    /// Lines on every flow in which something waits.
    pub fn describe(&self) -> Vec<String> {
        let waiting = self.flows.iter().enumerate().filter(|(_, f)| !f.waiting.is_empty() || !f.streams.is_empty());
        let mut lines: Vec<String> = waiting
            .map(|(rank, f)| {
                let lane = &self.outboxes[f.outbox].lane;
                let rest: u64 = f.streams.iter().map(|s| s.payload.len() - s.offset).sum();
                format!(
                    "to rank {rank}: {} messages wait, {} under way with {rest} bytes to go; lane: {} of {} lines not known to be free",
                    f.waiting.len(), f.streams.len(), lane.taken(), lane.lines(),
                )
            })
            .collect();
        if lines.is_empty() {
            lines.push("nothing waits to be sent".into());
        }
        lines
    }
}

/// Deposits a whole message; false if there is no room.
#[inline]
fn put_message(
    lane: &mut Producer,
    route: Option<Route>,
    head: Head,
    header: &[u8],
    payload: &Payload,
) -> Result<bool, EndpointError> {
    let size = payload.len() as usize;
    if let (None, Some(meta), Payload::Contiguous(bytes)) = (route, plain_meta(head, header.len()), payload) {
        let len = header.len() + size;
        let Some(mut slot) = lane.reserve(len) else { return Ok(false) };
        slot.write_bytes(0, header);
        slot.write(header.len(), *bytes);
        slot.commit(MESSAGE, len, meta);
        return Ok(true);
    }
    let prefix = Packet::Message { head, header: header.len(), payload: size }.prefix(route);
    let at = prefix.bytes().len();
    let len = at + header.len() + size;
    let Some(mut slot) = lane.reserve(len) else { return Ok(false) };
    slot.write_bytes(0, prefix.bytes());
    slot.write_bytes(at, header);
    let mut put = 0;
    while put < size {
        put += payload.put(put as u64, &mut slot, at + header.len() + put, size - put)?;
    }
    slot.commit(prefix.kind, len, prefix.meta);
    Ok(true)
}

fn put_begin(lane: &mut Producer, route: Option<Route>, w: &Waiting, stream: u8) -> bool {
    let packet = Packet::Begin { head: w.head, header: w.header.len(), stream, total: w.payload.len() };
    let prefix = packet.prefix(route);
    let at = prefix.bytes().len();
    let Some(mut slot) = lane.reserve(at + w.header.len()) else { return false };
    slot.write_bytes(0, prefix.bytes());
    slot.write_bytes(at, &w.header);
    slot.commit(prefix.kind, at + w.header.len(), prefix.meta);
    true
}

fn put_chunk(
    lane: &mut Producer,
    route: Option<Route>,
    stream: &mut Stream,
    chunk: usize,
) -> Result<bool, EndpointError> {
    let size = (stream.payload.len() - stream.offset).min(chunk as u64) as usize;
    let prefix = Packet::Chunk { stream: stream.id, payload: size }.prefix(route);
    let at = prefix.bytes().len();
    let Some(mut slot) = lane.reserve(at + size) else { return Ok(false) };
    slot.write_bytes(0, prefix.bytes());
    let put = stream.payload.put(stream.offset, &mut slot, at, size)?;
    slot.commit(prefix.kind, at + put, prefix.meta);
    stream.offset += put as u64;
    Ok(true)
}
