//! Opening functions that are bound to vfio-pci.

use super::calls::{self, Call};
use super::container::Container;
use super::device::VfioFunction;
use crate::error::PciError;
use crate::identity::{Identity, PciAddress};
use crate::sysfs::{SysFunction, Sysfs};
use std::ffi::CString;
use std::fs::File;
use std::io;
use std::mem::size_of;
use std::os::fd::{AsFd, FromRawFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use vfio_bindings::bindings::vfio;

/// Opens functions that are bound to vfio-pci. Fails with a sentence on what to do if one of them cannot be used.
pub fn open(addresses: &[PciAddress]) -> Result<Vec<Arc<VfioFunction>>, PciError> {
    let functions: Vec<(SysFunction, Identity)> =
        addresses.iter().map(|&address| usable(address)).collect::<Result<_, _>>()?;
    let Some((_, first)) = functions.first() else { return Ok(Vec::new()) };
    let fail = |identity: Identity, operation, help: String| {
        move |source| PciError::System { identity, operation, source, help }
    };
    let open = |path: &Path| File::options().read(true).write(true).open(path).map(OwnedFd::from);
    let no_vfio = "; load the kernel's module: modprobe vfio-pci";
    let container =
        open(Path::new("/dev/vfio/vfio")).map_err(fail(*first, "opening /dev/vfio/vfio", no_vfio.into()))?;
    let version = calls::with_number(container.as_fd(), Call::GetApiVersion, 0);
    let version = version.map_err(fail(*first, "asking for VFIO's version", String::new()))?;
    if version != vfio::VFIO_API_VERSION as i32 {
        let problem = format!("the kernel's VFIO has version {version} instead of {}", vfio::VFIO_API_VERSION);
        return Err(PciError::Unusable { chip: "VFIO", identity: *first, problem, help: "Use another kernel" });
    }
    let type1 = calls::with_number(container.as_fd(), Call::CheckExtension, vfio::VFIO_TYPE1v2_IOMMU);
    if type1.map_err(fail(*first, "asking for VFIO's IOMMU", String::new()))? != 1 {
        return Err(PciError::Unusable {
            chip: "VFIO",
            identity: *first,
            problem: "the kernel has no driver for its IOMMU".into(),
            help: "Load the module: modprobe vfio_iommu_type1",
        });
    }
    let mut groups: Vec<(String, OwnedFd)> = Vec::new();
    for (function, identity) in &functions {
        let group = function.iommu_group().ok_or_else(|| no_iommu(*identity))?;
        if groups.iter().any(|(known, _)| *known == group) {
            continue;
        }
        let help = "; another process uses it (another ntbringd?), or this user may not open /dev/vfio";
        let fd = patiently(|| open(&Path::new("/dev/vfio").join(&group)));
        let fd = fd.map_err(fail(*identity, "opening its IOMMU group in /dev/vfio", help.into()))?;
        check_group(&fd, function, *identity)?;
        let mut raw = std::os::fd::AsRawFd::as_raw_fd(&container);
        // SAFETY: the call reads a descriptor's number.
        let set = unsafe { calls::with_struct(fd.as_fd(), Call::GroupSetContainer, &mut raw) };
        set.map_err(fail(*identity, "adding its IOMMU group to a container", String::new()))?;
        groups.push((group, fd));
    }
    let help = "; if the kernel log says \"No interrupt remapping\", the IOMMU cannot keep the function from raising \
                foreign interrupts: vfio_iommu_type1.allow_unsafe_interrupts=1 permits it nevertheless";
    let set = calls::with_number(container.as_fd(), Call::SetIommu, vfio::VFIO_TYPE1v2_IOMMU);
    set.map_err(fail(*first, "attaching it to the IOMMU", help.into()))?;
    let mut devices = Vec::new();
    for (function, identity) in &functions {
        let group = function.iommu_group();
        let fd = groups.iter().find(|(known, _)| Some(known) == group.as_ref());
        let (_, fd) = fd.ok_or_else(|| no_iommu(*identity))?;
        let device = device(fd, function.address);
        devices.push(device.map_err(fail(*identity, "opening it through its IOMMU group", String::new()))?);
    }
    let groups = groups.into_iter().map(|(_, fd)| fd).collect();
    let container = Container::new(container, groups);
    let container = container.map_err(fail(*first, "asking for the IOMMU's addresses", String::new()))?;
    let container = Arc::new(container);
    let open = |((function, identity), device): (&(SysFunction, Identity), OwnedFd)| {
        VfioFunction::new(container.clone(), function, *identity, device).map(Arc::new)
    };
    functions.iter().zip(devices).map(open).collect()
}

/// Longest time that the kernel may take to release the functions of an agent that has ended.
const RELEASE: Duration = Duration::from_secs(10);

/// Calls `open` again while the file is busy: an agent that has just ended may still be about to release it.
fn patiently<T>(open: impl Fn() -> io::Result<T>) -> io::Result<T> {
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

fn no_iommu(identity: Identity) -> PciError {
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

/// Fails unless all functions of a group may be used by this process.
fn check_group(fd: &OwnedFd, function: &SysFunction, identity: Identity) -> Result<(), PciError> {
    let mut status = vfio::vfio_group_status { argsz: size_of::<vfio::vfio_group_status>() as u32, flags: 0 };
    // SAFETY: it is the structure of this call.
    let got = unsafe { calls::with_struct(fd.as_fd(), Call::GroupGetStatus, &mut status) };
    got.map_err(|source| {
        let (operation, help) = ("asking for the state of its IOMMU group", String::new());
        PciError::System { identity, operation, source, help }
    })?;
    if status.flags & vfio::VFIO_GROUP_FLAGS_VIABLE != 0 {
        return Ok(());
    }
    let foreign = function.group_members().into_iter().filter_map(|member| {
        let driver = member.driver().filter(|driver| driver != "vfio-pci" && driver != "pcieport")?;
        Some(format!("{} ({driver})", member.address))
    });
    let problem =
        format!("its IOMMU group has functions that another driver uses: {}", foreign.collect::<Vec<_>>().join(", "));
    let help = "Bind them to vfio-pci, too, or put the adapter into a slot with a group of its own";
    Err(PciError::Unusable { chip: "VFIO", identity, problem, help })
}

/// Opens a function through its group.
fn device(group: &OwnedFd, address: PciAddress) -> io::Result<OwnedFd> {
    let name = CString::new(address.to_string()).map_err(io::Error::other)?;
    // SAFETY: the call reads a string that ends with NUL.
    let fd = unsafe { calls::with_struct(group.as_fd(), Call::GroupGetDeviceFd, name.as_ptr().cast_mut()) }?;
    // SAFETY: the call has returned a new descriptor, which nothing else owns.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}
