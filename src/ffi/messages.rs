//! Conversion of messages and events between C's structures and those of the endpoint.

use super::abi::*;
use super::error::remember;
use super::{argument, Failure};
use ::ntbring_endpoint::wire::{Head, Offer, Packet};
use ::ntbring_endpoint::{Event, Message, Plain, Token};
use ntbring_memory::{ForeignBytes, ForeignRoom};
use ntbring_ring::PeerLoss;
use ntbring_zerocopy::{Packed, Payload};
use std::ffi::c_void;

/// Converts a message of C into a message of the endpoint.
///
/// # Safety
/// The memory that `m` points to must be valid: the header for the call, the payload until it is released.
#[inline]
pub unsafe fn outgoing<'a>(m: &ntbring_message_t) -> Result<Message<'a>, Failure> {
    if m.dest < 0 {
        return Err(argument("a message to a negative rank"));
    }
    let header: &[u8] = match m.hdr_size {
        0 => &[],
        n if m.hdr.is_null() || n > i32::MAX as u64 => return Err(argument("a header that is NULL or too long")),
        // SAFETY: valid for the call by contract; ordinary memory of this process.
        n => unsafe { std::slice::from_raw_parts(m.hdr.cast(), n as usize) },
    };
    let payload = match (m.data_size, m.pack) {
        (0, _) => Payload::NONE,
        // SAFETY: the function packs `m.cookie`'s payload until it is released, by contract.
        (len, Some(pack)) => Payload::Packed(unsafe { Packed::new(len, pack, m.cookie) }),
        (_, None) if m.data.is_null() => return Err(argument("a payload that is NULL")),
        // SAFETY: valid until released, by contract.
        (len, None) => Payload::Contiguous(unsafe { ForeignBytes::new(m.data.cast(), len as usize) }),
    };
    let head = Head { handler: m.handler };
    Ok(Message { dest: m.dest as u32, head, header, payload, cookie: m.cookie as usize })
}

/// Returns the payload of a message that is sent at once.
///
/// # Safety
/// `data` must be valid for the call.
#[inline(always)]
pub unsafe fn small(dest: i32, data: *const c_void, data_size: u64) -> Result<ForeignBytes<'static>, Failure> {
    if dest < 0 || data_size > 0 && data.is_null() || data_size > u64::from(u32::MAX) {
        return Err(argument("a message at once without rank or payload"));
    }
    // SAFETY: valid for the call by contract, and a message that is sent at once is not kept beyond the call.
    Ok(unsafe { ForeignBytes::new(data.cast(), data_size as usize) })
}

/// Returns two words as they lie in memory.
#[inline(always)]
pub fn bytes(words: [u64; 2]) -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&words[0].to_ne_bytes());
    bytes[8..].copy_from_slice(&words[1].to_ne_bytes());
    bytes
}

/// Returns the sender and the description of an offer from an event.
pub fn offer(o: &ntbring_offer_t) -> Result<(u32, Offer), Failure> {
    let src = u32::try_from(o.src).map_err(|_| argument("an offer of a negative rank"))?;
    Ok((src, Offer { id: o.id, address: o.address, total: o.total }))
}

/// Fills in the event of a plain message, as [`fill`] would, but without an intermediate [`Event`], whose copies cost
/// more than all the other work.
#[inline]
pub fn fill_plain(e: &mut ntbring_event_t, found: &Plain, charge: u64) {
    e.kind = NTBRING_EVENT_MESSAGE;
    e.src = found.src as i32;
    e.handler = found.head.handler;
    e.hdr = found.address.cast();
    e.hdr_size = found.header as u64;
    e.data = found.address.wrapping_add(found.header).cast();
    e.data_size = found.payload as u64;
    e.total = found.payload as u64;
    e.token = [found.lane as u64 + 1, 0, 0, 0];
    e.more = found.more.into();
    e.charge = charge;
}

