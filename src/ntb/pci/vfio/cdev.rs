//! Opening functions through files of their own, with a memory map of iommufd: the way of kernels that have no files for
//! IOMMU groups (6.6 and later).

use super::calls::{self, Call};
use super::container::{Addresses, Iommu};
use super::opening::{fail, open_device, patiently, shared_group, Opened, Usable};
use crate::error::PciError;
use crate::sysfs::SysFunction;
use iommufd_bindings::iommufd::{self, iommu_ioas_alloc, iommu_ioas_iova_ranges, iommu_ioas_map, iommu_ioas_unmap};
use std::fs;
use std::io;
use std::mem::{offset_of, size_of};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use vfio_bindings::bindings::vfio::{vfio_device_attach_iommufd_pt, vfio_device_bind_iommufd};

const IOMMU: &str = "/dev/iommu";

/// Size of the parts of structures that all kernels know; later ones have added fields.
const BIND: usize = offset_of!(vfio_device_bind_iommufd, out_devid) + 4;
const ATTACH: usize = offset_of!(vfio_device_attach_iommufd_pt, pt_id) + 4;

/// Largest number of ranges of bus addresses that are asked for.
const RANGES: usize = 64;

/// Returns the file of a function; None if the kernel has none.
fn path(function: &SysFunction) -> Option<PathBuf> {
    let mut names = fs::read_dir(function.file("vfio-dev")).ok()?;
    Some(Path::new("/dev/vfio/devices").join(names.next()?.ok()?.file_name()))
}

/// Returns true if the kernel has a file for a function.
pub(super) fn is_there(function: &SysFunction) -> bool {
    path(function).is_some_and(|path| path.exists())
}

/// Opens functions and attaches them to one memory map.
pub(super) fn open(functions: &[Usable]) -> Result<Opened, PciError> {
    let (_, first) = functions[0];
    let no_iommufd = "; load the kernel's module: modprobe iommufd";
    let fd = open_device(Path::new(IOMMU)).map_err(fail(first, "opening /dev/iommu", no_iommufd))?;
    let mut alloc = iommu_ioas_alloc { size: size_of::<iommu_ioas_alloc>() as u32, ..Default::default() };
    // SAFETY: it is the structure of this call.
    let allocated = unsafe { calls::with_struct(fd.as_fd(), Call::IoasAlloc, &mut alloc) };
    allocated.map_err(fail(first, "creating a memory map of the IOMMU", ""))?;
    let ioas = Ioas { fd, id: alloc.out_ioas_id };
    let open = |(function, identity): &Usable| {
        let missing = || io::Error::from(io::ErrorKind::NotFound);
        let device = path(function).ok_or_else(missing).and_then(|path| open_device(&path));
        let help = "; this user may not open /dev/vfio/devices";
        let device = device.map_err(fail(*identity, "opening its file in /dev/vfio/devices", help))?;
        patiently(|| ioas.bind(&device)).map_err(|error| match error.raw_os_error() {
            Some(libc::EBUSY) if function.foreign_members().next().is_some() => shared_group(function, *identity),
            _ => fail(*identity, "binding it to iommufd", "; another process uses it (another ntbringd?)")(error),
        })?;
        let help =
            "; if the kernel log says \"No interrupt remapping\", the IOMMU cannot keep the function from raising \
                    foreign interrupts: iommufd.allow_unsafe_interrupts=1 permits it nevertheless";
        ioas.attach(&device).map_err(fail(*identity, "attaching it to the IOMMU", help))?;
        Ok(device)
    };
    let devices = functions.iter().map(open).collect::<Result<_, _>>()?;
    Ok(Opened { iommu: Box::new(ioas), devices })
}

/// A memory map of iommufd.
struct Ioas {
    fd: OwnedFd,
    id: u32,
}

impl Ioas {
    /// Makes this process the user of a function.
    fn bind(&self, device: &OwnedFd) -> io::Result<()> {
        let (argsz, iommufd) = (BIND as u32, self.fd.as_raw_fd());
        let mut bind = vfio_device_bind_iommufd { argsz, iommufd, ..Default::default() };
        // SAFETY: it is the structure of this call.
        unsafe { calls::with_struct(device.as_fd(), Call::DeviceBindIommufd, &mut bind) }.map(drop)
    }

    /// Makes this the memory map of a function.
    fn attach(&self, device: &OwnedFd) -> io::Result<()> {
        let (argsz, pt_id) = (ATTACH as u32, self.id);
        let mut attach = vfio_device_attach_iommufd_pt { argsz, pt_id, ..Default::default() };
        // SAFETY: it is the structure of this call.
        unsafe { calls::with_struct(device.as_fd(), Call::DeviceAttachIommufd, &mut attach) }.map(drop)
    }
}

impl Iommu for Ioas {
    fn ranges(&self) -> io::Result<Vec<Addresses>> {
        let mut found = vec![iommufd::iommu_iova_range::default(); RANGES];
        let mut ranges = iommu_ioas_iova_ranges {
            size: size_of::<iommu_ioas_iova_ranges>() as u32,
            ioas_id: self.id,
            num_iovas: RANGES as u32,
            allowed_iovas: found.as_mut_ptr() as u64,
            ..Default::default()
        };
        // SAFETY: it is the structure of this call, and it points to memory for as many ranges as it says.
        match unsafe { calls::with_struct(self.fd.as_fd(), Call::IoasRanges, &mut ranges) } {
            // There are more ranges; the kernel has filled in those that fit.
            Err(error) if error.raw_os_error() != Some(libc::EMSGSIZE) => return Err(error),
            _ => found.truncate(ranges.num_iovas as usize),
        }
        Ok(found.into_iter().map(|range| (range.start, range.last)).collect())
    }

    unsafe fn map(&self, address: u64, size: u64, iova: u64) -> io::Result<()> {
        let mut map = iommu_ioas_map {
            size: size_of::<iommu_ioas_map>() as u32,
            flags: iommufd::iommufd_ioas_map_flags_IOMMU_IOAS_MAP_FIXED_IOVA
                | iommufd::iommufd_ioas_map_flags_IOMMU_IOAS_MAP_READABLE
                | iommufd::iommufd_ioas_map_flags_IOMMU_IOAS_MAP_WRITEABLE,
            ioas_id: self.id,
            user_va: address,
            length: size,
            iova,
            ..Default::default()
        };
        // SAFETY: it is the structure of this call, and the memory stays mapped by the contract of this function.
        unsafe { calls::with_struct(self.fd.as_fd(), Call::IoasMap, &mut map) }.map(drop)
    }

    fn unmap(&self, iova: u64, size: u64) -> io::Result<()> {
        let mut unmap =
            iommu_ioas_unmap { size: size_of::<iommu_ioas_unmap>() as u32, ioas_id: self.id, iova, length: size };
        // SAFETY: it is the structure of this call.
        unsafe { calls::with_struct(self.fd.as_fd(), Call::IoasUnmap, &mut unmap) }.map(drop)
    }
}
