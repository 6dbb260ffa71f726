//! A value behind a biased lock.

use super::gate::{Gate, Guest};
use std::cell::UnsafeCell;
use std::ops::{Deref, DerefMut};

/// A value that one owner accesses nearly always, and another thread, the guest, rarely.
pub struct Guarded<T> {
    gate: Gate,
    value: UnsafeCell<T>,
}

// SAFETY: the gate gives mutual exclusion, and its release and acquire operations order the accesses of successive
// holders. `T: Send` lets different threads access the value in turn.
unsafe impl<T: Send> Sync for Guarded<T> {}

/// The guard of the owner.
pub struct Owned<'a, T> {
    of: &'a Guarded<T>,
    counted: bool,
}

/// The guard of a guest.
pub struct Visit<'a, T> {
    guest: Guest<'a>,
    of: &'a Guarded<T>,
}

impl<T> Guarded<T> {
    /// Creates an unlocked value.
    pub fn new(value: T) -> Guarded<T> {
        Guarded { gate: Gate::new(), value: UnsafeCell::new(value) }
    }

    /// Enters as the owner, as soon as no guest is inside.
    ///
    /// # Safety
    /// Only one thread at a time may be the owner, and the previous guard must have been dropped.
    #[inline(always)]
    pub unsafe fn own(&self) -> Owned<'_, T> {
        Owned { counted: self.gate.enter(), of: self }
    }

    /// Admits guests. To be called by the owner from outside.
    pub fn invite(&self) {
        self.gate.invite();
    }

    /// True if guests are admitted.
    pub fn is_inviting(&self) -> bool {
        self.gate.is_inviting()
    }

    /// Returns the number of times the owner has entered while it admitted guests.
    pub fn visits(&self) -> u32 {
        self.gate.visits()
    }

    /// Enters as a guest, if guests are admitted, the owner is outside, and its number of entries is still `visits`.
    pub fn visit(&self, visits: u32) -> Option<Visit<'_, T>> {
        self.gate.visit(visits).map(|guest| Visit { guest, of: self })
    }
}

impl<T> Owned<'_, T> {
    /// Stops admitting guests if `idle` says that there is no work for them.
    #[inline(always)]
    pub fn dismiss(&self, idle: impl FnOnce(&T) -> bool) {
        if self.counted && idle(self) {
            self.of.gate.dismiss();
        }
    }
}

impl<T> Visit<'_, T> {
    /// True if the owner waits to enter.
    pub fn is_wanted(&self) -> bool {
        self.guest.is_wanted()
    }
}

impl<T> Deref for Owned<'_, T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        // SAFETY: the owner is inside, so the gate keeps guests out, and the owner has only this guard.
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
        self.of.gate.leave(self.counted);
    }
}

impl<T> Deref for Visit<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: the guest is inside, so the gate keeps the owner and other guests out.
        unsafe { &*self.of.value.get() }
    }
}

impl<T> DerefMut for Visit<'_, T> {
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
        assert!(guarded.visit(guarded.visits()).is_none());
        guarded.invite();
        let before = guarded.visits();
        // SAFETY: this thread is the only owner, and has no other guard.
        let mut owned = unsafe { guarded.own() };
        *owned += 1;
        assert!(guarded.visit(before).is_none() && guarded.visit(guarded.visits()).is_none());
        owned.dismiss(|value| *value == 0);
        drop(owned);
        assert!(guarded.visit(before).is_none());
        let mut visit = guarded.visit(guarded.visits()).unwrap();
        *visit += 1;
        assert!(!visit.is_wanted() && *visit == 3);
        drop(visit);
        // SAFETY: this thread is the only owner, and has no other guard.
        unsafe { guarded.own() }.dismiss(|value| *value == 3);
        assert!(guarded.visit(guarded.visits()).is_none());
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
        let visits = std::thread::scope(|scope| {
            let visitor = scope.spawn(|| {
                let mut visits = 0;
                while !over.load(Ordering::Relaxed) {
                    let Some(mut visit) = guarded.visit(guarded.visits()) else {
                        std::thread::yield_now();
                        continue;
                    };
                    bump(&mut visit);
                    visits += 1;
                }
                visits
            });
            for round in 0..ROUNDS {
                match round % 1000 {
                    0 => guarded.invite(),
                    500 => std::thread::sleep(Duration::from_micros(100)),
                    _ => {}
                }
                // SAFETY: this thread is the only owner, and has no other guard.
                let mut owned = unsafe { guarded.own() };
                bump(&mut owned);
                owned.dismiss(|_| round % 1000 == 900);
            }
            over.store(true, Ordering::Relaxed);
            visitor.join().unwrap()
        });
        assert!(visits > 0);
        assert_eq!(guarded.value.into_inner(), [ROUNDS + visits; 2]);
    }
}
