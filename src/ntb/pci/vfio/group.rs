//! Opening functions through their IOMMU groups, whose memory map is that of a container of VFIO: the way of all kernels.

use super::calls::{self, Call};
use super::container::{Addresses, Iommu};
use super::opening::{fail, no_iommu, open_device, patiently, shared_group, Opened, Usable};
use crate::error::PciError;
use crate::identity::{Identity, PciAddress};
use crate::sysfs::SysFunction;
use std::ffi::CString;
use std::io;
use std::mem::size_of;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use vfio_bindings::bindings::vfio;

fn path(group: &str) -> PathBuf {
    Path::new("/dev/vfio").join(group)
}

/// Returns true if the kernel has a file for the group of a function.
pub(super) fn is_there(function: &SysFunction) -> bool {
    function.iommu_group().is_some_and(|group| path(&group).exists())
}

/// Opens functions and puts their groups into one container.
pub(super) fn open(functions: &[Usable]) -> Result<Opened, PciError> {
    let (_, first) = functions[0];
    let no_vfio = "; load the kernel's module: modprobe vfio-pci";
    let fd = open_device(Path::new("/dev/vfio/vfio")).map_err(fail(first, "opening /dev/vfio/vfio", no_vfio))?;
    check_container(&fd, first)?;
    let mut groups: Vec<(String, OwnedFd)> = Vec::new();
    for (function, identity) in functions {
        let group = function.iommu_group().ok_or_else(|| no_iommu(*identity))?;
        if groups.iter().any(|(known, _)| *known == group) {
            continue;
        }
        let help = "; another process uses it (another ntbringd?), or this user may not open /dev/vfio";
        let group_fd = patiently(|| open_device(&path(&group)));
        let group_fd = group_fd.map_err(fail(*identity, "opening its IOMMU group in /dev/vfio", help))?;
        check_group(&group_fd, function, *identity)?;
        let mut raw = fd.as_raw_fd();
        // SAFETY: the call reads a descriptor's number.
        let set = unsafe { calls::with_struct(group_fd.as_fd(), Call::GroupSetContainer, &mut raw) };
        set.map_err(fail(*identity, "adding its IOMMU group to a container", ""))?;
        groups.push((group, group_fd));
    }
    let help = "; if the kernel log says \"No interrupt remapping\", the IOMMU cannot keep the function from raising \
                foreign interrupts: vfio_iommu_type1.allow_unsafe_interrupts=1 permits it nevertheless";
    let set = calls::with_number(fd.as_fd(), Call::SetIommu, vfio::VFIO_TYPE1v2_IOMMU);
    set.map_err(fail(first, "attaching it to the IOMMU", help))?;
    let mut devices = Vec::new();
    for (function, identity) in functions {
        let group = function.iommu_group();
        let found = groups.iter().find(|(known, _)| Some(known) == group.as_ref());
        let (_, group_fd) = found.ok_or_else(|| no_iommu(*identity))?;
        let device = device(group_fd, function.address);
        devices.push(device.map_err(fail(*identity, "opening it through its IOMMU group", ""))?);
    }
    let groups = groups.into_iter().map(|(_, fd)| fd).collect();
    Ok(Opened { iommu: Box::new(Type1 { fd, _groups: groups }), devices })
}

/// Fails unless the kernel's VFIO has the version and the IOMMU that this code was written for.
fn check_container(container: &OwnedFd, identity: Identity) -> Result<(), PciError> {
    let unusable = |problem: String, help| Err(PciError::Unusable { chip: "VFIO", identity, problem, help });
    let version = calls::with_number(container.as_fd(), Call::GetApiVersion, 0);
    let version = version.map_err(fail(identity, "asking for VFIO's version", ""))?;
    if version != vfio::VFIO_API_VERSION as i32 {
        let problem = format!("the kernel's VFIO has version {version} instead of {}", vfio::VFIO_API_VERSION);
        return unusable(problem, "Use another kernel");
    }
    let type1 = calls::with_number(container.as_fd(), Call::CheckExtension, vfio::VFIO_TYPE1v2_IOMMU);
    if type1.map_err(fail(identity, "asking for VFIO's IOMMU", ""))? != 1 {
        let problem = "the kernel has no driver for its IOMMU".into();
        return unusable(problem, "Load the module: modprobe vfio_iommu_type1");
    }
    Ok(())
}

