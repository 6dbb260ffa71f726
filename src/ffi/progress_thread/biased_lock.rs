//! A biased lock: it costs its owner almost nothing, and other threads more.
//!
//! A rank enters its endpoint millions of times a second, its progress thread a few times while the rank is
//! away. Entering costs the owner one load, unless it admits other threads: then it counts how often it enters and
//! leaves, and another thread that has announced itself checks whether the owner has moved. The counter and the
//! announcement are separated by sequentially consistent fences, as in Dekker's algorithm: at least one of the two
//! threads sees the other.

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

/// The lock, held by the owner or by another thread.
pub struct BiasedLock {
    /// True while other threads are admitted. Written only by the owner.
    shared: AtomicBool,
    /// Number of times the owner has entered while it admitted other threads.
    entered: AtomicU32,
    /// Number of times the owner has left after such an entry.
    left: AtomicU32,
    /// True while another thread is inside or checks whether it may enter.
    other: AtomicBool,
    /// Held by another thread, and by an owner that waits for one to leave.
    others: Mutex<()>,
}

/// The guard of a thread that is not the owner, which is inside until it is dropped.
pub struct OtherGuard<'a> {
    biased_lock: &'a BiasedLock,
    at: u32,
    _others: MutexGuard<'a, ()>,
}

impl BiasedLock {
    /// Creates a lock that is free and admits no other threads.
    pub fn new() -> BiasedLock {
        BiasedLock {
            shared: AtomicBool::new(false),
            entered: AtomicU32::new(0),
            left: AtomicU32::new(0),
            other: AtomicBool::new(false),
            others: Mutex::new(()),
        }
    }

    /// True if other threads are admitted.
    #[inline(always)]
    pub fn is_shared(&self) -> bool {
        self.shared.load(Ordering::Acquire)
    }

    /// Admits other threads. To be called by the owner from outside.
    pub fn share(&self) {
        self.shared.store(true, Ordering::Release);
    }

    /// Stops admitting other threads. To be called by the owner from inside.
    pub fn unshare(&self) {
        self.shared.store(false, Ordering::Release);
    }

    /// Enters as the owner, after another thread that is inside has left. The returned flag must be passed to
    /// [`BiasedLock::leave`].
    #[inline(always)]
    #[must_use]
    pub fn enter(&self) -> bool {
        let counted = self.is_shared();
        if counted {
            self.enter_counted();
        }
        counted
    }

    #[cold]
    fn enter_counted(&self) {
        self.entered.fetch_add(1, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        if self.other.load(Ordering::Acquire) {
            // Any later thread sees that the owner is inside.
            drop(lock(&self.others));
        }
    }

    /// Leaves as the owner.
    #[inline(always)]
    pub fn leave(&self, counted: bool) {
        if counted {
            self.left.fetch_add(1, Ordering::Release);
        }
    }

    /// Returns the number of times the owner has entered while it admitted other threads.
    pub fn entries(&self) -> u32 {
        self.entered.load(Ordering::Acquire)
    }

    /// Enters in place of the owner, if other threads are admitted, the owner is outside, and its number of entries is
    /// still `entries`.
    pub fn enter_other(&self, entries: u32) -> Option<OtherGuard<'_>> {
        if !self.is_shared() || self.entries() != entries {
            return None;
        }
        let others = lock(&self.others);
        self.other.store(true, Ordering::Relaxed);
        // From here on the guard's destructor clears the announcement if the other thread may not enter.
        let other = OtherGuard { biased_lock: self, at: entries, _others: others };
        fence(Ordering::SeqCst);
        let outside = self.left.load(Ordering::Acquire) == entries;
        // Checked again: an owner that admits no other threads does not look for them.
        (outside && !other.is_wanted() && self.is_shared()).then_some(other)
    }
}

impl OtherGuard<'_> {
    /// True if the owner waits to enter.
    pub fn is_wanted(&self) -> bool {
        self.biased_lock.entries() != self.at
    }
}

impl Drop for OtherGuard<'_> {
    fn drop(&mut self) {
        self.biased_lock.other.store(false, Ordering::Release);
    }
}

/// Locks the mutex, ignoring poisoning: the mutex guards no data, and users of the lock handle panics themselves.
fn lock(others: &Mutex<()>) -> MutexGuard<'_, ()> {
    others.lock().unwrap_or_else(|e| e.into_inner())
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
            let (biased_lock, value) = (Arc::new(BiasedLock::new()), Arc::new(UnsafeCell::new(0)));
            let (theirs, with) = (biased_lock.clone(), value.clone());
            biased_lock.share();
            let visitor = thread::spawn(move || {
                let mut entries = 0;
                for _ in 0..2 {
                    let Some(other) = theirs.enter_other(theirs.entries()) else { continue };
                    // SAFETY: the lock gives mutual exclusion; loom reports a concurrent access.
                    with.with_mut(|value| unsafe { *value += 1 });
                    drop(other);
                    entries += 1;
                }
                entries
            });
            // While it admits other threads, while it does not, and while it does again.
            for turn in 0..3 {
                let counted = biased_lock.enter();
                // SAFETY: as above.
                value.with_mut(|value| unsafe { *value += 1 });
                if turn == 0 {
                    biased_lock.unshare();
                }
                biased_lock.leave(counted);
                if turn == 1 {
                    biased_lock.share();
                }
            }
            let entries = visitor.join().unwrap();
            // SAFETY: the other thread has ended.
            value.with(|value| assert_eq!(unsafe { *value }, 3 + entries));
        });
    }
}
