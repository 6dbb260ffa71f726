//! A lock that costs its owner next to nothing.
//!
//! A rank enters its endpoint millions of times a second, its deputy a few times while the rank is away. So entering costs the
//! owner one look, unless it has invited guests: then it counts how often it enters and leaves, and a guest that has said that it
//! is coming looks whether the owner has moved. Either the one sees the other, or the other the one.

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

/// Who is inside: the owner, or a guest.
pub struct Gate {
    /// Only the owner changes it.
    inviting: AtomicBool,
    /// How often the owner has entered while it invited guests...
    entered: AtomicU32,
    /// ...and left.
    left: AtomicU32,
    /// A guest is inside, or looks whether it may.
    guest: AtomicBool,
    /// Held by a guest, and by an owner that waits for one to leave.
    door: Mutex<()>,
}

/// A guest that is inside, until this is dropped.
pub struct Guest<'a> {
    gate: &'a Gate,
    at: u32,
    _door: MutexGuard<'a, ()>,
}

impl Gate {
    /// With nobody inside or invited.
    pub fn new() -> Gate {
        Gate {
            inviting: AtomicBool::new(false),
            entered: AtomicU32::new(0),
            left: AtomicU32::new(0),
            guest: AtomicBool::new(false),
            door: Mutex::new(()),
        }
    }

    /// Whether guests may come.
    #[inline(always)]
    pub fn is_inviting(&self) -> bool {
        self.inviting.load(Ordering::Acquire)
    }

    /// The owner, which is outside, lets guests come.
    pub fn invite(&self) {
        self.inviting.store(true, Ordering::Release);
    }

    /// The owner, which is inside, lets them come no more.
    pub fn dismiss(&self) {
        self.inviting.store(false, Ordering::Release);
    }

    /// The owner enters, after a guest that is inside has left. Whether that was counted, for [`Gate::leave`].
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
            // Whoever comes after this one sees that the owner is inside.
            drop(lock(&self.door));
        }
    }

    /// The owner leaves.
    #[inline(always)]
    pub fn leave(&self, counted: bool) {
        if counted {
            self.left.fetch_add(1, Ordering::Release);
        }
    }

    /// How often the owner has entered while it invited guests.
    pub fn visits(&self) -> u32 {
        self.entered.load(Ordering::Acquire)
    }

    /// Lets a guest in, if it is invited, and the owner is outside and was not inside since it had entered so often.
    pub fn visit(&self, visits: u32) -> Option<Guest<'_>> {
        if !self.is_inviting() || self.visits() != visits {
            return None;
        }
        let door = lock(&self.door);
        self.guest.store(true, Ordering::Relaxed);
        // From here on it is said that it has left, if it may not enter.
        let guest = Guest { gate: self, at: visits, _door: door };
        fence(Ordering::SeqCst);
        let outside = self.left.load(Ordering::Acquire) == visits;
        // Once more: an owner that invites nobody does not look for guests.
        (outside && !guest.is_wanted() && self.is_inviting()).then_some(guest)
    }
}

impl Guest<'_> {
    /// Whether the owner wants to enter.
    pub fn is_wanted(&self) -> bool {
        self.gate.visits() != self.at
    }
}

impl Drop for Guest<'_> {
    fn drop(&mut self) {
        self.gate.guest.store(false, Ordering::Release);
    }
}

/// Nothing that is guarded breaks when a thread panics with it: that is for whoever guards it.
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
                    // SAFETY: loom finds whoever else has it.
                    with.with_mut(|value| unsafe { *value += 1 });
                    drop(guest);
                    visits += 1;
                }
                visits
            });
            // While it invites, while it does not, and while it does again.
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
            // SAFETY: nobody else is left.
            value.with(|value| assert_eq!(unsafe { *value }, 3 + visits));
        });
    }
}
