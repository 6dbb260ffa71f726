//! The fast path of most eager messages: a contiguous payload to a neighbour while no other work is pending. All of
//! it is inlined, because it determines the latency of small messages.

use super::outbound::Outbound;
use crate::wire::{plain_meta, Head, HANDLERS, MESSAGE};
use ntbring_memory::ForeignBytes;

impl Outbound {
    /// Deposits a message of at most `most` bytes if nothing is queued before it and there is room. All other cases
    /// are left to [`Outbound::send_now`].
    #[inline(always)]
    pub fn send_plain(&mut self, dest: u32, head: Head, header: &[u8], payload: ForeignBytes, most: usize) -> bool {
        if ntbring_timeline::is_on() {
            return self.send_recorded(dest, head, header, payload, most);
        }
        self.put_plain(dest, head, header, payload, most)
    }

    /// Deposits a message as [`Outbound::send_plain`] says.
    #[inline(always)]
    pub(super) fn put_plain(
        &mut self,
        dest: u32,
        head: Head,
        header: &[u8],
        payload: ForeignBytes,
        most: usize,
    ) -> bool {
        let Some(flow) = self.flows.get_mut(dest as usize) else { return false };
        let Some(outbox) = self.lanes.boxes.get_mut(flow.line.outbox) else { return false };
        let payload_len = payload.len() as u64;
        let bytes = header.len() as u64 + payload_len;
        let cost = self.credit_policy.cost(head.handler, payload_len);
        let Some(meta) = plain_meta(head, header.len()) else { return false };
        if flow.route.is_some()
            || bytes > most as u64
            || !flow.is_clear()
            || !flow.allowance.admits(cost)
            || head.handler >= HANDLERS
            || !outbox.lane.put(MESSAGE, meta, header, payload)
        {
            return false;
        }
        flow.msgs += 1;
        flow.bytes += bytes;
        flow.allowance.spend(cost);
        self.lanes.doorbells += outbox.bell.ring();
        self.counts.packed.count(payload_len);
        true
    }
}
