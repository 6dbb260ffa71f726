//! A biased lock: it costs its owner almost nothing, and other threads more.
//!
//! A rank enters its endpoint millions of times a second, its progress thread (deputy) a few times while the rank is
//! away. Entering costs the owner one load, unless it admits guests: then it counts how often it enters and leaves,
//! and a guest that has announced itself checks whether the owner has moved. The counter and the announcement are
//! separated by sequentially consistent fences, as in Dekker's algorithm: at least one of the two threads sees the
//! other.

#[cfg(loom)]
use loom::sync::{
    atomic::{fence, AtomicBool, AtomicU32},
    Mutex, MutexGuard,
};
use std::sync::atomic::Ordering;
#[cfg(not(loom))]
use std::sync::{
    atomic::{fence, AtomicBool, AtomicU32},
    Mutex, MutexGuard,
};

/// The lock, held by the owner or by a guest.
pub struct Gate {
    /// True while guests are admitted. Written only by the owner.
    inviting: AtomicBool,
    /// Number of times the owner has entered while it admitted guests.
    entered: AtomicU32,
    /// Number of times the owner has left after such an entry.
    left: AtomicU32,
    /// True while a guest is inside or checks whether it may enter.
    guest: AtomicBool,
    /// Held by a guest, and by an owner that waits for one to leave.
    door: Mutex<()>,
}

/// The guard of a guest, which is inside until it is dropped.
pub struct Guest<'a> {
    gate: &'a Gate,
    at: u32,
    _door: MutexGuard<'a, ()>,
}

impl Gate {
    /// Creates an unlocked gate that admits no guests.
    pub fn new() -> Gate {
        Gate {
            inviting: AtomicBool::new(false),
            entered: AtomicU32::new(0),
            left: AtomicU32::new(0),
            guest: AtomicBool::new(false),
            door: Mutex::new(()),
        }
    }

    /// True if guests are admitted.
    #[inline(always)]
    pub fn is_inviting(&self) -> bool {
        self.inviting.load(Ordering::Acquire)
    }

    /// Admits guests. To be called by the owner from outside.
    pub fn invite(&self) {
        self.inviting.store(true, Ordering::Release);
    }

    /// Stops admitting guests. To be called by the owner from inside.
    pub fn dismiss(&self) {
        self.inviting.store(false, Ordering::Release);
    }

    /// Enters as the owner, after a guest that is inside has left. The returned flag must be passed to
    /// [`Gate::leave`].
    #[inline(always)]
    #[must_use]
    pub fn enter(&self) -> bool {
        let counted = self.is_inviting();
        if counted {
            self.enter_counted();
        }
        counted
    }

    #[cold]
    fn enter_counted(&self) {
        self.entered.fetch_add(1, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        if self.guest.load(Ordering::Acquire) {
            // Any later guest sees that the owner is inside.
            drop(lock(&self.door));
        }
    }

    /// Leaves as the owner.
    #[inline(always)]
    pub fn leave(&self, counted: bool) {
        if counted {
            self.left.fetch_add(1, Ordering::Release);
        }
    }

    /// Returns the number of times the owner has entered while it admitted guests.
    pub fn visits(&self) -> u32 {
        self.entered.load(Ordering::Acquire)
    }

    /// Enters as a guest, if guests are admitted, the owner is outside, and its number of entries is still `visits`.
    pub fn visit(&self, visits: u32) -> Option<Guest<'_>> {
        if !self.is_inviting() || self.visits() != visits {
            return None;
        }
        let door = lock(&self.door);
        self.guest.store(true, Ordering::Relaxed);
        // From here on the guard's destructor clears the announcement if the guest may not enter.
        let guest = Guest { gate: self, at: visits, _door: door };
        fence(Ordering::SeqCst);
        let outside = self.left.load(Ordering::Acquire) == visits;
        // Checked again: an owner that admits no guests does not look for them.
        (outside && !guest.is_wanted() && self.is_inviting()).then_some(guest)
    }
}

impl Guest<'_> {
    /// True if the owner waits to enter.
    pub fn is_wanted(&self) -> bool {
        self.gate.visits() != self.at
    }
}

impl Drop for Guest<'_> {
    fn drop(&mut self) {
        self.gate.guest.store(false, Ordering::Release);
    }
}

/// Locks the mutex, ignoring poisoning: the mutex guards no data, and users of the gate handle panics themselves.
fn lock(door: &Mutex<()>) -> MutexGuard<'_, ()> {
    door.lock().unwrap_or_else(|e| e.into_inner())
}

#[cfg(all(test, loom))]
mod model {
    use super::*;
    use loom::cell::UnsafeCell;
    use loom::sync::Arc;
    use loom::thread;

    #[test]
    fn owner_and_guest_are_never_inside_together() {
        let mut model = loom::model::Builder::new();
        model.preemption_bound = Some(3);
        model.check(|| {
            let (gate, value) = (Arc::new(Gate::new()), Arc::new(UnsafeCell::new(0)));
            let (theirs, with) = (gate.clone(), value.clone());
            gate.invite();
            let visitor = thread::spawn(move || {
                let mut visits = 0;
                for _ in 0..2 {
                    let Some(guest) = theirs.visit(theirs.visits()) else { continue };
                    // SAFETY: the gate gives mutual exclusion; loom reports a concurrent access.
                    with.with_mut(|value| unsafe { *value += 1 });
                    drop(guest);
                    visits += 1;
                }
                visits
            });
            // While it admits guests, while it does not, and while it does again.
            for turn in 0..3 {
                let counted = gate.enter();
                // SAFETY: as above.
                value.with_mut(|value| unsafe { *value += 1 });
                if turn == 0 {
                    gate.dismiss();
                }
                gate.leave(counted);
                if turn == 1 {
                    gate.invite();
                }
            }
            let visits = visitor.join().unwrap();
            // SAFETY: the other thread has ended.
            value.with(|value| assert_eq!(unsafe { *value }, 3 + visits));
        });
    }
}
