//! Intel gen4 and gen5 (8086:347E, 8086:0DB4): Ice Lake, Sapphire Rapids and Granite Rapids, back to back.
//!
//! The registers of the link lie behind BAR 0, and the link has to be told to train. Ice Lake differs from its
//! successors: the address of incoming memory is a multiple of the size of the range, the size is also set as an index
//! (its logarithm), latency tolerance reports (LTR) are broken, and the link's interrupt can be cleared only after the
//! slot's own record of the change.

use super::link_status::link_status;
use super::xeon::{self, Generation, CONTROL, CONTROL_SNOOP, SIZES_DIFFER};
use crate::chip::{Chip, LinkStatus};
use crate::driver::Driven;
use crate::error::PciError;
use crate::function::Function;
use crate::registers::Width;
use std::sync::Arc;

const GRANITE_RAPIDS: u16 = 0x0db4;
/// Revisions of 347E from which a processor is an Ice Lake, and a Sapphire Rapids.
const ICE_LAKE_FROM: u8 = 0x02;
const SAPPHIRE_RAPIDS_FROM: u8 = 0x10;

/// Registers behind BAR 0. Index of the size of each window, its logarithm to the base 2 (16 bits each).
const BASE_INDEX: [(&str, u64); 2] = [("IM23XBASEIDX", 0x74), ("IM45XBASEIDX", 0x76)];
/// Latency tolerance: selection of a value (8 bits), the values while the link is in use and idle (32 bits each).
const LTR_SELECT: u64 = 0x30ec;
const LTR_ACTIVE: (u64, u32) = (0x30f0, 0x8800_8800);
const LTR_IDLE: (u64, u32) = (0x30f4, 0x8a58_8a58);
const SELECT_ACTIVE: u8 = 0;
const SELECT_IDLE: u8 = 1;
/// Control and status of the link (16 bits each).
const LINK_CONTROL: u64 = 0xb050;
const LINK_DISABLE: u16 = 1 << 4;
const LINK_STATUS: u64 = 0xb052;
/// Status of the slot (16 bits): a change of the link is cleared by writing its bit.
const SLOT_STATUS: u64 = 0xb05a;
const LINK_STATE_CHANGED: u16 = 1 << 8;
/// Training of the link (32 bits).
const PPD0: u64 = 0xb0d4;
const PPD0_TRAIN: u32 = 1 << 3;
/// Mode of the NTB (32 bits): connection, and device. That register has a bit for the device that the BIOS asks for and
/// one for the device that the port is; both ends work alike, so the driver needs neither.
const PPD1: u64 = 0xb4c0;
const PPD1_BACK_TO_BACK: u32 = 0x200;

/// The generation.
struct Icx {
    is_ice_lake: bool,
}

/// Returns the driver of a function. Fails if the BIOS has not set the function up for a ring.
pub fn icx(function: Arc<dyn Function>) -> Result<Arc<dyn Chip>, PciError> {
    let identity = function.identity();
    let (name, is_ice_lake) = match (identity.device, identity.revision) {
        (GRANITE_RAPIDS, _) => ("Intel Granite Rapids NTB", false),
        (_, SAPPHIRE_RAPIDS_FROM..) => ("Intel Sapphire Rapids NTB", false),
        _ => ("Intel Ice Lake NTB", true),
    };
    let device = Driven { name, function, proof: CONTROL };
    if is_ice_lake && identity.revision < ICE_LAKE_FROM {
        let problem = format!("revision {:02x} is that of a processor before series production", identity.revision);
        return Err(device.unusable(problem, "Use a processor of a later stepping, from revision 02 on"));
    }
    let no_registers = "Enable the NTB's BARs in the BIOS of both hosts";
    if device.function.bar(0).is_none() {
        return Err(device.unusable("it has no memory range for its registers", no_registers));
    }
    let help = "Set the port to \"NTB to NTB\", with split BARs off, in the BIOS of both hosts";
    let ppd1 = device.registers().read32(PPD1);
    match ppd1 & if is_ice_lake { 0x300 } else { 0x700 } {
        _ if ppd1 == u32::MAX => return Err(device.gone()),
        PPD1_BACK_TO_BACK => {}
        0 => return Err(device.unusable("the port is an ordinary root port, not an NTB", help)),
        connection => {
            let problem = format!("its connection is {}, not \"NTB to NTB\" but \"NTB to root port\"", connection >> 8);
            return Err(device.unusable(problem, help));
        }
    }
    if device.function.bar(4).is_some_and(|bar| !bar.is_64bit) || device.function.bar(5).is_some() {
        return Err(device.unusable("its BAR 4/5 is split into two of 32 bits", help));
    }
    xeon::chip(device, Icx { is_ice_lake })
}

