//! A copy engine whose copies complete some time after they were submitted, in order or in any order, for tests of code
//! that uses the engines of adapters. The ports of [`weak`](crate::weak) have one.
//!
//! It has no thread: each query of a copy's completion makes some progress, so tests can be repeated exactly.

use fastrand::Rng;
use ntbring_memory::{CopyEngine, CopySource, CopyTicket, OutWindow};
use std::sync::{Mutex, PoisonError};

/// Order in which copies complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// The order in which they were submitted.
    Submission,
    /// Any order.
    Any,
}

/// A copy engine that defers copies.
pub struct Deferred {
    window: OutWindow,
    order: Order,
    /// Largest number of copies in flight.
    most: usize,
    state: Mutex<State>,
}

struct State {
    rng: Rng,
    next: u64,
    /// Copies that were submitted and not made.
    queue: Vec<(CopyTicket, CopySource, usize)>,
}

impl Deferred {
    /// Creates an engine of `window`, a port's whole window, with up to `most` copies in flight. The seed determines
    /// the times, and the order if it is [`Order::Any`], of completions.
    pub fn new(window: OutWindow, order: Order, most: usize, seed: u64) -> Deferred {
        let state = State { rng: Rng::with_seed(seed), next: 0, queue: Vec::new() };
        Deferred { window, order, most, state: Mutex::new(state) }
    }
}

impl CopyEngine for Deferred {
    fn submit(&self, from: CopySource, offset: usize) -> Result<CopyTicket, CopySource> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.queue.len() >= self.most {
            return Err(from);
        }
        state.next += 1;
        let ticket = CopyTicket(state.next);
        state.queue.push((ticket, from, offset));
        Ok(ticket)
    }

    fn is_complete(&self, copy: CopyTicket) -> bool {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let State { rng, queue, .. } = &mut *state;
        // One copy is made at every fourth query, on average.
        if !queue.is_empty() && rng.u8(..4) == 0 {
            let i = match self.order {
                Order::Submission => 0,
                Order::Any => rng.usize(..queue.len()),
            };
            let (_, from, offset) = queue.remove(i);
            self.window.write(offset, from.bytes());
        }
        !queue.iter().any(|(ticket, ..)| *ticket == copy)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ntbring_memory::{ForeignBytes, InWindow, Region};

    #[test]
    fn copies_complete_later_and_no_more_than_the_limit_are_in_flight() {
        for order in [Order::Submission, Order::Any] {
            let memory = Region::anonymous(4096);
            let engine = Deferred::new(OutWindow::new(memory.clone()), order, 3, 7);
            let source = |n: u8| {
                let bytes: &'static [u8] = Box::leak(vec![n; 64].into_boxed_slice());
                CopySource::from(ForeignBytes::from(bytes))
            };
            let window = OutWindow::new(memory.clone()).part(1024, 1024);
            let copies: Vec<CopyTicket> =
                (1..=3).map(|n| window.submit(&engine, 64 * n, source(n as u8)).ok().unwrap()).collect();
            let refused = window.submit(&engine, 512, source(4)).err().unwrap();
            assert_eq!((refused.len(), InWindow::new(memory.clone()).load(1024 + 64)), (64, 0));
            for (i, &copy) in copies.iter().enumerate() {
                while !engine.is_complete(copy) {}
                let arrived = InWindow::new(memory.clone()).load(1024 + 64 * (i + 1));
                assert_eq!(arrived, u64::from_ne_bytes([i as u8 + 1; 8]));
            }
            assert!(window.submit(&engine, 512, source(4)).is_ok());
        }
    }
}
