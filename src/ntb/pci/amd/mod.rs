//! NTB functions of AMD and Hygon processors (1022:145B, 148B, 14C0, 14C3, 155A, 17D4, 17D7; 1D94:145B).
//!
//! One device joins two hosts: the primary host, in whose processor it is, and the secondary one. Each host has a block
//! of registers and sees the other's as well. A translation lies where writes enter: a host sets the translation to its
//! own memory in the block of the *neighbour*.
//!
//! A host says that it is there by a bit, READY, which survives its processes. Linux's driver announces its end by
//! doorbell 15, and so does this one.

mod registers;

use crate::chip::{Aperture, Chip, Events, Limits, LinkStatus};
use crate::driver::Driven;
use crate::error::PciError;
use crate::function::{Bar, Function};
use crate::registers::Width;
use registers::*;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::time::Duration;

/// Number of scratchpads of each host.
const SCRATCHPADS: usize = 8;
/// Doorbells 0 to 14; the last one announces the end of a driver.
const DOORBELLS: usize = 15;
const LEAVING: usize = 15;
/// 16 vectors of doorbells, then those of the events. With fewer than 16 the chip can use only one.
const VECTORS: usize = 24;
const LEAST_VECTORS: usize = 16;

/// Time for the neighbour to notice that a driver that has left the READY bit set is gone.
const STALE: Duration = Duration::from_secs(1);

const NO_ROOM: &str = "The window in the BIOS may be smaller than the memory range that this host shows";

/// The driver of one function.
pub struct Amd {
    device: Driven,
    window: Bar,
    /// True on the secondary side.
    is_secondary: bool,
    /// True from an event that says that the link has gone down to one that says that it has come up.
    is_cut: AtomicBool,
    /// True if the limit of this host's memory lies in this host's own block.
    has_own_limit: AtomicBool,
}

/// Returns the driver of a function. Fails if it has no window.
pub fn amd(function: Arc<dyn Function>) -> Result<Arc<dyn Chip>, PciError> {
    let is_hygon = function.identity().vendor == 0x1d94;
    let name = if is_hygon { "Hygon NTB" } else { "AMD NTB" };
    let device = Driven { name, function, proof: OWN + SIDE_INFO };
    let window = device.largest(&[2, 4], "Enable the NTB and its BARs in the BIOS of the primary host")?;
    let side = device.registers().read32(OWN + SIDE_INFO);
    if side == u32::MAX {
        return Err(device.gone());
    }
    let [is_cut, has_own_limit] = [false; 2].map(AtomicBool::new);
    Ok(Arc::new(Amd { device, window, is_secondary: side & SIDE_SECONDARY != 0, is_cut, has_own_limit }))
}

