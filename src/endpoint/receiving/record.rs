//! Messages in the timeline.

use super::inbound::Inbound;
use crate::wire::{tag_of, Packet, TAG_END};
use ntbring_timeline::{Message, Way};

/// What the timeline needs beside an arrival.
#[derive(Default)]
pub struct Recorded {
    /// Index of the endpoint.
    pub vci: u8,
    /// Number of messages of each peer so far.
    numbers: Vec<u32>,
}

impl Inbound {
    /// Records a packet of peer `src` in the timeline if it is a message. Its header is at `offset` in lane `i`.
    #[cold]
    #[inline(never)]
    pub(super) fn record(&mut self, i: usize, src: u32, packet: Packet, offset: usize) {
        let (head, header, bytes, way) = match packet {
            Packet::Message { head, header, payload } => (head, header, payload as u64, Way::Packed),
            Packet::Begin { .. } | Packet::Rts { .. } if self.lost.contains(&src) => return,
            Packet::Begin { head, header, total, .. } => (head, header, total, Way::Chunked),
            Packet::Rts { head, header, offer } => (head, header, offer.total, Way::Rendezvous),
            _ => return,
        };
        let mut first = [0; TAG_END];
        let peek = header.min(TAG_END);
        self.boxes[i].lane.window().read(offset, &mut first[..peek]);
        let Recorded { vci, numbers } = &mut self.recorded;
        if numbers.len() <= src as usize {
            numbers.resize(src as usize + 1, 0);
        }
        let number = &mut numbers[src as usize];
        *number = number.wrapping_add(1);
        let (vci, handler, tag, number) = (*vci, head.handler as u8, tag_of(&first[..peek]), *number);
        ntbring_timeline::received(Message { peer: src, vci, handler, way, bytes, tag, number });
    }
}
