//! Segments: memory of this rank that directly mappable ("near") ranks map, and theirs.

use super::{Endpoint, EndpointError};
use ntbring_host::{Segment, SegmentAddress};
use ntbring_ring::{Loss, FORWARDER_DOORBELL};
use ntbring_rma::Change;
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// Tries before a waiter yields its core. A holder that is running releases the lock sooner than that.
const SPINS: u32 = 200;

/// Yields of a waiter before it sleeps between tries; the holder may be stopped.
const YIELDS: u32 = 1000;
const NAP: Duration = Duration::from_micros(50);

/// Interval between two checks that the holder is alive.
const GLANCE: Duration = Duration::from_millis(100);

/// Numbers of segments, and those that are registered with the host's forwarder.
#[derive(Default)]
pub(super) struct Counts {
    /// Segments created by this rank.
    pub own: u64,
    /// Segments of near ranks that this rank has opened.
    pub near: u64,
    published: HashMap<u64, SegmentAddress>,
}

impl Endpoint {
    /// True if this rank can map a rank's segments, and that rank this one's.
    pub fn is_near(&self, rank: u32) -> bool {
        self.members.is_near(rank)
    }

    /// Creates a segment of this rank. Its host performs operations on it for ranks that cannot map it.
    pub fn create_segment(&mut self, size: u64) -> Result<(Segment, SegmentAddress), EndpointError> {
        let (segment, address) = Segment::create(&self.settings.host.shm_dir, size).map_err(EndpointError::Segment)?;
        if self.members.is_served() {
            if !self.request(Change::Register(address))? {
                return Err(EndpointError::Unserved(self.members.host()));
            }
            self.segments.published.insert(segment.token(), address);
        }
        self.segments.own += 1;
        Ok((segment, address))
    }

    /// Deregisters a segment. To be called before it is destroyed.
    pub fn withdraw_segment(&mut self, segment: &Segment) -> Result<(), EndpointError> {
        if let Some(address) = self.segments.published.remove(&segment.token()) {
            self.request(Change::Deregister(address))?;
        }
        Ok(())
    }

    /// Sends the host's forwarder a registration request and waits for its answer. The forwarder never blocks, so the
    /// answer is prompt unless its process has died.
    fn request(&self, change: Change) -> Result<bool, EndpointError> {
        let topology = self.members.topology();
        let (me, registry) = (self.members.rank(), self.members.registry());
        let leader = topology.ranks_of(self.members.host())[0];
        let (mut tries, mut glanced) = (0u32, Instant::now());
        registry.request(topology.local_of(me), me, change);
        loop {
            self.members.ring(FORWARDER_DOORBELL);
            if let Some(transfer) = &self.transfer {
                transfer.assist();
                if let Some(fault) = transfer.fault() {
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
                    return Err(Loss::Died(dead).into());
                }
            }
        }
    }

    /// Opens a segment of a near rank.
    pub fn open_segment(&mut self, rank: u32, address: &SegmentAddress) -> Result<Segment, EndpointError> {
        if !self.is_near(rank) || address.file.pid != self.members.pid(rank) {
            return Err(EndpointError::Argument(format!("rank {rank} is not near, or has no such segment")));
        }
        let opened = Segment::open(address).map_err(EndpointError::Segment)?;
        self.segments.near += 1;
        Ok(opened)
    }

    /// Tries to acquire the window lock (shared, or exclusive if `alone`) of the segment. Returns false if it is not
    /// available now.
    pub fn hold(&self, segment: &Segment, alone: bool) -> bool {
        let held = segment.try_hold(self.members.rank(), alone);
        if held {
            self.idle.busy();
        }
        held
    }

    /// Acquires the lock of the bytes of a segment; waits for it as long as its holder is alive.
    #[inline]
    pub fn lock(&self, segment: &Segment) -> Result<(), EndpointError> {
        match segment.try_lock(self.members.rank()) {
            true => Ok(()),
            false => self.wait_for_lock(segment, None).map(drop),
        }
    }

    /// Acquires the lock as [`Endpoint::lock`] does. Returns false if its owner keeps it for good.
    #[inline]
    pub(super) fn lock_unless_kept(&self, segment: &Segment, owner: u32) -> Result<bool, EndpointError> {
        match segment.try_lock(self.members.rank()) {
            true => Ok(true),
            false => self.wait_for_lock(segment, Some(owner)),
        }
    }

    #[cold]
    fn wait_for_lock(&self, segment: &Segment, keeper: Option<u32>) -> Result<bool, EndpointError> {
        let me = self.members.rank();
        let (mut tries, mut glanced) = (0u32, Instant::now());
        while !segment.try_lock(me) {
            if keeper.is_some() && segment.holder() == keeper {
                return Ok(false);
            }
            tries = tries.saturating_add(1);
            if tries < SPINS {
                std::hint::spin_loop();
                continue;
            }
            match tries < SPINS + YIELDS {
                true => std::thread::yield_now(),
                false => std::thread::sleep(NAP),
            }
            if glanced.elapsed() >= GLANCE {
                glanced = Instant::now();
                self.check_holder(segment)?;
            }
        }
        Ok(true)
    }

    fn check_holder(&self, segment: &Segment) -> Result<(), EndpointError> {
        // The list of the dead is read first: a process on it that is the holder afterwards will never release the
        // lock.
        let dead = self.members.dead();
        match segment.holder() {
            Some(rank) if rank as usize >= self.members.topology().size() => Err(EndpointError::Lock(rank)),
            Some(rank) if dead.iter().any(|dead| dead.rank == rank) => {
                Err(EndpointError::Orphaned { rank, pid: self.members.pid(rank) })
            }
            _ => Ok(()),
        }
    }
}
