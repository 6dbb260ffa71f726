//! Rendezvous: payloads that a sender offers (RTS) and the receiver fetches once it knows their destination.
//!
//! ```text
//! sender                      receiver
//!   | -- OFFER header, address -> |   matched: ntbring_accept
//!   |                             |
//!   |                             |   single: copies it all (CMA) \
//!   | <---------- TAKEN --------- |                               /  one message back
//!   |                             |
//!   | <- ACCEPT push second half -|   both (pipelined CMA): copies the first half
//!   | copies the second half      |   meanwhile
//!   | -- DONE ------------------> |
//!   | <---------- TAKEN --------- |
//!   |                             |
//!   | <- ACCEPT stream ---------- |   streamed (CTS)
//!   | -- FEED, CHUNK, CHUNK ... ->|   each chunk is copied straight from the lane to its destination
//! ```
//!
//! If the kernel refuses a copy, the whole payload is streamed instead.

mod preferences;
mod settle;

use super::arrival::{Event, Token};
use super::wire::{Offer, Packet, Request};
use super::{Endpoint, EndpointError, Message};
use ntbring_host::Reach;
use ntbring_memory::{ForeignBytes, ForeignRoom};
use ntbring_zerocopy::contest::{Contests, Mover, Outcome};
use ntbring_zerocopy::{Fetching, Payload};
use preferences::Preferences;
use slab::Slab;
use std::collections::VecDeque;

/// Maximum number of bytes copied before another copy or packet has its turn.
const PIECE: usize = 256 << 10;
/// The first half of a payload ends at a page boundary.
const PAGE: u64 = 4096;

/// A rank's offers to others, and the payloads that it fetches.
#[derive(Default)]
pub(super) struct Offers {
    given: Slab<Given>,
    fetches: Slab<Fetch>,
    copies: VecDeque<Copy>,
    pub preferences: Preferences,
    pub events: VecDeque<Event>,
    pub offered: u64,
    pub streamed: u64,
    /// Bytes copied by this rank without a window, through CMA.
    pub copied: u64,
}

struct Given {
    dest: u32,
    payload: Payload,
    cookie: usize,
}

struct Fetch {
    src: u32,
    offer: u32,
    /// Destination of the payload; None if it is not contiguous.
    room: Option<ForeignRoom<'static>>,
    size: u64,
    cookie: usize,
    /// Bytes that have arrived through the lane.
    arrived: u64,
    /// Bytes that this rank copies itself if CMA is used; the sender copies the others.
    mine: u64,
    /// Number of copies still to be made, by either side.
    pending: u8,
    refused: bool,
    /// True once the payload has begun to arrive through a lane.
    fed: bool,
    /// The copy path that the A/B tuner has chosen; None if there was no choice.
    mover: Option<Mover>,
}

/// Offer number of a payload that was sent without an offer.
const UNASKED: u32 = u32::MAX;

impl Fetch {
    fn of(offer: u32, src: u32, room: Option<ForeignRoom<'static>>, size: u64, cookie: usize) -> Fetch {
        Fetch {
            src,
            offer,
            room,
            size,
            cookie,
            arrived: 0,
            mine: size,
            pending: 0,
            refused: false,
            fed: false,
            mover: None,
        }
    }
}

/// A copy in progress.
struct Copy {
    with: Reach,
    /// Address, in the other process, at which the remaining bytes begin.
    address: u64,
    what: Part,
}

enum Part {
    Read { fetch: u32, to: ForeignRoom<'static> },
    Write { dest: u32, fetch: u32, from: ForeignBytes<'static> },
}

impl Offers {
    /// `contests` has the A/B tuners, if CMA is possible but not always the faster path.
    pub fn new(contests: Option<Contests>) -> Offers {
        Offers { preferences: Preferences::new(contests), ..Offers::default() }
    }

    #[inline]
    pub fn event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    #[inline]
    pub fn has_work(&self) -> bool {
        self.is_copying() || !self.events.is_empty()
    }

    #[inline]
    pub fn is_copying(&self) -> bool {
        !self.copies.is_empty()
    }

    /// True if no peer waits for this rank.
    pub fn is_settled(&self) -> bool {
        self.given.is_empty() && self.copies.is_empty()
    }

    /// True if there is an open offer or fetch.
    pub fn is_open(&self) -> bool {
        !self.given.is_empty() || !self.fetches.is_empty()
    }

    /// True if a fetch has a contiguous destination.
    pub fn has_room(&self, fetch: u32) -> bool {
        self.fetches.get(fetch as usize).is_some_and(|fetch| fetch.room.is_some())
    }

    /// Drops the offers to a rank and the fetches from it.
    pub fn lose(&mut self, rank: u32) {
        let Offers { given, fetches, copies, preferences, .. } = self;
        copies.retain(|copy| match copy.what {
            Part::Read { fetch, .. } => fetches[fetch as usize].src != rank,
            Part::Write { dest, .. } => dest != rank,
        });
        given.retain(|_, given| given.dest != rank);
        fetches.retain(|_, fetch| {
            let stays = fetch.src != rank;
            if !stays {
                preferences.end(fetch.mover, fetch.size);
            }
            stays
        });
        preferences.lose(rank);
    }

    /// Returns the number of the offer with this cookie, if there is one.
    fn number(&self, cookie: usize) -> Option<usize> {
        self.given.iter().find(|(_, given)| given.cookie == cookie).map(|(number, _)| number)
    }

    /// Returns a line on open offers and fetches, for the diagnosis of a hang.
    pub fn describe(&self) -> String {
        let to: Vec<String> =
            self.given.iter().map(|(_, g)| format!("rank {} ({} bytes)", g.dest, g.payload.len())).collect();
        let from: Vec<String> = self
            .fetches
            .iter()
            .map(|(_, f)| {
                format!("rank {} ({} bytes, {} here, {} copies to be made)", f.src, f.size, f.arrived, f.pending)
            })
            .collect();
        format!("offered to: [{}]; fetched from: [{}]", to.join(", "), from.join(", "))
    }
}

/// The state of an offer after it was accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Accepted {
    /// The payload has arrived.
    Done,
    /// The payload is under way; an event with the cookie reports its arrival.
    Pending,
}

impl Endpoint {
    /// Returns the size in bytes, header and payload, of the largest message to be sent to a rank without an offer.
    pub fn eager_max(&self, dest: u32) -> usize {
        self.thresholds.eager_max(self.is_copied_for(dest))
    }

