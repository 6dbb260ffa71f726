//! The families of chips that are modelled.

use crate::amd::Amd;
use crate::cable::Cable;
use crate::icx::Icx;
use crate::ivshmem::Ivshmem;
use crate::joined::Joined;
use crate::plx::{Plx87, RANGE_MIN};
use crate::skx::Skx;

/// A family of modelled chips, in one of its modes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "server", derive(clap::ValueEnum))]
pub enum Model {
    /// Intel gen3, back to back: Skylake, Cascade Lake, Cooper Lake.
    Skx,
    /// Intel gen4, back to back: Ice Lake.
    Icx,
    /// Intel gen4 and gen5, back to back: Sapphire Rapids and later.
    Spr,
    /// AMD and Hygon: one device, which both hosts see.
    Amd,
    /// PLX/Broadcom PEX 8749, back to back.
    Plx87,
    /// PLX/Broadcom PEX 8749, NTB to root port.
    Plx87RootPort,
    /// Memory that two virtual machines share, with interrupts (QEMU's ivshmem-doorbell).
    Ivshmem,
}

impl Model {
    /// All families.
    pub const ALL: [Model; 7] =
        [Model::Skx, Model::Icx, Model::Spr, Model::Amd, Model::Plx87, Model::Plx87RootPort, Model::Ivshmem];

    /// Returns a new cable between two functions, with windows of `window` bytes.
    pub fn cable(self, window: u64) -> Cable {
        match self {
            Model::Skx => Cable::new(Joined::new(Skx, window)),
            Model::Icx => Cable::new(Joined::new(Icx::IceLake, window)),
            Model::Amd => Cable::new(Joined::new(Amd::default(), window)),
            Model::Spr => Cable::new(Joined::new(Icx::SapphireRapids, window)),
            // The second range leads to registers only.
            Model::Plx87 => Cable::new(Plx87::back_to_back(0x8749, 0, [window.max(RANGE_MIN), RANGE_MIN])),
            Model::Ivshmem => Cable::new(Ivshmem::new(Ivshmem::memory_for(window))),
            Model::Plx87RootPort => Cable::new(Plx87::root_port(0x8749, 0, [window.max(RANGE_MIN), 0])),
        }
    }
}
