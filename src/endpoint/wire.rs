//! What an entry of a lane means to the ranks at its ends.
//!
//! An entry's bytes are, each part only if the kind says so:
//! route (8, see `ring::relay`), extension (8), announcement (16), MPICH's header, payload.
//!
//! The tag's `meta` holds the handler (6 bits) and the header's size in words (9 bits), so that a
//! plain message needs nothing but its tag. A header of another size and VCIs other than 0 need
//! the extension. In a `CHUNK` meta is the number of the stream.

use crate::queue::META_MAX;
use crate::ring::relay::{Route, ROUTED};
use bytes::Buf;

/// A whole message.
pub const MESSAGE: u8 = 1;
/// The header of a message whose payload follows in chunks.
pub const BEGIN: u8 = 2;
/// A piece of a payload.
pub const CHUNK: u8 = 3;
/// Has an extension.
const EXTENDED: u8 = 0x20;

const EXTENSION: usize = 8;
const ANNOUNCEMENT: usize = 16;
/// The most bytes before MPICH's header.
pub const PREFIX_MAX: usize = Route::LEN + EXTENSION + ANNOUNCEMENT;
/// Handlers are below this.
pub const HANDLERS: u16 = 64;
/// Streams that one rank may have open to another.
pub const STREAMS: usize = 16;

const HEADER_WORDS_MAX: usize = (META_MAX >> 6) as usize;

/// What is said of a message beside its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Head {
    /// Who is to handle it.
    pub handler: u16,
    /// The sender's VCI.
    pub src_vci: u8,
    /// The receiver's VCI.
    pub dst_vci: u8,
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
}

/// The first bytes of an entry, and what its tag needs.
pub struct Prefix {
    /// For the tag.
    pub kind: u8,
    /// For the tag.
    pub meta: u16,
    bytes: [u8; PREFIX_MAX],
    len: usize,
}

impl Prefix {
    /// The bytes before MPICH's header, or before a chunk's payload.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    fn push(&mut self, bytes: &[u8]) {
        self.bytes[self.len..self.len + bytes.len()].copy_from_slice(bytes);
        self.len += bytes.len();
    }
}

/// An entry that a peer should not have sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    /// An unknown kind, or a routed one in a direct lane or the other way round.
    #[error("an entry of kind {kind:#x} has no business in this lane")]
    Kind {
        /// The kind.
        kind: u8,
    },
    /// Too short for what its kind promises.
    #[error("an entry of kind {kind:#x} with {len} bytes is too short")]
    Short {
        /// The kind.
        kind: u8,
        /// Its bytes.
        len: usize,
    },
    /// A field with an impossible value.
    #[error("an entry of kind {kind:#x} has an impossible {field}: {value}")]
    Field {
        /// The kind.
        kind: u8,
        /// The field.
        field: &'static str,
        /// Its value.
        value: u64,
    },
}

/// What the tag of a message says if there is no extension: about it, and its header's bytes.
#[inline]
pub(super) fn plain(meta: u16) -> (Head, usize) {
    (Head { handler: meta & (HANDLERS - 1), ..Head::default() }, (meta >> 6) as usize * 8)
}

/// The tag's `meta` for a message that needs no extension; None if it does.
#[inline]
pub(super) fn plain_meta(head: Head, header: usize) -> Option<u16> {
    let plain = head.src_vci | head.dst_vci == 0 && header % 8 == 0 && header / 8 <= HEADER_WORDS_MAX;
    plain.then_some(head.handler | ((header / 8) as u16) << 6)
}

