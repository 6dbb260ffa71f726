//! Slices: parts of a host's windows, one for each job, each with scratchpads and doorbells of its own.
//!
//! A chip has few scratchpads and doorbells, and all jobs share them. So a slice begins with a header, in which the
//! neighbour writes scratchpads and doorbells as words. After a doorbell's word the neighbour rings a doorbell of the
//! chip; the thread that serves the adapter then looks at the words and raises the vectors of the job.

use crate::adapter::Listener;
use ntbring_host::SegmentAddress;
use ntbring_memory::{InWindow, OutWindow, Region};
use ntbring_ntb::software::{Bank, Registers, SoftVector};
use ntbring_ntb::{LinkState, NtbError, Port, PortCaps, PortIndex, Shortcuts, Vector, DOORBELLS, SCRATCHPADS};
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Size of the header of a slice, bytes.
pub const HEADER: usize = 4096;

/// Offset of the doorbells in a header, bytes; the scratchpads lie before them.
const DOORBELL_WORDS: usize = 8 * SCRATCHPADS;

/// The receiving side of a slice: it turns words of the header into doorbells of the job's register page.
pub struct SliceBells {
    header: Region,
    registers: Registers,
    bank: Bank,
    /// True while the port's link is that of its adapter, not a circuit.
    follows_adapter: AtomicBool,
}

impl SliceBells {
    /// Returns the receiving side of a slice that `incoming` holds, for a port's registers in the register page of a
    /// job.
    pub fn new(incoming: &Region, registers: Registers, bank: Bank) -> SliceBells {
        SliceBells { header: incoming.part(0, HEADER), registers, bank, follows_adapter: AtomicBool::new(true) }
    }

    /// Passes doorbells on whose words have arrived.
    pub fn look(&self) {
        for doorbell in 0..DOORBELLS {
            let word = self.header.word(DOORBELL_WORDS + 8 * doorbell);
            if word.load(Ordering::Acquire) != 0 && word.swap(0, Ordering::AcqRel) != 0 {
                self.registers.ring(self.bank, doorbell);
            }
        }
    }

    /// Makes the port's link that of a circuit, which is up.
    pub fn follow_circuit(&self) {
        self.follows_adapter.store(false, Ordering::Release);
        self.registers.set_link(self.bank, LinkState::Up);
    }

    /// Takes notice of the state of the circuit. Returns true if it changes that of the port's link.
    pub fn set_circuit(&self, state: LinkState) -> bool {
        let changes = !self.follows_adapter.load(Ordering::Acquire) && self.registers.link(self.bank) != state;
        if changes {
            self.registers.set_link(self.bank, state);
        }
        changes
    }

    /// Returns the listener for an adapter by whose cable the slice can be written; `is_own` is true if the adapter is
    /// that of the port. `doorbell` is the doorbell of the chip that the neighbour rings for the slice.
    pub fn listener(self: &Arc<Self>, doorbell: usize, is_own: bool) -> Arc<dyn Listener> {
        Arc::new(SliceListener { bells: self.clone(), doorbell, is_own })
    }
}

/// The connection of a slice with one adapter.
struct SliceListener {
    bells: Arc<SliceBells>,
    doorbell: usize,
    is_own: bool,
}

impl Listener for SliceListener {
    fn doorbells(&self, bits: u32) {
        if bits >> self.doorbell & 1 == 1 {
            self.bells.look();
        }
    }

    fn link(&self, state: LinkState) {
        if self.is_own && self.bells.follows_adapter.load(Ordering::Acquire) {
            self.bells.registers.set_link(self.bells.bank, state);
        }
    }
}

/// Access to the neighbour through a slice of its window, as far as the owner of the adapter grants it.
pub trait Grant: Send + Sync {
    /// Maps `len` bytes at `offset` of the slice.
    fn map(&self, offset: u64, len: u64) -> Result<OutWindow, NtbError>;
    /// Rings the doorbell of the neighbour's chip that belongs to the slice.
    fn ring(&self);
    /// Returns true if processes of the neighbour may have memory that [`Grant::segment`] opens.
    fn reaches_segments(&self) -> bool {
        false
    }
    /// Maps memory of a process of the neighbour, whose segment has this token, from its start on. It stays accessible as
    /// long as this grant exists. None if the neighbour does not expose it.
    fn segment(&self, _token: u64) -> Result<Option<OutWindow>, NtbError> {
        Ok(None)
    }
    /// See [`Port::lose_rather_than_wait`].
    fn lose_rather_than_wait(&self) {}
    /// Returns the descriptors on which the access depends ([`Port::descriptors`]).
    fn descriptors(&self) -> Vec<BorrowedFd<'_>> {
        Vec::new()
    }
}

