//! The packets that ranks exchange as entries of lanes.
//!
//! An entry's bytes are, each part only if the kind says so:
//! route (8, see `ring::relay`), extension (8), up to four words of the kind's own, MPICH's
//! header, payload.
//!
//! The tag's `meta` holds the handler (6 bits) and the header's size in words (9 bits), so that a
//! plain message needs nothing but its tag. A header of another size and VCIs other than 0 need
//! the extension. In a `CHUNK` meta is the number of the stream, and whether its payload begins the entry's second line.

mod error;
mod parts;

pub use error::WireError;
pub use parts::{About, GreetingKind, Offer, Request};

use bytes::Buf;
use ntbring_queue::{LINE, META_MAX, TAG};
use ntbring_ring::relay::{Route, ROUTED};
use ntbring_rma::{Reply, REPLY};

/// A whole message.
pub const MESSAGE: u8 = 1;
/// The header of a message whose payload follows in chunks.
pub const BEGIN: u8 = 2;
/// A piece of a payload.
pub const CHUNK: u8 = 3;
/// The header of a message whose payload the receiver will ask for.
const OFFER: u8 = 4;
/// Packets about a payload that was offered.
const ACCEPT: u8 = 5;
/// The payload that was asked for follows in chunks.
const FEED: u8 = 6;
/// The part of it that the sender was to copy is there.
const DONE: u8 = 7;
/// A payload that was offered is not needed any more.
const TAKEN: u8 = 8;
/// A greeting between processes without a common communicator.
const GREETING: u8 = 11;
/// The credit for unexpected messages.
const CREDIT: u8 = 12;
/// Some of it has to wait.
const STALLED: u8 = 13;
/// Has an extension.
const EXTENDED: u8 = 0x20;

const EXTENSION: usize = 8;
const WORDS_MAX: usize = 4;
/// The most bytes before MPICH's header, or a chunk's payload: the rest of an entry's first line.
pub const PREFIX_MAX: usize = LINE - TAG;
const _: () = assert!(Route::LEN + EXTENSION + 8 * WORDS_MAX <= PREFIX_MAX && STREAMS <= APART as usize);
/// In a `CHUNK`'s meta: its payload has lines of its own.
const APART: u16 = 0x10;
/// From so many bytes on that is worth the first line: processors copy much faster to where a line begins. Checked lanes copy
/// from elsewhere and gain nothing; they lose no more than that line.
const APART_MIN: usize = 1024;
/// Handlers are below this.
pub const HANDLERS: u16 = 64;
/// Streams that one rank may have open to another.
pub const STREAMS: usize = 16;

/// The most bytes that a payload may have.
const MOST: u64 = i64::MAX as u64;
const HEADER_WORDS_MAX: usize = (META_MAX >> 6) as usize;

/// The description of a message, beside its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Head {
    /// The number of its handler.
    pub handler: u16,
}

/// An entry, valid by construction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packet {
    /// A whole message.
    Message {
        /// About it.
        head: Head,
        /// Bytes of MPICH's header.
        header: usize,
        /// Bytes of the payload.
        payload: usize,
    },
    /// The beginning of a message in pieces.
    Begin {
        /// About it.
        head: Head,
        /// Bytes of MPICH's header.
        header: usize,
        /// The stream that its pieces will name.
        stream: u8,
        /// Bytes of the payload, at least one.
        total: u64,
    },
    /// A piece.
    Chunk {
        /// Its stream.
        stream: u8,
        /// Bytes, at least one.
        payload: usize,
    },
    /// A message whose payload stays with the sender until it is accepted.
    Offer {
        /// About it.
        head: Head,
        /// Bytes of MPICH's header.
        header: usize,
        /// The payload that is offered.
        offer: Offer,
    },
    /// The answer to an offer, if the receiver needs the sender for it.
    Accept {
        /// The sender's number for what it has offered.
        offer: u32,
        /// The receiver's number for what it fetches.
        fetch: u32,
        /// The task of the sender.
        request: Request,
    },
    /// The beginning of a payload that was accepted, in pieces.
    Feed {
        /// As accepted.
        fetch: u32,
        /// The stream that its pieces will name.
        stream: u8,
        /// Bytes, at least one.
        total: u64,
    },
    /// The sender has copied its part, or could not.
    Done {
        /// As accepted.
        fetch: u32,
        /// True if it succeeded.
        ok: bool,
    },
    /// The receiver has all it wants of an offer.
    Taken {
        /// As offered.
        offer: u32,
    },
    /// The result of an operation on a segment.
    Served {
        /// Which request, and how it went.
        reply: Reply,
        /// Bytes that were asked for.
        payload: usize,
    },
    /// Bytes that the receiver of this packet may have sent to its sender in all.
    Credit {
        /// As `endpoint::credit` counts.
        allowed: u64,
    },
    /// The sender of this packet waits for credit.
    Stalled {
        /// The rank that has said so first.
        origin: u32,
        /// Number of times that the rank has asked.
        number: u32,
        /// The last credit that the sender of this packet had heard of.
        allowed: u64,
    },
    /// The parts of a greeting.
    Greeting {
        /// Which question it is, or belongs to.
        what: About,
        /// Which of the two sides says it.
        kind: GreetingKind,
        /// Bytes.
        payload: usize,
    },
}

