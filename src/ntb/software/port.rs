//! A port whose bridge is shared memory: the outgoing window *is* the neighbour's incoming window.

use super::registers::{Bank, Registers, SoftVector};
use crate::timing::Accounts;
use crate::{LinkState, NtbError, Port, PortCaps, PortIndex, Shortcuts, Vector};
use ntbring_host::{Segment, SegmentAddress};
use ntbring_memory::{InWindow, OutWindow, Region};
use std::sync::atomic::Ordering;
use std::sync::Arc;

/// The memory of a host that its neighbours access: an incoming window for each port that the host uses, and the
/// accounts of the windows if a link model needs them.
pub trait WindowMemory: Send + Sync {
    /// Returns the size of each incoming window, bytes.
    fn window(&self) -> u64;
    /// Returns the offset of a port's incoming window, bytes; None if the host does not use the port.
    fn window_offset(&self, port: PortIndex) -> Option<u64>;
    /// Maps `len` bytes at `offset`; fails if they do not lie within the windows.
    fn map(&self, offset: u64, len: u64) -> Result<Region, NtbError>;
    /// Maps the accounts of the `len` bytes at `offset`; fails if there are no accounts.
    fn accounts(&self, offset: u64, len: u64) -> Result<Region, NtbError>;
}

/// A port in software, cabled to a port of a neighbour.
pub struct SoftPort {
    index: PortIndex,
    incoming: InWindow,
    /// Offset of the incoming window in the host's memory, bytes.
    offset: u64,
    own: Arc<dyn WindowMemory>,
    peer: Arc<dyn WindowMemory>,
    registers: Registers,
    bank: Bank,
    peer_registers: Registers,
    peer_bank: Bank,
    shortcuts: Shortcuts,
}

/// The end of a cable: the memory and the registers of a host, and the port in which the cable is.
pub type SoftEnd = (Arc<dyn WindowMemory>, Registers, PortIndex);

impl SoftPort {
    /// Creates the port at one end of a cable, whose other end is `opposite`. `shortcuts` are the shortcuts to the
    /// neighbour. Fails if one of the hosts does not use its port.
    pub fn new(
        shortcuts: Shortcuts,
        (own, registers, index): SoftEnd,
        (peer, peer_registers, peer_index): SoftEnd,
    ) -> Result<SoftPort, NtbError> {
        let unused = |of, registers: &Registers, port| NtbError::NoPort { of, port, ports: registers.ports() };
        let here = registers.bank(index).zip(own.window_offset(index));
        let (bank, offset) = here.ok_or_else(|| unused("this host", &registers, index))?;
        let peer_bank = peer_registers.bank(peer_index);
        let peer_bank = peer_bank.ok_or_else(|| unused("the neighbour", &peer_registers, peer_index))?;
        let incoming = InWindow::new(own.map(offset, own.window())?);
        Ok(SoftPort { index, incoming, offset, own, peer, registers, bank, peer_registers, peer_bank, shortcuts })
    }

    /// Returns a word that both ends of the link share, initially 0: the time since which faults are injected on the
    /// link ([`crate::fault`]). The word is in the registers of the end that passes true for `here`; exactly one of
    /// both ends must do so.
    pub fn faults_since(&self, here: bool) -> Region {
        match here {
            true => self.registers.faults_since(self.bank),
            false => self.peer_registers.faults_since(self.peer_bank),
        }
    }
}

impl Port for SoftPort {
    fn index(&self) -> PortIndex {
        self.index
    }

    fn caps(&self) -> PortCaps {
        // The bridge reaches what processes of this machine could map, if they were on one host.
        PortCaps::SOFTWARE.with_segments(self.shortcuts.segments)
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

    fn segment(&self, address: &SegmentAddress) -> Result<Option<OutWindow>, NtbError> {
        Ok(if self.shortcuts.segments { Some(Segment::open_sink(address)?) } else { None })
    }

    fn incoming_offset(&self) -> u64 {
        self.offset
    }

    fn scratchpad(&self, register: usize) -> u32 {
        self.registers.scratchpad(self.bank, register).load(Ordering::Acquire)
    }

    fn peer_scratchpad(&self, register: usize, value: u32) {
        self.peer_registers.scratchpad(self.peer_bank, register).store(value, Ordering::Release);
    }

    fn ring(&self, doorbell: usize) {
        self.peer_registers.ring(self.peer_bank, doorbell);
    }

    fn doorbells(&self) -> u16 {
        self.registers.pending(self.bank)
    }

    fn clear_doorbells(&self, bits: u16) {
        self.registers.clear(self.bank, bits);
    }

    fn vector(&self, doorbell: usize) -> Arc<dyn Vector> {
        Arc::new(SoftVector::new(self.registers.clone(), doorbell))
    }

    fn link(&self) -> LinkState {
        self.registers.link(self.bank)
    }

    fn outages(&self) -> u64 {
        self.registers.outages(self.bank)
    }
}

impl Accounts for SoftPort {
    fn meter(&self) -> Region {
        self.registers.meter(self.bank)
    }

    fn peer_meter(&self) -> Region {
        self.peer_registers.meter(self.peer_bank)
    }

    fn incoming_accounts(&self) -> Result<Region, NtbError> {
        self.own.accounts(self.offset, self.own.window())
    }

    fn outgoing_accounts(&self, offset: u64, len: u64) -> Result<Region, NtbError> {
        self.peer.accounts(offset, len)
    }
}