impl Packet {
    /// The prefix of this packet, routed if a route is given.
    #[inline]
    pub fn prefix(&self, route: Option<Route>) -> Prefix {
        let mut p = Prefix { kind: 0, meta: 0, bytes: [0; PREFIX_MAX], len: 0 };
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
                p.push(&total.to_le_bytes());
                p.push(&u64::from(stream).to_le_bytes());
            }
            Packet::Chunk { stream, .. } => {
                p.kind |= CHUNK;
                p.meta = stream.into();
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
            let stream = stream_of(meta.into())?;
            let payload = len.checked_sub(at).filter(|&n| n > 0).ok_or(WireError::Short { kind, len })?;
            return Ok((Packet::Chunk { stream, payload }, route, at));
        }
        if base != MESSAGE && base != BEGIN {
            return Err(WireError::Kind { kind });
        }
        let (mut head, mut header) = plain(meta);
        if kind & EXTENDED != 0 {
            let mut b = take(&mut at, EXTENSION)?;
            header = b.get_u32_le() as usize;
            (head.src_vci, head.dst_vci) = (b.get_u8(), b.get_u8());
        }
        let announced = match base {
            BEGIN => {
                let mut b = take(&mut at, ANNOUNCEMENT)?;
                let (total, stream) = (b.get_u64_le(), stream_of(b.get_u64_le())?);
                if total == 0 || total > i64::MAX as u64 {
                    return Err(impossible("total", total));
                }
                Some((stream, total))
            }
            _ => None,
        };
        let left = len - at;
        if header > left {
            return Err(impossible("header size", header as u64));
        }
        let packet = match announced {
            None => Packet::Message { head, header, payload: left - header },
            Some(_) if header < left => return Err(impossible("length", len as u64)),
            Some((stream, total)) => Packet::Begin { head, header, stream, total },
        };
        Ok((packet, route, at))
    }
}

impl Prefix {
    #[inline]
    fn head(&mut self, head: Head, header: usize) {
        if let Some(meta) = plain_meta(head, header) {
            self.meta = meta;
        } else {
            self.meta = head.handler;
            self.kind |= EXTENDED;
            self.push(&(header as u32).to_le_bytes());
            self.push(&[head.src_vci, head.dst_vci, 0, 0]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn packets() -> impl Strategy<Value = Packet> {
        let head =
            (0..HANDLERS, 0u8..3, 0u8..3).prop_map(|(handler, src_vci, dst_vci)| Head { handler, src_vci, dst_vci });
        prop_oneof![
            (head.clone(), 0usize..5000, 0usize..5000).prop_map(|(head, header, payload)| Packet::Message {
                head,
                header,
                payload
            }),
            (head, 0usize..5000, 0..STREAMS as u8, 1..i64::MAX as u64)
                .prop_map(|(head, header, stream, total)| Packet::Begin { head, header, stream, total }),
            (0..STREAMS as u8, 1usize..5000).prop_map(|(stream, payload)| Packet::Chunk { stream, payload }),
        ]
    }

    proptest! {
        #[test]
        fn packets_survive_the_wire(packet in packets(), route in proptest::option::of((any::<u32>(), any::<u32>()))) {
            let route = route.map(|(src, dst)| Route { src, dst });
            let prefix = packet.prefix(route);
            let rest = match packet {
                Packet::Message { header, payload, .. } => header + payload,
                Packet::Begin { header, .. } => header,
                Packet::Chunk { payload, .. } => payload,
            };
            let len = prefix.bytes().len() + rest;
            let parsed = Packet::parse(prefix.kind, prefix.meta, len, prefix.bytes(), route.is_some());
            prop_assert_eq!(parsed, Ok((packet, route, prefix.bytes().len())));
            prop_assert_eq!(prefix.bytes().len() % 8, 0);
        }

        #[test]
        fn hostile_entries_are_refused_or_stay_inside(kind: u8, meta in 0..=META_MAX, first in proptest::collection::vec(any::<u8>(), PREFIX_MAX), len in 0usize..10_000, routed: bool) {
            let first = &first[..len.min(PREFIX_MAX)];
            if let Ok((packet, _, at)) = Packet::parse(kind, meta, len, first, routed) {
                let end = match packet {
                    Packet::Message { header, payload, .. } => at + header + payload,
                    Packet::Begin { header, .. } => at + header,
                    Packet::Chunk { payload, .. } => at + payload,
                };
                prop_assert_eq!(end, len);
            }
        }
    }

    #[test]
    fn the_smallest_messages_need_one_line() {
        // MPICH's header for a send has 48 bytes.
        let packet = Packet::Message { head: Head::default(), header: 48, payload: 8 };
        assert_eq!(crate::queue::lines_for(packet.prefix(None).bytes().len() + 48 + 8), 1);
    }
}
