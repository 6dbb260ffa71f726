//! What the owner of a gate, and its guests, find inside.

use super::gate::{Gate, Guest};
use std::cell::UnsafeCell;
use std::ops::{Deref, DerefMut};

/// A value that one owner has nearly always, and a guest now and then.
pub struct Guarded<T> {
    gate: Gate,
    value: UnsafeCell<T>,
}

// SAFETY: the gate lets one in at a time, who sees all that was done by whoever was there before.
unsafe impl<T: Send> Sync for Guarded<T> {}

/// The value in the hands of its owner.
pub struct Owned<'a, T> {
    of: &'a Guarded<T>,
    closed: bool,
}

/// The value in the hands of a guest.
pub struct Visit<'a, T> {
    guest: Guest<'a>,
    of: &'a Guarded<T>,
}

impl<T> Guarded<T> {
    /// A value with nobody at it.
    pub fn new(value: T) -> Guarded<T> {
        Guarded { gate: Gate::new(), value: UnsafeCell::new(value) }
    }

    /// Lets the owner in, as soon as no guest is there.
    ///
    /// # Safety
    /// One thread at a time is the owner, and what this has returned before is gone.
    #[inline(always)]
    pub unsafe fn own(&self) -> Owned<'_, T> {
        Owned { closed: self.gate.enter(), of: self }
    }

    /// The owner, which is outside, lets guests come. Whether they could not before.
    #[inline]
    pub fn invite(&self) -> bool {
        self.gate.close()
    }

    /// Whether guests may come.
    pub fn is_inviting(&self) -> bool {
        self.gate.is_closed()
    }

    /// How often the owner has come and gone while guests might come.
    pub fn steps(&self) -> u32 {
        self.gate.steps()
    }

    /// Lets a guest in, if it was invited and the owner has neither come nor gone since its steps were these. Only where there are barriers for it
    /// ([`crate::ntb::barrier::available`]).
    pub fn visit(&self, steps: u32) -> Option<Visit<'_, T>> {
        self.gate.visit(steps).map(|guest| Visit { guest, of: self })
    }
}

impl<T> Visit<'_, T> {
    /// Leaves, and does not come back before it is invited again.
    pub fn end(self) {
        self.guest.open();
    }

    /// Whether the owner wants to come in.
    pub fn is_wanted(&self) -> bool {
        self.guest.is_wanted()
    }
}

impl<T> Deref for Owned<'_, T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        // SAFETY: the owner is inside, so nobody else is.
        unsafe { &*self.of.value.get() }
    }
}

impl<T> DerefMut for Owned<'_, T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as above, and there is one such guard.
        unsafe { &mut *self.of.value.get() }
    }
}

impl<T> Drop for Owned<'_, T> {
    #[inline(always)]
    fn drop(&mut self) {
        self.of.gate.leave(self.closed);
    }
}

impl<T> Deref for Visit<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: the guest is inside, so nobody else is.
        unsafe { &*self.of.value.get() }
    }
}

impl<T> DerefMut for Visit<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as above, and there is one such guard.
        unsafe { &mut *self.of.value.get() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ntb::barrier;
    use std::sync::atomic::{AtomicBool, Ordering};

    #[test]
    fn a_guest_comes_in_only_while_the_owner_stays_away() {
        assert!(barrier::available());
        let guarded = Guarded::new(1);
        assert!(guarded.visit(guarded.steps()).is_none() && guarded.invite() && !guarded.invite());
        let before = guarded.steps();
        // SAFETY: one owner.
        let mut owned = unsafe { guarded.own() };
        *owned += 1;
        assert!(guarded.visit(before).is_none() && guarded.visit(guarded.steps()).is_none());
        drop(owned);
        assert!(guarded.visit(before).is_none());
        let mut visit = guarded.visit(guarded.steps()).unwrap();
        *visit += 1;
        assert!(!visit.is_wanted() && *visit == 3);
        visit.end();
        assert!(guarded.visit(guarded.steps()).is_none());
    }

    /// Real threads and the kernel's barrier, which loom has no model of.
    #[test]
    fn nothing_is_lost_between_an_owner_and_its_guest() {
        const ROUNDS: u64 = 300_000;
        assert!(barrier::available());
        // Two words that only ever differ while somebody is inside.
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
                    let Some(mut visit) = guarded.visit(guarded.steps()) else { continue };
                    bump(&mut visit);
                    visits += 1;
                    if visits % 5 == 0 {
                        visit.end();
                    }
                }
                visits
            });
            for round in 0..ROUNDS {
                if round % 3 == 0 {
                    guarded.invite();
                }
                // SAFETY: one owner.
                let mut owned = unsafe { guarded.own() };
                bump(&mut owned);
            }
            over.store(true, Ordering::Relaxed);
            visitor.join().unwrap()
        });
        assert_eq!(guarded.value.into_inner(), [ROUNDS + visits; 2]);
    }
}