/// The first bytes of an entry, and what its tag needs.
pub struct Prefix {
    /// For the tag.
    pub kind: u8,
    /// For the tag.
    pub meta: u16,
    bytes: [u8; PREFIX_MAX],
    len: usize,
    end: usize,
}

impl Prefix {
    /// The bytes to be written.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    /// Offset of MPICH's header or of a chunk's payload: at least these bytes.
    #[inline]
    pub fn end(&self) -> usize {
        self.len.max(self.end)
    }

    fn push(&mut self, bytes: &[u8]) {
        self.bytes[self.len..self.len + bytes.len()].copy_from_slice(bytes);
        self.len += bytes.len();
    }
}

/// The contents of the tag of a message without an extension: its description, and the bytes of its header.
#[inline]
pub(super) fn plain(meta: u16) -> (Head, usize) {
    (Head { handler: meta & (HANDLERS - 1) }, (meta >> 6) as usize * 8)
}

/// The tag's `meta` for a message that needs no extension; None if it does.
#[inline]
pub(super) fn plain_meta(head: Head, header: usize) -> Option<u16> {
    let plain = header % 8 == 0 && header / 8 <= HEADER_WORDS_MAX;
    plain.then_some(head.handler | ((header / 8) as u16) << 6)
}

/// The contents of a chunk's meta: its stream, which may be none, and the offset of its payload, `at` unless it has lines of its own.
#[inline(always)]
fn chunk(meta: u16, at: usize) -> (u16, usize) {
    (meta & !APART, if meta & APART != 0 { PREFIX_MAX } else { at })
}

/// The stream of a piece that has come straight from its sender, and where its payload begins, by what its tag says; None if it
/// is none, or wrong.
#[inline(always)]
pub(super) fn plain_chunk(kind: u8, len: usize, meta: u16) -> Option<(u8, usize)> {
    let (stream, at) = chunk(meta, 0);
    (kind == CHUNK && (stream as usize) < STREAMS && len > at).then_some((stream as u8, at))
}

impl Packet {
    /// The prefix of this packet, routed if a route is given.
    #[inline]
    pub fn prefix(&self, route: Option<Route>) -> Prefix {
        let mut p = Prefix { kind: 0, meta: 0, bytes: [0; PREFIX_MAX], len: 0, end: 0 };
        if let Some(route) = route {
            p.kind |= ROUTED;
            p.push(&route.bytes());
        }
        match *self {
            Packet::Message { head, header, .. } => {
                p.kind |= MESSAGE;
                p.head(head, header);
            }
            Packet::Begin { head, header, stream, total } => {
                p.kind |= BEGIN;
                p.head(head, header);
                p.words(&[total, stream.into()]);
            }
            Packet::Chunk { stream, payload } => {
                p.kind |= CHUNK;
                p.meta = stream.into();
                if payload >= APART_MIN {
                    p.meta |= APART;
                    p.end = PREFIX_MAX;
                }
            }
            Packet::Offer { head, header, offer } => {
                p.kind |= OFFER;
                p.head(head, header);
                p.words(&[offer.id.into(), offer.address, offer.total]);
            }
            Packet::Accept { offer, fetch, request } => {
                p.kind |= ACCEPT;
                let (address, from, len) = match request {
                    Request::Stream { len, gladly } => (0, gladly.into(), len),
                    Request::Push { address, from, len } => (address, from, len),
                };
                p.words(&[u64::from(offer) | u64::from(fetch) << 32, address, from, len]);
            }
            Packet::Feed { fetch, stream, total } => {
                p.kind |= FEED;
                p.words(&[fetch.into(), stream.into(), total]);
            }
            Packet::Done { fetch, ok } => {
                p.kind |= DONE;
                p.words(&[fetch.into(), ok.into()]);
            }
            Packet::Taken { offer } => {
                p.kind |= TAKEN;
                p.words(&[offer.into()]);
            }
            Packet::Credit { allowed } => {
                p.kind |= CREDIT;
                p.words(&[allowed]);
            }
            Packet::Stalled { origin, number, allowed } => {
                p.kind |= STALLED;
                p.words(&[u64::from(origin) | u64::from(number) << 32, allowed]);
            }
            Packet::Served { reply, .. } => {
                p.kind |= REPLY;
                p.push(&reply.bytes());
            }
            Packet::Greeting { what, kind, .. } => {
                p.kind |= GREETING;
                p.meta = kind as u16;
                p.push(&(u64::from(what.tag) | u64::from(what.number) << 32).to_le_bytes());
            }
        }
        p
    }