/// Fails unless all functions of a group may be used by this process.
fn check_group(fd: &OwnedFd, function: &SysFunction, identity: Identity) -> Result<(), PciError> {
    let mut status = vfio::vfio_group_status { argsz: size_of::<vfio::vfio_group_status>() as u32, flags: 0 };
    // SAFETY: it is the structure of this call.
    let got = unsafe { calls::with_struct(fd.as_fd(), Call::GroupGetStatus, &mut status) };
    got.map_err(fail(identity, "asking for the state of its IOMMU group", ""))?;
    if status.flags & vfio::VFIO_GROUP_FLAGS_VIABLE != 0 {
        return Ok(());
    }
    Err(shared_group(function, identity))
}

/// Opens a function through its group.
fn device(group: &OwnedFd, address: PciAddress) -> io::Result<OwnedFd> {
    let name = CString::new(address.to_string()).map_err(io::Error::other)?;
    // SAFETY: the call reads a string that ends with NUL.
    let fd = unsafe { calls::with_struct(group.as_fd(), Call::GroupGetDeviceFd, name.as_ptr().cast_mut()) }?;
    // SAFETY: the call has returned a new descriptor, which nothing else owns.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// The memory map of a container.
struct Type1 {
    fd: OwnedFd,
    /// A group is usable as long as its descriptor is open.
    _groups: Vec<OwnedFd>,
}

impl Iommu for Type1 {
    fn ranges(&self) -> io::Result<Vec<Addresses>> {
        // The answer is a header, followed by a chain of capabilities of unknown size.
        let mut answer = vec![0u64; 512];
        let info = answer.as_mut_ptr().cast::<vfio::vfio_iommu_type1_info>();
        let bytes = answer.len() * 8;
        // SAFETY: the buffer is aligned and larger than the structure.
        unsafe { (*info).argsz = bytes as u32 };
        // SAFETY: `argsz` is the size of the buffer.
        unsafe { calls::with_struct(self.fd.as_fd(), Call::IommuGetInfo, info) }?;
        // SAFETY: the kernel has filled the structure.
        let info = unsafe { info.read() };
        let words = |at: usize| answer.get(at / 8).copied().unwrap_or(0);
        let (mut at, mut ranges) = (info.cap_offset as usize, Vec::new());
        while info.flags & vfio::VFIO_IOMMU_INFO_CAPS != 0 && at != 0 && at % 8 == 0 && at < bytes {
            // The header of a capability: id (16 bits), version (16 bits), offset of the next one (32 bits).
            let (id, next) = (words(at) as u16, (words(at) >> 32) as usize);
            if u32::from(id) == vfio::VFIO_IOMMU_TYPE1_INFO_CAP_IOVA_RANGE {
                let count = words(at + 8) as u32 as usize;
                ranges.extend((0..count.min(bytes / 16)).map(|i| (words(at + 16 + 16 * i), words(at + 24 + 16 * i))));
            }
            at = if next > at { next } else { 0 };
        }
        Ok(ranges)
    }

    unsafe fn map(&self, address: u64, size: u64, iova: u64) -> io::Result<()> {
        let mut map = vfio::vfio_iommu_type1_dma_map {
            argsz: size_of::<vfio::vfio_iommu_type1_dma_map>() as u32,
            flags: vfio::VFIO_DMA_MAP_FLAG_READ | vfio::VFIO_DMA_MAP_FLAG_WRITE,
            vaddr: address,
            iova,
            size,
        };
        // SAFETY: it is the structure of this call, and the memory stays mapped by the contract of this function.
        unsafe { calls::with_struct(self.fd.as_fd(), Call::IommuMapDma, &mut map) }.map(drop)
    }

    fn unmap(&self, iova: u64, size: u64) -> io::Result<()> {
        let argsz = size_of::<vfio::vfio_iommu_type1_dma_unmap>() as u32;
        let mut unmap = vfio::vfio_iommu_type1_dma_unmap { argsz, iova, size, ..Default::default() };
        // SAFETY: it is the structure of this call.
        unsafe { calls::with_struct(self.fd.as_fd(), Call::IommuUnmapDma, &mut unmap) }.map(drop)
    }
}
