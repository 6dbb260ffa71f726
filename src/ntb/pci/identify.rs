//! The choice of a function's driver.

use crate::amd::amd;
use crate::catalogue::{chip_of, Driver};
use crate::chip::Chip;
use crate::error::PciError;
use crate::function::Function;
use crate::intel::{icx, skx};
use crate::ivshmem::ivshmem;
use crate::plx::Plx;
use std::sync::Arc;

/// Text on the drivers that exist.
const DRIVERS: &str =
    "ntbring has a driver for Intel (Skylake to Granite Rapids), PLX/Broadcom PEX 87xx, AMD, Hygon and ivshmem only";

/// Returns the driver of a function. Fails if there is none, or if the function is in a mode that cannot be used.
pub fn identify(function: Arc<dyn Function>) -> Result<Arc<dyn Chip>, PciError> {
    let identity = function.identity();
    if identity.vendor == 0xffff {
        return Err(PciError::Gone { identity });
    }
    let chip = chip_of(&identity);
    match chip.and_then(|chip| chip.driver) {
        Some(Driver::Skx) => skx(function),
        Some(Driver::Icx) => icx(function),
        Some(Driver::Amd) => amd(function),
        Some(Driver::Ivshmem) => ivshmem(function),
        Some(Driver::Plx) => Ok(Arc::new(Plx::new(function)?)),
        None => {
            let (chip, advice) = chip.map_or(("no NTB adapter", ""), |chip| (chip.name, chip.advice));
            Err(PciError::Unknown { identity, chip, advice: if advice.is_empty() { DRIVERS } else { advice } })
        }
    }
}
