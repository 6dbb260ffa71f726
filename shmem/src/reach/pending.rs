//! Operations that are not complete, of each context.

use crate::handles::Ctx;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// Largest number of created contexts at a time.
pub const CONTEXTS: usize = 4096;

/// The counters of a PE.
pub struct Pending {
    /// Number of operations of the default context that are not complete.
    default: AtomicU64,
    /// The same of created contexts, by number; 0 for those that do not exist.
    created: Box<[AtomicU64]>,
    /// Numbers that no context has.
    free: Mutex<Vec<usize>>,
}

impl Pending {
    /// Creates the counters, which are 0.
    pub fn new() -> Pending {
        let created = (0..CONTEXTS).map(|_| AtomicU64::new(0)).collect();
        Pending { default: AtomicU64::new(0), created, free: Mutex::new((0..CONTEXTS).rev().collect()) }
    }

    /// Takes the handle of a new context; None if there are too many.
    pub fn open(&self) -> Option<Ctx> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner).pop().map(Ctx::created)
    }

    /// Gives back the handle of a created context, all of whose operations are complete.
    pub fn close(&self, ctx: Ctx) {
        if let Some(number) = ctx.number() {
            self.free.lock().unwrap_or_else(PoisonError::into_inner).push(number);
        }
    }

    /// Returns the number of operations of a context that are not complete.
    pub fn of(&self, ctx: Ctx) -> &AtomicU64 {
        match ctx.number() {
            Some(number) => &self.created[number],
            None => &self.default,
        }
    }

    /// Returns true if all operations of all contexts are complete.
    pub fn is_empty(&self) -> bool {
        self.created.iter().chain([&self.default]).all(|counter| counter.load(Ordering::Acquire) == 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_context_has_its_own_counter() {
        let pending = Pending::new();
        let (first, second) = (pending.open().unwrap(), pending.open().unwrap());
        assert!(first != second && first != Ctx::DEFAULT && second != Ctx::DEFAULT);
        pending.of(first).fetch_add(1, Ordering::Relaxed);
        assert_eq!([second, Ctx::DEFAULT].map(|ctx| pending.of(ctx).load(Ordering::Relaxed)), [0, 0]);
        assert!(!pending.is_empty());
        pending.of(first).fetch_sub(1, Ordering::Relaxed);
        assert!(pending.is_empty());
        pending.close(first);
        assert_eq!(pending.open(), Some(first));
        assert_eq!(std::iter::from_fn(|| pending.open()).count(), CONTEXTS - 2);
    }
}
