//! One PCI function: its base address registers, windows, memory and interrupts.

use crate::error::PciError;
use crate::identity::Identity;
use crate::memory::SharedMemory;
use crate::registers::Registers;
use nix::sys::eventfd::EventFd;
use ntbring_memory::{Mapping, OutWindow, Region};
use std::os::fd::BorrowedFd;

/// A memory range behind a base address register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bar {
    /// Number of the register, 0 to 5.
    pub index: u8,
    /// Address on the bus, bytes.
    pub address: u64,
    /// Size, bytes.
    pub size: u64,
    /// True if the register has 64 bits.
    pub is_64bit: bool,
    /// True if the range is prefetchable: only then the processor may combine writes to it.
    pub is_prefetchable: bool,
}

/// The interrupts of a function.
pub struct Interrupts {
    /// Kind of the interrupts.
    pub kind: InterruptKind,
    /// The event descriptor (`eventfd`) that each vector signals.
    pub event: EventFd,
}

/// Kinds of interrupts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InterruptKind {
    /// A line, which the kernel masks at each interrupt ([`Function::unmask_line`]).
    Line,
    /// Messages, one vector.
    Msi,
    /// Messages, several vectors.
    MsiX,
}

/// Something that the kernel announces about a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Alarm {
    /// The bus has reported an error that cannot be corrected.
    Error,
    /// The function is to be removed, or to be given to another driver.
    Removal,
}

/// One PCI function that this process controls.
pub trait Function: Registers {
    /// Returns the identity.
    fn identity(&self) -> Identity;
    /// Returns the memory range behind a base address register; None if there is none.
    fn bar(&self, index: u8) -> Option<Bar>;
    /// Maps `len` bytes at `offset` of a memory range for posted writes.
    fn window(&self, bar: u8, offset: u64, len: u64) -> Result<OutWindow, PciError>;
    /// Returns the kind of mapping of such windows.
    fn mapping(&self, bar: u8) -> Mapping;
    /// Returns a file that other processes can map as such a window, and the offset of the memory range in it, bytes;
    /// None if only this process can map it.
    fn window_file(&self, bar: u8) -> Option<(BorrowedFd<'_>, u64)>;
    /// Maps `len` bytes at `offset` of a memory range behind which there is memory that this host also reads, whole pages.
    /// No part of them may be mapped as a window.
    fn memory(&self, bar: u8, offset: u64, len: u64) -> Result<SharedMemory, PciError>;
    /// Makes registers accessible that lie behind another memory range than BAR 0: `len` bytes at `offset`, whole pages. It
    /// is called before the range is mapped or accessed, since it must not keep the rest from being write-combining.
    fn map_registers(&self, bar: u8, offset: u64, len: u64) -> Result<(), PciError>;
    /// Reserves bus addresses for `size` bytes of memory, at a multiple of `align` and below `below`; None if there
    /// are none.
    fn reserve_addresses(&self, size: u64, align: u64, below: Option<u64>) -> Option<u64>;
    /// Makes `memory` accessible to the function at the bus addresses from `iova` on. It stays so until
    /// [`Function::unmap_memory`].
    fn map_memory(&self, memory: &Region, iova: u64) -> Result<(), PciError>;
    /// Withdraws the memory that was mapped at `iova`.
    fn unmap_memory(&self, iova: u64) -> Result<(), PciError>;
    /// Lets the function write memory of this host (bus mastering), or stops it. Switching it on also enables the memory
    /// ranges and restores their addresses, which a reset of the function takes away.
    fn set_bus_master(&self, on: bool);
    /// Enables the first `wanted` interrupt vectors of the function, with one event descriptor for all of them. MSI-X is
    /// preferred if it has `least` vectors; then the line, because one message vector loses edges on some chips; then one
    /// vector of MSI.
    fn interrupts(&self, wanted: usize, least: usize) -> Result<Interrupts, PciError>;
    /// Unmasks the interrupt line after an interrupt has been handled.
    fn unmask_line(&self);
    /// Returns what the kernel has announced since the previous call.
    fn alarm(&self) -> Option<Alarm>;
}
