//! The lock of a segment. A rank that waits for it notices that its holder has died.

use crate::error::EndpointError;
use ntbring_host::Segment;
use ntbring_ring::Membership;
use std::time::{Duration, Instant};

/// Tries before a waiter yields its core. A holder that is running releases the lock sooner than that.
pub const SPINS: u32 = 200;

/// Yields of a waiter before it sleeps between tries; the holder may be stopped.
const YIELDS: u32 = 1000;
pub const NAP: Duration = Duration::from_micros(50);

/// Interval between two checks that the holder is alive.
pub const GLANCE: Duration = Duration::from_millis(100);

/// Acquires the lock of the bytes of a segment; waits for it as long as its holder is alive.
#[inline]
pub fn lock(members: &Membership, segment: &Segment) -> Result<(), EndpointError> {
    match segment.try_lock(members.rank()) {
        true => Ok(()),
        false => wait_for_lock(members, segment),
    }
}

#[cold]
fn wait_for_lock(members: &Membership, segment: &Segment) -> Result<(), EndpointError> {
    let me = members.rank();
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
            check_holder(members, segment)?;
        }
    }
    Ok(())
}

fn check_holder(members: &Membership, segment: &Segment) -> Result<(), EndpointError> {
    // The list of the dead is read first: a process on it that is the holder afterwards will never release the lock.
    let dead = members.dead();
    match segment.holder() {
        Some(rank) if rank as usize >= members.topology().size() => Err(EndpointError::Lock(rank)),
        Some(rank) if dead.iter().any(|dead| dead.rank == rank) => {
            Err(EndpointError::Orphaned { rank, pid: members.pid(rank) })
        }
        _ => Ok(()),
    }
}