    /// True if CMA to a rank is possible and the rank has not announced that it prefers eager messages.
    pub(super) fn is_copied_for(&self, dest: u32) -> bool {
        self.members.reach(dest).is_some() && !self.offers.preferences.is_glad(dest)
    }

    /// Sends a message's header (RTS) and keeps its payload, which must not be empty, for the receiver to fetch. An
    /// [`Event::Taken`] reports that the payload is no longer needed.
    pub fn offer(&mut self, m: Message<'_>) -> Result<(), EndpointError> {
        self.out.check(&m)?;
        let (address, total) = match m.payload {
            Payload::Contiguous(bytes) => (bytes.address() as u64, bytes.len() as u64),
            Payload::Packed(_) => (0, m.payload.len()),
        };
        if total == 0 {
            return Err(EndpointError::Argument("the payload of an offer must not be empty".into()));
        }
        if self.out.is_lost(m.dest) {
            return Ok(());
        }
        let id = self.offers.given.insert(Given { dest: m.dest, payload: m.payload, cookie: m.cookie }) as u32;
        self.offers.offered += 1;
        let offer = Offer { id, address, total };
        let packet = Packet::Offer { head: m.head, header: m.header.len(), offer };
        self.out.send_offer(m.dest, packet, m.header, m.head.handler)
    }

    /// Cancels the message or offer with this cookie if no part of it has left. Returns true if it was cancelled.
    pub fn retract(&mut self, dest: u32, cookie: usize) -> Result<bool, EndpointError> {
        let number = self.offers.number(cookie);
        let taken = self.out.retract(dest, cookie, number.map(|number| number as u32))?;
        if let (true, Some(number)) = (taken, number) {
            self.offers.given.remove(number);
        }
        Ok(taken)
    }

    /// Drops the offer with this cookie, because the receiver will not fetch it. Returns true if there was one.
    pub fn forget_offer(&mut self, cookie: usize) -> bool {
        self.offers.number(cookie).map(|number| self.offers.given.remove(number)).is_some()
    }

    /// Accepts the first `size` bytes of an offer (CTS): into `room`, or, without it, as chunks that carry the
    /// cookie.
    pub fn accept(
        &mut self,
        src: u32,
        offer: Offer,
        room: Option<ForeignRoom<'static>>,
        size: u64,
        cookie: usize,
    ) -> Result<Accepted, EndpointError> {
        if size > offer.total || room.is_some_and(|r| r.len() as u64 != size) {
            return Err(EndpointError::Argument("the accepted size exceeds the offer or differs from the room".into()));
        }
        if self.out.is_lost(src) {
            return Ok(Accepted::Pending);
        }
        if size == 0 {
            self.out.send_bare(src, Packet::Taken { offer: offer.id }, &[])?;
            return Ok(Accepted::Done);
        }
        let reach = self.members.reach(src).filter(|_| offer.address != 0);
        let mover = match reach.is_some() && room.is_some() {
            true => self.offers.preferences.begin(src, size, size <= self.thresholds.eager_max(false) as u64),
            false => None,
        };
        let fetch = Fetch { mover, ..Fetch::of(offer.id, src, room, size, cookie) };
        let id = self.offers.fetches.insert(fetch) as u32;
        let (Some(with), Some(room), Some(Mover::Kernel) | None) = (reach, room, mover) else {
            self.ask_to_stream(id)?;
            return Ok(Accepted::Pending);
        };
        let mut mine = size;
        if self.thresholds.fetching(size, true, !self.offers.given.is_empty()) == Fetching::Both {
            mine = (size / 2).next_multiple_of(PAGE).min(size - 1);
            let request = Request::Push { address: room.address() as u64 + mine, from: mine, len: size - mine };
            self.out.send_bare(src, Packet::Accept { offer: offer.id, fetch: id, request }, &[])?;
            let fetch = &mut self.offers.fetches[id as usize];
            (fetch.mine, fetch.pending) = (mine, 1);
        }
        self.offers.fetches[id as usize].pending += 1;
        let what = Part::Read { fetch: id, to: room.part(0, mine as usize) };
        self.offers.copies.push_back(Copy { with, address: offer.address, what });
        // A small payload has arrived before this returns.
        if self.offers.copies.len() == 1 {
            self.copy_some()?;
            let mine = |e: &Event| matches!(e, Event::Fetched { cookie: c } if *c == cookie);
            if self.offers.events.back().is_some_and(mine) {
                self.offers.events.pop_back();
                return Ok(Accepted::Done);
            }
        }
        Ok(Accepted::Pending)
    }

