//! An emulated host and its two ports.

use super::memory::{HostAddress, Memory, MemoryLayout};
use super::registers::{EmuVector, Registers};
use super::running::Introduction;
use crate::ntb::timing::Accounts;
use crate::ntb::{InWindow, LinkState, NtbError, OutWindow, Port, Region, Side, Vector};
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::Arc;

/// A host of the emulated ring, as one of its processes holds it.
pub struct EmuHost {
    memory: Memory,
    address: HostAddress,
    layout: MemoryLayout,
    registers: Registers,
    local: Region,
}

impl EmuHost {
    /// Creates the host's memory; done by one of its processes.
    pub fn create(dir: &Path, layout: MemoryLayout) -> Result<EmuHost, NtbError> {
        let (memory, address) = Memory::create(dir, &layout)?;
        Self::with(memory, address, layout)
    }

    /// Joins a host that another process of it created with the same layout.
    pub fn join(address: HostAddress, layout: MemoryLayout) -> Result<EmuHost, NtbError> {
        let memory = Memory::open(&address)?;
        if memory.size() != layout.total() {
            let what = "its size differs: the host's processes have different settings";
            return Err(NtbError::Foreign { pid: address.pid, what });
        }
        Self::with(memory, address, layout)
    }

    /// Opens memory without windows that any process has created.
    pub fn visit(address: HostAddress) -> Result<EmuHost, NtbError> {
        let memory = Memory::open(&address)?;
        let layout = MemoryLayout { window: 0, local: 0, accounts: false };
        let local = memory.size() - layout.total();
        Self::with(memory, address, MemoryLayout { local, ..layout })
    }

    fn with(memory: Memory, address: HostAddress, layout: MemoryLayout) -> Result<EmuHost, NtbError> {
        let registers = memory.registers()?;
        registers.attend();
        let local = memory.map(layout.local_offset(), layout.local)?;
        Ok(EmuHost { memory, address, layout, registers, local })
    }

    /// Says whose memory it is, to whoever looks for hosts.
    pub fn introduce(&self, is: Introduction) {
        self.registers.introduce(is);
    }

    /// Two words, 0 at first, that processes of the host may use as they like, and that can be read from outside.
    pub fn notes(&self) -> Region {
        self.registers.notes()
    }

    /// Where other processes find its memory.
    pub fn address(&self) -> HostAddress {
        self.address
    }

    /// The part of its memory that only its own processes map.
    pub fn local(&self) -> Region {
        self.local.clone()
    }

    /// A vector of this host, rung by either port or by [`EmuHost::ring`].
    pub fn vector(&self, doorbell: usize) -> Arc<dyn Vector> {
        Arc::new(EmuVector { registers: self.registers.clone(), doorbell })
    }

    /// Rings a vector of this host from inside it.
    pub fn ring(&self, doorbell: usize) {
        self.registers.interrupt(doorbell);
    }

    /// Its port on a side says this of the link from now on.
    pub fn set_link(&self, side: Side, state: LinkState) {
        self.registers.set_link(side, state);
    }

    /// The port on `side`, cabled to the opposite port of the host at `neighbour`.
    pub fn port(&self, side: Side, neighbour: &HostAddress) -> Result<EmuPort, NtbError> {
        let peer = Memory::open(neighbour)?;
        let incoming = self.memory.map(self.layout.window_offset(side), self.layout.window)?;
        Ok(EmuPort {
            side,
            incoming: InWindow::new(incoming),
            incoming_offset: self.layout.window_offset(side),
            incoming_accounts: self.layout.accounts.then(|| self.accounts(side)).transpose()?,
            layout: self.layout,
            registers: self.registers.clone(),
            peer_registers: peer.registers()?,
            peer,
        })
    }
}

impl EmuHost {
    /// What the host at `neighbour`, which is on `side` of this one, gets from beyond it: to be read where it lies, as its
    /// segments are, by those whose ports are coherent.
    pub fn beyond(&self, side: Side, neighbour: &HostAddress) -> Result<InWindow, NtbError> {
        let memory = Memory::open(neighbour)?;
        Ok(InWindow::new(memory.map(self.layout.window_offset(side), self.layout.window)?))
    }

    fn accounts(&self, side: Side) -> Result<Region, NtbError> {
        accounts(&self.layout, &self.memory, self.layout.window_offset(side), self.layout.window)
    }
}

/// What a link model keeps of `len` bytes at `offset` of a host's memory.
fn accounts(layout: &MemoryLayout, memory: &Memory, offset: u64, len: u64) -> Result<Region, NtbError> {
    let size = memory.size();
    match layout.accounts_offset(size, offset) {
        Some(at) if layout.accounts => memory.map(at, len),
        _ => Err(NtbError::Aperture { offset, len, size }),
    }
}

/// One emulated NTB adapter.
pub struct EmuPort {
    side: Side,
    incoming: InWindow,
    incoming_offset: u64,
    incoming_accounts: Option<Region>,
    layout: MemoryLayout,
    registers: Registers,
    peer: Memory,
    peer_registers: Registers,
}

impl Port for EmuPort {
    fn side(&self) -> Side {
        self.side
    }

    fn coherent(&self) -> bool {
        true
    }

    fn max_transfer(&self) -> Option<usize> {
        None
    }

    fn incoming(&self) -> InWindow {
        self.incoming.clone()
    }

    fn outgoing(&self, offset: u64, len: u64) -> Result<OutWindow, NtbError> {
        // The accounts are no part of what a bridge would show.
        let size = self.peer.size().saturating_sub(self.layout.accounts_total());
        if offset > size || len > size - offset {
            return Err(NtbError::Aperture { offset, len, size });
        }
        Ok(OutWindow::new(self.peer.map(offset, len)?))
    }

    fn incoming_offset(&self) -> u64 {
        self.incoming_offset
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
        Arc::new(EmuVector { registers: self.registers.clone(), doorbell })
    }

    fn link(&self) -> LinkState {
        self.registers.link(self.side)
    }

    fn outages(&self) -> u64 {
        self.registers.outages(self.side)
    }
}

impl EmuPort {
    /// A word that both ends of the link share: since when there are faults on it (`ntb::fault`).
    pub fn faults_since(&self) -> Region {
        // Each link is the right one of one host.
        match self.side {
            Side::Left => self.peer_registers.faults_since(),
            Side::Right => self.registers.faults_since(),
        }
    }
}

impl Accounts for EmuPort {
    fn meter(&self) -> Region {
        self.registers.meter(self.side)
    }

    fn peer_meter(&self) -> Region {
        self.peer_registers.meter(self.side.opposite())
    }

    fn incoming_accounts(&self) -> Result<Region, NtbError> {
        let (offset, len) = (self.incoming_offset, self.layout.window);
        self.incoming_accounts.clone().ok_or(NtbError::Aperture { offset, len, size: 0 })
    }

    fn outgoing_accounts(&self, offset: u64, len: u64) -> Result<Region, NtbError> {
        accounts(&self.layout, &self.peer, offset, len)
    }
}

/// The vectors of a host that is no neighbour, for processes that meet outside the ring.
pub struct ForeignBell {
    registers: Registers,
}

impl ForeignBell {
    /// Maps the register page of a host, and nothing else of it.
    pub fn open(host: &HostAddress) -> Result<ForeignBell, NtbError> {
        Ok(ForeignBell { registers: Memory::open(host)?.registers()? })
    }

    /// Raises one of its vectors.
    pub fn ring(&self, doorbell: usize) {
        self.registers.interrupt(doorbell);
    }
}
