//! The payloads that a rank has offered to others, and those that it fetches.

use super::actions::{Accepted, Action, Destination, Next};
use super::fetch::{Copy, Exposed, Fetch, Leaving, Part};
use super::preferences::Preferences;
use crate::arrival::Event;
use crate::error::EndpointError;
use crate::observation::Histogram;
use crate::wire::{Offer, Packet, Request};
use ntbring_host::KernelCopy;
use ntbring_memory::ForeignRoom;
use ntbring_zerocopy::copy_tuner::{CopyPath, CopyTuners, Outcome};
use ntbring_zerocopy::{Fetching, Payload, Thresholds, LONG_HEADER};
use slab::Slab;
use std::collections::VecDeque;
use std::time::Instant;

/// Maximum number of bytes copied before another copy or packet has its turn.
const PIECE: usize = 256 << 10;
/// The first half of a payload ends at a page boundary.
const PAGE: u64 = 4096;

/// A rank's offers to others, and the payloads that it fetches.
#[derive(Default)]
pub struct Offers {
    /// This rank.
    me: u32,
    pub(super) given: Slab<Exposed>,
    pub(super) leaving: Vec<Leaving>,
    pub(super) fetches: Slab<Fetch>,
    copies: VecDeque<Copy>,
    actions: VecDeque<Action>,
    pub preferences: Preferences,
    /// Payload sizes of the offers made.
    pub offered: Histogram,
    /// Times from offers until their payloads had left.
    pub sent: Histogram,
    /// Times from the acceptance of offers until their payloads had arrived.
    pub fetched: Histogram,
    /// Number of fetches that were streamed.
    pub streamed: u64,
    /// Bytes copied by this rank without a window, by kernel copies.
    pub copied: u64,
    /// Bytes of payloads that have arrived without a window.
    pub received: u64,
}

impl Offers {
    /// Creates the state of rank `me`. `copy_tuners` has the A/B tuners, if kernel copies are possible but not always
    /// the faster path.
    pub fn new(me: u32, copy_tuners: Option<CopyTuners>) -> Offers {
        Offers { me, preferences: Preferences::new(copy_tuners), ..Offers::default() }
    }

