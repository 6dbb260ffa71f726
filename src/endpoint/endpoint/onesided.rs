//! One-sided operations: segments, and operations on segments that this rank cannot map.

use super::Endpoint;
use crate::error::EndpointError;
use crate::onesided::Operation;
use crate::wire::Packet;
use crate::Event;
use ntbring_host::{KernelCopy, Segment, SegmentAddress};
use ntbring_ring::{HeldSegment, Writer};
use ntbring_zerocopy::SingleCopy;
use std::sync::atomic::{AtomicU32, AtomicU64};
use std::sync::Arc;

impl Endpoint {
    /// True if this rank can map a rank's segments, and that rank this one's.
    pub fn is_mappable(&self, rank: u32) -> bool {
        self.members.is_mappable(rank)
    }

    /// Creates a segment of this rank. Its host performs operations on it for ranks that cannot map it.
    pub fn create_segment(&mut self, size: u64) -> Result<(Segment, SegmentAddress), EndpointError> {
        self.onesided.segments.create(size, self.background.forwarder_threads.as_ref())
    }

    /// Creates a segment of this rank of which only the first `backed` bytes are allocated.
    pub fn create_growing_segment(
        &mut self,
        size: u64,
        backed: u64,
    ) -> Result<(HeldSegment, SegmentAddress), EndpointError> {
        self.onesided.segments.create_growing(size, backed, self.background.forwarder_threads.as_ref())
    }

    /// Deregisters a segment. To be called before it is destroyed.
    pub fn withdraw_segment(&mut self, segment: &Segment) -> Result<(), EndpointError> {
        self.onesided.segments.withdraw(segment, self.background.forwarder_threads.as_ref())
    }

    /// Maps a segment of another rank.
    pub fn open_segment(&mut self, rank: u32, address: &SegmentAddress) -> Result<Segment, EndpointError> {
        self.onesided.segments.open(rank, address)
    }

    /// True if this rank and another may map buffers that both use ([`Endpoint::create_shared`]).
    pub fn can_share(&self, rank: u32) -> bool {
        self.members.can_share(rank)
    }

    /// Creates a segment of this rank that only ranks which can map it will use.
    pub fn create_shared(&mut self, size: u64) -> Result<(Segment, SegmentAddress), EndpointError> {
        self.onesided.segments.create_shared(size)
    }

    /// Returns when the kernel copies between buffers of this rank and others that can share buffers with it.
    pub fn shared_kernel_copies(&self) -> SingleCopy {
        let (me, size) = (self.members.rank(), self.members.topology().size() as u32);
        let mut others = (0..size).filter(|&rank| rank != me && self.members.can_share(rank));
        match others.all(|rank| self.members.kernel_copy(rank).is_some()) {
            true => self.thresholds.single_copy,
            false => SingleCopy::Never,
        }
    }

    /// Returns kernel copies from ranks that can share buffers with this one, and from this one; None if the kernel does
    /// not copy from one of them.
    pub fn kernel_copies_of(&self, ranks: &[i32]) -> Option<Vec<KernelCopy>> {
        let own = || KernelCopy::probe(std::process::id(), KernelCopy::probe_address()).ok();
        let me = self.members.rank();
        let of = |&rank: &i32| if rank as u32 == me { own() } else { self.members.kernel_copy(rank as u32) };
        ranks.iter().map(of).collect()
    }

    /// Maps such a segment of another rank.
    pub fn open_shared(&mut self, rank: u32, address: &SegmentAddress) -> Result<Segment, EndpointError> {
        self.onesided.segments.open_shared(rank, address)
    }

    /// Records that the ranks have a group with shared buffers, for the diagnosis of hangs. `waits_for`: the position in
    /// `ranks` of the one for which this rank waits, plus 1, or 0. The group lasts as long as that word.
    pub fn watch_shared(&mut self, ranks: Vec<u32>, waits_for: &Arc<AtomicU32>) {
        self.shared_groups.push(ranks, waits_for);
    }

    /// Returns the counter of collectives through shared buffers. The caller that executes one increments it.
    pub fn shared_collectives(&self) -> Arc<AtomicU64> {
        self.shared_groups.calls.clone()
    }

    /// Wakes a rank if it sleeps, by a credit that grants nothing new.
    pub fn wake(&mut self, rank: u32) -> Result<(), EndpointError> {
        self.out.send_bare(rank, Packet::Credit { allowed: 1 }, &[])
    }

    /// True if more ranks of the job are on this machine than it has cores for.
    pub fn is_oversubscribed(&self) -> bool {
        self.members.is_oversubscribed()
    }

    /// True if this rank may write a rank's segments through the link, without a request to its host.
    pub fn is_writable(&self, rank: u32) -> bool {
        self.is_served(rank) && self.members.is_writable(rank)
    }

    /// Opens a segment of a rank for writing; None if its adapter does not reach the segment.
    pub fn writer(&self, rank: u32, address: &SegmentAddress) -> Result<Option<Writer>, EndpointError> {
        if !self.is_writable(rank) || address.file.pid != self.members.pid(rank) {
            return Err(EndpointError::Argument(format!("rank {rank} has no such segment, or it cannot be written")));
        }
        self.members.writer(rank, address).map_err(EndpointError::Writer)
    }

    /// Tries to acquire the window lock (shared, or exclusive if `alone`) of the segment. Returns false if it is not
    /// available now.
    pub fn hold(&self, segment: &Segment, alone: bool) -> bool {
        let held = self.onesided.segments.hold(segment, alone);
        if held {
            self.waiting.idle.busy();
        }
        held
    }

    /// Acquires the lock of the bytes of a segment; waits for it as long as its holder is alive.
    #[inline]
    pub fn lock(&self, segment: &Segment) -> Result<(), EndpointError> {
        self.onesided.segments.lock(segment)
    }

    /// True if the host of a rank whose segments are not mappable performs operations on them for this rank. Requests
    /// to hosts are not carried end to end: where links may go down, ranks send each other messages instead.
    pub fn is_served(&self, rank: u32) -> bool {
        let served = self.members.is_served() && self.out.retransmit_thread.is_none();
        served && (rank as usize) < self.members.topology().size() && !self.is_mappable(rank)
    }

    /// Begins an operation. An [`crate::Event::Remote`] reports its end. Returns true if its operands are not used any
    /// more.
    pub fn begin(&mut self, what: Operation) -> Result<bool, EndpointError> {
        what.check(self.is_served(what.dest))?;
        self.onesided.remotes.begun += 1;
        if self.out.is_lost(what.dest) {
            return Ok(true);
        }
        let number = self.onesided.remotes.begin(what);
        self.send_requests();
        let all = self.onesided.remotes.has_sent(number);
        self.report_sent();
        Ok(all)
    }

    /// Sends as many waiting requests as the limits allow. Returns true if any was sent.
    pub(super) fn request_some(&mut self) -> bool {
        let any = self.send_requests();
        self.report_sent();
        any
    }

    fn send_requests(&mut self) -> bool {
        self.onesided.remotes.send_some(|dest, request, operands| self.out.request(dest, request, operands))
    }

    /// Makes the events of operations whose operands are not used any more.
    fn report_sent(&mut self) {
        self.events.extend(self.onesided.remotes.take_sent().map(|cookie| Event::Sent { cookie, handler: 0 }));
    }
}
