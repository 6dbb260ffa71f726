//! A lock that costs its owner next to nothing.
//!
//! A rank enters its endpoint millions of times a second, its deputy a few times while the rank is away. So the gate is open, and
//! costs the owner one look, until the owner itself closes it, which lets guests come; the guest that has nothing more to do there
//! opens it again. While it is closed the owner counts, without a fence, and the guest pays for both: it says that it is coming,
//! then has every thread of the process pass a barrier (membarrier(2)). Either the owner has seen the guest by then, or the guest
//! sees that the owner has moved.

#[cfg(loom)]
use loom::sync::{
    atomic::{AtomicBool, AtomicU32},
    Mutex, MutexGuard,
};
use std::sync::atomic::Ordering;
#[cfg(not(loom))]
use std::sync::{
    atomic::{AtomicBool, AtomicU32},
    Mutex, MutexGuard,
};

/// Who is inside: the owner, or a guest.
pub struct Gate {
    /// Whether guests may come. Only the owner closes it, only a guest that is inside opens it.
    closed: AtomicBool,
    /// Goes up when the owner enters by the closed gate and when it leaves: odd while it is inside.
    steps: AtomicU32,
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
    /// An open one, with nobody inside.
    pub fn new() -> Gate {
        Gate {
            closed: AtomicBool::new(false),
            steps: AtomicU32::new(0),
            guest: AtomicBool::new(false),
            door: Mutex::new(()),
        }
    }

    /// Whether guests may come.
    pub fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    /// The owner, which is outside, lets guests come. Whether they could not before.
    #[inline]
    pub fn close(&self) -> bool {
        !self.closed.load(Ordering::Relaxed) && {
            self.closed.store(true, Ordering::Release);
            true
        }
    }

    /// The owner enters, after a guest that is inside has left. What it returns is for [`Gate::leave`].
    #[inline(always)]
    #[must_use]
    pub fn enter(&self) -> bool {
        let closed = self.is_closed();
        if closed {
            self.enter_closed();
        }
        closed
    }

    fn enter_closed(&self) {
        let steps = self.steps.load(Ordering::Relaxed);
        debug_assert!(steps % 2 == 0, "the owner is inside already");
        self.steps.store(steps.wrapping_add(1), Ordering::Relaxed);
        barrier::light(true);
        if self.guest.load(Ordering::Acquire) {
            self.await_guest();
        }
    }

    /// The owner leaves.
    #[inline(always)]
    pub fn leave(&self, was_closed: bool) {
        if was_closed {
            self.steps.store(self.steps.load(Ordering::Relaxed).wrapping_add(1), Ordering::Release);
        }
    }

    #[cold]
    fn await_guest(&self) {
        // Whoever comes after this sees that the owner is inside.
        drop(lock(&self.door));
    }

    /// How often the owner has entered and left.
    pub fn steps(&self) -> u32 {
        self.steps.load(Ordering::Acquire)
    }

    /// Lets a guest in, if the owner is outside and has not moved since its steps were these. Only where there are barriers for
    /// this ([`crate::ntb::barrier::available`]).
    pub fn visit(&self, steps: u32) -> Option<Guest<'_>> {
        if !self.is_closed() || steps % 2 == 1 || self.steps() != steps {
            return None;
        }
        let door = lock(&self.door);
        if !self.is_closed() {
            return None;
        }
        self.guest.store(true, Ordering::Relaxed);
        // From here on it is said that it has left, if it may not enter.
        let guest = Guest { gate: self, at: steps, _door: door };
        barrier::heavy();
        (!guest.is_wanted()).then_some(guest)
    }
}

impl Guest<'_> {
    /// Whether the owner wants to enter.
    pub fn is_wanted(&self) -> bool {
        self.gate.steps() != self.at
    }

    /// Leaves, and opens the gate: no guest will come before the owner has closed it again.
    pub fn open(self) {
        let gate = self.gate;
        // Still behind the door, so that no other guest comes in between.
        gate.guest.store(false, Ordering::Relaxed);
        gate.closed.store(false, Ordering::Release);
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

#[cfg(not(loom))]
use crate::ntb::barrier;

// Under loom each side has its own half of what the kernel does for both.
#[cfg(loom)]
mod barrier {
    use loom::sync::atomic::{fence, Ordering};

    pub fn light(_paired: bool) {
        fence(Ordering::SeqCst);
    }

    pub fn heavy() {
        fence(Ordering::SeqCst);
    }
}

#[cfg(all(test, loom))]
mod model {
    use super::*;
    use loom::cell::UnsafeCell;
    use loom::sync::Arc;
    use loom::thread;

    #[test]
    fn owner_and_guest_are_never_inside_together() {
        loom::model(|| {
            let (gate, value) = (Arc::new(Gate::new()), Arc::new(UnsafeCell::new(0)));
            let (theirs, with) = (gate.clone(), value.clone());
            gate.close();
            let visitor = thread::spawn(move || {
                let mut visits = 0;
                for last in [false, true] {
                    let Some(guest) = theirs.visit(theirs.steps()) else { continue };
                    // SAFETY: loom finds whoever else has it.
                    with.with_mut(|value| unsafe { *value += 1 });
                    visits += 1;
                    match last {
                        true => guest.open(),
                        false => drop(guest),
                    }
                }
                visits
            });
            for _ in 0..2 {
                let closed = gate.enter();
                // SAFETY: as above.
                value.with_mut(|value| unsafe { *value += 1 });
                gate.leave(closed);
            }
            let visits = visitor.join().unwrap();
            // SAFETY: nobody else is left.
            value.with(|value| assert_eq!(unsafe { *value }, 2 + visits));
        });
    }
}