impl Amd {
    /// Returns the offsets of the translation and of the limit of the window in a block, with their names.
    fn range(&self) -> [(&'static str, u64); 2] {
        match self.window.index {
            2 => [("BAR23XLAT", TRANSLATION[0]), ("BAR23LMT", LIMIT[0])],
            _ => [("BAR45XLAT", TRANSLATION[1]), ("BAR45LMT", LIMIT[1])],
        }
    }

    /// Returns the offset of a scratchpad of one of the sides.
    fn pad(is_secondary: bool, register: usize) -> u64 {
        assert!(register < SCRATCHPADS, "no scratchpad {register}");
        SCRATCHPAD + 4 * (register + if is_secondary { SCRATCHPADS } else { 0 }) as u64
    }

    /// Sets or clears the READY bit in a block, and waits until it is so.
    fn set_ready(&self, block: u64, is_ready: bool) {
        let registers = self.device.registers();
        let side = registers.read32(block + SIDE_INFO);
        registers.write32(block + SIDE_INFO, if is_ready { side | SIDE_READY } else { side & !SIDE_READY });
        registers.read32(block + SIDE_INFO);
    }

    fn is_ready(&self, block: u64) -> Result<bool, PciError> {
        match self.device.registers().read32(block + SIDE_INFO) {
            u32::MAX => Err(self.device.gone()),
            side => Ok(side & SIDE_READY != 0),
        }
    }

    /// Returns true between `enable_link` and `disable_link`.
    fn is_enabled(&self) -> bool {
        self.device.registers().read32(OWN + CONTROL) & CONTROL_ENABLE == CONTROL_ENABLE
    }

    /// Says that this driver is not there any more.
    fn announce_end(&self) {
        self.set_ready(OWN, false);
        self.device.registers().write16(OWN + DOORBELL_REQUEST, 1 << LEAVING);
    }

    /// Acknowledges events, without which the chip reports no others, and clears them.
    fn acknowledge(&self, events: u32) {
        let registers = self.device.registers();
        registers.write32(OWN + EVENT_ACKNOWLEDGE, registers.read32(OWN + EVENT_ACKNOWLEDGE) | events);
        registers.write32(OWN + EVENT_STATUS, events);
    }

    /// Reads the link status of this function; zeros if it is not the function's own link.
    fn speed(&self) -> LinkStatus {
        let capability = self.device.capability(PCI_EXPRESS).filter(|_| !self.is_secondary);
        let status = capability.map_or(0, |at| self.device.config().read32(at + LINK_CONTROL) >> 16);
        LinkStatus::Up { generation: (status & 0xf) as u8, width: (status >> 4 & 0x3f) as u8 }
    }
}

impl Chip for Amd {
    fn name(&self) -> &'static str {
        self.device.name
    }

    fn function(&self) -> &dyn Function {
        &*self.device.function
    }

    fn limits(&self) -> Limits {
        let size = self.window.size;
        Limits {
            doorbells: DOORBELLS,
            scratchpads: SCRATCHPADS,
            vectors: VECTORS,
            least_vectors: LEAST_VECTORS,
            aperture: Aperture { bar: self.window.index, offset: 0, size },
            incoming: size,
            memory: None,
            iova_align: 4096,
            iova_below: None,
            is_whole: false,
        }
    }

    fn initialize(&self) -> Result<(), PciError> {
        self.is_ready(OWN)?;
        let registers = self.device.registers();
        self.clear_translation();
        registers.write16(OWN + DOORBELL_MASK, u16::MAX);
        registers.write32(OWN + EVENT_MASK, ALL_EVENTS);
        (0..SCRATCHPADS).for_each(|register| registers.write32(Self::pad(self.is_secondary, register), 0));
        Ok(())
    }

    fn set_translation(&self, iova: u64, size: u64) -> Result<(), PciError> {
        assert!(iova.is_multiple_of(4096) && size <= self.window.size, "a translation of {size} bytes to {iova:#x}");
        let [(translation, at), (limit, limit_at)] = self.range();
        let write = |name, at, value| self.device.write_checked(name, (at, Width::Qword), value, NO_ROOM);
        let set = || {
            write(translation, PEER + at, iova)?;
            write(limit, PEER + limit_at, size).or_else(|error| {
                // Not all drivers agree on the block of this register. If it is the other one, this is the neighbour's.
                let registers = self.device.registers();
                let former = registers.read64(OWN + limit_at);
                if write(limit, OWN + limit_at, size).is_err() {
                    registers.write64(OWN + limit_at, former);
                    return Err(error);
                }
                log::warn!("{}: {limit} is set in this host's own block", self.device.function.identity());
                self.has_own_limit.store(true, Ordering::Relaxed);
                Ok(())
            })
        };
        set().inspect_err(|_| self.clear_translation())
    }

    fn clear_translation(&self) {
        let [(_, translation), (_, limit)] = self.range();
        self.device.registers().write64(PEER + limit, 0);
        if self.has_own_limit.swap(false, Ordering::Relaxed) {
            self.device.registers().write64(OWN + limit, 0);
        }
        self.device.registers().write64(PEER + translation, 0);
    }

