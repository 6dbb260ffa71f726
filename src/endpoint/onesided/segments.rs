//! Segments: memory of this rank that other ranks map, and their memory that this rank maps.

use super::locking::{lock, GLANCE, NAP, SPINS};
use crate::error::EndpointError;
use ntbring_host::{Segment, SegmentAddress};
use ntbring_ring::forwarder_threads::ForwarderThreads;
use ntbring_ring::{HeldSegment, Membership, PeerLoss, FORWARDER_DOORBELL};
use ntbring_rma::Change;
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

/// The segments that this rank has created or opened.
pub struct Segments {
    members: Arc<Membership>,
    /// Directory of segments' files.
    dir: PathBuf,
    /// Number of segments created by this rank.
    pub own: u64,
    /// Number of segments of other ranks that this rank has mapped.
    pub near: u64,
    /// Segments that are registered with the host's forwarder.
    published: HashMap<u64, SegmentAddress>,
}

impl Segments {
    pub fn new(members: Arc<Membership>, dir: PathBuf) -> Segments {
        Segments { members, dir, own: 0, near: 0, published: HashMap::new() }
    }

    /// Creates a segment of this rank. Its host performs operations on it for ranks that cannot map it.
    pub fn create(
        &mut self,
        size: u64,
        forwarder_threads: Option<&ForwarderThreads>,
    ) -> Result<(Segment, SegmentAddress), EndpointError> {
        let created = Segment::create(&self.dir, size).map_err(EndpointError::Segment)?;
        self.publish(created, forwarder_threads)
    }

    /// Creates a segment of this rank, like [`Segments::create`], of which only the first `backed` bytes are allocated. It is
    /// exposed to neighbours that may write it directly.
    pub fn create_growing(
        &mut self,
        size: u64,
        backed: u64,
        forwarder_threads: Option<&ForwarderThreads>,
    ) -> Result<(HeldSegment, SegmentAddress), EndpointError> {
        let created = Segment::create_growing(&self.dir, size, backed).map_err(EndpointError::Segment)?;
        let (segment, address) = self.publish(created, forwarder_threads)?;
        let held = self.members.expose(segment, backed).map_err(EndpointError::Writer)?;
        Ok((held, address))
    }

    /// Registers a segment with the host's forwarder.
    fn publish(
        &mut self,
        (segment, address): (Segment, SegmentAddress),
        forwarder_threads: Option<&ForwarderThreads>,
    ) -> Result<(Segment, SegmentAddress), EndpointError> {
        if self.members.is_served() {
            if !self.request(Change::Register(address), forwarder_threads)? {
                return Err(EndpointError::Unserved(self.members.host()));
            }
            self.published.insert(segment.token(), address);
        }
        self.own += 1;
        Ok((segment, address))
    }

    /// Deregisters a segment. To be called before it is destroyed.
    pub fn withdraw(
        &mut self,
        segment: &Segment,
        forwarder_threads: Option<&ForwarderThreads>,
    ) -> Result<(), EndpointError> {
        if let Some(address) = self.published.remove(&segment.token()) {
            self.request(Change::Deregister(address), forwarder_threads)?;
        }
        Ok(())
    }

    /// Sends the host's forwarder a registration request and waits for its answer. The forwarder never blocks, so the
    /// answer is prompt unless its process has died. `forwarder_threads` is the forwarder if it runs in this process.
    fn request(&self, change: Change, forwarder_threads: Option<&ForwarderThreads>) -> Result<bool, EndpointError> {
        let topology = self.members.topology();
        let (me, registry) = (self.members.rank(), self.members.registry());
        let leader = topology.ranks_of(self.members.host())[0];
        let (mut tries, mut glanced) = (0u32, Instant::now());
        registry.request(topology.local_of(me), me, change);
        loop {
            self.members.ring(FORWARDER_DOORBELL);
            if let Some(forwarder_threads) = forwarder_threads {
                forwarder_threads.assist();
                if let Some(fault) = forwarder_threads.fault() {
                    return Err(fault.into());
                }
            }
            if let Some(granted) = registry.answer(topology.local_of(me)) {
                return Ok(granted);
            }
            tries = tries.saturating_add(1);
            match tries < SPINS {
                true => std::thread::yield_now(),
                false => std::thread::sleep(NAP),
            }
            if glanced.elapsed() >= GLANCE {
                glanced = Instant::now();
                let dead = self.members.dead();
                if let Some(dead) = dead.into_iter().find(|dead| dead.rank == leader) {
                    return Err(PeerLoss::Died(dead).into());
                }
            }
        }
    }

    /// Maps a segment of another rank.
    pub fn open(&mut self, rank: u32, address: &SegmentAddress) -> Result<Segment, EndpointError> {
        if !self.members.is_mappable(rank) || address.file.pid != self.members.pid(rank) {
            return Err(EndpointError::Argument(format!("rank {rank} has no such segment, or it cannot be mapped")));
        }
        let opened = Segment::open(address).map_err(EndpointError::Segment)?;
        self.near += 1;
        Ok(opened)
    }

    /// Creates a segment of this rank that only ranks which can map it will use.
    pub fn create_shared(&mut self, size: u64) -> Result<(Segment, SegmentAddress), EndpointError> {
        let created = Segment::create(&self.dir, size).map_err(EndpointError::Segment)?;
        self.own += 1;
        Ok(created)
    }

    /// Maps such a segment of another rank.
    pub fn open_shared(&mut self, rank: u32, address: &SegmentAddress) -> Result<Segment, EndpointError> {
        if !self.members.can_share(rank) || address.file.pid != self.members.pid(rank) {
            return Err(EndpointError::Argument(format!("rank {rank} has no such buffer, or it cannot be mapped")));
        }
        let opened = Segment::open(address).map_err(EndpointError::Segment)?;
        self.near += 1;
        Ok(opened)
    }

    /// Tries to acquire the window lock (shared, or exclusive if `alone`) of the segment. Returns false if it is not
    /// available now.
    pub fn hold(&self, segment: &Segment, alone: bool) -> bool {
        segment.try_acquire(self.members.rank(), alone)
    }

    /// Acquires the lock of the bytes of a segment; waits for it as long as its holder is alive.
    #[inline]
    pub fn lock(&self, segment: &Segment) -> Result<(), EndpointError> {
        lock(&self.members, segment)
    }
}
