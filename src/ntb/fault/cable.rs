//! The link behind the faults: accesses on their way to its other end, which are lost while it is down.

use super::injector::{count, Injector};
use super::outage::Outage;
use crate::{LinkState, Port, Side};
use ntbring_memory::OutWindow;
use std::sync::Arc;

/// Size of a line, bytes: the largest unit of a window that crosses the link as a whole.
pub(super) const LINE: usize = 64;

/// A posted write or ring on its way to the other end of the link.
#[derive(Clone)]
pub(super) enum Posted {
    /// Bytes to be written at an offset of a window.
    Bytes(OutWindow, usize, Vec<u8>),
    /// A word to be stored at an offset of a window.
    Word(OutWindow, usize, u64),
    /// A write of a scratchpad: its number and value.
    Scratchpad(usize, u32),
    /// A ring of the doorbell with this number.
    Ring(usize),
}

impl Posted {
    /// Returns the number of units (lines, words, scratchpads, rings) that it consists of.
    pub fn writes(&self) -> usize {
        match self {
            Posted::Bytes(_, offset, bytes) => lines(*offset, bytes.len()),
            _ => 1,
        }
    }

    /// Flips a bit of the transferred value.
    pub fn flip(&mut self, bit: usize) {
        match self {
            Posted::Bytes(_, _, bytes) => bytes[bit / 8] ^= 1 << (bit % 8),
            Posted::Word(_, _, value) => *value ^= 1 << bit,
            Posted::Scratchpad(_, value) => *value ^= 1 << bit,
            Posted::Ring(_) => {}
        }
    }
}

/// Returns the number of lines that `len` bytes at `offset` touch.
pub(super) fn lines(offset: usize, len: usize) -> usize {
    match len {
        0 => 0,
        _ => (offset + len - 1) / LINE - offset / LINE + 1,
    }
}

/// The link to the other end, which may be down.
pub(super) struct Cable {
    pub(super) port: Arc<dyn Port>,
    pub(super) injector: Arc<Injector>,
    pub(super) side: Side,
    pub(super) outages: Vec<Outage>,
}

impl Cable {
    /// Returns true if the link is down, by the schedule or by command.
    pub fn is_down(&self) -> bool {
        let by_schedule = || {
            let since = self.injector.since(self.side);
            since.is_some_and(|since| self.outages.iter().any(|outage| outage.is_on(since)))
        };
        self.port.link() == LinkState::Down || !self.outages.is_empty() && by_schedule()
    }

    /// Returns the number of times that the link has gone down, by the schedule or by command.
    pub fn outages(&self) -> u64 {
        let since = if self.outages.is_empty() { None } else { self.injector.since(self.side) };
        let scheduled = |since| self.outages.iter().map(|outage| outage.count(since)).sum::<u64>();
        self.port.outages() + since.map_or(0, scheduled)
    }

    /// Counts lost writes.
    pub fn lose(&self, writes: usize) {
        count(&self.injector.injected().outages, writes);
    }

    /// Delivers to the other end, or counts a loss if the link is down now.
    pub fn deliver(&self, posted: Posted) {
        if self.is_down() {
            return self.lose(posted.writes());
        }
        match posted {
            Posted::Bytes(window, offset, bytes) => window.write_bytes(offset, &bytes),
            Posted::Word(window, offset, value) => window.store(offset, value),
            Posted::Scratchpad(register, value) => self.port.peer_scratchpad(register, value),
            Posted::Ring(doorbell) => self.port.ring(doorbell),
        }
    }
}
