//! The NTB chips that exist, by their ids, whether ntbring has a driver for them or not.

use crate::identity::Identity;

/// A family of chips.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KnownChip {
    /// Its name.
    pub name: &'static str,
    /// True if ntbring has a driver for it.
    pub has_driver: bool,
}

/// Vendors.
const INTEL: u16 = 0x8086;
const PLX: u16 = 0x10b5;
const AMD: u16 = 0x1022;
const HYGON: u16 = 0x1d94;
const MICROSEMI: u16 = 0x11f8;

/// Class of a function: "other bridge". Switches of Microsemi have many functions, of which only these are NTBs.
const OTHER_BRIDGE: u32 = 0x0680;

/// Returns the chip of a function; None if it is no NTB.
pub fn chip_of(identity: &Identity) -> Option<KnownChip> {
    let without_driver = |name| Some(KnownChip { name, has_driver: false });
    match (identity.vendor, identity.device) {
        (INTEL, 0x201c) => {
            Some(KnownChip { name: "Intel Xeon NTB (Skylake, Cascade Lake, Cooper Lake)", has_driver: true })
        }
        (INTEL, 0x347e) => without_driver("Intel Xeon NTB (Ice Lake, Sapphire Rapids)"),
        (INTEL, 0x0db4) => without_driver("Intel Xeon NTB (Granite Rapids)"),
        (INTEL, 0x7868) => without_driver("Intel Xeon NTB (Diamond Rapids)"),
        (INTEL, 0x3725..=0x3727 | 0x3c0d..=0x3c0f | 0x0e0d..=0x0e0f | 0x2f0d..=0x2f0f | 0x6f0d..=0x6f0f) => {
            without_driver("Intel Xeon NTB (before Skylake)")
        }
        (PLX, 0x87a0 | 0x87a1 | 0x87b0 | 0x87b1) => without_driver("PLX/Broadcom PEX 87xx"),
        (AMD, 0x145b | 0x148b | 0x14c0 | 0x14c3 | 0x155a | 0x17d4 | 0x17d7) => without_driver("AMD NTB"),
        (HYGON, 0x145b) => without_driver("Hygon NTB"),
        (MICROSEMI, 0x8531..=0x8576) if identity.class >> 8 == OTHER_BRIDGE => {
            without_driver("Microsemi Switchtec NTB")
        }
        _ => None,
    }
}
