//! Intel gen3 (8086:201C): Skylake, Cascade Lake and Cooper Lake, back to back.
//!
//! Each host has a function of its own. Its incoming address ranges have a translation (`XBASE`) and two limits, of
//! which each must admit an access: one in terms of the address of its own base address register (`IM...XLMT`), one in
//! terms of the addresses on the cable (`EM...XLMT`).

use super::link_status::link_status;
use crate::chip::{Aperture, Chip, Events, Limits, LinkStatus};
use crate::error::PciError;
use crate::function::{Bar, Function};
use crate::registers::{Block, Space};
use std::sync::Arc;

const NAME: &str = "Intel Skylake NTB";

/// Configuration space: mode of the NTB (8 bits).
const PPD: u64 = 0xd4;
const PPD_MODE: u8 = 0b11;
const PPD_TRANSPARENT: u8 = 0;
const PPD_BACK_TO_BACK: u8 = 1;
const PPD_SPLIT: u8 = 1 << 6;
/// Configuration space: link status (16 bits).
const LINK_STATUS: u64 = 0x1a2;

/// Registers behind BAR 0. Control (32 bits).
const CONTROL: u64 = 0x0;
const CONTROL_LOCK_AND_DISABLE: u32 = 0b11;
/// Snooping of the processors' caches, for the accesses in either direction through both windows.
const CONTROL_SNOOP: u32 = 0x154;
/// Pending and disabled interrupts (64 bits): the doorbells in the bits 0 to 31, the link in bit 32.
const INT_STATUS: u64 = 0x40;
const INT_DISABLE: u64 = 0x48;
/// Vector of each interrupt bit (8 bits each).
const INT_VECTOR: u64 = 0xd0;
/// Scratchpads, the own ones and the neighbour's (32 bits each).
const SCRATCHPAD: u64 = 0x80;
const PEER_SCRATCHPAD: u64 = 0x180;
/// Doorbells of the neighbour: a register each, which takes a 1 (32 bits).
const PEER_DOORBELL: u64 = 0x100;
/// Command register of the end of the cable (16 bits): memory and bus master.
const EXTERNAL_COMMAND: u64 = 0x4504;
const MEMORY_AND_BUS_MASTER: u16 = 0b110;

const SCRATCHPADS: usize = 16;
/// Doorbell 31 shares the vector of the link: vector 32, which is the link's by design, does not work (erratum).
const DOORBELLS: usize = 31;
const VECTORS: usize = 33;
const LINK_BIT: u32 = 32;
const LINK_VECTOR: u8 = 31;
const LINK_BITS: u64 = 0b11 << 31;
const ALL_BITS: u64 = (1 << 33) - 1;

/// Registers of an incoming address range (64 bits each).
struct Incoming {
    /// Base address register of the range.
    bar: u8,
    /// Translation.
    base: u64,
    /// Limit in terms of the address of the base address register.
    limit: u64,
    /// Limit in terms of the addresses on the cable.
    cable_limit: u64,
    /// Base address on the cable; the low four bits are the type.
    cable_base: u64,
    names: [&'static str; 3],
}

const INCOMING: [Incoming; 2] = [
    Incoming {
        bar: 2,
        base: 0x10,
        limit: 0x18,
        cable_limit: 0x4018,
        cable_base: 0x4518,
        names: ["IMBAR1XBASE", "IMBAR1XLMT", "EMBAR1XLMT"],
    },
    Incoming {
        bar: 4,
        base: 0x20,
        limit: 0x28,
        cable_limit: 0x4028,
        cable_base: 0x4520,
        names: ["IMBAR2XBASE", "IMBAR2XLMT", "EMBAR2XLMT"],
    },
];

/// The driver of one function.
pub struct Skx {
    function: Arc<dyn Function>,
    /// The memory range that carries the window: the largest.
    window: Bar,
}

impl Skx {
    /// Returns the driver. Fails if the BIOS has not set the function up for a ring.
    pub fn new(function: Arc<dyn Function>) -> Result<Skx, PciError> {
        let identity = function.identity();
        let unusable =
            |problem: &str, help| Err(PciError::Unusable { chip: NAME, identity, problem: problem.into(), help });
        let ppd = Block::new(&*function, Space::Config).read8(PPD);
        let help = "Set the port to \"NTB to NTB\", with split BARs off, in the BIOS of both hosts";
        match (ppd & PPD_MODE, ppd & PPD_SPLIT) {
            _ if ppd == u8::MAX => return Err(PciError::Gone { identity }),
            (PPD_BACK_TO_BACK, 0) => {}
            (PPD_BACK_TO_BACK, _) => return unusable("its BAR 4/5 is split into two of 32 bits", help),
            (PPD_TRANSPARENT, _) => return unusable("the port is an ordinary root port, not an NTB", help),
            _ => return unusable("it is in the mode \"NTB to root port\"", help),
        }
        // Of ranges with the same size the first one, as `max_by_key` returns the last.
        let ranges = INCOMING.iter().rev().filter_map(|incoming| function.bar(incoming.bar));
        let largest = ranges.max_by_key(|bar| bar.size);
        match largest {
            Some(window) if function.bar(0).is_some() => Ok(Skx { function, window }),
            _ => {
                unusable("it has no memory range for a window", "Enable BAR 23 and its size in the BIOS of both hosts")
            }
        }
    }

    fn registers(&self) -> Block<'_, dyn Function> {
        Block::new(&*self.function, Space::Bar(0))
    }

    /// Returns an error unless the function answers.
    fn check(&self) -> Result<(), PciError> {
        match Block::new(&*self.function, Space::Config).read32(0) {
            u32::MAX => Err(PciError::Gone { identity: self.function.identity() }),
            _ => Ok(()),
        }
    }

