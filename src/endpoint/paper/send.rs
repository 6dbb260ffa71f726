//! Sending, as the models of the experiments do it.

use super::{Buffer, MOST, WHOLE};
use crate::outbound::flow::{put_bare, put_message};
use crate::outbound::Message;
use crate::wire::{Head, Offer, Packet, PREFIX_MAX};
use crate::{Endpoint, EndpointError};
use ntbring_queue::PaperModel;
use ntbring_queue::{Producer, Slot};
use ntbring_ring::relay::Route;
use ntbring_zerocopy::{PackFailed, Payload};

/// What a model does to what it sends.
pub(in super::super) struct SendSide {
    copies: bool,
    splits: bool,
    buffer: Buffer,
}

impl SendSide {
    /// Of a model; None for production. Entries are of at most `entry_max` bytes.
    pub fn new(model: PaperModel, entry_max: usize) -> Option<SendSide> {
        if model.is_production() {
            return None;
        }
        Some(SendSide { copies: model.copies_at_sender(), splits: model.splits(), buffer: Buffer::new(entry_max) })
    }

    /// Copies a part of a payload to `at` in the buffer.
    fn copy(&mut self, payload: &Payload, offset: u64, at: usize, max: usize) -> Result<usize, PackFailed> {
        payload.put(offset, &mut self.buffer.to, at, max)
    }

    /// Deposits a whole message, or nothing; false if there is no room.
    #[inline(never)]
    pub fn put_message(
        &mut self,
        lane: &mut Producer,
        route: Option<Route>,
        head: Head,
        header: &[u8],
        payload: &Payload,
    ) -> Result<bool, EndpointError> {
        if payload.is_empty() {
            return put_message(lane, route, head, header, payload);
        }
        match self.splits {
            true => self.put_split(lane, route, head, header, payload),
            false => self.put_packed(lane, route, head, header, payload),
        }
    }

    /// Header and payload as one contiguous write, after a copy.
    fn put_packed(
        &mut self,
        lane: &mut Producer,
        route: Option<Route>,
        head: Head,
        header: &[u8],
        payload: &Payload,
    ) -> Result<bool, EndpointError> {
        let size = payload.len() as usize;
        let prefix = Packet::Message { head, header: header.len(), payload: size }.prefix(route);
        let before = prefix.bytes().len() + header.len();
        let Some(mut slot) = lane.reserve(before + size) else { return Ok(false) };
        self.buffer.to.write_bytes(0, prefix.bytes());
        self.buffer.to.write_bytes(prefix.bytes().len(), header);
        let mut put = 0;
        while put < size {
            put += self.copy(payload, put as u64, before + put, size - put)?;
        }
        slot.write(0, self.buffer.bytes(0, before + size));
        slot.commit(prefix.kind, before + size, prefix.meta);
        Ok(true)
    }

    /// The header as an entry of its own, and the payload as another.
    fn put_split(
        &mut self,
        lane: &mut Producer,
        route: Option<Route>,
        head: Head,
        header: &[u8],
        payload: &Payload,
    ) -> Result<bool, EndpointError> {
        let size = payload.len() as usize;
        if !lane.has_room_for([PREFIX_MAX + header.len(), PREFIX_MAX + size]) {
            return Ok(false);
        }
        // What is not contiguous must be made so. Before the header is sent, since it may fail.
        let bytes = match payload {
            Payload::Contiguous(bytes) if !self.copies => *bytes,
            _ => {
                let mut put = 0;
                while put < size {
                    put += self.copy(payload, put as u64, put, size - put)?;
                }
                self.buffer.bytes(0, size)
            }
        };
        let begin = Packet::Begin { head, header: header.len(), stream: WHOLE, total: size as u64 };
        if !put_bare(lane, route, begin, header) {
            return Ok(false);
        }
        let prefix = Packet::Chunk { stream: WHOLE, payload: size }.prefix(route);
        let at = prefix.end();
        let mut slot = lane.reserve(at + size).expect("there was room for both");
        slot.write_bytes(0, prefix.bytes());
        slot.write(at, bytes);
        slot.commit(prefix.kind, at + size, prefix.meta);
        Ok(true)
    }

    /// Writes a piece of a payload into its entry.
    pub fn put_piece(
        &mut self,
        payload: &Payload,
        offset: u64,
        slot: &mut Slot<'_>,
        at: usize,
        max: usize,
    ) -> Result<usize, PackFailed> {
        if !self.copies {
            return payload.put(offset, slot, at, max);
        }
        let n = self.copy(payload, offset, 0, max)?;
        slot.write(at, self.buffer.bytes(0, n));
        Ok(n)
    }
}

impl Endpoint {
    /// Sends what would be offered without waiting to be asked for it: the receiver has a default
    /// buffer.
    pub(in super::super) fn send_unasked(&mut self, m: Message<'_>) -> Result<(), EndpointError> {
        let total = m.payload.len();
        if total > MOST {
            let text = format!("a message of {total} bytes; with this NTBRING_PAPER_MODEL at most {MOST} are possible");
            return Err(EndpointError::Argument(text));
        }
        let Some(paper) = &mut self.paper else { return Ok(()) };
        let offer = Offer { id: paper.next_number(), address: 0, total };
        self.offers.offered += 1;
        self.out.send_bare(m.dest, Packet::Offer { head: m.head, header: m.header.len(), offer }, m.header)?;
        self.out.feed(m.dest, offer.id, m.payload, m.cookie)
    }
}
