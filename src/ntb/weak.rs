//! A decorator that makes any port as weakly ordered as a link may be: between two fences writes arrive late, in any
//! order, and split into chunks as small as a byte, regardless of the size of the original writes.
//!
//! Its copy engine ([`deferred`](super::deferred)) completes copies late and in any order, too.
//!
//! A protocol that works over this decorator works over write-combining mappings and on machines that reorder stores.

use super::deferred::{Deferred, Order};
use super::delegate::left_to_inner;
use super::{AsyncCopies, NtbError, Port, PortCaps, Shortcuts};
use ntbring_memory::{CopyEngine, OutWindow, WriteSink};
use std::sync::{Arc, Mutex};

/// Capabilities of the copy engine.
const COPIES: AsyncCopies = AsyncCopies { in_flight: 6, min: 128 };

/// A port whose outgoing window is weakly ordered, and whose copy engine completes copies late and in any order.
pub struct Weak<P> {
    inner: P,
    seed: u64,
}

impl<P: Port> Weak<P> {
    /// Wraps a port; the seed determines the random reordering.
    pub fn new(inner: P, seed: u64) -> Self {
        Weak { inner, seed }
    }
}

/// Returns the same window with weakly ordered writes; the seed determines the random reordering.
pub fn disorder(window: OutWindow, seed: u64) -> OutWindow {
    let state = Mutex::new((Vec::new(), fastrand::Rng::with_seed(seed)));
    window.with_sink(|plain| Arc::new(Sink { plain, state }))
}

enum Posted {
    Bytes(usize, Vec<u8>),
    Word(usize, u64),
}

struct Sink {
    plain: OutWindow,
    state: Mutex<(Vec<Posted>, fastrand::Rng)>,
}

impl Sink {
    fn deliver(&self, posted: Posted) {
        match posted {
            Posted::Bytes(offset, bytes) => self.plain.write_bytes(offset, &bytes),
            Posted::Word(offset, value) => self.plain.store(offset, value),
        }
    }

    /// Queues a write. With probability 1/8 one queued write, chosen at random, is delivered at this moment.
    fn post(&self, posted: Posted) {
        let mut state = self.state.lock().unwrap_or_else(|e| e.into_inner());
        let (queue, rng) = &mut *state;
        queue.push(posted);
        if rng.u8(..) < 32 {
            let i = rng.usize(..queue.len());
            self.deliver(queue.swap_remove(i));
        }
    }
}

impl WriteSink for Sink {
    fn write(&self, offset: usize, bytes: &[u8]) {
        let mut at = 0;
        while at < bytes.len() {
            let n = {
                let mut state = self.state.lock().unwrap_or_else(|e| e.into_inner());
                // Writes of up to 512 bytes are split into chunks of at most 24 bytes, longer ones into few large
                // chunks.
                let most = (bytes.len() - at).min(if bytes.len() <= 512 { 24 } else { bytes.len() / 6 });
                state.1.usize(1..=most)
            };
            self.post(Posted::Bytes(offset + at, bytes[at..at + n].to_vec()));
            at += n;
        }
    }

    fn store(&self, offset: usize, value: u64) {
        self.post(Posted::Word(offset, value));
    }

    fn fence(&self) {
        let mut state = self.state.lock().unwrap_or_else(|e| e.into_inner());
        let (queue, rng) = &mut *state;
        rng.shuffle(queue);
        for posted in queue.drain(..) {
            self.deliver(posted);
        }
        self.plain.fence();
    }
}

impl<P: Port> Port for Weak<P> {
    left_to_inner! {
        index incoming incoming_offset scratchpad peer_scratchpad ring doorbells clear_doorbells vector
        link outages descriptors lose_rather_than_wait
    }
    fn caps(&self) -> PortCaps {
        PortCaps { async_copies: Some(COPIES), ..self.inner.caps().modelled() }
    }
    fn shortcuts(&self) -> Shortcuts {
        self.inner.shortcuts().past_links()
    }
    fn outgoing(&self, offset: u64, len: u64) -> Result<OutWindow, NtbError> {
        Ok(disorder(self.inner.outgoing(offset, len)?, self.seed ^ u64::from(self.index().get())))
    }
    fn copy_engine(&self, window: &OutWindow) -> Option<Arc<dyn CopyEngine>> {
        let seed = self.seed ^ u64::from(self.index().get());
        Some(Arc::new(Deferred::new(window.clone(), Order::Any, COPIES.in_flight, seed)))
    }
}
