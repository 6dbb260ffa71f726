//! The outgoing lanes of a rank: their sizes, and retransmission of entries that links may have damaged
//! (`queue::checked`).

use super::linger::Linger;
use super::outbox::{Outbox, NOWHERE};
use crate::bell::Bell;
use crate::error::EndpointError;
use crate::wire::PREFIX_MAX;
use ntbring_memory::ForeignBytes;
use ntbring_ntb::Side;
use ntbring_queue::{Producer, LINE};
use ntbring_ring::relay::{Route, ROUTED};
use ntbring_rma::{Request, REQUEST};
use ntbring_zerocopy::ChunkSize;
use std::time::Instant;

/// Reminders to a receiver about entries that it has not taken, before their sender may leave; a thread
/// (`linger`) continues after that.
const REMINDERS: u32 = 4;

/// The outgoing lanes of a rank.
pub struct Lanes {
    pub(super) boxes: Vec<Outbox>,
    /// Index of the lane to the forwarder on the way to each rank's host; NOWHERE for ranks of this host.
    pub(super) requests: Vec<usize>,
    /// Chunk sizes in lanes whose entries are relayed, and in lanes that are plain memory.
    cuts: [ChunkSize; 2],
    /// Size in bytes of the largest packet that fits into all lanes on the way to any rank.
    packet_max: usize,
    /// True if links are not trusted.
    pub(super) checked: bool,
    pub(super) doorbells: u64,
    /// The thread that retransmits, and holds the lanes, once the rank has left.
    lingering: Option<Linger>,
}

impl Lanes {
    /// Creates no lanes yet, of a rank in a job of `ranks`. `chunk` is the chunk size of the settings.
    pub fn new(chunk: Option<usize>, packet_max: usize, checked: bool, ranks: usize) -> Lanes {
        // Entries that other hosts relay must fit into their lanes, too.
        let cuts = [false, true].map(|near| ChunkSize::new(chunk, near).within(packet_max - PREFIX_MAX));
        let (boxes, requests) = (Vec::new(), vec![NOWHERE; ranks]);
        Lanes { boxes, requests, cuts, packet_max, checked, doorbells: 0, lingering: None }
    }

    /// Adds a lane and returns its index; `near` if it is plain memory at its receiver.
    pub fn push(&mut self, lane: Producer, bell: Bell, near: bool) -> usize {
        self.boxes.push(Outbox::new(lane, bell, self.cuts[usize::from(near)]));
        self.boxes.len() - 1
    }

    /// True if links are not trusted: entries are retransmitted until their receiver has acknowledged them.
    #[inline]
    pub fn is_checked(&self) -> bool {
        self.checked
    }

    fn smallest_entry(&self) -> usize {
        self.boxes.iter().map(|o| o.lane.entry_max()).min().unwrap_or(0).min(self.packet_max)
    }

    /// Returns the size in bytes of the smallest lane.
    pub fn smallest(&self) -> usize {
        self.boxes.iter().map(|o| o.lane.lines() * LINE).min().unwrap_or(0)
    }

    /// Returns the maximum number of bytes of a chunk that is relayed, where the lane is not too small for that.
    pub fn chunk(&self) -> usize {
        self.cuts[0].most()
    }

    /// Returns the maximum number of bytes of any chunk.
    pub fn chunk_max(&self) -> usize {
        self.boxes.iter().map(|outbox| outbox.cut.most()).max().unwrap_or(0)
    }

    /// Returns the maximum number of bytes of a header.
    pub fn header_max(&self) -> usize {
        (self.smallest_entry() - PREFIX_MAX) / 8 * 8
    }

    /// Returns the maximum number of bytes of header and payload together that fit into one entry of every lane.
    pub fn packed_limit(&self) -> usize {
        self.smallest_entry() - PREFIX_MAX
    }

    /// Deposits a request to the forwarder of a rank's host, if there is room for it.
    pub fn request(&mut self, route: Route, request: &Request, operands: ForeignBytes) -> bool {
        let Some(Outbox { lane, bell, .. }) =
            self.requests.get(route.dst as usize).and_then(|&i| self.boxes.get_mut(i))
        else {
            return false;
        };
        let at = Route::LEN + Request::LEN;
        let Some(mut slot) = lane.reserve(at + operands.len()) else { return false };
        slot.write_bytes(0, &route.bytes());
        slot.write_bytes(Route::LEN, &request.bytes());
        slot.write(at, operands);
        slot.commit(ROUTED | REQUEST, at + operands.len(), 0);
        self.doorbells += bell.ring();
        true
    }

    /// Drops the entries that were sent over the link on this side, which has gone down.
    pub fn close(&mut self, side: Side) {
        let by = self.boxes.iter_mut().filter(|outbox| outbox.bell.side() == Some(side));
        by.for_each(|outbox| outbox.is_cut_off = true);
    }

    /// True if [`Lanes::look_after`] must be called regularly. A reliable connection has its own retransmission.
    pub fn is_unsettled(&self) -> bool {
        self.checked && self.boxes.iter().any(|outbox| !outbox.is_settled())
    }

    /// Retransmits, or reminds receivers of, entries that they have not taken yet.
    pub fn look_after(&mut self, now: Instant) -> Result<(), EndpointError> {
        for outbox in &mut self.boxes {
            self.doorbells += u64::from(outbox.look_after(now)?);
        }
        Ok(())
    }

    /// True if receivers have taken every entry, or do not answer although they were reminded.
    pub fn has_reminded(&self) -> bool {
        self.boxes.iter().all(|outbox| outbox.is_settled() || outbox.lane.reminders() >= REMINDERS)
    }

    /// Hands the lanes to a thread that retransmits their entries from now on, if any is left to be retransmitted.
    /// Nothing can be sent afterwards.
    pub fn linger(&mut self) -> std::io::Result<()> {
        if self.is_unsettled() {
            self.lingering = Some(Linger::start(std::mem::take(&mut self.boxes))?);
        }
        Ok(())
    }

    /// True if a thread retransmits the entries of the lanes.
    pub fn is_lingering(&self) -> bool {
        self.lingering.is_some()
    }

    /// Stops that thread.
    pub fn end(&mut self) {
        if let Some(lingering) = self.lingering.take() {
            self.boxes = lingering.end();
        }
    }

    /// Returns the number of entries that links had lost or damaged and that were retransmitted.
    pub fn resent(&self) -> u64 {
        self.boxes.iter().map(|outbox| outbox.lane.resent()).sum()
    }

    /// Returns for one link: bytes of lane space sent by it, entries retransmitted over it, and 0.
    pub fn crossed(&self, side: Side) -> [u64; 3] {
        let by = self.boxes.iter().filter(|outbox| outbox.bell.side() == Some(side));
        by.fold([0; 3], |sum, by| [sum[0] + by.lane.produced(), sum[1] + by.lane.resent(), 0])
    }

    /// Describes how full a lane is.
    pub fn fill(&self, outbox: usize) -> String {
        match self.boxes.get(outbox) {
            Some(Outbox { lane, .. }) => format!("{} of {} lines not known to be free", lane.taken(), lane.lines()),
            None => "none".into(),
        }
    }

    /// Returns the number of doorbells rung.
    pub fn doorbells(&self) -> u64 {
        self.doorbells
    }
}
