//! A value behind a biased lock.

use super::biased_lock::{BiasedLock, OtherGuard};
use std::cell::UnsafeCell;
use std::ops::{Deref, DerefMut};

/// A value that one owner accesses nearly always, and another thread rarely.
pub struct Guarded<T> {
    biased_lock: BiasedLock,
    value: UnsafeCell<T>,
}

// SAFETY: the lock gives mutual exclusion, and its release and acquire operations order the accesses of successive
// holders. `T: Send` lets different threads access the value in turn.
unsafe impl<T: Send> Sync for Guarded<T> {}

/// The guard of the owner.
pub struct Owned<'a, T> {
    of: &'a Guarded<T>,
    counted: bool,
}

/// The guard of a thread that is not the owner.
pub struct OtherAccess<'a, T> {
    other: OtherGuard<'a>,
    of: &'a Guarded<T>,
}

impl<T> Guarded<T> {
    /// Creates an unlocked value.
    pub fn new(value: T) -> Guarded<T> {
        Guarded { biased_lock: BiasedLock::new(), value: UnsafeCell::new(value) }
    }

    /// Enters as the owner, as soon as no other thread is inside.
    ///
    /// # Safety
    /// Only one thread at a time may be the owner, and the previous guard must have been dropped.
    #[inline(always)]
    pub unsafe fn own(&self) -> Owned<'_, T> {
        Owned { counted: self.biased_lock.enter(), of: self }
    }

    /// Admits other threads. To be called by the owner from outside.
    pub fn share(&self) {
        self.biased_lock.share();
    }

    /// True if other threads are admitted.
    pub fn is_shared(&self) -> bool {
        self.biased_lock.is_shared()
    }

    /// Returns the number of times the owner has entered while it admitted other threads.
    pub fn entries(&self) -> u32 {
        self.biased_lock.entries()
    }

    /// Enters in place of the owner, if other threads are admitted, the owner is outside, and its number of entries is
    /// still `entries`.
    pub fn enter_other(&self, entries: u32) -> Option<OtherAccess<'_, T>> {
        self.biased_lock.enter_other(entries).map(|other| OtherAccess { other, of: self })
    }
}

impl<T> Owned<'_, T> {
    /// Stops admitting other threads if `idle` says that there is no work for them.
    #[inline(always)]
    pub fn unshare(&self, idle: impl FnOnce(&T) -> bool) {
        if self.counted && idle(self) {
            self.of.biased_lock.unshare();
        }
    }
}

impl<T> OtherAccess<'_, T> {
    /// True if the owner waits to enter.
    pub fn is_wanted(&self) -> bool {
        self.other.is_wanted()
    }
}

impl<T> Deref for Owned<'_, T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        // SAFETY: the owner is inside, so the lock keeps other threads out, and the owner has only this guard.
        unsafe { &*self.of.value.get() }
    }
}

impl<T> DerefMut for Owned<'_, T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as above; `&mut self` makes the access exclusive.
        unsafe { &mut *self.of.value.get() }
    }
}

impl<T> Drop for Owned<'_, T> {
    #[inline(always)]
    fn drop(&mut self) {
        self.of.biased_lock.leave(self.counted);
    }
}

impl<T> Deref for OtherAccess<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: the other thread is inside, so the lock keeps the owner and further threads out.
        unsafe { &*self.of.value.get() }
    }
}

impl<T> DerefMut for OtherAccess<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as above; `&mut self` makes the access exclusive.
        unsafe { &mut *self.of.value.get() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::Duration;

    #[test]
    fn a_guest_comes_in_only_if_invited_and_while_the_owner_stays_away() {
        let guarded = Guarded::new(1);
        assert!(guarded.enter_other(guarded.entries()).is_none());
        guarded.share();
        let before = guarded.entries();
        // SAFETY: this thread is the only owner, and has no other guard.
        let mut owned = unsafe { guarded.own() };
        *owned += 1;
        assert!(guarded.enter_other(before).is_none() && guarded.enter_other(guarded.entries()).is_none());
        owned.unshare(|value| *value == 0);
        drop(owned);
        assert!(guarded.enter_other(before).is_none());
        let mut enter_other = guarded.enter_other(guarded.entries()).unwrap();
        *enter_other += 1;
        assert!(!enter_other.is_wanted() && *enter_other == 3);
        drop(enter_other);
        // SAFETY: this thread is the only owner, and has no other guard.
        unsafe { guarded.own() }.unshare(|value| *value == 3);
        assert!(guarded.enter_other(guarded.entries()).is_none());
    }

    #[test]
    fn nothing_is_lost_between_an_owner_and_its_guest() {
        const ROUNDS: u64 = 100_000;
        // Two words that differ only while a thread is inside.
        let (guarded, over) = (Guarded::new([0u64; 2]), AtomicBool::new(false));
        let bump = |words: &mut [u64; 2]| {
            assert_eq!(words[0], words[1]);
            words[0] += 1;
            std::hint::black_box(&mut *words);
            words[1] += 1;
        };
        let entries = std::thread::scope(|scope| {
            let visitor = scope.spawn(|| {
                let mut entries = 0;
                while !over.load(Ordering::Relaxed) {
                    let Some(mut enter_other) = guarded.enter_other(guarded.entries()) else {
                        std::thread::yield_now();
                        continue;
                    };
                    bump(&mut enter_other);
                    entries += 1;
                }
                entries
            });
            for round in 0..ROUNDS {
                match round % 1000 {
                    0 => guarded.share(),
                    500 => std::thread::sleep(Duration::from_micros(100)),
                    _ => {}
                }
                // SAFETY: this thread is the only owner, and has no other guard.
                let mut owned = unsafe { guarded.own() };
                bump(&mut owned);
                owned.unshare(|_| round % 1000 == 900);
            }
            over.store(true, Ordering::Relaxed);
            visitor.join().unwrap()
        });
        assert!(entries > 0);
        assert_eq!(guarded.value.into_inner(), [ROUNDS + entries; 2]);
    }
}
