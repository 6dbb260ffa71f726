//! Decoding of entries.

use super::error::WireError;
use super::packet::Packet;
use super::parts::{DpmId, DpmKind, Head, Offer, Request};
use super::tag::*;
use bytes::Buf;
use ntbring_ring::relay::{Route, ROUTED};
use ntbring_rma::{Reply, REPLY};

impl Packet {
    /// Parses an entry of `len` bytes from its tag and its first bytes (all of them, or at least [`PREFIX_MAX`]).
    /// Returns the packet, its route, and the offset of MPICH's header or of a chunk's payload.
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
        if base == DPM && kind & EXTENDED == 0 {
            let word = u64::from_le_bytes(take(&mut at, 8)?.try_into().expect("its length"));
            let what = DpmId { tag: word as u32, number: (word >> 32) as u32 };
            let kind = DpmKind::parse(meta).ok_or(impossible("meta", meta.into()))?;
            return Ok((Packet::Dpm { what, kind, payload: len - at }, route, at));
        }
        let mut head = Head::default();
        let mut header = 0;
        if matches!(base, MESSAGE | BEGIN | RTS) {
            (head, header) = plain(meta);
            if kind & EXTENDED != 0 {
                let mut b = take(&mut at, EXTENSION)?;
                header = b.get_u32_le() as usize;
            }
        } else if kind & EXTENDED != 0 {
            return Err(WireError::Kind { kind });
        }
        let count = match base {
            MESSAGE | DIRECT => 0,
            TAKEN | CREDIT => 1,
            BEGIN | FIN | STALLED => 2,
            RTS | DATA => 3,
            CTS => 4,
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
            RTS => {
                let offer = Offer { id: number("offer", w0)?, address: w1, total: size("total", w2)? };
                Packet::Rts { head, header, offer }
            }
            DATA => Packet::Data { fetch: number("fetch", w0)?, stream: stream_of(w1)?, total: size("total", w2)? },
            FIN => Packet::Fin { fetch: number("fetch", w0)?, ok: w1 == 1 },
            TAKEN => Packet::Taken { offer: number("offer", w0)? },
            CREDIT => Packet::Credit { allowed: size("credit", w0)? },
            DIRECT => Packet::Direct,
            STALLED => Packet::Stalled { origin: w0 as u32, number: (w0 >> 32) as u32, allowed: w1 },
            _ => {
                let len = size("length", w3)?;
                let request = match w1 {
                    0 => Request::Stream { len, prefer_eager: w2 == 1 },
                    address => Request::Push { address, from: w2, len },
                };
                Packet::Cts { offer: w0 as u32, fetch: (w0 >> 32) as u32, request }
            }
        };
        Ok((packet, route, at))
    }
}
