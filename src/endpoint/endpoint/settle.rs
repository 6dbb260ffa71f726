//! Arrivals that are not for the application: they are passed on to the part that they concern.

use super::Endpoint;
use crate::arrival::{Arrival, Event, Piece, Target, Token};
use crate::error::EndpointError;
use crate::flow_control::Answer;
use crate::rendezvous::Destination;
use crate::wire::Packet;
use ntbring_memory::ForeignRoom;
use ntbring_rma::Reply;
use std::time::Instant;

impl Endpoint {
    /// Returns the lane space of an arrival. The beginning of a chunked message gets the cookie that its chunks will
    /// carry.
    #[inline]
    pub fn release(&mut self, token: Token, cookie: usize) -> Result<(), EndpointError> {
        self.inbound.release(token, cookie)
    }

    /// Returns the lane space of an entry that does not begin a chunked message.
    #[inline(always)]
    pub fn release_entry(&mut self, lane: usize) -> Result<(), EndpointError> {
        self.inbound.release_entry(lane)
    }

    /// Copies bytes of an arrival to the application, from `at` bytes behind the beginning of its header or chunk.
    /// Panics if they reach beyond the lane.
    pub fn copy_out(&self, arrival: &Arrival, at: usize, room: ForeignRoom) {
        self.inbound.copy_out(arrival.token.lane, arrival.offset + at, room);
    }

    /// Copies a chunk with a known destination there.
    #[inline]
    pub(super) fn settle_piece(&mut self, piece: &Piece) -> Result<(), EndpointError> {
        self.place(piece);
        self.inbound.release_entry(piece.lane)?;
        self.carry_out()
    }

    /// Copies a chunk to its destination. Returns the bytes and the cookie of a chunk that the application takes.
    fn place(&mut self, piece: &Piece) -> Option<(usize, usize)> {
        let fetch = match piece.target {
            Target::Caller => return Some((piece.len, piece.cookie)),
            Target::Fetch(fetch) => fetch,
            Target::Room(room) => {
                self.inbound.copy_out(piece.lane, piece.offset, room);
                if piece.last {
                    self.events.push_back(Event::Fetched { cookie: piece.cookie });
                }
                return None;
            }
        };
        match self.offers.destination(fetch, piece.len, piece.last) {
            Destination::Room(room) => {
                self.inbound.copy_out(piece.lane, piece.offset, room);
                self.offers.placed(fetch, room.len(), piece.last);
                None
            }
            Destination::Shown { bytes, cookie } => Some((bytes, cookie)),
            Destination::Nowhere => None,
        }
    }

    /// Handles an arrival that concerns offers, fetches, one-sided operations or credit. Returns an event if there is
    /// one for the caller.
    pub(super) fn settle(&mut self, mut a: Arrival) -> Result<Option<Event>, EndpointError> {
        match a.packet {
            Packet::Chunk { stream, payload } => {
                let (lane, target, cookie, last) = (a.token.lane, a.target, a.cookie, a.last);
                let piece = Piece { lane, offset: a.offset, len: payload, target, cookie, last };
                if let Some((bytes, cookie)) = self.place(&piece) {
                    a.packet = Packet::Chunk { stream, payload: bytes };
                    a.cookie = cookie;
                    return Ok(Some(Event::Arrival(a)));
                }
            }
            Packet::Cts { offer, fetch, request } => {
                self.offers.has_accepted(a.src, (offer, fetch), request, self.members.kernel_copy(a.src))?;
            }
            Packet::Data { fetch, stream, total } => {
                self.offers.has_begun(a.src, fetch, total)?;
                self.inbound.open(a.src, stream, total, Target::Fetch(fetch))?;
            }
            Packet::Fin { fetch, ok } => self.offers.has_pushed(a.src, fetch, ok)?,
            Packet::Taken { offer } => self.offers.has_taken(a.src, offer)?,
            Packet::Served { reply, payload } => {
                let result = self.has_answered(&a, reply, payload);
                self.inbound.release(a.token, 0)?;
                result?;
                return Ok(self.events.pop_front());
            }
            Packet::Dpm { what, kind, payload } => {
                let read = |to: &mut [u8]| self.inbound.read(a.token.lane, a.offset, to);
                self.dynamic.dpm_messages.has_arrived(a.src, (what, kind), payload, read);
            }
            Packet::Credit { allowed } => self.out.credited(a.src, allowed)?,
            Packet::Direct => self.inbound.open_direct(a.src)?,
            Packet::Stalled { origin, number, allowed } => self.has_stalled(a.src, origin, number, allowed)?,
            _ => return Ok(Some(Event::Arrival(a))),
        }
        self.carry_out()?;
        self.inbound.release(a.token, 0)?;
        Ok(self.events.pop_front())
    }

    /// Handles the reply to a one-sided operation.
    fn has_answered(&mut self, a: &Arrival, reply: Reply, payload: usize) -> Result<(), EndpointError> {
        let reported = self.onesided.remotes.has_answered(a.src, reply, payload, |rank| self.members.pid(rank))?;
        if let Some(room) = reported.room {
            self.inbound.copy_out(a.token.lane, a.offset, room);
        }
        self.events.extend(reported.ended.map(|cookie| Event::Remote { cookie }));
        reported.result
    }

    /// Handles a STALLED from a sender.
    fn has_stalled(&mut self, src: u32, origin: u32, number: u32, allowed: u64) -> Result<(), EndpointError> {
        let holds = (self.out.holds_for(src), self.out.is_holding());
        match self.credits.has_stalled(src, origin, allowed, holds, Instant::now()) {
            Answer::Nothing => Ok(()),
            Answer::Credit(allowed) => self.grant(src, allowed),
            Answer::PassOn => self.out.pass_on(origin, number),
        }
    }
}
