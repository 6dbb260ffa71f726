//! Results of asynchronous progress, and arrivals that wait for the rank.
//!
//! A thread (`ffi::progress_thread`) copies payloads whose destination is known while the rank computes: it puts them
//! into lanes and takes them out, and sends and handles the packets about them. Every other arrival is kept,
//! unreleased, for the rank, and no further entry is taken from its lane before the rank has handled it. No payload is
//! packed, because MPICH packs, and only the rank may call MPICH.

use crate::arrival::Arrival;
use crate::error::EndpointError;
use std::any::Any;
use std::collections::VecDeque;
use std::panic::resume_unwind;
use std::thread;

/// Results of the thread's work, and arrivals that wait for the rank.
#[derive(Default)]
pub struct AsyncProgress {
    kept: VecDeque<Arrival>,
    fault: Option<EndpointError>,
    /// The payload of a panic in the thread; it does no more work after one.
    panic: Option<Box<dyn Any + Send>>,
    broken: bool,
    /// Number of calls that made progress.
    pub steps: u64,
}

impl AsyncProgress {
    /// True if the thread may work: it has not failed.
    pub fn is_able(&self) -> bool {
        !self.broken && self.fault.is_none()
    }

    /// Keeps an arrival for the rank.
    pub fn keep(&mut self, arrival: Arrival) {
        self.kept.push_back(arrival);
    }

    /// Records the outcome of some work; errors and panics are kept for the rank. Returns true if there was progress.
    pub fn record(&mut self, done: thread::Result<Result<bool, EndpointError>>) -> bool {
        match done {
            Ok(Ok(any)) => {
                self.steps += u64::from(any);
                return any;
            }
            Ok(Err(error)) => self.fault = Some(error),
            Err(panic) => (self.panic, self.broken) = (Some(panic), true),
        }
        false
    }

    /// True if anything waits for the rank.
    pub fn is_waiting(&self) -> bool {
        !self.kept.is_empty() || self.fault.is_some() || self.panic.is_some()
    }

    /// Returns the next arrival that was kept.
    pub fn next(&mut self) -> Option<Arrival> {
        self.kept.pop_front()
    }

    /// Returns the error that the thread has met, if any. If the thread has panicked, the panic continues in the
    /// caller, which reports it.
    pub fn take_fault(&mut self) -> Result<(), EndpointError> {
        if let Some(panic) = self.panic.take() {
            resume_unwind(panic);
        }
        self.fault.take().map_or(Ok(()), Err)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::{catch_unwind, AssertUnwindSafe};

    #[test]
    fn an_error_of_the_thread_reaches_the_rank_once() {
        let mut async_progress = AsyncProgress::default();
        assert!(async_progress.record(Ok(Ok(true))) && !async_progress.record(Ok(Ok(false))));
        assert!(async_progress.is_able() && !async_progress.is_waiting() && async_progress.steps == 1);
        assert!(!async_progress.record(Ok(Err(EndpointError::Lock(3)))));
        assert!(!async_progress.is_able() && async_progress.is_waiting());
        assert!(matches!(async_progress.take_fault(), Err(EndpointError::Lock(3))));
        assert!(async_progress.is_able() && !async_progress.is_waiting() && async_progress.take_fault().is_ok());
    }

    #[test]
    fn a_panic_of_the_thread_continues_in_the_rank_and_ends_the_work() {
        let mut async_progress = AsyncProgress::default();
        assert!(!async_progress.record(Err(Box::new("broken"))));
        assert!(async_progress.is_waiting());
        let panic = catch_unwind(AssertUnwindSafe(|| async_progress.take_fault())).unwrap_err();
        assert_eq!(panic.downcast_ref(), Some(&"broken"));
        assert!(!async_progress.is_waiting() && !async_progress.is_able());
    }
}