    /// Waits a second if a process that has died has left its READY bit, so that the neighbour sees that this one begins
    /// anew.
    fn enable_link(&self) -> Result<(), PciError> {
        if self.is_ready(OWN)? {
            self.announce_end();
            std::thread::sleep(STALE);
        }
        self.set_ready(OWN, true);
        let control = self.device.registers().read32(OWN + CONTROL);
        self.device.registers().write32(OWN + CONTROL, control | CONTROL_ENABLE);
        Ok(())
    }

    fn disable_link(&self) {
        let control = self.device.registers().read32(OWN + CONTROL);
        self.device.registers().write32(OWN + CONTROL, control & !CONTROL_ENABLE);
        self.announce_end();
    }

    fn link(&self) -> Result<LinkStatus, PciError> {
        let is_peer_ready = self.is_ready(PEER)?;
        // The neighbour's bit says nothing of this end.
        if self.is_cut.load(Ordering::Relaxed) || !self.is_enabled() {
            return Ok(LinkStatus::Down);
        }
        if !self.is_ready(OWN)? {
            // The neighbour has cleared it when the link went down.
            self.set_ready(OWN, true);
        }
        Ok(if is_peer_ready { self.speed() } else { LinkStatus::Down })
    }

    fn enable_interrupts(&self, doorbells: u32) {
        self.device.registers().write16(OWN + DOORBELL_MASK, !(doorbells as u16 | 1 << LEAVING));
        self.device.registers().write32(OWN + EVENT_MASK, 0);
    }

    fn take_events(&self) -> Result<Events, PciError> {
        let registers = self.device.registers();
        let mut events = Events::default();
        // An event comes when the one before is acknowledged; a flood of them is left for the next call.
        for _ in 0..4 {
            let status = registers.read32(OWN + EVENT_STATUS);
            if status == u32::MAX {
                return Err(self.device.gone());
            }
            let status = status & ALL_EVENTS;
            if status == 0 {
                break;
            }
            if status & (EVENT_LINK_DOWN | EVENT_LINK_UP) != 0 {
                let is_cut = status & EVENT_LINK_UP == 0;
                self.is_cut.store(is_cut, Ordering::Relaxed);
                if is_cut && !self.is_secondary {
                    // The neighbour cannot clear its bit any more. It sets the bit again if it is still there.
                    self.set_ready(PEER, false);
                }
            }
            self.acknowledge(status);
            events.link_changed |= status & !EVENT_FLUSH != 0;
        }
        let doorbells = registers.read16(OWN + DOORBELL_STATUS);
        if doorbells != 0 {
            registers.write16(OWN + DOORBELL_STATUS, doorbells);
        }
        events.link_changed |= doorbells >> LEAVING & 1 != 0;
        events.doorbells = u32::from(doorbells & !(1 << LEAVING));
        Ok(events)
    }

    fn scratchpad(&self, register: usize) -> Result<u32, PciError> {
        let value = self.device.registers().read32(Self::pad(self.is_secondary, register));
        if value == u32::MAX {
            self.is_ready(OWN)?;
        }
        Ok(value)
    }

    fn set_peer_scratchpad(&self, register: usize, value: u32) {
        self.device.registers().write32(Self::pad(!self.is_secondary, register), value);
    }

    fn ring(&self, doorbell: usize) {
        assert!(doorbell < DOORBELLS, "no doorbell {doorbell}");
        self.device.registers().write16(OWN + DOORBELL_REQUEST, 1 << doorbell);
    }

    fn causes_of_silence(&self) -> &'static str {
        "the window in the BIOS of the primary host is off or smaller than the range that the secondary one shows; bus \
         mastering is off; the IOMMU of the receiving host refuses the writes (its kernel log says so; kernels before 5.5 \
         refuse them on some of these chips); another driver is bound to one of the functions"
    }
}
