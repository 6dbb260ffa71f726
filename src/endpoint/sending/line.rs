//! The queue of packets and chunks for one lane, and their transfer into the lane.

use super::message::Released;
use crate::error::EndpointError;
use crate::wire::{plain_meta, Head, Packet, MESSAGE, STREAMS};
use ntbring_queue::Producer;
use ntbring_ring::relay::Route;
use ntbring_zerocopy::{ChunkSize, Payload};
use smallvec::SmallVec;
use std::collections::VecDeque;

/// Bytes of chunks that are sent or received before other work has its turn.
pub const TURN_BYTES: usize = 128 << 10;

/// Maximum number of payloads of one flow that are sent in chunks at the same time.
const STREAMS_AT_ONCE: usize = 8;

type Header = SmallVec<[u8; 64]>;

/// A packet for which the lane had no room yet.
pub enum Waiting {
    /// A message in one entry.
    Whole { head: Head, header: Header, payload: Payload, cookie: usize, awaited: bool },
    /// An entry without payload.
    Bare { packet: Packet, header: Header },
    /// An entry, and a payload that follows in chunks.
    Pieces { opening: Opening, header: Header, payload: Payload, cookie: usize },
}

impl Waiting {
    /// Returns the size of the payload in bytes.
    pub fn payload_len(&self) -> u64 {
        match self {
            Waiting::Bare { .. } => 0,
            Waiting::Whole { payload, .. } | Waiting::Pieces { payload, .. } => payload.len(),
        }
    }
}

/// The context of a payload that is sent in chunks.
#[derive(Clone, Copy)]
pub enum Opening {
    /// A message that begins with the payload's opening packet.
    Begin(Head),
    /// The fetch with this number at the receiver.
    Feed(u32),
}

/// A payload being sent in chunks. The layout is fixed so that the payload is moved in whole words: a load of another
/// width than the preceding store cannot be forwarded, and stalls until all earlier stores, also to lines that
/// another core holds, have left the store buffer.
#[repr(C)]
struct Stream {
    payload: Payload,
    offset: u64,
    released: Released,
    id: u8,
    /// Number of the latest chunk that an engine copies into the lane; 0 if none was copied so.
    copy: u64,
}

impl Stream {
    /// True if all chunks are in the lane, or are being copied by an engine.
    fn is_sent(&self) -> bool {
        self.offset == self.payload.len()
    }
}

/// The packets to one rank through one lane.
#[derive(Default)]
pub struct FlowQueue {
    /// Index of the lane; several flows may share one.
    pub outbox: usize,
    pub waiting: VecDeque<Waiting>,
    streams: Vec<Stream>,
    /// The first of the stream numbers that this queue may use.
    first: u8,
    /// One bit for each of its stream numbers in use.
    used: u16,
}

impl FlowQueue {
    /// Creates a queue whose packets go into one lane.
    pub fn new(outbox: usize) -> FlowQueue {
        FlowQueue { outbox, ..FlowQueue::default() }
    }

    /// Creates the queue for rendezvous payloads that use a bulk lane. It has stream numbers of its own, because its
    /// packets may overtake those of the other queue, and be overtaken.
    pub fn bulk(outbox: usize) -> FlowQueue {
        FlowQueue { outbox, first: STREAMS_AT_ONCE as u8, ..FlowQueue::default() }
    }

    /// True if nothing is left to be sent.
    pub fn is_idle(&self) -> bool {
        self.waiting.is_empty() && self.streams.is_empty()
    }

    /// Returns the stream number of the next payload if the queue is idle.
    pub fn first_stream(&self) -> u8 {
        self.first
    }

    /// Returns the number of payloads that are being sent in chunks, and the bytes of them that are left.
    pub fn streaming(&self) -> (usize, u64) {
        (self.streams.len(), self.streams.iter().map(|stream| stream.payload.len() - stream.offset).sum())
    }

    /// Returns the number of packets and payloads that are left to be sent, and the bytes of payloads.
    pub fn left(&self) -> (u64, u64) {
        let (streams, rest) = self.streaming();
        let waiting: u64 = self.waiting.iter().map(Waiting::payload_len).sum();
        ((streams + self.waiting.len()) as u64, rest + waiting)
    }

    /// True if any of the queue's payloads must be packed.
    pub fn is_packed(&self) -> bool {
        let packed = |payload: &Payload| matches!(payload, Payload::Packed(_));
        let waiting = |waiting: &Waiting| match waiting {
            Waiting::Bare { .. } => false,
            Waiting::Whole { payload, .. } | Waiting::Pieces { payload, .. } => packed(payload),
        };
        self.streams.iter().any(|stream| packed(&stream.payload)) || self.waiting.iter().any(waiting)
    }
}

// The two queues of a flow together use no more stream numbers than there are.
const _: () = assert!(2 * STREAMS_AT_ONCE <= STREAMS);