impl Icx {
    /// Lets the link train. Returns false if the chip does not take it up.
    fn train(&self, device: &Driven) -> bool {
        let registers = device.registers();
        registers.write16(LINK_CONTROL, registers.read16(LINK_CONTROL) & !LINK_DISABLE);
        registers.write32(PPD0, registers.read32(PPD0) | PPD0_TRAIN);
        registers.read32(PPD0) & PPD0_TRAIN != 0
    }
}

impl Generation for Icx {
    const DOORBELLS: usize = 32;
    const INT_VECTOR: u64 = 0x50;
    const LINK_VECTOR: u8 = 32;
    const PEER_SCRATCHPAD: u64 = 0x8080;
    const NAMES: [[&'static str; 2]; 2] = [["IM23XBASE", "IM23XLMT"], ["IM45XBASE", "IM45XLMT"]];

    fn iova_align(&self, size: u64) -> u64 {
        if self.is_ice_lake {
            size
        } else {
            4096
        }
    }

    fn open(&self, device: &Driven, window: usize, size: u64) -> Result<(), PciError> {
        if !self.is_ice_lake {
            return Ok(());
        }
        // Rounded up: the limit is exact.
        let index = size.next_power_of_two().trailing_zeros();
        let (name, offset) = BASE_INDEX[window];
        device.write_checked(name, (offset, Width::Word), index.into(), SIZES_DIFFER)
    }

    fn close(&self, device: &Driven, window: usize) {
        if self.is_ice_lake {
            device.registers().write16(BASE_INDEX[window].1, 0);
        }
    }

    fn initialize(&self, _device: &Driven) {}

    fn enable_link(&self, device: &Driven) -> Result<(), PciError> {
        let registers = device.registers();
        // A process that has died may have left the link enabled: the neighbour has to see that this one begins anew.
        registers.write16(LINK_CONTROL, registers.read16(LINK_CONTROL) | LINK_DISABLE);
        if !self.is_ice_lake {
            registers.write32(LTR_ACTIVE.0, LTR_ACTIVE.1);
            registers.write32(LTR_IDLE.0, LTR_IDLE.1);
            registers.write8(LTR_SELECT, SELECT_ACTIVE);
        }
        registers.write32(CONTROL, CONTROL_SNOOP);
        let help = "Set the ports of both hosts to \"NTB to NTB\" in the BIOS, one as upstream and one as downstream \
                    device, both of PCI Express 4 (Sapphire Rapids: \"Gen4 only\")";
        match self.train(device) {
            true => Ok(()),
            false => Err(device.unusable("the link is not training: bit 3 of PPD0 does not stay set", help)),
        }
    }

    fn disable_link(&self, device: &Driven) {
        let registers = device.registers();
        registers.write32(CONTROL, registers.read32(CONTROL) & !CONTROL_SNOOP);
        registers.write16(LINK_CONTROL, registers.read16(LINK_CONTROL) | LINK_DISABLE);
        if !self.is_ice_lake {
            registers.write8(LTR_SELECT, SELECT_IDLE);
        }
    }

    fn link(&self, device: &Driven) -> Result<LinkStatus, PciError> {
        let registers = device.registers();
        let status = match registers.read16(LINK_STATUS) {
            u16::MAX => return Err(device.gone()),
            word => link_status(word),
        };
        // The chip may have given the training up with the link; the snooping shows that this driver wants the link.
        let is_wanted = status == LinkStatus::Down && registers.read32(CONTROL) & CONTROL_SNOOP != 0;
        if is_wanted && registers.read32(PPD0) & PPD0_TRAIN == 0 {
            self.train(device);
        }
        Ok(status)
    }

    fn before_link_is_cleared(&self, device: &Driven) {
        device.registers().write16(SLOT_STATUS, LINK_STATE_CHANGED);
    }
}
