//! Intel gen3 (8086:201C): Skylake, Cascade Lake and Cooper Lake, back to back.
//!
//! An incoming address range has a second limit, in terms of the addresses on the cable (`EM...XLMT`); both limits must
//! admit an access.

use super::link_status::link_status;
use super::xeon::{self, Generation, CONTROL, CONTROL_SNOOP, SIZES_DIFFER};
use crate::chip::{Chip, LinkStatus};
use crate::driver::Driven;
use crate::error::PciError;
use crate::function::Function;
use crate::registers::Width;
use std::sync::Arc;

/// Configuration space: mode of the NTB (8 bits).
const PPD: u64 = 0xd4;
const PPD_MODE: u8 = 0b11;
const PPD_TRANSPARENT: u8 = 0;
const PPD_BACK_TO_BACK: u8 = 1;
const PPD_SPLIT: u8 = 1 << 6;
/// Configuration space: link status (16 bits).
const LINK_STATUS: u64 = 0x1a2;

const CONTROL_LOCK_AND_DISABLE: u32 = 0b11;
/// Command register of the end of the cable (16 bits): memory and bus master.
const EXTERNAL_COMMAND: u64 = 0x4504;
const MEMORY_AND_BUS_MASTER: u16 = 0b110;
/// Limits in terms of the addresses on the cable, and the base addresses there, whose low four bits are the type (64
/// bits each).
const CABLE_LIMIT: [(&str, u64); 2] = [("EMBAR1XLMT", 0x4018), ("EMBAR2XLMT", 0x4028)];
const CABLE_BASE: [u64; 2] = [0x4518, 0x4520];

/// The generation.
struct Skx;

/// Returns the driver of a function. Fails if the BIOS has not set the function up for a ring.
pub fn skx(function: Arc<dyn Function>) -> Result<Arc<dyn Chip>, PciError> {
    let device = Driven { name: "Intel Skylake NTB", function, proof: CONTROL };
    let ppd = device.config().read8(PPD);
    let help = "Set the port to \"NTB to NTB\", with split BARs off, in the BIOS of both hosts";
    match (ppd & PPD_MODE, ppd & PPD_SPLIT) {
        _ if ppd == u8::MAX => return Err(device.gone()),
        (PPD_BACK_TO_BACK, 0) => {}
        (PPD_BACK_TO_BACK, _) => return Err(device.unusable("its BAR 4/5 is split into two of 32 bits", help)),
        (PPD_TRANSPARENT, _) => return Err(device.unusable("the port is an ordinary root port, not an NTB", help)),
        _ => return Err(device.unusable("it is in the mode \"NTB to root port\"", help)),
    }
    xeon::chip(device, Skx)
}

/// Returns the base address of a window on the cable.
fn on_cable(device: &Driven, window: usize) -> u64 {
    device.registers().read64(CABLE_BASE[window]) & !0xf
}

impl Generation for Skx {
    /// Doorbell 31 shares the vector of the link: vector 32, which is the link's by design, does not work (erratum).
    const DOORBELLS: usize = 31;
    const INT_VECTOR: u64 = 0xd0;
    const LINK_VECTOR: u8 = 31;
    const PEER_SCRATCHPAD: u64 = 0x180;
    const NAMES: [[&'static str; 2]; 2] = [["IMBAR1XBASE", "IMBAR1XLMT"], ["IMBAR2XBASE", "IMBAR2XLMT"]];

    fn iova_align(&self, size: u64) -> u64 {
        size
    }

    fn open(&self, device: &Driven, window: usize, size: u64) -> Result<(), PciError> {
        let (name, offset) = CABLE_LIMIT[window];
        device.write_checked(name, (offset, Width::Qword), on_cable(device, window) + size, SIZES_DIFFER)
    }

    fn close(&self, device: &Driven, window: usize) {
        device.registers().write64(CABLE_LIMIT[window].1, on_cable(device, window));
    }

    fn initialize(&self, device: &Driven) {
        device.registers().write16(EXTERNAL_COMMAND, MEMORY_AND_BUS_MASTER);
    }

    fn enable_link(&self, device: &Driven) -> Result<(), PciError> {
        let control = device.registers().read32(CONTROL);
        device.registers().write32(CONTROL, control & !CONTROL_LOCK_AND_DISABLE | CONTROL_SNOOP);
        Ok(())
    }

    fn disable_link(&self, device: &Driven) {
        let control = device.registers().read32(CONTROL);
        device.registers().write32(CONTROL, control & !CONTROL_SNOOP | CONTROL_LOCK_AND_DISABLE);
    }

    fn link(&self, device: &Driven) -> Result<LinkStatus, PciError> {
        match device.config().read16(LINK_STATUS) {
            u16::MAX => Err(device.gone()),
            word => Ok(link_status(word)),
        }
    }

    fn before_link_is_cleared(&self, _device: &Driven) {}
}