impl FlowQueue {
    /// Deposits waiting packets in the lane, then a chunk of each stream, in turns if they are large. Returns the
    /// approximate number of bytes of chunks; None if there was no room for anything.
    pub fn put_some(
        &mut self,
        lane: &mut Producer,
        route: Option<Route>,
        cut: ChunkSize,
        sent: &mut VecDeque<Released>,
    ) -> Result<Option<usize>, EndpointError> {
        let mut moved = lane.has_engine() && self.publish_copied(lane, sent);
        while self.put_first(lane, route, sent)? {
            moved = true;
        }
        let (mut i, mut bytes) = (0, 0);
        let piece = self.next_piece(lane, cut);
        while i < self.streams.len() && bytes < TURN_BYTES {
            let stream = &mut self.streams[i];
            if stream.is_sent() {
                i += 1;
                continue;
            }
            if !put_chunk(lane, route, stream, piece)? {
                break;
            }
            bytes += piece;
            if stream.is_sent() && stream.copy <= lane.copied() {
                self.used &= !(1 << (stream.id - self.first));
                sent.push_back(stream.released);
                // Not taken from the return value of `remove`: moving the stream out would wait for the recent store
                // to its offset.
                self.streams.remove(i);
            } else {
                i += 1;
            }
        }
        // The stream that did not get a turn is the first one next time.
        if i < self.streams.len() {
            self.streams.rotate_left(i);
        }
        Ok((moved || bytes > 0).then_some(bytes))
    }

    /// Publishes chunks that an engine has copied, and releases payloads that it does not read any more. Returns true
    /// if any chunk was published.
    fn publish_copied(&mut self, lane: &mut Producer, sent: &mut VecDeque<Released>) -> bool {
        let published = lane.publish_copied() > 0;
        let FlowQueue { streams, used, first, .. } = self;
        streams.retain(|stream| {
            let done = stream.is_sent() && stream.copy <= lane.copied();
            if done {
                *used &= !(1 << (stream.id - *first));
                sent.push_back(stream.released);
            }
            !done
        });
        published
    }

    /// Returns the maximum number of bytes of each stream's next chunk.
    fn next_piece(&self, lane: &mut Producer, cut: ChunkSize) -> usize {
        if cut.is_even() || self.streams.is_empty() || lane.is_behind() {
            return cut.most();
        }
        cut.piece(self.streams.iter().map(|stream| stream.payload.len() - stream.offset).sum())
    }

    /// Deposits the first waiting packet in the lane. Returns false if there is none, or no room for it.
    fn put_first(
        &mut self,
        lane: &mut Producer,
        route: Option<Route>,
        sent: &mut VecDeque<Released>,
    ) -> Result<bool, EndpointError> {
        let put = match self.waiting.front() {
            None => false,
            Some(Waiting::Bare { packet, header }) => put_bare(lane, route, *packet, header),
            Some(Waiting::Whole { head, header, payload, cookie, awaited }) => {
                let put = put_message(lane, route, *head, header, payload)?;
                if put && *awaited {
                    sent.push_back(Released { cookie: *cookie, handler: head.handler, offered: false });
                }
                put
            }
            Some(Waiting::Pieces { .. }) if self.streams.len() >= STREAMS_AT_ONCE => false,
            Some(Waiting::Pieces { opening, header, payload, cookie }) => {
                let number = self.used.trailing_ones() as u8;
                let id = self.first + number;
                debug_assert!((id as usize) < STREAMS);
                let (stream, total, cookie) = (id, payload.len(), *cookie);
                let (packet, released) = match *opening {
                    Opening::Begin(head) => (
                        Packet::Begin { head, header: header.len(), stream, total },
                        Released { cookie, handler: head.handler, offered: false },
                    ),
                    Opening::Feed(fetch) => {
                        (Packet::Data { fetch, stream, total }, Released { cookie, handler: 0, offered: true })
                    }
                };
                let put = put_bare(lane, route, packet, header);
                if put {
                    self.used |= 1 << number;
                    self.streams.push(Stream { id, payload: *payload, offset: 0, released, copy: 0 });
                }
                put
            }
        };
        if put {
            self.waiting.pop_front();
        }
        Ok(put)
    }
}

/// Deposits a message in one entry. Returns false if there is no room.
#[inline]
pub fn put_message(
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
    let at = prefix.end();
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

/// Deposits an entry without payload. Returns false if there is no room.
pub fn put_bare(lane: &mut Producer, route: Option<Route>, packet: Packet, header: &[u8]) -> bool {
    let prefix = packet.prefix(route);
    let at = prefix.end();
    let Some(mut slot) = lane.reserve(at + header.len()) else { return false };
    slot.write_bytes(0, prefix.bytes());
    slot.write_bytes(at, header);
    slot.commit(prefix.kind, at + header.len(), prefix.meta);
    true
}

/// Deposits the next chunk of a payload, or has an engine copy it. Returns false if there is no room.
fn put_chunk(
    lane: &mut Producer,
    route: Option<Route>,
    stream: &mut Stream,
    piece: usize,
) -> Result<bool, EndpointError> {
    let size = (stream.payload.len() - stream.offset).min(piece as u64) as usize;
    let prefix = Packet::Chunk { stream: stream.id, payload: size }.prefix(route);
    let at = prefix.end();
    let by_engine = lane.has_engine_for(size);
    let Some(mut slot) = lane.reserve(at + size) else { return Ok(false) };
    slot.write_bytes(0, prefix.bytes());
    if let (true, Payload::Contiguous(bytes)) = (by_engine, &stream.payload) {
        let from = bytes.part(stream.offset as usize, size).into();
        stream.copy = slot.commit_copy(prefix.kind, at + size, prefix.meta, at, from).unwrap_or(stream.copy);
        stream.offset += size as u64;
        return Ok(true);
    }
    let put = stream.payload.put(stream.offset, &mut slot, at, size)?;
    slot.commit(prefix.kind, at + put, prefix.meta);
    stream.offset += put as u64;
    Ok(true)
}
