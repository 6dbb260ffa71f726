//! Opening functions that are bound to vfio-pci, through their IOMMU groups or, where the kernel has no files for
//! groups, through files of their own.

use super::container::{Container, Iommu};
use super::device::VfioFunction;
use super::{cdev, group};
use crate::error::PciError;
use crate::identity::{Identity, PciAddress};
use crate::sysfs::{SysFunction, Sysfs};
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A function in /sys that vfio-pci is bound to.
pub(super) type Usable = (SysFunction, Identity);

/// Functions that were opened together, in order.
pub(super) struct Opened {
    pub iommu: Box<dyn Iommu>,
    pub devices: Vec<OwnedFd>,
}

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

/// Returns a conversion of errors: `help` follows the error, after a semicolon.
pub(super) fn fail(
    identity: Identity,
    operation: &'static str,
    help: &'static str,
) -> impl FnOnce(io::Error) -> PciError {
    move |source| PciError::System { identity, operation, source, help: help.into() }
}

/// Opens a file of a device for reading and writing.
pub(super) fn open_device(path: &Path) -> io::Result<OwnedFd> {
    File::options().read(true).write(true).open(path).map(OwnedFd::from)
}

/// Longest time that the kernel may take to release the functions of an agent that has ended.
const RELEASE: Duration = Duration::from_secs(10);

/// Calls `open` again while the file is busy: an agent that has just ended may still be about to release it.
pub(super) fn patiently<T>(open: impl Fn() -> io::Result<T>) -> io::Result<T> {
    let start = Instant::now();
    loop {
        match open() {
            Err(error) if error.kind() == io::ErrorKind::ResourceBusy && start.elapsed() < RELEASE => {
                std::thread::sleep(Duration::from_millis(50));
            }
            outcome => return outcome,
        }
    }
}

pub(super) fn no_iommu(identity: Identity) -> PciError {
    PciError::Unusable {
        chip: "VFIO",
        identity,
        problem: "it is in no IOMMU group: without an IOMMU a neighbour could write any memory of this host".into(),
        help: "Enable VT-d or AMD-Vi in the BIOS, and boot with intel_iommu=on if it is an Intel processor",
    }
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

/// Returns the error for a function whose IOMMU group has functions that other drivers use.
pub(super) fn shared_group(function: &SysFunction, identity: Identity) -> PciError {
    let foreign: Vec<String> = function.foreign_members().collect();
    let problem = format!("its IOMMU group has functions that another driver uses: {}", foreign.join(", "));
    let help = "Bind them to vfio-pci, too, or put the adapter into a slot with a group of its own";
    PciError::Unusable { chip: "VFIO", identity, problem, help }
}
