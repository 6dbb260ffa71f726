//! Receiving into a default buffer, as the models of the experiments do it that have no zero-copy
//! receive.
//!
//! What arrives is copied out of the lane before anybody sees it. A payload that is too large for
//! one entry has a buffer of its own, where it waits until it is known where it goes. The bytes of
//! an arrival stay where they are until the next poll.

use super::{Buffer, MOST, WHOLE};
use crate::arrival::{Arrival, Event, Token};
use crate::offers::Accepted;
use crate::wire::{Head, Packet};
use crate::{Endpoint, EndpointError};
use ntbring_memory::{Address, ForeignRoom};
use ntbring_queue::PaperModel;
use smallvec::SmallVec;
use std::collections::HashMap;

/// Buffers that are kept for the next payloads.
const KEPT: usize = 8;

/// The default buffer of a rank.
pub(in super::super) struct ReceiveSide {
    /// What is shown now, if it came in one entry.
    entry: Buffer,
    /// Headers whose payload is the next entry, by source.
    headers: HashMap<u32, (Head, SmallVec<[u8; 64]>)>,
    /// Larger payloads, by source and the number that it gave them.
    stops: HashMap<(u32, u32), Stop>,
    /// Buffers of payloads of which pieces are still to be shown.
    shown: Vec<Buffer>,
    spare: Vec<Buffer>,
    /// Of payloads sent.
    numbers: u32,
}

struct Stop {
    buffer: Buffer,
    total: usize,
    arrived: usize,
    taker: Option<Taker>,
}

/// Who wants a payload.
#[derive(Clone, Copy)]
struct Taker {
    /// Where it goes, if to one place.
    room: Option<ForeignRoom>,
    size: usize,
    cookie: usize,
}

impl ReceiveSide {
    /// Of a model; None if what arrives does not stop.
    pub fn new(model: PaperModel) -> Option<Box<ReceiveSide>> {
        model.copies_at_receiver().then(|| {
            Box::new(ReceiveSide {
                entry: Buffer::new(0),
                headers: HashMap::new(),
                stops: HashMap::new(),
                shown: Vec::new(),
                spare: Vec::new(),
                numbers: 0,
            })
        })
    }

    pub fn next_number(&mut self) -> u32 {
        self.numbers = self.numbers.wrapping_add(1);
        self.numbers
    }

    /// Room for an entry.
    fn room_for(&mut self, len: usize) -> &Buffer {
        if self.entry.len() < len {
            self.entry = Buffer::new(len.next_power_of_two());
        }
        &self.entry
    }

    /// A buffer for a payload. One that was used before has its pages.
    fn buffer(&mut self, len: usize) -> Buffer {
        match self.spare.iter().position(|spare| spare.len() >= len) {
            Some(i) => self.spare.swap_remove(i),
            None => Buffer::new(len.next_power_of_two()),
        }
    }

    fn keep(&mut self, buffer: Buffer) {
        if self.spare.len() == KEPT {
            self.spare.remove(0);
        }
        self.spare.push(buffer);
    }

    /// A line for the diagnosis of a hang.
    pub fn describe(&self) -> String {
        let open = |((src, _), s): (&(u32, u32), &Stop)| format!("rank {src} ({} of {} bytes)", s.arrived, s.total);
        let stops: Vec<String> = self.stops.iter().map(open).collect();
        format!("in the default buffer, from: [{}]", stops.join(", "))
    }
}

impl Stop {
    fn is_complete(&self) -> bool {
        self.arrived == self.total
    }

    /// Copies to its place what arrived after `before`.
    fn pass_on(&self, before: usize, taker: &Taker) {
        let (from, to) = (before.min(taker.size), self.arrived.min(taker.size));
        if let Some(room) = taker.room {
            self.buffer.from.copy_out(from, room.part(from, to - from));
        }
    }

    /// An event that shows what arrived after `before`; None if there is nothing to show.
    fn show(&self, src: u32, before: usize, taker: &Taker, token: Token) -> Option<Event> {
        let (from, to) = (before.min(taker.size), self.arrived.min(taker.size));
        let last = self.is_complete();
        (last || to > from).then(|| {
            Event::Arrival(Arrival {
                src,
                packet: Packet::Chunk { stream: WHOLE, payload: to - from },
                header: Address(self.buffer.from.address(from, to - from)),
                cookie: taker.cookie,
                last,
                fetch: None,
                offset: 0,
                token,
            })
        })
    }
}

