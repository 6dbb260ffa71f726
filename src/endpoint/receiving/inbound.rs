//! Taking entries from all lanes in turns.

use super::inbox::{Inbox, Incoming, BEGINNING, CUT, HEAT};
use super::record::Recorded;
use crate::arrival::{Arrival, Look, Piece, Plain, Polled, Target, Token};
use crate::error::EndpointError;
use crate::wire::{self, Packet, PREFIX_MAX, STREAMS};
use ntbring_memory::{Address, ForeignRoom};
use ntbring_ntb::Side;
use ntbring_queue::{Entry, Taken};
use ntbring_ring::relay::Route;
use ntbring_ring::Membership;
use smallvec::SmallVec;
use std::sync::Arc;

/// Maximum number of entries taken from one lane before the next one has its turn.
const BURST: u32 = 32;

/// All lanes to a rank.
pub struct Inbound {
    pub(super) boxes: Vec<Inbox>,
    pub(super) next: usize,
    /// Entries taken since the last forced turn.
    pub(super) burst: u32,
    /// True if the next look must include all lanes, cold ones too, after a full burst or for another reason.
    pub(super) burst_over: bool,
    /// Number of ranks in the job.
    pub(super) size: u32,
    /// This rank.
    pub(super) me: u32,
    /// One row of streams for each rank that has ever sent chunks.
    pub(super) streams: Vec<Option<Box<[Option<Incoming>; STREAMS]>>>,
    /// Number of open streams whose chunks go into a buffer of an eager message.
    pub(super) rooms: usize,
    pub(super) members: Arc<Membership>,
    /// Lost ranks. Their late packets are dropped.
    pub(super) lost: SmallVec<[u32; 2]>,
    pub msgs: u64,
    pub bytes: u64,
    pub head_updates: u64,
    pub doorbells: u64,
    pub recorded: Recorded,
}

impl Inbound {
    /// Returns the next arrival; the lanes are served in turns. `has_room` is true for fetches with a contiguous
    /// destination.
    #[inline]
    pub fn poll(&mut self, has_room: impl Fn(u32) -> bool) -> Result<Option<Polled>, EndpointError> {
        self.poll_those(|_| true, has_room)
    }

    /// Returns the next arrival from a lane of which no entry is held, so that the next release in that lane is for it.
    pub fn poll_free(&mut self, has_room: impl Fn(u32) -> bool) -> Result<Option<Polled>, EndpointError> {
        self.poll_those(|inbox| inbox.lane.held() == 0, has_room)
    }

    #[inline(always)]
    fn poll_those(
        &mut self,
        open: impl Fn(&Inbox) -> bool,
        has_room: impl Fn(u32) -> bool,
    ) -> Result<Option<Polled>, EndpointError> {
        let count = self.boxes.len();
        for _ in 0..count {
            let i = self.next;
            let inbox = &self.boxes[i];
            if inbox.shut == 0 && open(inbox) {
                if let Some(piece) = self.take_piece(i, &has_room) {
                    self.has_taken(i);
                    return Ok(Some(Polled::Piece(piece)));
                }
                let inbox = &mut self.boxes[i];
                match inbox.lane.take() {
                    Ok(None) => {}
                    Ok(Some(entry)) => {
                        self.has_taken(i);
                        let arrival = match self.arrive(i, entry) {
                            Ok(arrival) => arrival,
                            Err(error) => {
                                self.excuse(i, error)?;
                                continue;
                            }
                        };
                        if self.lost.contains(&arrival.src) {
                            self.release(arrival.token, 0)?;
                            continue;
                        }
                        return Ok(Some(Polled::Arrival(arrival)));
                    }
                    Err(error) => {
                        let error = EndpointError::Corrupt { from: inbox.describe(), error };
                        self.excuse(i, error)?;
                    }
                }
            }
            self.next = self.after(i);
        }
        Ok(None)
    }

