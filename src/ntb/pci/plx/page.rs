//! The registers of an interface. All have 32 bits.

use super::identity::Side;
use crate::function::Function;
use crate::registers::{Block, Space};

pub(super) const PAGE: u64 = 0x1000;

/// Registers of the chip: strapping (upstream port; ports of the NTBs in the bits 12:8 and 20:16; A-LUT in 31:30).
pub(super) const STRAPS: u64 = 0x360;
/// Registers of a station of eight ports: a bit each that disables a port.
pub(super) const PORT_DISABLE: u64 = 0x208;

pub(super) const ID: u64 = 0x000;
pub(super) const COMMAND: u64 = 0x004;
pub(super) const COMMAND_MEMORY_AND_BUS_MASTER: u32 = 0b110;
pub(super) const BAR0: u64 = 0x010;
/// Interrupt line and pin.
pub(super) const INTERRUPT: u64 = 0x03c;
/// Link control in the low half, link status in the high half.
pub(super) const LINK: u64 = 0x078;
pub(super) const BAR0_SETUP: u64 = 0x0e4;
pub(super) const BAR0_SETUP_64BIT: u32 = 3;
pub(super) const BAR_SETUP_64BIT: u64 = 0xc;
/// Low bits of a base address register, which are its type.
pub(super) const BAR_TYPE: u64 = 0xf;
pub(super) const SCRATCHPAD: u64 = 0xc6c;
pub(super) const READER: u64 = 0xc90;
pub(super) const ALUT: u64 = 0xc94;
pub(super) const LUT_VIRTUAL: u64 = 0xd94;
pub(super) const LUT_LINK: u64 = 0xdb4;
/// Errors and changes of the link, and their mask. On the Virtual interface only.
pub(super) const LINK_EVENTS: u64 = 0xfe0;
pub(super) const LINK_EVENTS_MASK: u64 = 0xfe4;
pub(super) const LINK_EVENTS_ALL: u32 = 0xf;
pub(super) const LINK_DOWN: u32 = 1 << 2;

/// Registers of the doorbells towards one host.
pub(super) struct Doorbells {
    /// Pending doorbells; a write rings.
    pub set: u64,
    /// A write clears pending ones.
    pub clear: u64,
    /// A write masks.
    pub mask: u64,
    /// A write unmasks.
    pub unmask: u64,
}

/// Returns the registers of the doorbells towards the host of an interface.
pub(super) fn doorbells(towards: Side) -> Doorbells {
    let set = match towards {
        Side::Virtual => 0xc4c,
        Side::Link => 0xc5c,
    };
    Doorbells { set, clear: set + 4, mask: set + 8, unmask: set + 12 }
}

/// Returns the base address register 2 or 4 of an interface.
pub(super) fn bar(bar: u8) -> u64 {
    BAR0 + 4 * u64::from(bar)
}

/// Returns the register with the size of the base address register 2 or 4.
pub(super) fn bar_setup(bar: u8) -> u64 {
    0xe8 + 4 * u64::from(bar - 2)
}

/// Returns the translation of accesses that enter at the interface through the base address register 2 or 4.
pub(super) fn translation(bar: u8) -> u64 {
    0xc3c + 4 * u64::from(bar - 2)
}

/// Returns the offset of an interface's page in BAR 0.
pub(super) fn offset(nt: u8, side: Side) -> u64 {
    let virtual_page = 0x3e000 - 2 * PAGE * u64::from(nt);
    match side {
        Side::Virtual => virtual_page,
        Side::Link => virtual_page + PAGE,
    }
}

/// The page of an interface.
#[derive(Clone, Copy)]
pub(super) struct Page<'a> {
    function: &'a dyn Function,
    offset: u64,
}

impl<'a> Page<'a> {
    /// Returns the page at an offset of BAR 0.
    pub fn new(function: &'a dyn Function, offset: u64) -> Page<'a> {
        Page { function, offset }
    }

    /// Reads a register.
    pub fn read(&self, register: u64) -> u32 {
        Block::new(self.function, Space::Bar(0)).read32(self.offset + register)
    }

    /// Writes a register.
    pub fn write(&self, register: u64, value: u32) {
        Block::new(self.function, Space::Bar(0)).write32(self.offset + register, value);
    }

    /// Reads a register of two dwords.
    pub fn read_long(&self, register: u64) -> u64 {
        u64::from(self.read(register)) | u64::from(self.read(register + 4)) << 32
    }

    /// Writes a register of two dwords, the high one after the low one.
    pub fn write_long(&self, register: u64, value: u64) {
        self.write(register, value as u32);
        self.write(register + 4, (value >> 32) as u32);
    }
}