    /// Returns the next result of earlier calls.
    #[inline]
    pub fn next_action(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    fn send(&mut self, dest: u32, packet: Packet) {
        self.actions.push_back(Action::Send { dest, packet });
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
        let Offers { given, leaving, fetches, copies, preferences, .. } = self;
        copies.retain(|copy| match copy.what {
            Part::Read { fetch, .. } => fetches[fetch as usize].src != rank,
            Part::Write { dest, .. } => dest != rank,
        });
        given.retain(|_, given| given.dest != rank);
        leaving.retain(|leaving| leaving.dest != rank);
        fetches.retain(|_, fetch| {
            let stays = fetch.src != rank;
            if !stays {
                preferences.end(fetch.copy_path, fetch.size);
            }
            stays
        });
        preferences.lose(rank);
    }

    /// Keeps a payload, which must not be empty, for its receiver to fetch. Returns the description that the receiver
    /// must be sent with the message's header (RTS).
    pub fn offer(&mut self, dest: u32, payload: Payload, cookie: usize) -> Offer {
        let (address, total) = match payload {
            Payload::Contiguous(bytes) => (bytes.address() as u64, bytes.len() as u64),
            Payload::Packed(_) => (0, payload.len()),
        };
        let id = self.given.insert(Exposed { dest, payload, cookie, since: Instant::now() }) as u32;
        self.offered.count(total);
        Offer { id, address, total }
    }

    /// Returns the number of the offer with this cookie, if there is one.
    pub fn number(&self, cookie: usize) -> Option<u32> {
        self.given.iter().find(|(_, given)| given.cookie == cookie).map(|(number, _)| number as u32)
    }

    /// Drops the offer with this cookie, because the receiver will not fetch it. Returns true if there was one.
    pub fn forget(&mut self, cookie: usize) -> bool {
        self.number(cookie).map(|number| self.given.remove(number as usize)).is_some()
    }

    /// Accepts the first `size` bytes of an offer (CTS): into `room`, or, without it, as chunks that carry the
    /// cookie. `kernel_copy` accesses the sender's memory by kernel copies, if they are possible.
    pub fn accept(
        &mut self,
        (src, offer): (u32, Offer),
        room: Option<ForeignRoom<'static>>,
        size: u64,
        cookie: usize,
        kernel_copy: Option<KernelCopy>,
        thresholds: &Thresholds,
    ) -> Result<Next, EndpointError> {
        if size > offer.total || room.is_some_and(|r| r.len() as u64 != size) {
            return Err(EndpointError::Argument("the accepted size exceeds the offer or differs from the room".into()));
        }
        if size == 0 {
            self.send(src, Packet::Taken { offer: offer.id });
            return Ok(Next::Nothing);
        }
        let kernel_copy = kernel_copy.filter(|_| offer.address != 0);
        let copy_path = match kernel_copy.is_some() && room.is_some() {
            true => self.preferences.begin(src, size, size + LONG_HEADER as u64 <= thresholds.eager_max(false) as u64),
            false => None,
        };
        let fetch = Fetch { copy_path, ..Fetch::of(offer.id, src, room, size, cookie) };
        let id = self.fetches.insert(fetch) as u32;
        let (Some(with), Some(room), Some(CopyPath::Kernel) | None) = (kernel_copy, room, copy_path) else {
            self.ask_to_stream(id);
            return Ok(Next::Wait);
        };
        let mut mine = size;
        if thresholds.fetching(size, true, !self.given.is_empty()) == Fetching::Both {
            mine = (size / 2).next_multiple_of(PAGE).min(size - 1);
            let request = Request::Push { address: room.address() as u64 + mine, from: mine, len: size - mine };
            self.send(src, Packet::Cts { offer: offer.id, fetch: id, request });
            let fetch = &mut self.fetches[id as usize];
            (fetch.mine, fetch.pending) = (mine, 1);
        }
        self.fetches[id as usize].pending += 1;
        let what = Part::Read { fetch: id, to: room.part(0, mine as usize) };
        self.copies.push_back(Copy { with, address: offer.address, what });
        Ok(if self.copies.len() == 1 { Next::Copy } else { Next::Wait })
    }

    /// Makes the first part of the kernel copy of a fetch that was just accepted with this cookie.
    pub fn copy_first(&mut self, cookie: usize) -> Accepted {
        self.copy_some();
        // A small payload has arrived now, and needs no event.
        let mine = |action: &Action| matches!(action, Action::Event(Event::Fetched { cookie: c }) if *c == cookie);
        match self.actions.iter().rposition(mine) {
            Some(i) => {
                self.actions.remove(i);
                Accepted::Done
            }
            None => Accepted::Pending,
        }
    }

    fn ask_to_stream(&mut self, fetch: u32) {
        let f = &self.fetches[fetch as usize];
        let (src, offer) = (f.src, f.offer);
        let request = Request::Stream { len: f.size, prefer_eager: self.preferences.announce_eager(src) };
        self.streamed += 1;
        self.send(src, Packet::Cts { offer, fetch, request });
    }

    /// Returns the destination of the next chunk of a fetch; `last` if it is the last one. If that is a room,
    /// [`Offers::placed`] must be called when the bytes are there.
    #[inline]
    pub fn destination(&mut self, fetch: u32, len: usize, last: bool) -> Destination {
        // A stream is opened only for an existing fetch.
        let f = &mut self.fetches[fetch as usize];
        let wanted = (f.size - f.arrived).min(len as u64) as usize;
        let (room, cookie) = (f.room.map(|r| r.part(f.arrived as usize, wanted)), f.cookie);
        f.arrived += wanted as u64;
        if let Some(room) = room {
            return Destination::Room(room);
        }
        if last {
            let fetch = self.fetches.remove(fetch as usize);
            self.has_arrived(&fetch);
        }
        match wanted > 0 || last {
            true => Destination::Shown { bytes: wanted, cookie },
            false => Destination::Nowhere,
        }
    }

    /// Records that `bytes` bytes of a chunk were copied to their destination; `last` if it was the last chunk.
    #[inline]
    pub fn placed(&mut self, fetch: u32, bytes: usize, last: bool) {
        self.moved(fetch, bytes as u64);
        if last {
            self.fetched(fetch);
        }
    }

    /// Handles the announcement that a fetch is streamed, `total` bytes.
    pub fn has_begun(&mut self, src: u32, fetch: u32, total: u64) -> Result<(), EndpointError> {
        let f = self.fetch_from(src, fetch)?;
        if f.size > total || f.pending > 0 || f.fed {
            let what = "sends a payload that was not requested";
            return Err(EndpointError::Offer { src, id: fetch, what });
        }
        f.fed = true;
        Ok(())
    }

    /// Handles the report that a sender has made its copy of a fetch, or could not.
    pub fn has_pushed(&mut self, src: u32, fetch: u32, ok: bool) -> Result<(), EndpointError> {
        if self.fetch_from(src, fetch)?.pending == 0 {
            let what = "reports a copy that was not requested";
            return Err(EndpointError::Offer { src, id: fetch, what });
        }
        self.copy_made(fetch, ok);
        Ok(())
    }

    /// Handles the report that a receiver has the payload of an offer.
    pub fn has_taken(&mut self, src: u32, offer: u32) -> Result<(), EndpointError> {
        self.given_to(src, offer)?;
        let given = self.given.remove(offer as usize);
        self.has_gone(src, given.payload.len(), given.since);
        self.preferences.has_copied(src, given.payload.len());
        self.actions.push_back(Action::Event(Event::Taken { cookie: given.cookie }));
        Ok(())
    }

    /// Carries out the request of the receiver of an offer (CTS): streams the payload, or copies a part of it through
    /// `kernel_copy`.
    pub fn has_accepted(
        &mut self,
        src: u32,
        (offer, fetch): (u32, u32),
        request: Request,
        kernel_copy: Option<KernelCopy>,
    ) -> Result<(), EndpointError> {
        let wrong = |what| EndpointError::Offer { src, id: offer, what };
        let payload = self.given_to(src, offer)?.payload;
        match request {
            Request::Stream { len, prefer_eager } if len <= payload.len() => {
                self.preferences.has_asked_to_stream(src, len, prefer_eager);
                let Exposed { cookie, since, .. } = self.given.remove(offer as usize);
                // A packed payload cannot end at an arbitrary offset, so more than `len` bytes may be sent; the
                // receiver drops the rest.
                let payload = match payload {
                    Payload::Contiguous(bytes) => Payload::Contiguous(bytes.part(0, len as usize)),
                    packed => packed,
                };
                self.leaving.push(Leaving { dest: src, cookie, bytes: payload.len(), since });
                self.actions.push_back(Action::Feed { dest: src, fetch, payload, cookie });
            }
            Request::Push { address, from, len } => {
                let Payload::Contiguous(bytes) = payload else {
                    return Err(wrong("requests a copy of a payload that is not contiguous"));
                };
                if from > payload.len() || len > payload.len() - from {
                    return Err(wrong("requests more than was offered"));
                }
                let Some(with) = kernel_copy else {
                    self.send(src, Packet::Fin { fetch, ok: false });
                    return Ok(());
                };
                let what = Part::Write { dest: src, fetch, from: bytes.part(from as usize, len as usize) };
                self.copies.push_back(Copy { with, address, what });
                self.copy_some();
            }
            Request::Stream { .. } => return Err(wrong("requests more than was offered")),
        }
        Ok(())
    }

    /// Makes the next part of the copy that has waited longest.
    pub fn copy_some(&mut self) {
        let Some(Copy { with, address, what }) = self.copies.pop_front() else { return };
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
                self.copied += n as u64;
                if let Part::Read { fetch, to } = rest {
                    // The sender's copy proceeds at the same time but reports no progress, so it is estimated from
                    // this rank's own.
                    let f = &self.fetches[fetch as usize];
                    let share =
                        |left: usize| u128::from(f.mine - left as u64) * u128::from(f.size) / u128::from(f.mine);
                    let bytes = share(to.len()) - share(to.len() + n);
                    self.moved(fetch, bytes as u64);
                }
                true
            }
            Err(error) => {
                log::info!("rank {}: a kernel copy was refused, streaming instead: {error}", self.me);
                false
            }
        };
        match rest {
            Part::Read { fetch, to } if !ok || to.is_empty() => self.copy_made(fetch, ok),
            Part::Write { dest, fetch, from } if !ok || from.is_empty() => self.send(dest, Packet::Fin { fetch, ok }),
            what => self.copies.push_back(Copy { with, address: address + n as u64, what }),
        }
    }

    /// Records that one of the copies of a fetch has been made or was refused.
    fn copy_made(&mut self, fetch: u32, ok: bool) {
        let f = &mut self.fetches[fetch as usize];
        f.pending -= 1;
        f.refused |= !ok;
        if f.pending > 0 {
            return;
        }
        if f.refused {
            self.preferences.refused(f.copy_path.take(), f.size);
            return self.ask_to_stream(fetch);
        }
        let (src, packet) = (f.src, Packet::Taken { offer: f.offer });
        self.received += f.size;
        self.fetched(fetch);
        self.send(src, packet);
    }

    fn fetched(&mut self, fetch: u32) {
        let f = self.fetches.remove(fetch as usize);
        self.has_arrived(&f);
        self.actions.push_back(Action::Event(Event::Fetched { cookie: f.cookie }));
        self.preferences.end(f.copy_path, f.size);
    }

    /// Records `bytes` more bytes of a fetch for the A/B tuner.
    fn moved(&mut self, fetch: u32, bytes: u64) {
        let Fetch { copy_path, size, .. } = self.fetches[fetch as usize];
        if let Some(Outcome { kernel, lane }) = self.preferences.moved(copy_path, size, bytes) {
            log::debug!(
                "rank {}: of {size} bytes, the kernel copies at {:.1} GB/s, a lane at {:.1}",
                self.me,
                kernel / 1e9,
                lane / 1e9
            );
        }
    }

    fn given_to(&self, src: u32, offer: u32) -> Result<&Exposed, EndpointError> {
        let given = self.given.get(offer as usize).filter(|g| g.dest == src);
        given.ok_or(EndpointError::Offer { src, id: offer, what: "names an offer that was not made to it" })
    }

    fn fetch_from(&mut self, src: u32, fetch: u32) -> Result<&mut Fetch, EndpointError> {
        let found = self.fetches.get_mut(fetch as usize).filter(|f| f.src == src);
        found.ok_or(EndpointError::Offer { src, id: fetch, what: "names a fetch that was not made from it" })
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
