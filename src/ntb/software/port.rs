//! A port whose bridge is shared memory: the outgoing window *is* the neighbour's incoming window.

use super::registers::{Registers, SoftVector};
use crate::timing::Accounts;
use crate::{LinkState, NtbError, Port, PortCaps, Shortcuts, Side, Vector};
use ntbring_memory::{InWindow, OutWindow, Region};
use std::sync::atomic::Ordering;
use std::sync::Arc;

/// The memory of a host that its neighbours access: both incoming windows, and the accounts of the windows if a link
/// model needs them.
pub trait WindowMemory: Send + Sync {
    /// Returns the size of each incoming window, bytes.
    fn window(&self) -> u64;
    /// Returns the offset of the incoming window on `side`, bytes.
    fn window_offset(&self, side: Side) -> u64;
    /// Maps `len` bytes at `offset`; fails if they do not lie within the windows.
    fn map(&self, offset: u64, len: u64) -> Result<Region, NtbError>;
    /// Maps the accounts of the `len` bytes at `offset`; fails if there are no accounts.
    fn accounts(&self, offset: u64, len: u64) -> Result<Region, NtbError>;
}

/// A port in software, cabled to the opposite port of the neighbour.
pub struct SoftPort {
    side: Side,
    incoming: InWindow,
    own: Arc<dyn WindowMemory>,
    peer: Arc<dyn WindowMemory>,
    registers: Registers,
    peer_registers: Registers,
    shortcuts: Shortcuts,
}

impl SoftPort {
    /// Creates the port on `side` of the host with the memory and registers of the third argument, cabled to the
    /// neighbour with those of the fourth. `shortcuts` are the shortcuts to the neighbour.
    pub fn new(
        side: Side,
        shortcuts: Shortcuts,
        (own, registers): (Arc<dyn WindowMemory>, Registers),
        (peer, peer_registers): (Arc<dyn WindowMemory>, Registers),
    ) -> Result<SoftPort, NtbError> {
        let incoming = InWindow::new(own.map(own.window_offset(side), own.window())?);
        Ok(SoftPort { side, incoming, own, peer, registers, peer_registers, shortcuts })
    }

    /// Returns a word that both ends of the link share, initially 0: the time since which faults are injected on the
    /// link ([`crate::fault`]).
    pub fn faults_since(&self) -> Region {
        // Every link is the right link of exactly one host, whose registers hold the word.
        match self.side {
            Side::Left => self.peer_registers.faults_since(),
            Side::Right => self.registers.faults_since(),
        }
    }
}

impl Port for SoftPort {
    fn side(&self) -> Side {
        self.side
    }

    fn caps(&self) -> PortCaps {
        PortCaps::SOFTWARE
    }

    fn shortcuts(&self) -> Shortcuts {
        self.shortcuts
    }

    fn incoming(&self) -> InWindow {
        self.incoming.clone()
    }

    fn outgoing(&self, offset: u64, len: u64) -> Result<OutWindow, NtbError> {
        Ok(OutWindow::new(self.peer.map(offset, len)?))
    }

    fn incoming_offset(&self) -> u64 {
        self.own.window_offset(self.side)
    }

    fn scratchpad(&self, register: usize) -> u32 {
        self.registers.scratchpad(self.side, register).load(Ordering::Acquire)
    }

    fn peer_scratchpad(&self, register: usize, value: u32) {
        self.peer_registers.scratchpad(self.side.opposite(), register).store(value, Ordering::Release);
    }

    fn ring(&self, doorbell: usize) {
        self.peer_registers.ring(self.side.opposite(), doorbell);
    }

    fn doorbells(&self) -> u16 {
        self.registers.pending(self.side)
    }

    fn clear_doorbells(&self, bits: u16) {
        self.registers.clear(self.side, bits);
    }

    fn vector(&self, doorbell: usize) -> Arc<dyn Vector> {
        Arc::new(SoftVector::new(self.registers.clone(), doorbell))
    }

    fn link(&self) -> LinkState {
        self.registers.link(self.side)
    }

    fn outages(&self) -> u64 {
        self.registers.outages(self.side)
    }
}

impl Accounts for SoftPort {
    fn meter(&self) -> Region {
        self.registers.meter(self.side)
    }

    fn peer_meter(&self) -> Region {
        self.peer_registers.meter(self.side.opposite())
    }

    fn incoming_accounts(&self) -> Result<Region, NtbError> {
        self.own.accounts(self.own.window_offset(self.side), self.own.window())
    }

    fn outgoing_accounts(&self, offset: u64, len: u64) -> Result<Region, NtbError> {
        self.peer.accounts(offset, len)
    }
}
