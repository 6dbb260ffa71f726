//! Messages in the timeline.

use super::outbound::Outbound;
use crate::wire::{tag_of, Head};
use ntbring_timeline::{Message, Way};

impl Outbound {
    /// Records a message in the timeline, after it was counted in its flow.
    #[cold]
    #[inline(never)]
    pub(super) fn record(&self, dest: u32, head: Head, header: &[u8], bytes: u64, way: Way) {
        let number = self.flows.get(dest as usize).map_or(0, |flow| flow.msgs as u32);
        let (vci, handler, tag) = (self.vci, head.handler as u8, tag_of(header));
        ntbring_timeline::sent(Message { peer: dest, vci, handler, way, bytes, tag, number });
    }
}
