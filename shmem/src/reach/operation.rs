//! An operation on memory of a far PE, from its begin to its end.

use std::cell::UnsafeCell;
use std::ptr;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::Arc;

/// State of an operation when the call returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// A put's source may be reused; what a get or an atomic operation fetches is there.
    Blocking,
    /// The operation is complete after the context's next quiet.
    NonBlocking,
}

/// An operation.
pub struct Operation {
    /// Number of parts whose source is still in use.
    unsent: AtomicU32,
    /// Number of parts that are not complete.
    open: AtomicU32,
    /// Counters of operations that are not complete; null counts nothing.
    counters: [*const AtomicU64; 2],
    /// Operands that the operation keeps, and what it fetches.
    bytes: UnsafeCell<[u64; 3]>,
}

// SAFETY: the words are written by the thread that handles the answer, and read after `is_done`, which that thread makes
// true afterwards.
unsafe impl Send for Operation {}
// SAFETY: as above.
unsafe impl Sync for Operation {}

impl Operation {
    /// Creates an operation. The counters, which may be null, count it until it is complete. They must live until then.
    pub fn new(counters: [*const AtomicU64; 2], bytes: [u64; 3]) -> Arc<Operation> {
        let (unsent, open) = (AtomicU32::new(0), AtomicU32::new(0));
        Arc::new(Operation { unsent, open, counters, bytes: UnsafeCell::new(bytes) })
    }

    /// Creates an operation that nothing counts, since the caller waits for it.
    pub fn awaited(bytes: [u64; 3]) -> Arc<Operation> {
        Operation::new([ptr::null(); 2], bytes)
    }

    fn counters(&self) -> impl Iterator<Item = &AtomicU64> {
        // SAFETY: null, or counters of a PE or a context, which live as long as the link.
        self.counters.iter().filter_map(|counter| unsafe { counter.as_ref() })
    }

    /// Returns the address of the operands.
    pub fn operands(&self) -> *const u64 {
        self.bytes.get().cast_const().cast()
    }

    /// Returns the address of the word for what is fetched.
    pub fn result(&self) -> *mut u64 {
        // SAFETY: the third of three words.
        unsafe { self.bytes.get().cast::<u64>().add(2) }
    }

    /// Begins `parts` parts.
    pub fn begin(&self, parts: u32) {
        self.open.store(parts, Ordering::Relaxed);
        self.counters().for_each(|counter| _ = counter.fetch_add(1, Ordering::Relaxed));
    }

    /// Counts a part whose source is in use.
    pub fn keeps_source(&self) {
        self.unsent.fetch_add(1, Ordering::Relaxed);
    }

    /// The source of a part is not in use any more.
    pub fn has_sent(&self) {
        self.unsent.fetch_sub(1, Ordering::Release);
    }

    /// A part is complete.
    pub fn has_ended(&self) {
        if self.open.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.counters().for_each(|counter| _ = counter.fetch_sub(1, Ordering::Release));
        }
    }

    /// Returns true if the source may be reused.
    pub fn is_sent(&self) -> bool {
        self.unsent.load(Ordering::Acquire) == 0
    }

    /// Returns true if the operation is complete.
    pub fn is_done(&self) -> bool {
        self.open.load(Ordering::Acquire) == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_operation_is_complete_when_all_its_parts_are() {
        let (pending, requests) = (AtomicU64::new(0), AtomicU64::new(0));
        let operation = Operation::new([&requests, &pending], [1, 2, 3]);
        operation.begin(2);
        operation.keeps_source();
        assert!(pending.load(Ordering::Relaxed) == 1 && !operation.is_sent() && !operation.is_done());
        operation.has_ended();
        operation.has_sent();
        assert!(pending.load(Ordering::Relaxed) == 1 && operation.is_sent() && !operation.is_done());
        operation.has_ended();
        assert!(pending.load(Ordering::Relaxed) == 0 && requests.load(Ordering::Relaxed) == 0 && operation.is_done());
    }
}
