//! The NTB chips that exist, by their ids, whether ntbring has a driver for them or not.

use crate::identity::Identity;

/// A family of chips.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KnownChip {
    /// Its name.
    pub name: &'static str,
    /// True if ntbring has a driver for it.
    pub has_driver: bool,
    /// Advice for owners of a chip without a driver; empty if there is none.
    pub advice: &'static str,
    pub(crate) driver: Option<Driver>,
}

impl KnownChip {
    /// Returns true if the device is one of a virtual machine.
    pub fn is_virtual(&self) -> bool {
        self.driver == Some(Driver::Ivshmem)
    }
}

/// Drivers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Driver {
    Skx,
    Icx,
    Amd,
    Plx,
    Ivshmem,
}

/// Vendors.
const INTEL: u16 = 0x8086;
const PLX: u16 = 0x10b5;
const AMD: u16 = 0x1022;
const HYGON: u16 = 0x1d94;
const MICROSEMI: u16 = 0x11f8;
const RED_HAT: u16 = 0x1af4;

/// Class of a function: "other bridge". Switches of Microsemi have many functions, of which only these are NTBs.
const OTHER_BRIDGE: u32 = 0x0680;

/// The processors before Skylake need ways around errata that cost them a window or reliability.
const BEFORE_SKYLAKE: &str =
    "its doorbells lock up under traffic (errata), so that a driver has to give a window up for \
                              them: use it with Linux's driver ntb_hw_intel and ntb_netdev";

/// Returns the chip of a function; None if it is no NTB.
pub fn chip_of(identity: &Identity) -> Option<KnownChip> {
    let known = |name, driver| Some(KnownChip { name, has_driver: true, advice: "", driver: Some(driver) });
    let without_driver = |name, advice| Some(KnownChip { name, has_driver: false, advice, driver: None });
    match (identity.vendor, identity.device) {
        (INTEL, 0x201c) => known("Intel Xeon NTB (Skylake, Cascade Lake, Cooper Lake)", Driver::Skx),
        (INTEL, 0x347e) => known("Intel Xeon NTB (Ice Lake, Sapphire Rapids)", Driver::Icx),
        (INTEL, 0x0db4) => known("Intel Xeon NTB (Granite Rapids)", Driver::Icx),
        (INTEL, 0x7868) => without_driver("Intel Xeon NTB (Diamond Rapids)", ""),
        (INTEL, 0x3725..=0x3727 | 0x3c0d..=0x3c0f | 0x0e0d..=0x0e0f | 0x2f0d..=0x2f0f | 0x6f0d..=0x6f0f) => {
            without_driver("Intel Xeon NTB (before Skylake)", BEFORE_SKYLAKE)
        }
        (PLX, 0x87a0 | 0x87a1 | 0x87b0 | 0x87b1) => known("PLX/Broadcom PEX 87xx", Driver::Plx),
        (AMD, 0x145b | 0x148b | 0x14c0 | 0x14c3 | 0x155a | 0x17d4 | 0x17d7) => known("AMD NTB", Driver::Amd),
        (HYGON, 0x145b) => known("Hygon NTB", Driver::Amd),
        (RED_HAT, 0x1110) => known("ivshmem, memory that two virtual machines share", Driver::Ivshmem),
        (MICROSEMI, 0x8531..=0x8576) if identity.class >> 8 == OTHER_BRIDGE => {
            without_driver("Microsemi Switchtec NTB", "")
        }
        _ => None,
    }
}
