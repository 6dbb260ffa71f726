//! Sending: one flow to each rank, and what waits in it for room in its lane.
//!
//! A message that finds no room waits, and all later ones of the same flow behind it. A message in
//! pieces keeps its place only until its header is sent; later messages may pass between its
//! pieces, so a large one does not hold up small ones. Messages without credit wait apart (`held`).

mod care;
mod describe;
pub(super) mod flow;
mod held;
mod lanes;
mod lose;
mod outbox;
mod plain;
#[cfg(test)]
mod tests;

use super::carrier::Caretaker;
use super::credit::Tariff;
use super::wire::{Head, Packet, HANDLERS};
use super::EndpointError;
pub(super) use flow::TURN_BYTES;
use flow::{put_message, Flow, Opening, Waiting};
use ntbring_memory::ForeignBytes;
use ntbring_ring::relay::{Route, ROUTED};
use ntbring_rma::{Request, REQUEST};
use ntbring_zerocopy::{Cut, Payload, Thresholds};
pub(super) use outbox::Outbox;
use smallvec::SmallVec;
use std::collections::VecDeque;

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

/// The outcome of a send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sent {
    /// Its payload is not needed any more.
    Done,
    /// Its payload is needed until an event with its cookie.
    Pending,
}

/// A payload that is not needed any more.
#[derive(Clone, Copy)]
pub(super) struct Released {
    pub cookie: usize,
    pub handler: u16,
    /// True if it had been offered.
    pub offered: bool,
}

/// Pieces of one flow that are sent before another flow has its turn.
const TURN: usize = 8;

/// The outbox of a peer to which there is no lane.
const NOWHERE: usize = usize::MAX;

/// The outbox of a rank that is lost: what is sent to it is forgotten.
const LOST: usize = usize::MAX - 1;

/// All flows of a rank.
pub(super) struct Outbound {
    outboxes: Vec<Outbox>,
    pub flows: Vec<Flow>,
    /// The outbox to the forwarder on the way to each rank's host; NOWHERE for the own one.
    requests: Vec<usize>,
    /// Ranks whose flow has something waiting.
    work: VecDeque<u32>,
    sent: VecDeque<Released>,
    /// This rank.
    me: u32,
    pub tariff: Tariff,
    /// Messages that wait for credit, in all flows; and how many ever did.
    pub held: usize,
    pub held_ever: u64,
    /// Number of times that this rank has asked for credit.
    stalls: u32,
    /// Of what others bring further, and of what goes straight through memory.
    cuts: [Cut; 2],
    /// Largest packet that fits into all lanes on the way to any rank, bytes.
    packet_max: usize,
    /// True if links are not trusted.
    pub checked: bool,
    /// True if payloads can be packed at present.
    pub packs: bool,
    /// Brings what lies in the outboxes of other hosts to them, where links repeat what they have lost.
    pub caretaker: Option<Caretaker>,
    pub doorbells: u64,
    /// Turns in which something was put into a lane.
    turns: u64,
    pub packed: u64,
    pub separate: u64,
}

impl Outbound {
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

    /// Returns an error if a message cannot be sent at all.
    pub fn check(&mut self, m: &Message<'_>) -> Result<(), EndpointError> {
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
        if m.header.len() > self.header_max() {
            let text = format!("a header of {} bytes, at most {} are possible", m.header.len(), self.header_max());
            return Err(EndpointError::Argument(text));
        }
        Ok(())
    }

    /// Deposits a message at once, if it is one entry and there is room.
    #[inline]
    pub fn send_now(&mut self, m: &Message<'_>, thresholds: &Thresholds) -> Result<bool, EndpointError> {
        let Some(flow) = self.flows.get_mut(m.dest as usize) else { return Ok(false) };
        let Some(outbox) = self.outboxes.get_mut(flow.line.outbox) else { return Ok(false) };
        let cost = self.tariff.cost(m.head.handler, m.payload.len());
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
        self.doorbells += outbox.bell.ring();
        self.packed += 1;
        Ok(true)
    }

    #[inline]
    pub fn send(&mut self, m: Message<'_>, thresholds: &Thresholds) -> Result<Sent, EndpointError> {
        match self.send_now(&m, thresholds)? {
            true => Ok(Sent::Done),
            false => self.keep(m, thresholds),
        }
    }

