//! Messages in the timeline.

use crate::wire::{tag_of, Packet, TAG_END};
use ntbring_memory::InWindow;
use ntbring_timeline::{Message, Way};

/// State of the recording of arrivals.
#[derive(Default)]
pub struct Recorded {
    /// Index of the endpoint.
    pub vci: u8,
    /// Number of messages of each peer so far.
    numbers: Vec<u32>,
}

impl Recorded {
    /// Records a packet of peer `src` in the timeline if it is a message that is counted. Its header is at `offset` in
    /// the window of its lane.
    #[cold]
    #[inline(never)]
    pub fn record(&mut self, window: &InWindow, lost: &[u32], src: u32, packet: Packet, offset: usize) {
        let (head, header, bytes, way) = match packet {
            Packet::Message { head, header, payload } => (head, header, payload as u64, Way::Packed),
            Packet::Begin { .. } | Packet::Rts { .. } if lost.contains(&src) => return,
            Packet::Begin { head, header, total, .. } => (head, header, total, Way::Chunked),
            Packet::Rts { head, header, offer } => (head, header, offer.total, Way::Rendezvous),
            _ => return,
        };
        let mut first = [0; TAG_END];
        let peek = header.min(TAG_END);
        window.read(offset, &mut first[..peek]);
        if self.numbers.len() <= src as usize {
            self.numbers.resize(src as usize + 1, 0);
        }
        let number = &mut self.numbers[src as usize];
        *number = number.wrapping_add(1);
        let (vci, handler, tag, number) = (self.vci, head.handler as u8, tag_of(&first[..peek]), *number);
        ntbring_timeline::received(Message { peer: src, vci, handler, way, bytes, tag, number });
    }
}
