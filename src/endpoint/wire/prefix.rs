//! Encoding: the first bytes of an entry.

use super::packet::Packet;
use super::parts::{Head, Request};
use super::tag::*;
use ntbring_ring::relay::{Route, ROUTED};
use ntbring_rma::REPLY;

/// The first bytes of an entry, and the fields of its tag.
pub struct Prefix {
    /// The kind, for the tag.
    pub kind: u8,
    /// The meta, for the tag.
    pub meta: u16,
    bytes: [u8; PREFIX_MAX],
    len: usize,
    end: usize,
}

impl Prefix {
    /// Returns the bytes to be written.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    /// Returns the offset of MPICH's header or of a chunk's payload, which is at least the number of these bytes.
    #[inline]
    pub fn end(&self) -> usize {
        self.len.max(self.end)
    }

    fn push(&mut self, bytes: &[u8]) {
        self.bytes[self.len..self.len + bytes.len()].copy_from_slice(bytes);
        self.len += bytes.len();
    }
}

impl Packet {
    /// Returns the prefix of this packet, routed if a route is given.
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
            Packet::Rts { head, header, offer } => {
                p.kind |= RTS;
                p.head(head, header);
                p.words(&[offer.id.into(), offer.address, offer.total]);
            }
            Packet::Cts { offer, fetch, request } => {
                p.kind |= CTS;
                let (address, from, len) = match request {
                    Request::Stream { len, prefer_eager } => (0, prefer_eager.into(), len),
                    Request::Push { address, from, len } => (address, from, len),
                };
                p.words(&[u64::from(offer) | u64::from(fetch) << 32, address, from, len]);
            }
            Packet::Data { fetch, stream, total } => {
                p.kind |= DATA;
                p.words(&[fetch.into(), stream.into(), total]);
            }
            Packet::Fin { fetch, ok } => {
                p.kind |= FIN;
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
            Packet::Direct => p.kind |= DIRECT,
            Packet::Served { reply, .. } => {
                p.kind |= REPLY;
                p.push(&reply.bytes());
            }
            Packet::Dpm { what, kind, .. } => {
                p.kind |= DPM;
                p.meta = kind as u16;
                p.push(&(u64::from(what.tag) | u64::from(what.number) << 32).to_le_bytes());
            }
        }
        p
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
