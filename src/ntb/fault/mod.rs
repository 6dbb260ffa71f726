//! A decorator that injects faults into any port: bits are flipped, writes are lost, doubled or delayed, doorbell rings
//! are lost, links go down and come up again.
//!
//! | file | holds |
//! |---|---|
//! | `description` | the value of NTBRING_FAULT: kinds and rates of faults |
//! | `links`, `outage`, `times` | names of links, and the times at which links are down |
//! | `dice` | reproducible random decisions |
//! | `injector` | state that the ports of a process share: start time of the faults, counters |
//! | `cable` | the link, which delivers accesses or loses them while it is down |
//! | `wire` | injection of faults into writes and rings |
//! | `late` | the queue of delayed writes and rings |
//!
//! **Unit of a fault.** A fault affects one unit that crosses the link as a whole: a line of 64 bytes of a window, or
//! the part of a line that one call writes; a word; a scratchpad; a ring. Longer writes are split at lines, as a
//! write-combining mapping splits them. So a slot can lose bytes in the middle and keep its tag, which is the hard case
//! for a protocol, and a rate has the same meaning for short and long messages.
//!
//! **Harmless faults.** A doubled write arrives for the second time before the next fence takes effect, and a delayed
//! write delays all writes after the next fence: links never repeat or reorder posted writes across a fence. A protocol
//! that is correct over [`weak`](crate::weak) windows is correct with these two faults.
//!
//! **Reproducibility.** The fault of a write depends on the seed, the host, the process, the side and the sequence
//! number of the write among those of that process through that port. The order of writes depends on the scheduling of
//! the processes, too, so only a single-threaded run is fully reproducible.
//!
//! Faults affect only outgoing accesses, never memory of the own host. A link that is down loses all that is sent, and
//! also the writes that were delayed before it went down and are due while it is down.

mod cable;
mod description;
mod dice;
mod injector;
mod late;
mod links;
mod outage;
mod times;
mod wire;

pub use description::{Begin, Faults, Rate};
pub use injector::{Injected, Injector};
pub use links::{LinkName, Place};
pub use outage::Outage;

use super::delegate::left_to_inner;
use super::{LinkState, NtbError, Port, PortCaps, Shortcuts, Side};
use ntbring_memory::OutWindow;
use std::io;
use std::sync::Arc;
use wire::{Sink, Wire};

/// A port with injected faults.
pub struct Faulty {
    inner: Arc<dyn Port>,
    wire: Arc<Wire>,
}

impl Faulty {
    /// Wraps the port of the link on `side` of the process that the injector belongs to. Fails if the thread that
    /// delivers delayed writes cannot be started.
    pub fn new(inner: impl Port + 'static, side: Side, injector: Arc<Injector>) -> io::Result<Faulty> {
        let inner: Arc<dyn Port> = Arc::new(inner);
        let wire = Arc::new(Wire::new(inner.clone(), side, injector)?);
        Ok(Faulty { inner, wire })
    }
}

impl Port for Faulty {
    left_to_inner! {
        index incoming incoming_offset scratchpad doorbells clear_doorbells vector descriptors lose_rather_than_wait
    }

    fn caps(&self) -> PortCaps {
        self.inner.caps().modelled()
    }
    fn shortcuts(&self) -> Shortcuts {
        self.inner.shortcuts().past_links()
    }

    fn outgoing(&self, offset: u64, len: u64) -> Result<OutWindow, NtbError> {
        let plain = self.inner.outgoing(offset, len)?;
        Ok(plain.with_sink(|plain| Arc::new(Sink::new(plain, self.wire.clone()))))
    }

    fn peer_scratchpad(&self, register: usize, value: u32) {
        self.wire.scratchpad(register, value)
    }

    fn ring(&self, doorbell: usize) {
        self.wire.ring(doorbell)
    }

    fn link(&self) -> LinkState {
        if self.wire.is_down() {
            LinkState::Down
        } else {
            LinkState::Up
        }
    }

    fn outages(&self) -> u64 {
        self.wire.outages()
    }
}

#[cfg(test)]
mod tests;
