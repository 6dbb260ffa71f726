//! What an NTB adapter offers to the protocol.

use crate::{PortCaps, Shortcuts};
use ntbring_host::HostError;
use ntbring_memory::{InWindow, OutWindow};
use std::sync::Arc;
use std::time::Duration;

/// Number of scratchpad registers on each side of a link; each holds 32 bits.
pub const SCRATCHPADS: usize = 8;
/// Number of doorbell bits on each side of a link.
pub const DOORBELLS: usize = 16;

/// Which of a host's two ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Side {
    /// Towards the previous host of the ring.
    Left = 0,
    /// Towards the next host of the ring.
    Right = 1,
}

impl Side {
    /// Both sides, left first.
    pub const BOTH: [Side; 2] = [Side::Left, Side::Right];

    /// The other one.
    pub fn opposite(self) -> Side {
        match self {
            Side::Left => Side::Right,
            Side::Right => Side::Left,
        }
    }
}

impl std::fmt::Display for Side {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Side::Left => "left",
            Side::Right => "right",
        })
    }
}

/// State of a link as the port sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkState {
    /// The neighbour can be reached.
    Up,
    /// It cannot.
    Down,
}

/// Why a device operation failed.
#[derive(Debug, thiserror::Error)]
pub enum NtbError {
    /// Memory of the host.
    #[error(transparent)]
    Host(#[from] HostError),
    /// A host on another machine, which this backend does not reach.
    #[error(
        "the host is on another machine, or in a container with processes of its own: \
         the emulated NTB joins processes of one machine that know each other's process ids"
    )]
    Elsewhere,
    /// A backend that does not exist, or cannot be used here.
    #[error("NTBRING_DEVICE={device}: {problem}")]
    Device {
        /// The device.
        device: String,
        /// The reason.
        problem: String,
    },
    /// A window that lies outside the neighbour's memory was asked for.
    #[error("a window of {len} bytes at {offset} does not fit into the neighbour's {size} bytes")]
    Aperture {
        /// Where it was to start.
        offset: u64,
        /// Its size.
        len: u64,
        /// What there is.
        size: u64,
    },
}

/// An interrupt vector of a host: what a doorbell bit of any of its ports raises.
pub trait Vector: Send + Sync {
    /// Lets rings wake a sleeper from now on, and returns the ticket for [`Vector::sleep`].
    /// Look for work once more between the two: what is rung after this call ends the sleep.
    fn arm(&self) -> u32;
    /// A ticket by itself, for somebody in whose name another has called [`Vector::arm`], or will.
    fn ticket(&self) -> u32;
    /// Sleeps until a doorbell of this vector rings (or rang since the ticket was taken), a
    /// signal arrives, or the wake-up of an earlier ring, or `timeout` has passed. True if it rang.
    fn sleep(&self, ticket: u32, timeout: Duration) -> bool;
    /// The end of what [`Vector::arm`] began.
    fn disarm(&self);
}

/// One NTB adapter of a host.
///
/// Everything that reaches across the link is a posted write; nothing reads across it.
pub trait Port: Send + Sync {
    /// Which of the host's two it is.
    fn side(&self) -> Side;
    /// What it can do.
    fn caps(&self) -> PortCaps;
    /// The shortcuts to the host at its other end.
    fn shortcuts(&self) -> Shortcuts;
    /// The incoming window: memory of this host.
    fn incoming(&self) -> InWindow;
    /// Sets the translation: the outgoing window now shows `len` bytes at `offset` of the
    /// neighbour's memory, as the neighbour gave them through the scratchpads.
    fn outgoing(&self, offset: u64, len: u64) -> Result<OutWindow, NtbError>;
    /// Where the incoming window lies in this host's memory: what the neighbour has to be told.
    fn incoming_offset(&self) -> u64;
    /// Reads one of the own scratchpads, 0 .. [`SCRATCHPADS`].
    fn scratchpad(&self, register: usize) -> u32;
    /// Writes one of the neighbour's scratchpads.
    fn peer_scratchpad(&self, register: usize, value: u32);
    /// Rings one of the neighbour's doorbells, 0 .. [`DOORBELLS`]. Everything written to the
    /// outgoing window before the latest fence is visible to whoever the bell wakes.
    fn ring(&self, doorbell: usize);
    /// The own doorbell bits that have rung since they were cleared.
    fn doorbells(&self) -> u16;
    /// Clears own doorbell bits.
    fn clear_doorbells(&self, bits: u16);
    /// The vector that an own doorbell bit raises; one for both ports of the host.
    fn vector(&self, doorbell: usize) -> Arc<dyn Vector>;
    /// State of the link.
    fn link(&self) -> LinkState;
    /// How often the link has gone down so far, as the device counts: one that comes up again may have lost something,
    /// whoever has looked meanwhile.
    fn outages(&self) -> u64;

    /// Waits until the doorbell has rung, clears it and returns true; false after `timeout`.
    fn wait(&self, doorbell: usize, timeout: Duration) -> bool {
        let bit = 1u16 << doorbell;
        let end = std::time::Instant::now() + timeout;
        let vector = self.vector(doorbell);
        loop {
            let ticket = vector.arm();
            let rung = self.doorbells() & bit != 0;
            let left = end.saturating_duration_since(std::time::Instant::now());
            if !rung && !left.is_zero() {
                vector.sleep(ticket, left);
            }
            vector.disarm();
            if rung {
                self.clear_doorbells(bit);
                return true;
            }
            if left.is_zero() {
                return false;
            }
        }
    }
}

impl<P: Port + ?Sized> Port for Arc<P> {
    fn side(&self) -> Side {
        (**self).side()
    }
    fn caps(&self) -> PortCaps {
        (**self).caps()
    }
    fn shortcuts(&self) -> Shortcuts {
        (**self).shortcuts()
    }
    fn incoming(&self) -> InWindow {
        (**self).incoming()
    }
    fn outgoing(&self, offset: u64, len: u64) -> Result<OutWindow, NtbError> {
        (**self).outgoing(offset, len)
    }
    fn incoming_offset(&self) -> u64 {
        (**self).incoming_offset()
    }
    fn scratchpad(&self, register: usize) -> u32 {
        (**self).scratchpad(register)
    }
    fn peer_scratchpad(&self, register: usize, value: u32) {
        (**self).peer_scratchpad(register, value)
    }
    fn ring(&self, doorbell: usize) {
        (**self).ring(doorbell)
    }
    fn doorbells(&self) -> u16 {
        (**self).doorbells()
    }
    fn clear_doorbells(&self, bits: u16) {
        (**self).clear_doorbells(bits)
    }
    fn vector(&self, doorbell: usize) -> Arc<dyn Vector> {
        (**self).vector(doorbell)
    }
    fn link(&self) -> LinkState {
        (**self).link()
    }
    fn outages(&self) -> u64 {
        (**self).outages()
    }
}
