//! The fast path of contiguous eager messages that are larger than an entry: their beginning and all their chunks are
//! deposited at once, so that the message needs no place in a queue and its sender no request.

use super::line::TURN_BYTES;
use super::message::Message;
use super::outbound::Outbound;
use super::outbox::Outbox;
use crate::wire::{plain_meta, APART, APART_MIN, BEGIN, CHUNK, HANDLERS, PREFIX_MAX};
use ntbring_memory::ForeignBytes;
use ntbring_queue::{lines_for, Producer};
use ntbring_timeline::Way;
use ntbring_zerocopy::Payload;

/// The unused bytes before the payload of a chunk that begins at the start of a line.
const APART_PREFIX: [u8; PREFIX_MAX] = [0; PREFIX_MAX];

/// Size in bytes of a `BEGIN`'s own words.
const BEGIN_WORDS: usize = 16;

impl Outbound {
    /// Deposits a message to a neighbour as its beginning and chunks, if nothing of its flow is pending and there is
    /// room for all of it. Otherwise returns false and deposits nothing; [`Outbound::send`] handles all cases.
    pub fn send_pieces(&mut self, m: &Message<'_>) -> bool {
        let Payload::Contiguous(payload) = m.payload else { return false };
        let Some(flow) = self.flows.get_mut(m.dest as usize) else { return false };
        let Some(Outbox { lane, bell, cut, .. }) = self.lanes.boxes.get_mut(flow.line.outbox) else { return false };
        let Some(meta) = plain_meta(m.head, m.header.len()) else { return false };
        let total = payload.len();
        let cost = self.credit_policy.cost(m.head.handler, total as u64);
        let piece = if lane.is_behind() { cut.most() } else { cut.piece(total as u64) }.min(total);
        let lines = lines_for(PREFIX_MAX + piece);
        if flow.route.is_some()
            || !flow.line.is_idle()
            || !flow.allowance.admits(cost)
            || m.head.handler >= HANDLERS
            || m.header.len() > piece
            || !(1..=TURN_BYTES).contains(&total)
            || lane.has_engine()
            || !lane.has_room(lines_for(BEGIN_WORDS + m.header.len()) + total.div_ceil(piece) * lines, lines)
        {
            return false;
        }
        let stamp = ntbring_timeline::begin();
        let stream = flow.line.first_stream();
        put_begin(lane, meta, m.header, total, stream);
        let mut at = 0;
        while at < total {
            let len = piece.min(total - at);
            put_chunk(lane, stream, payload.part(at, len));
            at += len;
            self.lanes.doorbells += bell.ring();
        }
        flow.msgs += 1;
        flow.bytes += (m.header.len() + total) as u64;
        flow.allowance.spend(cost);
        self.counts.chunked.count(total as u64);
        if stamp != 0 {
            self.record(stamp, m.dest, m.head, m.header, total as u64, Way::Chunked);
        }
        true
    }
}

/// Deposits the beginning of a message, for which there is room.
fn put_begin(lane: &mut Producer, meta: u16, header: &[u8], total: usize, stream: u8) {
    let mut words = [0; BEGIN_WORDS];
    words[..8].copy_from_slice(&(total as u64).to_le_bytes());
    words[8..].copy_from_slice(&u64::from(stream).to_le_bytes());
    put(lane, (BEGIN, meta), &words, header.into());
}

/// Deposits a chunk, for which there is room.
fn put_chunk(lane: &mut Producer, stream: u8, payload: ForeignBytes) {
    let (meta, prefix) = match payload.len() {
        APART_MIN.. => (u16::from(stream) | APART, &APART_PREFIX[..]),
        _ => (stream.into(), &[][..]),
    };
    put(lane, (CHUNK, meta), prefix, payload);
}

/// Deposits an entry, for which there is room.
#[inline(always)]
fn put(lane: &mut Producer, (kind, meta): (u8, u16), first: &[u8], then: ForeignBytes) {
    if !lane.put(kind, meta, first, then) {
        let len = first.len() + then.len();
        let mut slot = lane.reserve(len).expect("room for the whole message");
        slot.write_bytes(0, first);
        slot.write(first.len(), then);
        slot.commit(kind, len, meta);
    }
}