    /// Understands an entry of `len` bytes from its tag and its first bytes (all of them, or at
    /// least [`PREFIX_MAX`]). Returns the packet, its route, and where MPICH's header or a
    /// chunk's payload begins.
    pub fn parse(
        kind: u8,
        meta: u16,
        len: usize,
        first: &[u8],
        routed: bool,
    ) -> Result<(Packet, Option<Route>, usize), WireError> {
        let mut at = 0;
        let take = |at: &mut usize, n: usize| -> Result<&[u8], WireError> {
            let end = *at + n;
            let bytes = first.get(*at..end).filter(|_| end <= len).ok_or(WireError::Short { kind, len })?;
            *at = end;
            Ok(bytes)
        };
        if (kind & ROUTED != 0) != routed {
            return Err(WireError::Kind { kind });
        }
        let route = match routed {
            true => Some(Route::parse(take(&mut at, Route::LEN)?.try_into().expect("its length"))),
            false => None,
        };
        let base = kind & !(ROUTED | EXTENDED);
        let impossible = |field, value| WireError::Field { kind, field, value };
        let stream_of =
            |n: u64| u8::try_from(n).ok().filter(|&s| (s as usize) < STREAMS).ok_or(impossible("stream", n));
        if base == CHUNK && kind & EXTENDED == 0 {
            let (stream, at) = chunk(meta, at);
            let stream = stream_of(stream.into())?;
            let payload = len.checked_sub(at).filter(|&n| n > 0).ok_or(WireError::Short { kind, len })?;
            return Ok((Packet::Chunk { stream, payload }, route, at));
        }
        if base == REPLY && kind & EXTENDED == 0 {
            let bytes = take(&mut at, Reply::LEN)?.try_into().expect("its length");
            let reply = Reply::parse(bytes).ok_or(impossible("reply", u64::from(bytes[4])))?;
            return Ok((Packet::Served { reply, payload: len - at }, route, at));
        }
        if base == GREETING && kind & EXTENDED == 0 {
            let word = u64::from_le_bytes(take(&mut at, 8)?.try_into().expect("its length"));
            let what = About { tag: word as u32, number: (word >> 32) as u32 };
            let kind = GreetingKind::parse(meta).ok_or(impossible("meta", meta.into()))?;
            return Ok((Packet::Greeting { what, kind, payload: len - at }, route, at));
        }
        let mut head = Head::default();
        let mut header = 0;
        if matches!(base, MESSAGE | BEGIN | OFFER) {
            (head, header) = plain(meta);
            if kind & EXTENDED != 0 {
                let mut b = take(&mut at, EXTENSION)?;
                header = b.get_u32_le() as usize;
            }
        } else if kind & EXTENDED != 0 {
            return Err(WireError::Kind { kind });
        }
        let count = match base {
            MESSAGE => 0,
            TAKEN | CREDIT => 1,
            BEGIN | DONE | STALLED => 2,
            OFFER | FEED => 3,
            ACCEPT => 4,
            _ => return Err(WireError::Kind { kind }),
        };
        let mut words = [0u64; WORDS_MAX];
        let mut b = take(&mut at, 8 * count)?;
        words[..count].iter_mut().for_each(|word| *word = b.get_u64_le());
        let number = |field, value: u64| u32::try_from(value).map_err(|_| impossible(field, value));
        let size = |field, value: u64| match value {
            1..=MOST => Ok(value),
            _ => Err(impossible(field, value)),
        };
        let left = len - at;
        if header > left {
            return Err(impossible("header size", header as u64));
        }
        if base != MESSAGE && header < left {
            return Err(impossible("length", len as u64));
        }
        let [w0, w1, w2, w3] = words;
        let packet = match base {
            MESSAGE => Packet::Message { head, header, payload: left - header },
            BEGIN => Packet::Begin { head, header, stream: stream_of(w1)?, total: size("total", w0)? },
            OFFER => {
                let offer = Offer { id: number("offer", w0)?, address: w1, total: size("total", w2)? };
                Packet::Offer { head, header, offer }
            }
            FEED => Packet::Feed { fetch: number("fetch", w0)?, stream: stream_of(w1)?, total: size("total", w2)? },
            DONE => Packet::Done { fetch: number("fetch", w0)?, ok: w1 == 1 },
            TAKEN => Packet::Taken { offer: number("offer", w0)? },
            CREDIT => Packet::Credit { allowed: size("credit", w0)? },
            STALLED => Packet::Stalled { origin: w0 as u32, number: (w0 >> 32) as u32, allowed: w1 },
            _ => {
                let len = size("length", w3)?;
                let request = match w1 {
                    0 => Request::Stream { len, gladly: w2 == 1 },
                    address => Request::Push { address, from: w2, len },
                };
                Packet::Accept { offer: w0 as u32, fetch: (w0 >> 32) as u32, request }
            }
        };
        Ok((packet, route, at))
    }
}

impl Prefix {
    fn words(&mut self, words: &[u64]) {
        words.iter().for_each(|word| self.push(&word.to_le_bytes()));
    }

    #[inline]
    fn head(&mut self, head: Head, header: usize) {
        if let Some(meta) = plain_meta(head, header) {
            self.meta = meta;
        } else {
            self.meta = head.handler;
            self.kind |= EXTENDED;
            self.push(&(header as u32).to_le_bytes());
            self.push(&[0; 4]);
        }
    }
}

#[cfg(test)]
mod tests;
