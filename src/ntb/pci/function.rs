//! One PCI function: its identity, base address registers, windows, memory and interrupts.

use crate::error::PciError;
use crate::registers::{Block, Registers, Space};
use nix::sys::eventfd::EventFd;
use ntbring_memory::{Mapping, OutWindow, Region};
use std::fmt;
use std::os::fd::BorrowedFd;

/// The bus address of a function, such as `0000:05:00.0`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PciAddress {
    /// PCI domain (segment).
    pub domain: u32,
    /// Bus number.
    pub bus: u8,
    /// Device number, less than 32.
    pub device: u8,
    /// Function number, less than 8.
    pub function: u8,
}

impl PciAddress {
    /// Parses `DDDD:BB:DD.F` or `BB:DD.F` in hexadecimal digits; None if the text has neither form.
    pub fn parse(text: &str) -> Option<PciAddress> {
        let (rest, function) = text.rsplit_once('.')?;
        let (rest, device) = rest.rsplit_once(':')?;
        let (domain, bus) = rest.rsplit_once(':').unwrap_or(("0", rest));
        let hex = |digits: &str, most: usize, below: u32| {
            let plain = (1..=most).contains(&digits.len()) && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
            let value = plain.then(|| u32::from_str_radix(digits, 16).ok()).flatten()?;
            (value < below).then_some(value)
        };
        Some(PciAddress {
            domain: hex(domain, 8, u32::MAX)?,
            bus: hex(bus, 2, 256)? as u8,
            device: hex(device, 2, 32)? as u8,
            function: hex(function, 1, 8)? as u8,
        })
    }
}

impl fmt::Display for PciAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04x}:{:02x}:{:02x}.{}", self.domain, self.bus, self.device, self.function)
    }
}

/// The identity of a function, as its configuration space shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Bus address.
    pub address: PciAddress,
    /// Vendor id.
    pub vendor: u16,
    /// Device id.
    pub device: u16,
    /// Revision.
    pub revision: u8,
    /// Class code, 24 bits: class, subclass, programming interface.
    pub class: u32,
}

impl Identity {
    /// Reads the identity of the function at `address` from its configuration space.
    pub fn read<R: Registers + ?Sized>(registers: &R, address: PciAddress) -> Identity {
        let config = Block::new(registers, Space::Config);
        let (id, class) = (config.read32(0), config.read32(8));
        Identity { address, vendor: id as u16, device: (id >> 16) as u16, revision: class as u8, class: class >> 8 }
    }
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({:04x}:{:04x}, revision {:02x})", self.address, self.vendor, self.device, self.revision)
    }
}

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
    /// Returns free bus addresses for `size` bytes of memory, at a multiple of `align` and below `below`; None if there
    /// are none.
    fn free_addresses(&self, size: u64, align: u64, below: Option<u64>) -> Option<u64>;
    /// Makes `memory` accessible to the function at the bus addresses from `iova` on. It stays so until
    /// [`Function::unmap_memory`].
    fn map_memory(&self, memory: &Region, iova: u64) -> Result<(), PciError>;
    /// Withdraws the memory that was mapped at `iova`.
    fn unmap_memory(&self, iova: u64) -> Result<(), PciError>;
    /// Lets the function write memory of this host (bus mastering), or stops it.
    fn set_bus_master(&self, on: bool);
    /// Enables the first `wanted` interrupt vectors of the function, with one event descriptor for all of them. MSI-X is
    /// preferred; then the line, because one message vector loses edges on some chips; then MSI.
    fn interrupts(&self, wanted: usize) -> Result<Interrupts, PciError>;
    /// Unmasks the interrupt line after an interrupt has been handled.
    fn unmask_line(&self);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_and_written_alike() {
        for (text, written) in
            [("0000:05:00.0", "0000:05:00.0"), ("3b:1f.7", "0000:3b:1f.7"), ("10000:1:2.3", "10000:01:02.3")]
        {
            assert_eq!(PciAddress::parse(text).unwrap().to_string(), written);
        }
        for bad in [
            "",
            "5",
            "05:00",
            "05:20.0",
            "05:00.8",
            "100:00.0",
            "x:05:00.0",
            "0:0:5:0.0",
            "+5:00.0",
            "05:00.",
            "-1:05:00.0",
        ] {
            assert_eq!(PciAddress::parse(bad), None, "{bad}");
        }
    }
}