    /// Directs the payload of a message that has begun to arrive into `room`. An [`Event::Fetched`] reports its end;
    /// its chunks are not shown to the caller.
    pub fn place_at(&mut self, begun: Token, room: ForeignRoom<'static>, cookie: usize) {
        let Some((src, _)) = begun.begun else { return };
        let size = room.len() as u64;
        let fetch = Fetch { fed: true, ..Fetch::of(UNASKED, src, Some(room), size, cookie) };
        // The sender may be lost by now.
        if self.inbound.direct(begun, self.offers.fetches.vacant_key() as u32) {
            self.offers.fetches.insert(fetch);
        }
    }

    fn ask_to_stream(&mut self, fetch: u32) -> Result<(), EndpointError> {
        let f = &self.offers.fetches[fetch as usize];
        let request = Request::Stream { len: f.size, gladly: self.offers.preferences.tell(f.src) };
        self.offers.streamed += 1;
        self.out.send_bare(f.src, Packet::Accept { offer: f.offer, fetch, request }, &[])
    }

    /// Makes the next part of the copy that has waited longest.
    pub(super) fn copy_some(&mut self) -> Result<(), EndpointError> {
        let Some(Copy { with, address, what }) = self.offers.copies.pop_front() else { return Ok(()) };
        let (result, n, rest) = match what {
            Part::Read { fetch, to } => {
                let n = to.len().min(PIECE);
                let rest = to.part(n, to.len() - n);
                (with.read(address, to.part(0, n)), n, Part::Read { fetch, to: rest })
            }
            Part::Write { dest, fetch, from } => {
                let n = from.len().min(PIECE);
                let rest = from.part(n, from.len() - n);
                (with.write(address, from.part(0, n)), n, Part::Write { dest, fetch, from: rest })
            }
        };
        let ok = match result {
            Ok(()) => {
                self.offers.copied += n as u64;
                if let Part::Read { fetch, to } = rest {
                    // The sender's copy proceeds at the same time but reports no progress, so it is estimated from
                    // this rank's own.
                    let f = &self.offers.fetches[fetch as usize];
                    let share =
                        |left: usize| u128::from(f.mine - left as u64) * u128::from(f.size) / u128::from(f.mine);
                    let bytes = share(to.len()) - share(to.len() + n);
                    self.moved(fetch, bytes as u64);
                }
                true
            }
            Err(error) => {
                log::info!("rank {}: a kernel copy was refused, streaming instead: {error}", self.members.rank());
                false
            }
        };
        match rest {
            Part::Read { fetch, to } if !ok || to.is_empty() => self.copy_made(fetch, ok),
            Part::Write { dest, fetch, from } if !ok || from.is_empty() => {
                self.out.send_bare(dest, Packet::Done { fetch, ok }, &[])
            }
            what => {
                self.offers.copies.push_back(Copy { with, address: address + n as u64, what });
                Ok(())
            }
        }
    }

    /// Records that one of the copies of a fetch has been made or was refused.
    fn copy_made(&mut self, fetch: u32, ok: bool) -> Result<(), EndpointError> {
        let f = &mut self.offers.fetches[fetch as usize];
        f.pending -= 1;
        f.refused |= !ok;
        if f.pending > 0 {
            return Ok(());
        }
        if f.refused {
            self.offers.preferences.refused(f.mover.take(), f.size);
            return self.ask_to_stream(fetch);
        }
        let (src, packet) = (f.src, Packet::Taken { offer: f.offer });
        self.inbound.bytes += f.size;
        self.fetched(fetch);
        self.out.send_bare(src, packet, &[])
    }

    fn fetched(&mut self, fetch: u32) {
        let f = self.offers.fetches.remove(fetch as usize);
        self.offers.events.push_back(Event::Fetched { cookie: f.cookie });
        self.offers.preferences.end(f.mover, f.size);
    }

    /// Records `bytes` more bytes of a fetch for the A/B tuner.
    fn moved(&mut self, fetch: u32, bytes: u64) {
        let Fetch { mover, size, .. } = self.offers.fetches[fetch as usize];
        if let Some(Outcome { kernel, lane }) = self.offers.preferences.moved(mover, size, bytes) {
            let rank = self.members.rank();
            log::debug!(
                "rank {rank}: of {size} bytes, the kernel copies {:.1} GB/s, a lane takes {:.1}",
                kernel / 1e9,
                lane / 1e9
            );
        }
    }
}
