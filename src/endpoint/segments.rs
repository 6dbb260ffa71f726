//! Segments: memory of this rank that near ranks map, and theirs.

use super::{Endpoint, EndpointError};
use crate::ntb::emu::{Segment, SegmentAddress};
use std::time::{Duration, Instant};

/// Tries before a waiter gives its core away. A holder that is running is done before that.
const SPINS: u32 = 200;

/// Times that a waiter yields before it sleeps in between: the holder may be stopped.
const YIELDS: u32 = 1000;
const NAP: Duration = Duration::from_micros(50);

/// Between two looks at whether the holder is alive.
const GLANCE: Duration = Duration::from_millis(100);

/// How many there have been.
#[derive(Default)]
pub(super) struct Counts {
    /// Of this rank.
    pub own: u64,
    /// Of near ranks.
    pub near: u64,
}

impl Endpoint {
    /// Whether a rank's segments can be opened here, and this rank's there.
    pub fn is_near(&self, rank: u32) -> bool {
        self.members.is_near(rank)
    }

    /// Creates a segment of this rank.
    pub fn create_segment(&mut self, size: u64) -> Result<(Segment, SegmentAddress), EndpointError> {
        let created = Segment::create(&self.settings.shm_dir, size).map_err(EndpointError::Segment)?;
        self.segments.own += 1;
        Ok(created)
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

    /// Takes the lock of a segment; waits for it as long as its holder is alive.
    #[inline]
    pub fn lock(&self, segment: &Segment) -> Result<(), EndpointError> {
        match segment.try_lock(self.members.rank()) {
            true => Ok(()),
            false => self.wait_for_lock(segment),
        }
    }

    #[cold]
    fn wait_for_lock(&self, segment: &Segment) -> Result<(), EndpointError> {
        let me = self.members.rank();
        let (mut tries, mut glanced) = (0u32, Instant::now());
        while !segment.try_lock(me) {
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
        Ok(())
    }

    fn check_holder(&self, segment: &Segment) -> Result<(), EndpointError> {
        // The dead first: one of them that has the lock after that has it for ever.
        let dead = self.members.dead();
        match segment.holder() {
            Some(rank) if rank as usize >= self.members.topology().size() => Err(EndpointError::Lock(rank)),
            Some(rank) if dead.iter().any(|&(r, ..)| r == rank) => {
                Err(EndpointError::Orphaned { rank, pid: self.members.pid(rank) })
            }
            _ => Ok(()),
        }
    }
}
