//! Number and revision of the chip, and the interface that a function is.

use crate::error::PciError;
use crate::function::Function;
use crate::registers::{Block, Space};

/// Name of the chips, for messages.
pub(super) const NAME: &str = "PLX/Broadcom PEX 87xx";

const PLX: u32 = 0x10b5;
const BROADCOM: u32 = 0x1000;

/// Configuration space: subsystem device (16 bits), and the first capability (8 bits).
const SUBSYSTEM_DEVICE: u64 = 0x2e;
const CAPABILITIES: u64 = 0x34;
const VENDOR_SPECIFIC: u8 = 0x09;
const EXTENDED_CAPABILITIES: u64 = 0x100;
const EXTENDED_VENDOR_SPECIFIC: u16 = 0x0b;
/// Offset of the chip's number in a vendor-specific capability and in an extended one; the revision is in the next dword.
const NUMBER: u64 = 0x18;
const EXTENDED_NUMBER: u64 = 8;
/// Most capabilities of a function: the chain of a broken one may be a circle.
const CAPABILITIES_MAX: usize = 64;

/// Configuration space: number of the NTB in bit 0; bit 31 is set on the Link side (32 bits).
const INTERFACE: u64 = 0xc8c;
const IS_LINK: u32 = 1 << 31;

/// An interface of an NTB.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    /// The function in the host of the switch.
    Virtual,
    /// The function at the other end.
    Link,
}

impl Side {
    /// Returns the other interface of the NTB.
    pub fn other(self) -> Side {
        match self {
            Side::Virtual => Side::Link,
            Side::Link => Side::Virtual,
        }
    }
}

/// The identity of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PlxIdentity {
    /// Number of the NTB in the chip, 0 or 1.
    pub nt: u8,
    /// The interface.
    pub side: Side,
    /// True if the chip can have tables of translations (A-LUT) in place of one translation.
    pub may_have_alut: bool,
}

/// Generations of chips that differ for a driver.
enum Generation {
    /// One NTB and no register that names the interface.
    Draco1,
    /// Up to two NTBs; the flag says that the chip may have an A-LUT, and so a second NTB.
    Draco2(bool),
    /// Its table of requester ids is another one, which ntbring cannot fill.
    Capella,
    /// It has no NTB.
    None,
    /// Another machine altogether, or an unknown one.
    Foreign,
}

/// Revision of the chips of the first generation.
const FIRST_REVISION: u8 = 0xaa;

fn generation(number: u16, revision: u8) -> Generation {
    match number {
        0x8747 | 0x8723 => Generation::None,
        0x8712 | 0x8716 | 0x8724 | 0x8732 | 0x8748 if revision == FIRST_REVISION => Generation::Draco1,
        0x8712 | 0x8716 | 0x8724 | 0x8732 | 0x8748 => Generation::Draco2(false),
        0x8713 | 0x8717 | 0x8725 | 0x8733 | 0x8749 => Generation::Draco2(true),
        0x8714 | 0x8718 | 0x8734 | 0x8750 | 0x8764 | 0x8780 | 0x8796 => Generation::Capella,
        _ => Generation::Foreign,
    }
}

impl PlxIdentity {
    /// Reads the identity of a function. Fails if its chip cannot be used.
    pub fn read(function: &dyn Function) -> Result<PlxIdentity, PciError> {
        let identity = function.identity();
        let config = Block::new(function, Space::Config);
        let unusable = |problem: String, help| Err(PciError::Unusable { chip: NAME, identity, problem, help });
        let (number, revision) = chip(&config, identity.revision);
        let by_id = |may_have_alut| PlxIdentity {
            nt: (identity.device & 1) as u8,
            side: if identity.device & 0x10 == 0 { Side::Link } else { Side::Virtual },
            may_have_alut,
        };
        let help = "ntbring can use PEX 8712, 8713, 8716, 8717, 8724, 8725, 8732, 8733, 8748 and 8749";
        let found = match generation(number, revision) {
            Generation::None => return unusable(format!("the chip PEX {number:04x} has no NTB"), help),
            Generation::Capella => {
                let problem = format!("ntbring cannot fill the table of requester ids of the chip PEX {number:04x}");
                return unusable(problem, help);
            }
            Generation::Foreign => return unusable(format!("the chip {number:04x} is of another family"), help),
            Generation::Draco1 => by_id(false),
            Generation::Draco2(may_have_alut) => {
                let found = by_id(may_have_alut);
                let register = config.read32(INTERFACE);
                let side = if register & IS_LINK == 0 { Side::Virtual } else { Side::Link };
                if register == u32::MAX {
                    return Err(PciError::Gone { identity });
                }
                if (register as u8 & 1, side) != (found.nt, found.side) {
                    let problem = format!("its device id and its register C8C ({register:#010x}) name two interfaces");
                    return unusable(problem, "Check the contents of the EEPROM");
                }
                found
            }
        };
        if found.nt == 1 && !found.may_have_alut {
            return unusable(format!("the chip PEX {number:04x} has only one NTB, and this is the second"), help);
        }
        Ok(found)
    }
}

/// Returns number and revision of the chip: the vendor-specific capability has them, or else the subsystem id the number.
fn chip<'a>(config: &Block<'a, dyn Function + 'a>, revision: u8) -> (u16, u8) {
    let at = |offset: u64| {
        let dword = config.read32(offset);
        let is_number = matches!(dword & 0xffff, PLX | BROADCOM);
        is_number.then(|| ((dword >> 16) as u16, config.read32(offset + 4) as u8))
    };
    plain(config).and_then(at).or_else(|| extended(config).and_then(at)).unwrap_or_else(|| {
        // Byte accesses only: a word at this place is a half of a register.
        let [low, high] = [0, 1].map(|byte| config.read8(SUBSYSTEM_DEVICE + byte));
        (u16::from_le_bytes([low, high]), revision)
    })
}

/// Returns the place of the number in the capabilities.
fn plain<'a>(config: &Block<'a, dyn Function + 'a>) -> Option<u64> {
    let mut capability = config.read8(CAPABILITIES);
    for _ in 0..CAPABILITIES_MAX {
        let at = u64::from(capability & !3);
        if at < 0x40 {
            break;
        }
        let [id, next, _length, vendor_id] = config.read32(at).to_le_bytes();
        if id == VENDOR_SPECIFIC && vendor_id <= 1 {
            return Some(at + NUMBER);
        }
        capability = next;
    }
    None
}

/// Returns the place of the number in the extended capabilities.
fn extended<'a>(config: &Block<'a, dyn Function + 'a>) -> Option<u64> {
    let mut at = EXTENDED_CAPABILITIES;
    for _ in 0..CAPABILITIES_MAX {
        let header = config.read32(at);
        if header == 0 || header == u32::MAX {
            break;
        }
        if header as u16 == EXTENDED_VENDOR_SPECIFIC && config.read32(at + 4) as u16 == 1 {
            return Some(at + EXTENDED_NUMBER);
        }
        at = u64::from(header >> 20 & !3);
        if at < EXTENDED_CAPABILITIES {
            break;
        }
    }
    None
}
