//! Messages in the timeline.

use super::outbound::Outbound;
use crate::wire::{tag_of, Head};
use ntbring_memory::ForeignBytes;
use ntbring_timeline::{Message, Way};

impl Outbound {
    /// As [`Outbound::send_plain`], and records the message in the timeline.
    #[cold]
    #[inline(never)]
    pub(super) fn send_recorded(
        &mut self,
        dest: u32,
        head: Head,
        header: &[u8],
        payload: ForeignBytes,
        most: usize,
    ) -> bool {
        let (at, bytes) = (ntbring_timeline::begin(), payload.len() as u64);
        let sent = self.put_plain(dest, head, header, payload, most);
        if sent {
            self.record(at, dest, head, header, bytes, Way::Packed);
        }
        sent
    }

    /// Records a message in the timeline, with the time stamp `at`, after it was counted in its flow.
    #[cold]
    #[inline(never)]
    pub(super) fn record(&self, at: u64, dest: u32, head: Head, header: &[u8], bytes: u64, way: Way) {
        let number = self.flows.get(dest as usize).map_or(0, |flow| flow.msgs as u32);
        let (vci, handler, tag) = (self.vci, head.handler as u8, tag_of(header));
        ntbring_timeline::sent(at, Message { peer: dest, vci, handler, way, bytes, tag, number });
    }
}