    /// Takes the next entry of a lane if it is a chunk with a known destination, direct or relayed, and no rank is
    /// lost. All other cases, errors included, are left to the full parser.
    #[inline]
    fn take_piece(&mut self, i: usize, has_room: impl Fn(u32) -> bool) -> Option<Piece> {
        if !self.lost.is_empty() {
            return None;
        }
        let Inbound { boxes, streams, rooms, size, me, .. } = self;
        let Inbox { lane, from, .. } = &mut boxes[i];
        let (entry, (slot, at, left)) = lane.take_known(|kind, len, meta, beginning| {
            let (stream, at) = wire::plain_chunk(kind, len, meta, from.is_none())?;
            let src = match *from {
                Some(rank) => rank,
                None => {
                    let route = Route::parse(beginning.word().to_le_bytes());
                    (route.src < *size && route.dst == *me).then_some(route.src)?
                }
            };
            let slot = &mut streams.get_mut(src as usize)?.as_mut()?[stream as usize];
            let open = slot.as_ref()?;
            match open.target {
                Target::Caller => return None,
                Target::Fetch(fetch) => has_room(fetch).then_some(())?,
                Target::Room(_) => {}
            }
            let left = open.left.checked_sub((len - at) as u64)?;
            Some((slot, at, left))
        })?;
        let (offset, len) = (entry.offset + at, entry.len - at);
        let (target, cookie) = advance(slot, len, left, rooms);
        self.bytes += len as u64;
        Some(Piece { lane: i, offset, len, target, cookie, last: left == 0 })
    }

    /// Records that an entry was taken from a lane by a poll. Other lanes have their turn after each entry of a bulk
    /// lane.
    #[inline(always)]
    fn has_taken(&mut self, i: usize) {
        self.has_served(i);
        if self.boxes[i].bulk {
            self.next = self.after(i);
        }
    }

    /// Suppresses an error in a lane whose link has gone down: the failure is noticed soon, and nothing more is taken
    /// from the link until then. Other errors are returned.
    #[cold]
    fn excuse(&mut self, i: usize, error: EndpointError) -> Result<(), EndpointError> {
        match self.boxes[i].bell.side().filter(|side| self.members.has_been_down(*side)) {
            Some(side) => {
                log::debug!("{error}; the {side} link has gone down");
                self.close(side);
                Ok(())
            }
            None => Err(error),
        }
    }

    /// Stops taking from lanes that come over the link on this side.
    pub fn close(&mut self, side: Side) {
        self.boxes.iter_mut().filter(|inbox| inbox.bell.side() == Some(side)).for_each(|inbox| inbox.shut |= CUT);
    }

    #[inline(always)]
    fn after(&self, i: usize) -> usize {
        if i + 1 == self.boxes.len() {
            0
        } else {
            i + 1
        }
    }

    /// Records that an entry was taken from a lane. The lane keeps its turn until its burst is used up.
    #[inline(always)]
    fn has_served(&mut self, i: usize) {
        self.boxes[i].heat = HEAT;
        self.burst += 1;
        if self.burst == BURST {
            self.burst = 0;
            self.burst_over = true;
            self.next = self.after(i);
        }
    }

    /// Returns the next arrival if it is a single-entry message; the lanes are served in turns. Cold lanes, in which
    /// nothing has arrived for long, are included only if `thorough`.
    // Every function on this path is `inline(always)`: the compiler's own choice varies, and where it does not inline,
    // small messages are slower.
    #[inline(always)]
    pub fn look(&mut self, thorough: bool) -> Look {
        let count = self.boxes.len();
        let thorough = std::mem::take(&mut self.burst_over) || thorough;
        for _ in 0..count {
            let i = self.next;
            let inbox = &mut self.boxes[i];
            if inbox.shut == 0 && (thorough || inbox.heat > 0) {
                // Only such an entry can be a valid single-entry message. For an invalid one the full parser gives
                // the error.
                let fits = |len, meta| inbox.from.is_some() && wire::plain(meta).1 <= len;
                match inbox.lane.take_kind(wire::MESSAGE, fits) {
                    Taken::Nothing => inbox.heat = inbox.heat.saturating_sub(1),
                    Taken::Entry(entry) => return Look::Plain(self.plain(i, entry)),
                    Taken::Other => return Look::Other,
                }
            }
            self.next = self.after(i);
        }
        Look::Nothing
    }

