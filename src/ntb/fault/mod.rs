//! A decorator that makes any port as faulty as a link may be: bits are flipped, writes are lost,
//! doubled or delayed, doorbells do not ring, links go down and come up again.
//!
//! | file | holds |
//! |---|---|
//! | `description` | which faults there are to be, as NTBRING_FAULT says it |
//! | `links`, `outage` | on which links, and when those are down |
//! | `dice` | chance that can be repeated |
//! | `injector` | what the ports of a process share: since when, and how often |
//! | `wire` | what becomes of a write or a ring |
//! | `late` | what is held up |
//!
//! **What is a write.** A fault befalls what crosses a link as one: a line of 64 bytes of a window, or
//! the part of it that is written by one call, a word, a scratchpad, a ring. Longer writes are cut
//! at lines, as a write-combining mapping cuts them. So an entry can lose its middle and keep its tag,
//! which is what a protocol has to fear, and a rate means the same for short and long messages.
//!
//! **What does no harm.** A doubled write arrives for the second time before the next fence takes
//! effect, and a delayed one holds up all that comes after the next fence: links never repeat or
//! reorder posted writes across one. A protocol that is right over `weak` windows is right over these.
//!
//! **What can be repeated.** What becomes of a write depends on the seed, the host, the process, the
//! side and the number of the write among those of that process by that port. What is written in
//! which order depends on the processes' schedule, too, so only a single-threaded run repeats in full.
//!
//! Only what is sent is touched, never memory of the own host. A link that is down loses all that is
//! sent into it, what was held up before included.

mod description;
mod dice;
mod injector;
mod late;
mod links;
mod outage;
mod wire;

pub use description::{Begin, Faults, Rate};
pub use injector::{Injected, Injector};
pub use links::{LinkName, Place};
pub use outage::Outage;

use super::delegate::left_to_inner;
use super::{LinkState, NtbError, Port, PortCaps, Shortcuts};
use ntbring_memory::OutWindow;
use std::io;
use std::sync::Arc;
use wire::{Sink, Wire};

/// A port with faults.
pub struct Faulty {
    inner: Arc<dyn Port>,
    wire: Arc<Wire>,
}

impl Faulty {
    /// Wraps a port of the process that the injector belongs to. Fails if the thread that delivers
    /// what is late cannot be started.
    pub fn new(inner: impl Port + 'static, injector: Arc<Injector>) -> io::Result<Faulty> {
        let inner: Arc<dyn Port> = Arc::new(inner);
        let wire = Arc::new(Wire::new(inner.clone(), injector)?);
        Ok(Faulty { inner, wire })
    }
}

impl Port for Faulty {
    left_to_inner! { side incoming incoming_offset scratchpad doorbells clear_doorbells vector }

    fn caps(&self) -> PortCaps {
        self.inner.caps().modelled()
    }
    fn shortcuts(&self) -> Shortcuts {
        // They would go past it.
        Shortcuts::NONE
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
