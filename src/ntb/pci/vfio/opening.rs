//! Parts that the two ways of opening functions share.

use super::container::Iommu;
use crate::error::PciError;
use crate::identity::Identity;
use crate::sysfs::SysFunction;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::{Duration, Instant};

/// A function in /sys that vfio-pci is bound to.
pub(super) type Usable = (SysFunction, Identity);

/// Functions that were opened together, in order.
pub(super) struct Opened {
    pub iommu: Box<dyn Iommu>,
    pub devices: Vec<OwnedFd>,
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

/// Returns the error for a function whose IOMMU group has functions that other drivers use.
pub(super) fn shared_group(function: &SysFunction, identity: Identity) -> PciError {
    let foreign: Vec<String> = function.foreign_members().collect();
    let problem = format!("its IOMMU group has functions that another driver uses: {}", foreign.join(", "));
    let help = "Bind them to vfio-pci, too, or put the adapter into a slot with a group of its own";
    PciError::Unusable { chip: "VFIO", identity, problem, help }
}