/// Fills in an event of the C ABI: the fields of its kind, and the token.
#[inline]
pub fn fill(e: &mut ntbring_event_t, found: Event, cost: impl Fn(u16, u64) -> u64) {
    e.src = i32::MIN;
    e.token = [0; 4];
    e.more = 0;
    e.charge = 0;
    let arrival = match found {
        Event::Sent { cookie, handler } => {
            e.kind = NTBRING_EVENT_SENT;
            e.cookie = cookie as *mut c_void;
            e.handler = handler;
            return;
        }
        Event::Taken { cookie } => {
            e.kind = NTBRING_EVENT_TAKEN;
            e.cookie = cookie as *mut c_void;
            return;
        }
        Event::Fetched { cookie } => {
            e.kind = NTBRING_EVENT_FETCHED;
            e.cookie = cookie as *mut c_void;
            return;
        }
        Event::Remote { cookie } => {
            e.kind = NTBRING_EVENT_REMOTE;
            e.cookie = cookie as *mut c_void;
            return;
        }
        Event::Stalled { src } => {
            e.kind = NTBRING_EVENT_STALLED;
            e.src = src as i32;
            return;
        }
        Event::Lost(loss) => {
            e.kind = NTBRING_EVENT_LOST;
            e.src = loss.rank() as i32;
            e.last = u32::from(matches!(loss, PeerLoss::ExternalPeerLeft { .. }));
            remember(&loss.to_string());
            return;
        }
        Event::Arrival(arrival) => arrival,
    };
    e.src = arrival.src as i32;
    // 0 stands for `Token::NOTHING`: there is nothing to release.
    e.token[0] = (arrival.token.lane as u64).wrapping_add(1);
    let mut head = |head: Head, header: usize| {
        e.handler = head.handler;
        e.hdr = arrival.header.0.cast();
        e.hdr_size = header as u64;
    };
    match arrival.packet {
        Packet::Message { head: h, header, payload } => {
            head(h, header);
            e.kind = NTBRING_EVENT_MESSAGE;
            e.data = arrival.header.0.wrapping_add(header).cast();
            e.data_size = payload as u64;
            e.total = payload as u64;
            e.charge = cost(h.handler, payload as u64);
        }
        Packet::Begin { head: h, header, total, .. } => {
            head(h, header);
            e.kind = NTBRING_EVENT_BEGIN;
            (e.data, e.data_size) = (std::ptr::null_mut(), 0);
            e.total = total;
            e.charge = cost(h.handler, total);
        }
        Packet::Chunk { payload, .. } => {
            e.kind = NTBRING_EVENT_CHUNK;
            e.data = arrival.header.0.cast();
            e.data_size = payload as u64;
            e.cookie = arrival.cookie as *mut c_void;
            e.last = arrival.last.into();
        }
        Packet::Rts { head: h, header, offer } => {
            head(h, header);
            e.kind = NTBRING_EVENT_OFFER;
            e.total = offer.total;
            e.charge = cost(h.handler, 0);
            e.offer = ntbring_offer { src: e.src, id: offer.id, address: offer.address, total: offer.total };
        }
        // The endpoint handles these packets itself.
        Packet::Cts { .. }
        | Packet::Data { .. }
        | Packet::Fin { .. }
        | Packet::Taken { .. }
        | Packet::Served { .. }
        | Packet::Credit { .. }
        | Packet::Stalled { .. }
        | Packet::Direct
        | Packet::Dpm { .. } => {}
    }
    if let Some((src, stream)) = arrival.token.begun {
        e.token[1] = 1 + u64::from(stream);
        e.token[2] = src.into();
    }
}

/// Returns the destination of the payload of a message that has begun, if the caller has named one.
///
/// # Safety
/// If `e` is the beginning of a message, `data` must be NULL or writable for `data_size` bytes until the payload is
/// complete.
#[inline]
pub unsafe fn place(e: &ntbring_event_t, token: Token) -> Option<ForeignRoom<'static>> {
    let has_room = token.begun.is_some() && !e.data.is_null();
    // SAFETY: the caller guarantees writable memory (contract of this function).
    has_room.then(|| unsafe { ForeignRoom::new(e.data.cast(), e.data_size as usize) })
}

/// Returns the lane of the event's entry, if that entry is the only resource to release.
#[inline(always)]
pub fn entry(e: &ntbring_event_t) -> Option<usize> {
    match e.token {
        [0, ..] => None,
        [lane, 0, ..] => Some((lane - 1) as usize),
        _ => None,
    }
}

/// Returns the token that [`fill`] stored in an event; None if there is nothing to release.
#[inline]
pub fn token(e: &ntbring_event_t) -> Result<Option<Token>, Failure> {
    let [lane, stream, src, _] = e.token;
    if lane == 0 {
        return Ok(None);
    }
    let begun = match stream {
        0 => None,
        n => Some((u32::try_from(src).map_err(|_| argument("a token that was changed"))?, (n - 1) as u8)),
    };
    Ok(Some(Token { lane: (lane - 1) as usize, begun }))
}