    /// Takes a message that cannot be deposited as one entry right now.
    fn keep(&mut self, m: Message<'_>, thresholds: &Thresholds) -> Result<Sent, EndpointError> {
        self.check(&m)?;
        let dest = m.dest;
        if self.is_lost(dest) {
            return Ok(if m.payload.is_empty() && m.cookie == 0 { Sent::Done } else { Sent::Pending });
        }
        let (empty, cookie) = (m.payload.is_empty(), m.cookie);
        let header = SmallVec::from_slice(m.header);
        let before = self.sent.len();
        let cost = self.tariff.cost(m.head.handler, m.payload.len());
        let held = !self.flows[dest as usize].allowance.admits(cost);
        // Whoever has no credit has to wait, even with nothing but a header.
        let awaited = !empty || held && cookie != 0;
        // A header alone always fits.
        let whole = empty || thresholds.packs(m.header.len(), m.payload.len());
        let waiting = match whole {
            true => Waiting::Whole { head: m.head, header, payload: m.payload, cookie, awaited },
            false => Waiting::Pieces { opening: Opening::Begin(m.head), header, payload: m.payload, cookie },
        };
        match whole {
            true => self.packed += 1,
            false => self.separate += 1,
        }
        if held {
            self.hold(dest, waiting, cost)?;
            return Ok(if awaited { Sent::Pending } else { Sent::Done });
        }
        self.flows[dest as usize].allowance.spend(cost);
        self.queue(dest, waiting)?;
        // All of it may have found room after all.
        let mine = |released: &Released| !released.offered && released.cookie == cookie;
        let done = (before..self.sent.len()).find(|&i| !empty && mine(&self.sent[i]));
        if let Some(i) = done {
            self.sent.remove(i);
        }
        Ok(if empty || done.is_some() { Sent::Done } else { Sent::Pending })
    }

    /// Queues something for a rank, and sends what there is room for.
    fn queue(&mut self, dest: u32, waiting: Waiting) -> Result<(), EndpointError> {
        if self.flows.get(dest as usize).is_none_or(|flow| flow.line.outbox == NOWHERE) {
            return Err(EndpointError::Argument(format!("there is no way to peer {dest}")));
        }
        if self.is_lost(dest) {
            return Ok(());
        }
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
    pub fn request(&mut self, route: Route, request: &Request, operands: ForeignBytes) -> bool {
        let Some(Outbox { lane, bell, .. }) =
            self.requests.get(route.dst as usize).and_then(|&i| self.outboxes.get_mut(i))
        else {
            return false;
        };
        let at = Route::LEN + Request::LEN;
        let Some(mut slot) = lane.reserve(at + operands.len()) else { return false };
        slot.write_bytes(0, &route.bytes());
        slot.write_bytes(Route::LEN, &request.bytes());
        slot.write(at, operands);
        slot.commit(ROUTED | REQUEST, at + operands.len(), 0);
        self.doorbells += bell.ring();
        true
    }

    /// Sends a payload that was offered and that the receiver fetches by this number.
    pub fn feed(&mut self, dest: u32, fetch: u32, payload: Payload, cookie: usize) -> Result<(), EndpointError> {
        let opening = Opening::Feed(fetch);
        self.queue(dest, Waiting::Pieces { opening, header: SmallVec::new(), payload, cookie })
    }

    /// Sends as many waiting messages as there is room for. Returns true if any was sent.
    pub fn advance(&mut self) -> Result<bool, EndpointError> {
        let before = (self.doorbells, self.turns);
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
        Ok((self.doorbells, self.turns) != before)
    }

    /// A turn for one flow: first messages that wait, then a piece of each stream, and again.
    /// True if nothing is left to be sent.
    fn serve(&mut self, dest: u32) -> Result<bool, EndpointError> {
        let flow = &mut self.flows[dest as usize];
        if flow.line.outbox == LOST {
            return Ok(true);
        }
        for line in std::iter::once(&mut flow.line).chain(flow.bulk.as_deref_mut()) {
            if !self.packs && line.is_packed() {
                continue;
            }
            let Outbox { lane, bell, cut, .. } = &mut self.outboxes[line.outbox];
            let mut sent = 0;
            for _ in 0..TURN {
                let Some(bytes) = line.put_some(lane, flow.route, *cut, &mut self.sent)? else { break };
                self.turns += 1;
                self.doorbells += bell.ring();
                sent += bytes;
                if sent >= TURN_BYTES {
                    break;
                }
            }
        }
        let idle = flow.is_idle();
        self.carry(dest);
        Ok(idle)
    }
}