    fn incoming(&self) -> &'static Incoming {
        INCOMING.iter().find(|incoming| incoming.bar == self.window.index).expect("the window is one of them")
    }

    /// Stops everything that comes in through one range.
    fn close(&self, incoming: &Incoming) {
        let registers = self.registers();
        let on_cable = registers.read64(incoming.cable_base) & !0xf;
        let own = self.function.bar(incoming.bar).map_or(0, |bar| bar.address);
        registers.write64(incoming.cable_limit, on_cable);
        registers.write64(incoming.limit, own);
        registers.write64(incoming.base, 0);
    }

    /// Writes a register and reads it back.
    fn write_checked(&self, register: &'static str, offset: u64, value: u64) -> Result<(), PciError> {
        let help = "The size of the window in the BIOS may differ from the size that the neighbour's BIOS has set";
        self.registers().write64(offset, value);
        match self.registers().read64(offset) {
            found if found == value => Ok(()),
            found => {
                let identity = self.function.identity();
                Err(PciError::ReadBack { chip: NAME, identity, register, written: value, found, help })
            }
        }
    }
}

impl Chip for Skx {
    fn name(&self) -> &'static str {
        NAME
    }

    fn function(&self) -> &dyn Function {
        &*self.function
    }

    fn limits(&self) -> Limits {
        let size = self.window.size;
        Limits {
            doorbells: DOORBELLS,
            scratchpads: SCRATCHPADS,
            vectors: VECTORS,
            aperture: Aperture { bar: self.window.index, offset: 0, size },
            incoming: size,
            iova_align: size,
            iova_below: None,
            is_whole: false,
        }
    }

    fn initialize(&self) -> Result<(), PciError> {
        self.check()?;
        let registers = self.registers();
        INCOMING.iter().for_each(|incoming| self.close(incoming));
        registers.write16(EXTERNAL_COMMAND, MEMORY_AND_BUS_MASTER);
        registers.write64(INT_DISABLE, ALL_BITS);
        for bit in 0..=LINK_BIT {
            registers.write8(INT_VECTOR + u64::from(bit), if bit == LINK_BIT { LINK_VECTOR } else { bit as u8 });
        }
        for register in 0..SCRATCHPADS as u64 {
            registers.write32(SCRATCHPAD + 4 * register, 0);
        }
        Ok(())
    }

    fn set_translation(&self, iova: u64, size: u64) -> Result<(), PciError> {
        let incoming = self.incoming();
        assert!(iova % self.window.size == 0 && size <= self.window.size, "a translation of {size} bytes to {iova:#x}");
        let on_cable = self.registers().read64(incoming.cable_base) & !0xf;
        let [base, limit, cable_limit] = incoming.names;
        let set = || {
            self.write_checked(base, incoming.base, iova)?;
            self.write_checked(limit, incoming.limit, self.window.address + size)?;
            self.write_checked(cable_limit, incoming.cable_limit, on_cable + size)
        };
        set().inspect_err(|_| self.close(incoming))
    }

    fn clear_translation(&self) {
        self.close(self.incoming());
    }

    fn enable_link(&self) -> Result<(), PciError> {
        self.check()?;
        let control = self.registers().read32(CONTROL);
        self.registers().write32(CONTROL, control & !CONTROL_LOCK_AND_DISABLE | CONTROL_SNOOP);
        Ok(())
    }

    fn disable_link(&self) {
        let control = self.registers().read32(CONTROL);
        self.registers().write32(CONTROL, control & !CONTROL_SNOOP | CONTROL_LOCK_AND_DISABLE);
    }

    fn link(&self) -> Result<LinkStatus, PciError> {
        match Block::new(&*self.function, Space::Config).read16(LINK_STATUS) {
            u16::MAX => Err(PciError::Gone { identity: self.function.identity() }),
            word => Ok(link_status(word)),
        }
    }

    fn enable_interrupts(&self, doorbells: u32) {
        let enabled = u64::from(doorbells) & !LINK_BITS | LINK_BITS;
        self.registers().write64(INT_DISABLE, ALL_BITS & !enabled);
    }

    fn take_events(&self) -> Result<Events, PciError> {
        let status = self.registers().read64(INT_STATUS);
        if status == u64::MAX {
            return Err(PciError::Gone { identity: self.function.identity() });
        }
        if status & ALL_BITS != 0 {
            self.registers().write64(INT_STATUS, status & ALL_BITS);
        }
        Ok(Events { doorbells: (status & !LINK_BITS) as u32, link_changed: status & 1 << LINK_BIT != 0 })
    }

    fn scratchpad(&self, register: usize) -> Result<u32, PciError> {
        assert!(register < SCRATCHPADS, "no scratchpad {register}");
        let value = self.registers().read32(SCRATCHPAD + 4 * register as u64);
        if value == u32::MAX {
            self.check()?;
        }
        Ok(value)
    }

    fn set_peer_scratchpad(&self, register: usize, value: u32) {
        assert!(register < SCRATCHPADS, "no scratchpad {register}");
        self.registers().write32(PEER_SCRATCHPAD + 4 * register as u64, value);
    }

    fn ring(&self, doorbell: usize) {
        assert!(doorbell < DOORBELLS, "no doorbell {doorbell}");
        self.registers().write32(PEER_DOORBELL + 4 * doorbell as u64, 1);
    }

    fn causes_of_silence(&self) -> &'static str {
        "the windows of both hosts have different sizes in the BIOS; bus mastering is off; the IOMMU of the neighbour \
         refuses the writes (its kernel log says so); another driver is bound to one of the functions"
    }
}