    /// Makes the next look include all lanes.
    #[inline]
    pub fn look_everywhere(&mut self) {
        self.burst_over = true;
    }

    /// Builds the result for an entry that its tag describes completely, as `fits` has checked.
    #[inline(always)]
    fn plain(&mut self, i: usize, entry: Entry) -> Plain {
        self.has_served(i);
        self.msgs += 1;
        self.bytes += entry.len as u64;
        let Inbox { lane, from, .. } = &self.boxes[i];
        let (head, header) = wire::plain(entry.meta);
        debug_assert!(from.is_some() && header <= entry.len);
        let (src, payload) = (from.unwrap_or(u32::MAX), entry.len - header);
        let address = lane.window().address(entry.offset, entry.len);
        let (offset, more) = (entry.offset, lane.has_next());
        if ntbring_timeline::is_on() {
            self.recorded.record(lane.window(), &[], src, Packet::Message { head, header, payload }, offset);
        }
        Plain { src, head, header, payload, address, offset, lane: i, more }
    }

    #[inline(never)]
    fn arrive(&mut self, i: usize, entry: Entry) -> Result<Arrival, EndpointError> {
        let inbox = &mut self.boxes[i];
        let window = inbox.lane.window();
        let mut first = [0u8; PREFIX_MAX];
        let peek = entry.len.min(PREFIX_MAX);
        window.read(entry.offset, &mut first[..peek]);
        let parsed = Packet::parse(entry.kind, entry.meta, entry.len, &first[..peek], inbox.from.is_none());
        let (packet, route, at) = parsed.map_err(|error| EndpointError::Wire { from: inbox.describe(), error })?;
        let src = match (inbox.from, route) {
            (Some(rank), _) => rank,
            (None, Some(route)) if route.src < self.size && route.dst == self.me => route.src,
            (None, _) => {
                let error = wire::WireError::Field { kind: entry.kind, field: "route", value: u64::MAX };
                return Err(EndpointError::Wire { from: inbox.describe(), error });
            }
        };
        let offset = entry.offset + at;
        let header = Address(window.address(offset, entry.len - at));
        let token = Token { lane: i, begun: None };
        let mut arrival =
            Arrival { src, packet, header, cookie: 0, last: false, target: Target::Caller, offset, token };
        if ntbring_timeline::is_on() {
            self.recorded.record(self.boxes[i].lane.window(), &self.lost, src, packet, offset);
        }
        match packet {
            Packet::Message { header, payload, .. } => {
                self.msgs += 1;
                self.bytes += (header + payload) as u64;
            }
            _ if self.lost.contains(&src) => {}
            Packet::Begin { header, stream, total, .. } => {
                self.boxes[i].shut |= BEGINNING;
                self.open(src, stream, total, Target::Caller)?;
                arrival.token.begun = Some((src, stream));
                self.msgs += 1;
                self.bytes += header as u64;
            }
            Packet::Chunk { stream, payload } => {
                let row = self.streams[src as usize].as_mut();
                let slot = row.map(|row| &mut row[stream as usize]);
                let Some((slot, open)) = slot.and_then(|slot| slot.map(|open| (slot, open))) else {
                    return Err(EndpointError::Stream { src, stream, what: "a chunk of no open message" });
                };
                let Some(left) = open.left.checked_sub(payload as u64) else {
                    return Err(EndpointError::Stream { src, stream, what: "more bytes than it had announced" });
                };
                (arrival.target, arrival.cookie) = advance(slot, payload, left, &mut self.rooms);
                arrival.last = left == 0;
                self.bytes += payload as u64;
            }
            Packet::Rts { header, .. } => {
                self.msgs += 1;
                self.bytes += header as u64;
            }
            _ => {}
        }
        Ok(arrival)
    }

