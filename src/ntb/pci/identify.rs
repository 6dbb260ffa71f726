//! The choice of a function's driver.

use crate::catalogue::chip_of;
use crate::chip::Chip;
use crate::error::PciError;
use crate::function::Function;
use crate::intel::Skx;
use std::sync::Arc;

/// Returns the driver of a function. Fails if there is none, or if the function is in a mode that cannot be used.
pub fn identify(function: Arc<dyn Function>) -> Result<Arc<dyn Chip>, PciError> {
    let identity = function.identity();
    match (identity.vendor, identity.device) {
        (0xffff, _) => Err(PciError::Gone { identity }),
        (0x8086, 0x201c) => Ok(Arc::new(Skx::new(function)?)),
        _ => Err(PciError::Unknown { identity, chip: chip_of(&identity).map_or("no NTB adapter", |chip| chip.name) }),
    }
}
