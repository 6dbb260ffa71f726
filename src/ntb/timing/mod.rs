//! A decorator that gives ports the latency, bandwidth, doorbell cost and register cost of a real link. It records
//! arrival times (accounts) instead of delaying the sender by busy waiting.
//!
//! | file | holds |
//! |---|---|
//! | `model` | the cost model of a link: arithmetic without I/O |
//! | `line` | the account of a 64-byte line: stores that have not arrived yet |
//! | `meter` | the state of a link: the time from which it is free, and rings that have not arrived yet |
//!
//! Written bytes and stored words are in the neighbour's memory at once. But each store is also recorded, with its
//! arrival time, in an account in separate memory, and a load before the arrival time returns the previous value. Bytes
//! need no account: a receiver that follows the protocol reads them only after the word that announces them, which is
//! stored after them and crosses the same link. The sender is not blocked, as with posted writes or a DMA engine; the
//! cost reaches it indirectly, because free slots in the neighbour's memory are returned later.
//!
//! All writes of a host's processes to one neighbour share the link: the time from which it is free lies in memory that
//! they share. Each direction has its own.

pub mod line;
pub mod meter;
pub mod model;

pub use model::{Model, Prices, PACKET_OVERHEAD, TICKS_PER_NS};

use super::delegate::left_to_inner;
use super::{NtbError, Port, PortCaps, Shortcuts, Vector, DOORBELLS};
use line::Line;
use meter::{Bells, Direction, TimedVector};
use ntbring_host::clock;
use ntbring_memory::{DeviceMemory, InWindow, OutWindow, ReadGate, Region, WriteSink};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

/// Memory that a backend must provide in addition to its windows so that a link model can wrap its ports. It is shared
/// like the windows and initially zero.
pub trait Accounts {
    /// Returns the meter of this port: [`meter::METER`] bytes, shared by all processes of its host and of the
    /// neighbour.
    fn meter(&self) -> Region;
    /// Returns the meter of the port at the other end of the cable.
    fn peer_meter(&self) -> Region;
    /// Returns the accounts of the incoming window: as many bytes as the window has.
    fn incoming_accounts(&self) -> Result<Region, NtbError>;
    /// Returns the part of the neighbour's accounts that belongs to `len` bytes at `offset` of its memory.
    fn outgoing_accounts(&self, offset: u64, len: u64) -> Result<Region, NtbError>;
}

/// A port with the speed of a modelled link.
pub struct Timing<P> {
    inner: P,
    model: Model,
    direction: Direction,
    accounts: Region,
    /// The doorbells of both ports of the host.
    bells: [Bells; 2],
    /// The place of this port's doorbells among them.
    own: usize,
    peer_bells: Bells,
}

impl<P: Port + Accounts> Timing<P> {
    /// Wraps both ports of a host together, because the doorbells of both raise the same vectors.
    pub fn pair(ports: [P; 2], model: Model) -> Result<[Timing<P>; 2], NtbError> {
        let bells = [0, 1].map(|i| Bells::new(ports[i].meter()));
        let accounts = [ports[0].incoming_accounts()?, ports[1].incoming_accounts()?];
        let mut accounts = accounts.into_iter().enumerate();
        Ok(ports.map(|inner| {
            let (own, accounts) = accounts.next().expect("one for each port");
            Timing {
                model,
                direction: Direction::new(&model, inner.meter()),
                accounts,
                bells: bells.clone(),
                own,
                peer_bells: Bells::new(inner.peer_meter()),
                inner,
            }
        }))
    }
}

impl<P: Port> Timing<P> {
    /// Blocks the caller for the time of one register access.
    fn register(&self) {
        clock::wait_until(clock::now() + self.model.register);
    }

    fn own_bells(&self) -> &Bells {
        &self.bells[self.own]
    }
}

struct Sink {
    plain: OutWindow,
    memory: DeviceMemory,
    accounts: Region,
    direction: Direction,
    /// Largest transfer, bytes.
    max: usize,
}

