//! Distributed locks: a queue of PEs, as Mellor-Crummey and Scott (1991) describe it, in the `long` of each PE.
//!
//! The upper half of the lock at its home PE is the last PE of the queue, plus 1; 0 if the lock is free. The lower half at
//! each PE belongs to that PE: bit 0 is set while it waits, and the other bits are the next PE of the queue, plus 1. So a
//! waiting PE looks at its own memory only.

use crate::fail;
use crate::handles::Ctx;
use crate::reach::{self, AtomicOp, Pes};
use crate::symmetric::{Peer, Place};
use std::collections::HashSet;
use std::ffi::c_long;
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
    /// Waits for a lock.
    pub fn set(&self, lock: &Lock) {
        self.acquire(lock.pes, lock.address());
        lock.set();
    }

    /// Takes a lock if it is free. Returns true if it was.
    pub fn test(&self, lock: &Lock) -> bool {
        if !self.try_acquire(lock.address()) {
            return false;
        }
        let was_free = lock.replace_last(0, lock.number()) == 0;
        if !was_free {
            self.release(lock.address());
        }
        was_free
    }

    /// Frees a lock, after all operations of the default context. Ends the program if this PE does not have the lock.
    pub fn clear(&self, lock: &Lock) {
        reach::quiet(lock.pes, Ctx::DEFAULT);
        if !self.is_held(lock.address()) {
            fail::call(lock.name, "lock: this PE does not have the lock");
        }
        lock.clear();
        // Only now may another thread of this PE enter the queue.
        self.release(lock.address());
    }

    fn acquire(&self, pes: &Pes, lock: usize) {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        while !held.insert(lock) {
            held = self.freed.wait_timeout(held, POLL_EVERY).unwrap_or_else(PoisonError::into_inner).0;
            // Another PE may have died meanwhile.
            pes.link.poll();
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
pub struct Lock<'a> {
    pes: &'a Pes,
    /// The C function.
    name: &'static str,
    place: Place,
    /// The PE that has the end of the queue.
    home: &'a Peer,
}

impl<'a> Lock<'a> {
    /// Returns the lock in this `long`. Ends the program if it is not an aligned symmetric one.
    pub fn of(pes: &'a Pes, name: &'static str, lock: *const c_long) -> Lock<'a> {
        let address = lock as usize;
        if !address.is_multiple_of(8) {
            fail::call(name, format_args!("lock: {address:#x} is not a multiple of 8"));
        }
        let place = pes.locate(name, "lock", address, 8);
        Lock { pes, name, place, home: &pes.peers[place.at / 8 % pes.n()] }
    }

    fn number(&self) -> u32 {
        self.pes.me as u32 + 1
    }

    /// Returns its address at this PE.
    fn address(&self) -> usize {
        self.pes.address(self.place)
    }

    /// Returns this PE's own half.
    fn own(&self) -> &AtomicU32 {
        // SAFETY: an aligned symmetric word (checked), accessed atomically.
        unsafe { AtomicU32::from_ptr(self.address() as *mut u32) }
    }

    /// Waits until this PE's own half fulfils a condition.
    fn wait(&self, holds: impl Fn(u32) -> bool) -> u32 {
        let mut found = 0;
        reach::until(self.pes, self.place.memory, || {
            found = self.own().load(Ordering::Acquire);
            holds(found)
        });
        found
    }

    /// Replaces the end of the queue if it is `expected`. Returns what it was.
    fn replace_last(&self, expected: u32, new: u32) -> u32 {
        reach::compare_swap(self.pes, Ctx::DEFAULT, self.home, self.place.plus(4), expected, new)
    }

    /// Returns the PE with a number of the queue.
    fn queued(&self, number: u32) -> &Peer {
        match self.pes.peers.get(number as usize - 1) {
            Some(peer) => peer,
            None => fail::call(self.name, "lock: it was not 0 at all PEs before its first use, or was overwritten"),
        }
    }

    fn set(&self) {
        self.own().store(WAITS, Ordering::Relaxed);
        let (ctx, last) = (Ctx::DEFAULT, self.place.plus(4));
        let before = reach::fetch(self.pes, ctx, self.home, last, AtomicOp::Swap, self.number());
        if before == 0 {
            // The next PE may have written its number already.
            self.own().fetch_and(!WAITS, Ordering::Relaxed);
            return;
        }
        let previous = self.queued(before);
        reach::operate(self.pes, ctx, previous, self.place, AtomicOp::Or, self.number() << 1);
        self.wait(|own| own & WAITS == 0);
    }

    fn clear(&self) {
        if self.own().load(Ordering::Acquire) == 0 && self.replace_last(self.number(), 0) == self.number() {
            return;
        }
        let next = self.wait(|own| own >> 1 != 0) >> 1;
        self.own().store(0, Ordering::Relaxed);
        let next = self.queued(next);
        reach::operate(self.pes, Ctx::DEFAULT, next, self.place, AtomicOp::And, !WAITS);
    }
}
