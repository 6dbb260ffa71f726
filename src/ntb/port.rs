//! The interface of an NTB adapter to the protocol.

use crate::caps::{PortCaps, Shortcuts};
use crate::port_index::{PortIndex, PortList};
use ntbring_host::{HostError, SegmentAddress};
use ntbring_memory::{CopyEngine, InWindow, OutWindow};
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::Duration;

/// State of a link as the port reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkState {
    /// The neighbour can be reached.
    Up,
    /// The neighbour cannot be reached.
    Down,
}

/// Error of a device operation.
#[derive(Debug, thiserror::Error)]
pub enum NtbError {
    /// An operation on the host's shared memory failed.
    #[error(transparent)]
    Host(#[from] HostError),
    /// The host is on another machine or in another process namespace, which this backend cannot reach.
    #[error(
        "the host is on another machine, or in a container with processes of its own: \
         the emulated NTB joins processes of one machine that know each other's process ids. Containers of one machine \
         that share a directory can be joined by NTBRING_DEVICE=emu:DIRECTORY"
    )]
    Elsewhere,
    /// The backend does not exist, or cannot be used here.
    #[error("NTBRING_DEVICE={device}: {problem}")]
    Device {
        /// The value of `NTBRING_DEVICE`, or the backend's name.
        device: String,
        /// Reason for the failure, as text.
        problem: String,
    },
    /// A host does not use the port.
    #[error("{of} does not use its port {port}, only these: {ports} (NTBRING_PORTS)")]
    NoPort {
        /// The host, in words.
        of: &'static str,
        /// The requested port.
        port: PortIndex,
        /// The ports that the host uses.
        ports: PortList,
    },
    /// The requested window lies outside the neighbour's memory.
    #[error("a window of {len} bytes at {offset} does not fit into the neighbour's {size} bytes")]
    Aperture {
        /// Requested offset, bytes.
        offset: u64,
        /// Requested size, bytes.
        len: u64,
        /// Size of the neighbour's memory, bytes.
        size: u64,
    },
}

/// The state of a vector at which a sleep begins ([`Vector::sleep`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticket {
    /// Number of rings so far, modulo 2^32.
    pub rings: u32,
    /// False if neighbours may not know yet that they have to ring; a sleep is short then.
    pub seen: bool,
}

/// An interrupt vector of a host. A doorbell bit of any port of the host raises it; a thread can sleep on it.
pub trait Vector: Send + Sync {
    /// Announces a sleeper, so that rings wake it from now on, and returns the ticket for [`Vector::sleep`].
    /// The caller must check for work once more between the two calls: any ring after `arm` ends the sleep.
    fn arm(&self) -> Ticket;
    /// Returns a ticket without arming, for a thread on whose behalf another thread has called or will call
    /// [`Vector::arm`].
    fn ticket(&self) -> Ticket;
    /// Sleeps until a doorbell of this vector rings (or has rung since the ticket was taken), a signal or the wake-up
    /// of an earlier ring arrives, or `timeout` has passed. Returns true if a doorbell has rung since the ticket was
    /// taken.
    fn sleep(&self, ticket: Ticket, timeout: Duration) -> bool;
    /// Withdraws the sleeper announced by [`Vector::arm`]; every `arm` needs one `disarm`.
    fn disarm(&self);
}

/// One NTB adapter of a host.
///
/// All accesses across the link are posted writes; no operation reads across it.
pub trait Port: Send + Sync {
    /// Returns the number of the port on its host.
    fn index(&self) -> PortIndex;
    /// Returns the port's capabilities.
    fn caps(&self) -> PortCaps;
    /// Returns the shortcuts to the host at the other end of the link.
    fn shortcuts(&self) -> Shortcuts;
    /// Returns the incoming window: memory of this host that the neighbour writes.
    fn incoming(&self) -> InWindow;
    /// Sets the address translation and returns the outgoing window: `len` bytes at `offset` of the neighbour's memory.
    /// The neighbour sends both values through the scratchpads.
    fn outgoing(&self, offset: u64, len: u64) -> Result<OutWindow, NtbError>;
    /// Returns an engine that makes asynchronous copies into `window`: the whole window that [`Port::outgoing`]
    /// returned, possibly [cut](crate::split) into smaller transfers. None if there is no engine; the processor makes
    /// all copies then. [`PortCaps::async_copies`] says for which copies the engine is worth it. A decorator that
    /// intercepts writes has an engine of its own or none, since the engine of the port inside would bypass it.
    fn copy_engine(&self, _window: &OutWindow) -> Option<Arc<dyn CopyEngine>> {
        None
    }
    /// Returns a window of the bytes of a segment that a process of the neighbour has created: writes reach them by the
    /// link, in order with writes to the outgoing window. None if the port cannot reach them;
    /// [`PortCaps::segments`] says if there are ports that can. A decorator that intercepts writes returns None.
    fn segment(&self, _address: &SegmentAddress) -> Result<Option<OutWindow>, NtbError> {
        Ok(None)
    }
    /// Returns the offset of the incoming window in this host's memory, bytes. The neighbour needs it for its
    /// translation.
    fn incoming_offset(&self) -> u64;
    /// Reads one of this port's scratchpads, 0 .. [`SCRATCHPADS`].
    fn scratchpad(&self, register: usize) -> u32;
    /// Writes one of the neighbour's scratchpads.
    fn peer_scratchpad(&self, register: usize, value: u32);
    /// Rings one of the neighbour's doorbells, 0 .. [`DOORBELLS`]. All writes to the outgoing window before the latest
    /// fence are visible to the thread that the doorbell wakes.
    fn ring(&self, doorbell: usize);
    /// Returns this port's pending doorbells: a bit for each doorbell that has rung since it was cleared.
    fn doorbells(&self) -> u16;
    /// Clears the given doorbell bits of this port.
    fn clear_doorbells(&self, bits: u16);
    /// Returns the vector that a doorbell bit of this port raises; both ports of the host share it.
    fn vector(&self, doorbell: usize) -> Arc<dyn Vector>;
    /// Returns the state of the link.
    fn link(&self) -> LinkState;
    /// Returns the number of times that the link has gone down, as the device counts them. A link that came up again
    /// may have lost writes, and this count shows it even if no process observed the link while it was down.
    fn outages(&self) -> u64;

    /// Returns the descriptors that the port needs. A process that fork has made can use the port if it keeps them, but
    /// not while this one uses it, too.
    fn descriptors(&self) -> Vec<BorrowedFd<'_>> {
        Vec::new()
    }

    /// Makes writes be lost, from now on, that would have to wait for another process to make room.
    fn lose_rather_than_wait(&self) {}

    /// Waits until the doorbell has rung, clears it and returns true. Returns false after `timeout`.
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
    fn index(&self) -> PortIndex {
        (**self).index()
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
    fn copy_engine(&self, window: &OutWindow) -> Option<Arc<dyn CopyEngine>> {
        (**self).copy_engine(window)
    }
    fn segment(&self, address: &SegmentAddress) -> Result<Option<OutWindow>, NtbError> {
        (**self).segment(address)
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
    fn descriptors(&self) -> Vec<BorrowedFd<'_>> {
        (**self).descriptors()
    }
    fn lose_rather_than_wait(&self) {
        (**self).lose_rather_than_wait()
    }
}
