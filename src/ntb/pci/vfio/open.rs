//! Opening functions that are bound to vfio-pci, through their IOMMU groups or, where the kernel has no files for
//! groups, through files of their own.

use super::container::Container;
use super::device::VfioFunction;
use super::opening::{fail, Usable};
use super::{cdev, group};
use crate::error::PciError;
use crate::identity::{Identity, PciAddress};
use crate::sysfs::{SysFunction, Sysfs};
use std::os::fd::OwnedFd;
use std::sync::Arc;

/// Opens functions that are bound to vfio-pci. Fails with a sentence on what to do if one of them cannot be used.
pub fn open(addresses: &[PciAddress]) -> Result<Vec<Arc<VfioFunction>>, PciError> {
    let functions: Vec<Usable> = addresses.iter().map(|&address| usable(address)).collect::<Result<_, _>>()?;
    let Some((first, identity)) = functions.first() else { return Ok(Vec::new()) };
    let opened = match group::is_there(first) {
        false if cdev::is_there(first) => cdev::open(&functions)?,
        _ => group::open(&functions)?,
    };
    let container = Container::new(opened.iommu);
    let container = Arc::new(container.map_err(fail(*identity, "asking for the IOMMU's addresses", ""))?);
    let open = |((function, identity), device): (&Usable, OwnedFd)| {
        VfioFunction::new(container.clone(), function, *identity, device).map(Arc::new)
    };
    functions.iter().zip(opened.devices).map(open).collect()
}

/// Returns a function if vfio-pci is bound to it.
fn usable(address: PciAddress) -> Result<(SysFunction, Identity), PciError> {
    let function = Sysfs::system().function(address);
    let identity = function.identity().ok_or(PciError::Missing { address })?;
    let help = "`ntbring bind` binds vfio-pci to it";
    let problem = match function.driver().as_deref() {
        Some("vfio-pci") => return Ok((function, identity)),
        Some(driver) => format!("the driver {driver} is bound to it"),
        None => "no driver is bound to it".into(),
    };
    Err(PciError::Unusable { chip: "VFIO", identity, problem, help })
}
