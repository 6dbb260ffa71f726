//! Distributed locks: a queue of PEs, as Mellor-Crummey and Scott (1991) describe it, in the `long` of each PE.
//!
//! The upper half of the lock at its home PE is the last PE of the queue, plus 1; 0 if the lock is free. The lower half at
//! each PE belongs to that PE: bit 0 is set while it waits, and the other bits are the next PE of the queue, plus 1. So a
//! waiting PE looks at its own memory only.

use crate::fail;
use crate::handles::Ctx;
use crate::order;
use crate::reach::{self, AtomicOp};
use crate::waiting;
use crate::world::{world, Peer, Place, World};
use std::collections::HashSet;
use std::ffi::{c_int, c_long};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

/// A PE's own half while it waits for the lock.
const WAITS: u32 = 1;

/// Interval between polls of a thread that waits for another one of this PE.
const POLL_EVERY: Duration = Duration::from_millis(100);

/// The locks that threads of this PE have or wait for: only one of them may be in the queue.
#[derive(Default)]
pub struct LocalLocks {
    held: Mutex<HashSet<usize>>,
    freed: Condvar,
}

impl LocalLocks {
    fn acquire(&self, world: &World, lock: usize) {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        while !held.insert(lock) {
            held = self.freed.wait_timeout(held, POLL_EVERY).unwrap_or_else(PoisonError::into_inner).0;
            // Another PE may have died meanwhile.
            world.link.poll();
        }
    }

    fn try_acquire(&self, lock: usize) -> bool {
        self.held.lock().unwrap_or_else(PoisonError::into_inner).insert(lock)
    }

    fn release(&self, lock: usize) {
        self.held.lock().unwrap_or_else(PoisonError::into_inner).remove(&lock);
        self.freed.notify_all();
    }

    fn is_held(&self, lock: usize) -> bool {
        self.held.lock().unwrap_or_else(PoisonError::into_inner).contains(&lock)
    }
}

/// A lock, as this PE sees it.
struct Lock<'a> {
    world: &'a World,
    /// The C function.
    name: &'static str,
    place: Place,
    /// The PE that has the end of the queue.
    home: &'a Peer,
}

impl<'a> Lock<'a> {
    fn of(world: &'a World, name: &'static str, lock: *const c_long) -> Lock<'a> {
        let address = lock as usize;
        if address % 8 != 0 {
            fail::call(name, format_args!("lock: {address:#x} is not a multiple of 8"));
        }
        let place = world.locate(name, "lock", address, 8);
        Lock { world, name, place, home: &world.peers[place.at / 8 % world.n()] }
    }

    fn number(&self) -> u32 {
        self.world.me as u32 + 1
    }

    /// Returns this PE's own half.
    fn own(&self) -> &AtomicU32 {
        // SAFETY: an aligned symmetric word (checked), accessed atomically.
        unsafe { AtomicU32::from_ptr(self.world.address(self.place) as *mut u32) }
    }

    /// Waits until this PE's own half fulfils a condition.
    fn wait(&self, holds: impl Fn(u32) -> bool) -> u32 {
        let mut found = 0;
        waiting::until(self.world, self.place.memory, || {
            found = self.own().load(Ordering::Acquire);
            holds(found)
        });
        found
    }

    /// Replaces the end of the queue if it is `expected`. Returns what it was.
    fn replace_last(&self, expected: u32, new: u32) -> u32 {
        reach::compare_swap(self.world, Ctx::DEFAULT, self.home, self.place.plus(4), expected, new)
    }

    /// Returns the PE with a number of the queue.
    fn queued(&self, number: u32) -> &Peer {
        match self.world.peers.get(number as usize - 1) {
            Some(peer) => peer,
            None => fail::call(self.name, "lock: it was not 0 at all PEs before its first use, or was overwritten"),
        }
    }

    fn set(&self) {
        self.own().store(WAITS, Ordering::Relaxed);
        let (ctx, last) = (Ctx::DEFAULT, self.place.plus(4));
        let before = reach::fetch(self.world, ctx, self.home, last, AtomicOp::Swap, self.number());
        if before == 0 {
            // The next PE may have written its number already.
            self.own().fetch_and(!WAITS, Ordering::Relaxed);
            return;
        }
        let previous = self.queued(before);
        reach::operate(self.world, ctx, previous, self.place, AtomicOp::Or, self.number() << 1);
        self.wait(|own| own & WAITS == 0);
    }

    fn clear(&self) {
        if self.own().load(Ordering::Acquire) == 0 && self.replace_last(self.number(), 0) == self.number() {
            return;
        }
        let next = self.wait(|own| own >> 1 != 0) >> 1;
        self.own().store(0, Ordering::Relaxed);
        let next = self.queued(next);
        reach::operate(self.world, Ctx::DEFAULT, next, self.place, AtomicOp::And, !WAITS);
    }
}

pub unsafe fn set_lock(name: &'static str, lock: *mut c_long) {
    let world = world(name);
    let found = Lock::of(world, name, lock);
    world.locks.acquire(world, lock as usize);
    found.set();
}

pub unsafe fn test_lock(name: &'static str, lock: *mut c_long) -> c_int {
    let world = world(name);
    let found = Lock::of(world, name, lock);
    if !world.locks.try_acquire(lock as usize) {
        return 1;
    }
    if found.replace_last(0, found.number()) == 0 {
        return 0;
    }
    world.locks.release(lock as usize);
    1
}

pub unsafe fn clear_lock(name: &'static str, lock: *mut c_long) {
    let world = world(name);
    let found = Lock::of(world, name, lock);
    order::quiet_context(world, Ctx::DEFAULT);
    if !world.locks.is_held(lock as usize) {
        fail::call(name, "lock: this PE does not have the lock");
    }
    found.clear();
    // Only now may another thread of this PE enter the queue.
    world.locks.release(lock as usize);
}