    /// Opens a stream.
    pub fn open(&mut self, src: u32, stream: u8, total: u64, target: Target) -> Result<(), EndpointError> {
        let row = self.streams[src as usize].get_or_insert_with(|| Box::new([None; STREAMS]));
        if row[stream as usize].is_some() {
            return Err(EndpointError::Stream { src, stream, what: "a message in a stream that is in use" });
        }
        row[stream as usize] = Some(Incoming { cookie: 0, left: total, target });
        Ok(())
    }

    /// Copies bytes at `offset` in a lane to application memory.
    pub fn copy_out(&self, lane: usize, offset: usize, room: ForeignRoom) {
        self.boxes[lane].lane.window().copy_out(offset, room);
    }

    /// Reads bytes at `offset` in a lane.
    pub fn read(&self, lane: usize, offset: usize, to: &mut [u8]) {
        self.boxes[lane].lane.window().read(offset, to);
    }

    /// Directs the chunks of a message that has begun, and was not released yet, into `room`. Has no effect if the
    /// sender is lost by now.
    pub fn direct(&mut self, begun: Token, room: ForeignRoom<'static>) {
        let Some((src, stream)) = begun.begun else { return };
        let row = self.streams.get_mut(src as usize).and_then(|row| row.as_mut());
        let open = row.and_then(|row| row.get_mut(stream as usize)).and_then(|open| open.as_mut());
        if let Some(open) = open.filter(|open| matches!(open.target, Target::Caller)) {
            open.target = Target::Room(room);
            self.rooms += 1;
        }
    }

    /// True if chunks of eager messages that go into buffers are still to come.
    pub fn is_placing(&self) -> bool {
        self.rooms > 0
    }

    /// Closes the streams of a rank.
    pub(super) fn close_streams(&mut self, src: u32) {
        let row = self.streams[src as usize].take();
        let has_room = |open: &&Incoming| matches!(open.target, Target::Room(_));
        self.rooms -= row.iter().flat_map(|row| row.iter().flatten()).filter(has_room).count();
    }

    /// Returns the lane space of an arrival. For the beginning of a chunked message, `cookie` is the cookie that its
    /// chunks will carry.
    #[inline]
    pub fn release(&mut self, token: Token, cookie: usize) -> Result<(), EndpointError> {
        if token == Token::NOTHING {
            return Ok(());
        }
        if let Some((src, stream)) = token.begun {
            let Some(inbox) = self.boxes.get_mut(token.lane).filter(|b| b.lane.held() > 0) else {
                return Err(never_given());
            };
            inbox.shut &= !BEGINNING;
            let row = self.streams.get_mut(src as usize).and_then(|r| r.as_mut());
            if let Some(open) = row.and_then(|r| r.get_mut(stream as usize)).and_then(|s| s.as_mut()) {
                open.cookie = cookie;
            }
        }
        self.release_entry(token.lane)
    }

    /// Returns the lane space of an entry that does not begin a stream.
    #[inline(always)]
    pub fn release_entry(&mut self, lane: usize) -> Result<(), EndpointError> {
        let Some(inbox) = self.boxes.get_mut(lane).filter(|b| b.lane.held() > 0) else { return Err(never_given()) };
        if inbox.lane.release() {
            self.head_updates += 1;
            self.doorbells += inbox.bell.ring();
        }
        Ok(())
    }
}

#[cold]
fn never_given() -> EndpointError {
    EndpointError::Argument("the released event is not outstanding".into())
}

/// Takes a chunk of `len` bytes, behind which `left` bytes are left, from a stream; the stream ends with its last byte.
/// Returns the target of the chunk and the stream's cookie.
#[inline(always)]
fn advance(stream: &mut Option<Incoming>, len: usize, left: u64, rooms: &mut usize) -> (Target, usize) {
    let Some(open) = stream else { return (Target::Caller, 0) };
    let (target, rest) = open.target.split(len);
    let cookie = open.cookie;
    (open.left, open.target) = (left, rest);
    if left == 0 {
        *rooms -= usize::from(matches!(rest, Target::Room(_)));
        *stream = None;
    }
    (target, cookie)
}