/// A port over a slice of an adapter's windows.
pub struct SlicePort {
    index: PortIndex,
    caps: PortCaps,
    registers: Registers,
    bank: Bank,
    incoming: Region,
    grant: Arc<dyn Grant>,
    /// The header of the neighbour's slice.
    header: OutWindow,
    /// The neighbour's scratchpads as this port has written them: a link that fails may lose them, and nobody else
    /// would write them again.
    written: Mutex<[Option<u32>; SCRATCHPADS]>,
    /// Number of outages after which they have been written.
    outages: AtomicU64,
}

impl SlicePort {
    /// Returns the port. `registers` is the register page of the job on this host and `bank` the port's registers there;
    /// `incoming` is the slice of this host's window, and `grant` gives access to the neighbour's slice.
    pub fn new(
        index: PortIndex,
        caps: PortCaps,
        (registers, bank): (Registers, Bank),
        incoming: Region,
        grant: Arc<dyn Grant>,
    ) -> Result<SlicePort, NtbError> {
        let header = grant.map(0, HEADER as u64)?;
        let caps = caps.with_segments(grant.reaches_segments());
        let outages = AtomicU64::new(registers.outages(bank));
        let written = Default::default();
        Ok(SlicePort { index, caps, registers, bank, incoming, grant, header, written, outages })
    }

    /// Writes the neighbour's scratchpads again, in order, if the link is up and was down since they were written.
    fn repair(&self) {
        // Read before the scratchpads are written: an outage in between is found the next time.
        let outages = self.registers.outages(self.bank);
        if outages == self.outages.load(Ordering::Acquire) || self.registers.link(self.bank) == LinkState::Down {
            return;
        }
        let written = self.written();
        for (register, value) in written.iter().enumerate() {
            value.iter().for_each(|&value| self.header.store(8 * register, value.into()));
        }
        self.header.fence();
        self.outages.store(outages, Ordering::Release);
    }

    fn written(&self) -> std::sync::MutexGuard<'_, [Option<u32>; SCRATCHPADS]> {
        self.written.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Port for SlicePort {
    fn index(&self) -> PortIndex {
        self.index
    }

    fn caps(&self) -> PortCaps {
        self.caps
    }

    fn shortcuts(&self) -> Shortcuts {
        Shortcuts::NONE
    }

    fn incoming(&self) -> InWindow {
        InWindow::new(self.incoming.part(HEADER, self.incoming.len() - HEADER))
    }

    fn outgoing(&self, offset: u64, len: u64) -> Result<OutWindow, NtbError> {
        let start = offset.saturating_add(HEADER as u64);
        self.grant.map(start, len).map_err(|error| match error {
            NtbError::Aperture { size, .. } => NtbError::Aperture { offset, len, size: size - HEADER as u64 },
            other => other,
        })
    }

    fn segment(&self, address: &SegmentAddress) -> Result<Option<OutWindow>, NtbError> {
        self.grant.segment(address.file.token)
    }

    fn incoming_offset(&self) -> u64 {
        0
    }

    fn scratchpad(&self, register: usize) -> u32 {
        assert!(register < SCRATCHPADS, "no scratchpad {register}");
        self.incoming.word(8 * register).load(Ordering::Acquire) as u32
    }

    fn peer_scratchpad(&self, register: usize, value: u32) {
        assert!(register < SCRATCHPADS, "no scratchpad {register}");
        self.repair();
        self.written()[register] = Some(value);
        self.header.store(8 * register, value.into());
        self.header.fence();
    }

    fn ring(&self, doorbell: usize) {
        assert!(doorbell < DOORBELLS, "no doorbell {doorbell}");
        self.header.store(DOORBELL_WORDS + 8 * doorbell, 1);
        self.header.fence();
        self.grant.ring();
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
        self.repair();
        self.registers.link(self.bank)
    }

    fn outages(&self) -> u64 {
        self.registers.outages(self.bank)
    }

    fn descriptors(&self) -> Vec<BorrowedFd<'_>> {
        self.grant.descriptors()
    }

    fn lose_rather_than_wait(&self) {
        self.grant.lose_rather_than_wait();
    }
}