impl WriteSink for Sink {
    fn write(&self, offset: usize, bytes: &[u8]) {
        // A write that is too long is truncated, as by an adapter with this limit.
        let bytes = &bytes[..bytes.len().min(self.max)];
        self.let_through(offset, bytes.len());
        self.plain.write_bytes(offset, bytes);
    }

    fn let_through(&self, _offset: usize, len: usize) -> bool {
        if len > self.max {
            return false;
        }
        // The bytes occupy the link from now on, while they are copied, not only after the copy.
        if len > 0 {
            self.direction.send(clock::now(), len);
        }
        true
    }

    fn store(&self, offset: usize, value: u64) {
        let now = clock::now();
        let arrival = self.direction.send(now, 8);
        let line = Line::new(&self.accounts, offset);
        line.enter(arrival, now, clock::now, || self.memory.word(offset), || self.plain.store(offset, value));
    }

    fn fence(&self) {
        self.plain.fence();
    }
}

struct Gate {
    plain: InWindow,
    accounts: Region,
    /// Latest reading of the clock, ns: a load whose word arrived before it needs no new reading.
    seen: AtomicU64,
}

impl ReadGate for Gate {
    #[inline]
    fn load(&self, offset: usize) -> u64 {
        let clock = || {
            let now = clock::now();
            self.seen.store(now, Ordering::Relaxed);
            now
        };
        let line = Line::new(&self.accounts, offset);
        line.look(|| self.plain.load(offset), self.seen.load(Ordering::Relaxed), clock)
    }
}

impl<P: Port + Accounts> Port for Timing<P> {
    left_to_inner! { index incoming_offset link outages descriptors lose_rather_than_wait }

    fn caps(&self) -> PortCaps {
        let inner = self.inner.caps();
        let own = self.model.transfer.map(|max| max as usize);
        PortCaps { max_transfer: own.into_iter().chain(inner.max_transfer).min(), ..inner.modelled() }
    }

    fn shortcuts(&self) -> Shortcuts {
        self.inner.shortcuts().past_links()
    }

    fn incoming(&self) -> InWindow {
        let accounts = self.accounts.clone();
        self.inner.incoming().with_gate(|plain| Arc::new(Gate { plain, accounts, seen: AtomicU64::new(0) }))
    }

    fn outgoing(&self, offset: u64, len: u64) -> Result<OutWindow, NtbError> {
        let plain = self.inner.outgoing(offset, len)?;
        let accounts = self.inner.outgoing_accounts(offset, len)?;
        let (direction, max) = (self.direction.clone(), self.model.transfer.map_or(usize::MAX, |max| max as usize));
        Ok(plain.with_device_sink(|plain, memory| Arc::new(Sink { plain, memory, accounts, direction, max })))
    }

    fn scratchpad(&self, register: usize) -> u32 {
        self.register();
        self.inner.scratchpad(register)
    }

    fn peer_scratchpad(&self, register: usize, value: u32) {
        self.register();
        self.inner.peer_scratchpad(register, value)
    }

    fn ring(&self, doorbell: usize) {
        // A ring is a write of a 4-byte register, which crosses the link after all earlier writes.
        let now = clock::now();
        let arrival = self.direction.send(now, 4);
        self.peer_bells.announce(doorbell, arrival + self.model.doorbell, now);
        self.inner.ring(doorbell);
    }

    fn doorbells(&self) -> u16 {
        self.register();
        let now = clock::now();
        (0..DOORBELLS).filter(|&bell| self.own_bells().is_pending(bell, now)).fold(0, |bits, bell| bits | 1 << bell)
    }

    fn clear_doorbells(&self, bits: u16) {
        self.register();
        let now = clock::now();
        for bell in (0..DOORBELLS).filter(|bell| bits >> bell & 1 != 0) {
            self.own_bells().clear(bell, now);
        }
        self.inner.clear_doorbells(bits);
    }

    fn vector(&self, doorbell: usize) -> Arc<dyn Vector> {
        assert!(doorbell < DOORBELLS, "no doorbell {doorbell}");
        Arc::new(TimedVector { inner: self.inner.vector(doorbell), bells: self.bells.clone(), doorbell })
    }
}
