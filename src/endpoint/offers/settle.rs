//! Handling of packets that concern offers and fetches.

use super::{Copy, Fetch, Given, Part};
use crate::arrival::{Arrival, Event, Piece, Token};
use crate::wire::{Packet, Request};
use crate::{Endpoint, EndpointError};
use ntbring_zerocopy::Payload;

/// The part of a chunk that the caller has to see.
struct Shown {
    bytes: usize,
    cookie: usize,
}

impl Endpoint {
    /// Takes the next chunk if it is the next entry and has a known destination. Returns its bytes; None if the next
    /// entry is something else.
    #[inline]
    pub(crate) fn settle_piece(&mut self) -> Result<Option<usize>, EndpointError> {
        let offers = &self.offers;
        let Some(piece) = self.inbound.poll_piece(|fetch| offers.has_room(fetch)) else { return Ok(None) };
        self.place(&piece);
        self.inbound.release(Token { lane: piece.lane, begun: None }, 0)?;
        Ok(Some(piece.len))
    }

    /// Copies a chunk to its destination. A chunk without a destination is left to the caller, and its part to be
    /// shown is returned.
    fn place(&mut self, piece: &Piece) -> Option<Shown> {
        let fetch = piece.fetch;
        // A stream is opened only for an existing fetch.
        let f = &mut self.offers.fetches[fetch as usize];
        let wanted = (f.size - f.arrived).min(piece.len as u64) as usize;
        let (room, cookie) = (f.room.map(|r| r.part(f.arrived as usize, wanted)), f.cookie);
        f.arrived += wanted as u64;
        let Some(room) = room else {
            if piece.last {
                self.offers.fetches.remove(fetch as usize);
            }
            return (wanted > 0 || piece.last).then_some(Shown { bytes: wanted, cookie });
        };
        self.inbound.copy_out(piece.lane, piece.offset, room);
        self.moved(fetch, wanted as u64);
        if piece.last {
            self.fetched(fetch);
        }
        None
    }

    /// Handles an arrival that concerns offers, fetches, one-sided operations or credit. Returns an event if there is
    /// one for the caller.
    pub(crate) fn settle(&mut self, mut a: Arrival) -> Result<Option<Event>, EndpointError> {
        match a.packet {
            Packet::Chunk { stream, payload } => {
                let Some(fetch) = a.fetch else { return Ok(Some(Event::Arrival(a))) };
                let piece = Piece { lane: a.token.lane, offset: a.offset, len: payload, fetch, last: a.last };
                if let Some(Shown { bytes, cookie }) = self.place(&piece) {
                    a.packet = Packet::Chunk { stream, payload: bytes };
                    a.cookie = cookie;
                    return Ok(Some(Event::Arrival(a)));
                }
            }
            Packet::Accept { offer, fetch, request } => self.serve_request(a.src, offer, fetch, request)?,
            Packet::Feed { fetch, stream, total } => {
                let f = self.fetch_from(a.src, fetch)?;
                if f.size > total || f.pending > 0 || f.fed {
                    return Err(EndpointError::Offer {
                        src: a.src,
                        id: fetch,
                        what: "feeds a payload that was not requested",
                    });
                }
                self.inbound.open(a.src, stream, total, Some(fetch))?;
                self.offers.fetches[fetch as usize].fed = true;
            }
            Packet::Done { fetch, ok } => {
                if self.fetch_from(a.src, fetch)?.pending == 0 {
                    return Err(EndpointError::Offer {
                        src: a.src,
                        id: fetch,
                        what: "reports a copy that was not requested",
                    });
                }
                self.copy_made(fetch, ok)?;
            }
            Packet::Taken { offer } => {
                self.given_to(a.src, offer)?;
                let given = self.offers.given.remove(offer as usize);
                self.offers.preferences.has_copied(a.src, given.payload.len());
                self.offers.events.push_back(Event::Taken { cookie: given.cookie });
            }
            Packet::Served { reply, payload } => {
                let result = self.request_answered(&a, reply, payload);
                self.inbound.release(a.token, 0)?;
                result?;
                return Ok(self.offers.event());
            }
            Packet::Greeting { what, kind, payload } => self.greeted(&a, what, kind, payload),
            Packet::Credit { allowed } => self.out.credited(a.src, allowed)?,
            Packet::Stalled { origin, number, allowed } => self.stalled(a.src, origin, number, allowed)?,
            _ => return Ok(Some(Event::Arrival(a))),
        }
        self.inbound.release(a.token, 0)?;
        Ok(self.offers.event())
    }

    /// Does what the receiver of an offer requests: streams the payload, or copies a part of it.
    fn serve_request(&mut self, src: u32, offer: u32, fetch: u32, request: Request) -> Result<(), EndpointError> {
        let wrong = |what| EndpointError::Offer { src, id: offer, what };
        let payload = self.given_to(src, offer)?.payload;
        match request {
            Request::Stream { len, gladly } if len <= payload.len() => {
                self.offers.preferences.heard(src, gladly);
                let given = self.offers.given.remove(offer as usize);
                // A packed payload cannot end at an arbitrary offset, so more than `len` bytes may be sent; the
                // receiver drops the rest.
                let payload = match payload {
                    Payload::Contiguous(bytes) => Payload::Contiguous(bytes.part(0, len as usize)),
                    packed => packed,
                };
                self.out.feed(src, fetch, payload, given.cookie)
            }
            Request::Push { address, from, len } => {
                let Payload::Contiguous(bytes) = payload else {
                    return Err(wrong("requests a copy of a payload that is not contiguous"));
                };
                if from > payload.len() || len > payload.len() - from {
                    return Err(wrong("requests more than was offered"));
                }
                let Some(with) = self.members.reach(src) else {
                    return self.out.send_bare(src, Packet::Done { fetch, ok: false }, &[]);
                };
                let what = Part::Write { dest: src, fetch, from: bytes.part(from as usize, len as usize) };
                self.offers.copies.push_back(Copy { with, address, what });
                self.copy_some()
            }
            Request::Stream { .. } => Err(wrong("requests more than was offered")),
        }
    }

    fn given_to(&self, src: u32, offer: u32) -> Result<&Given, EndpointError> {
        let given = self.offers.given.get(offer as usize).filter(|g| g.dest == src);
        given.ok_or(EndpointError::Offer { src, id: offer, what: "names an offer that was not made to it" })
    }

    fn fetch_from(&self, src: u32, fetch: u32) -> Result<&Fetch, EndpointError> {
        let found = self.offers.fetches.get(fetch as usize).filter(|f| f.src == src);
        found.ok_or(EndpointError::Offer { src, id: fetch, what: "names a fetch that was not made from it" })
    }
}