impl Endpoint {
    /// Takes an arrival into the default buffer. Returns what is for the caller.
    #[inline(never)]
    pub(in super::super) fn stop_over(&mut self, mut a: Arrival) -> Result<Option<Event>, EndpointError> {
        let Some(paper) = &mut self.paper else { return Ok(Some(Event::Arrival(a))) };
        // Whatever was shown has been looked at.
        while let Some(buffer) = paper.shown.pop() {
            paper.keep(buffer);
        }
        let (lane, offset) = (a.token.lane, a.offset);
        let stay = match a.packet {
            Packet::Begin { stream: WHOLE, head, header, .. } => {
                let mut bytes = SmallVec::from_elem(0, header);
                self.inbound.read(lane, offset, &mut bytes);
                paper.headers.insert(a.src, (head, bytes));
                self.inbound.release(a.token, 0)?;
                return Ok(None);
            }
            Packet::Chunk { stream: WHOLE, payload } => {
                let Some((head, header)) = paper.headers.remove(&a.src) else {
                    return Err(EndpointError::Stream { src: a.src, stream: WHOLE, what: "a payload of no header" });
                };
                let room = paper.room_for(header.len() + payload);
                room.to.write_bytes(0, &header);
                room.to.write(header.len(), self.inbound.foreign(lane, offset, payload));
                a.header = Address(room.from.address(0, header.len() + payload));
                a.last = false;
                a.packet = Packet::Message { head, header: header.len(), payload };
                return Ok(Some(Event::Arrival(a)));
            }
            Packet::Chunk { payload, .. } => match a.fetch {
                Some(number) => return self.add_to_stop(a, number, payload),
                None => payload,
            },
            Packet::Message { header, payload, .. } => header + payload,
            Packet::Begin { header, .. } => header,
            Packet::Offer { header, offer, .. } => {
                let wrong = |what| EndpointError::Offer { src: a.src, id: offer.id, what };
                if offer.total > MOST {
                    return Err(wrong("sends more than a default buffer holds"));
                }
                let total = offer.total as usize;
                let stop = Stop { buffer: paper.buffer(total), total, arrived: 0, taker: None };
                if paper.stops.insert((a.src, offer.id), stop).is_some() {
                    return Err(wrong("uses a number twice"));
                }
                header
            }
            Packet::Feed { fetch, stream, total } => {
                let known = paper.stops.get(&(a.src, fetch));
                if known.is_none_or(|stop| stop.arrived > 0 || stop.total as u64 != total) {
                    return Err(EndpointError::Offer { src: a.src, id: fetch, what: "feeds what it never announced" });
                }
                self.inbound.open(a.src, stream, total, Some(fetch))?;
                self.inbound.release(a.token, 0)?;
                return Ok(None);
            }
            // Nobody is asked anything here, so these are errors.
            Packet::Accept { .. } | Packet::Done { .. } | Packet::Taken { .. } => return self.settle(a),
            // They are none of the experiments' business.
            Packet::Served { .. }
            | Packet::Greeting { .. }
            | Packet::Credit { .. }
            | Packet::Stalled { .. }
            | Packet::Cast { .. } => return self.settle(a),
        };
        let room = paper.room_for(stay);
        room.to.write(0, self.inbound.foreign(lane, offset, stay));
        a.header = Address(room.from.address(0, stay));
        Ok(Some(Event::Arrival(a)))
    }

    /// A piece of a payload that has a buffer of its own.
    fn add_to_stop(&mut self, a: Arrival, number: u32, payload: usize) -> Result<Option<Event>, EndpointError> {
        let Some(paper) = &mut self.paper else { return Ok(None) };
        let key = (a.src, number);
        let Some(stop) = paper.stops.get_mut(&key).filter(|stop| payload <= stop.total - stop.arrived) else {
            return Err(EndpointError::Offer { src: a.src, id: number, what: "feeds what it never announced" });
        };
        let before = stop.arrived;
        stop.buffer.to.write(before, self.inbound.foreign(a.token.lane, a.offset, payload));
        stop.arrived += payload;
        let mut event = None;
        if let Some(taker) = stop.taker {
            let complete = stop.is_complete();
            if taker.room.is_some() {
                stop.pass_on(before, &taker);
                event = complete.then_some(Event::Fetched { cookie: taker.cookie });
            } else if taker.size > 0 {
                event = stop.show(a.src, before, &taker, Token::NOTHING);
            }
            if complete {
                paper.shown.extend(paper.stops.remove(&key).map(|stop| stop.buffer));
            }
        }
        self.inbound.release(a.token, 0)?;
        Ok(event)
    }

    /// Accepts the first `size` bytes of what has arrived, or will: see [`Endpoint::accept`].
    pub(in super::super) fn take_from_stop(
        &mut self,
        src: u32,
        number: u32,
        room: Option<ForeignRoom>,
        size: u64,
        cookie: usize,
    ) -> Result<Accepted, EndpointError> {
        let Some(paper) = &mut self.paper else { return Ok(Accepted::Pending) };
        let key = (src, number);
        let Some(stop) = paper.stops.get_mut(&key).filter(|stop| stop.taker.is_none()) else {
            return Err(EndpointError::Argument("what is accepted was never offered".into()));
        };
        let room = room.filter(|_| size > 0);
        let taker = Taker { room, size: size as usize, cookie };
        let complete = stop.is_complete();
        stop.taker = Some(taker);
        if room.is_some() {
            stop.pass_on(0, &taker);
        } else if size > 0 && stop.arrived > 0 {
            let event = stop.show(src, 0, &taker, Token::NOTHING);
            self.offers.events.extend(event);
        }
        if complete {
            paper.shown.extend(paper.stops.remove(&key).map(|stop| stop.buffer));
        }
        Ok(if size == 0 || (complete && room.is_some()) { Accepted::Done } else { Accepted::Pending })
    }
}
