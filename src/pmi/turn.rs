//! The right to ask the process manager a question.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// A lock without data, which C code can hold between two calls.
#[derive(Debug, Default)]
pub struct Turn {
    taken: Mutex<bool>,
    given: Condvar,
}

/// A turn that ends when this is dropped.
#[derive(Debug)]
pub struct Held<'a>(&'a Turn);

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.0.give();
    }
}

impl Turn {
    /// Creates a turn that nobody has.
    pub const fn new() -> Turn {
        Turn { taken: Mutex::new(false), given: Condvar::new() }
    }

    fn taken(&self) -> MutexGuard<'_, bool> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the turn and takes it, until [`Turn::give`].
    pub fn take(&self) {
        let taken = self.taken();
        let mut taken = self.given.wait_while(taken, |taken| *taken).unwrap_or_else(PoisonError::into_inner);
        *taken = true;
    }

    /// Ends a turn.
    pub fn give(&self) {
        *self.taken() = false;
        self.given.notify_one();
    }

    /// Waits for the turn and takes it.
    pub fn hold(&self) -> Held<'_> {
        self.take();
        Held(self)
    }

    /// Takes the turn if nobody has it.
    pub fn try_hold(&self) -> Option<Held<'_>> {
        let mut taken = self.taken.try_lock().ok()?;
        (!std::mem::replace(&mut *taken, true)).then(|| Held(self))
    }
}
