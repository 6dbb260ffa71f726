//! IOMMU groups, and the container that holds them: its memory map is that of all functions in it.

use super::calls::{self, Call};
use super::device::VfioFunction;
use crate::error::PciError;
use crate::function::{Identity, PciAddress};
use crate::sysfs::{SysFunction, Sysfs};
use ntbring_memory::{InWindow, Region};
use std::ffi::CString;
use std::fs::File;
use std::io;
use std::mem::size_of;
use std::os::fd::{AsFd, FromRawFd, OwnedFd};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use vfio_bindings::bindings::vfio;

/// A range of bus addresses, first and last.
type Addresses = (u64, u64);

/// Interrupts of x86 processors: writes to these bus addresses never reach memory.
const INTERRUPTS: Addresses = (0xfee0_0000, 0xfeef_ffff);

/// IOMMU groups with a common memory map.
pub struct Container {
    fd: OwnedFd,
    /// The groups; a group is usable as long as its descriptor is open.
    _groups: Vec<OwnedFd>,
    /// Ranges of bus addresses that the IOMMU translates.
    allowed: Vec<Addresses>,
    used: Mutex<Vec<Addresses>>,
}

impl Container {
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
            let fd = open(&Path::new("/dev/vfio").join(&group));
            let fd = fd.map_err(fail(*identity, "opening its IOMMU group in /dev/vfio", help.into()))?;
            check_group(&fd, function, *identity)?;
            let mut raw = std::os::fd::AsRawFd::as_raw_fd(&container);
            // SAFETY: the call reads a descriptor's number.
            let set = unsafe { calls::with_struct(fd.as_fd(), Call::GroupSetContainer, &mut raw) };
            set.map_err(fail(*identity, "adding its IOMMU group to a container", String::new()))?;
            groups.push((group, fd));
        }
        let help =
            "; if the kernel log says \"No interrupt remapping\", the IOMMU cannot keep the function from raising \
                    foreign interrupts: vfio_iommu_type1.allow_unsafe_interrupts=1 permits it nevertheless";
        let set = calls::with_number(container.as_fd(), Call::SetIommu, vfio::VFIO_TYPE1v2_IOMMU);
        set.map_err(fail(*first, "attaching it to the IOMMU", help.into()))?;
        let allowed = allowed(&container).map_err(fail(*first, "asking for the IOMMU's addresses", String::new()))?;
        let mut devices = Vec::new();
        for (function, identity) in &functions {
            let group = function.iommu_group();
            let fd = groups.iter().find(|(known, _)| Some(known) == group.as_ref());
            let (_, fd) = fd.ok_or_else(|| no_iommu(*identity))?;
            let device = device(fd, function.address);
            devices.push(device.map_err(fail(*identity, "opening it through its IOMMU group", String::new()))?);
        }
        let groups = groups.into_iter().map(|(_, fd)| fd).collect();
        let container = Arc::new(Container { fd: container, _groups: groups, allowed, used: Mutex::default() });
        let open = |((function, identity), device): (&(SysFunction, Identity), OwnedFd)| {
            VfioFunction::new(container.clone(), function, *identity, device).map(Arc::new)
        };
        functions.iter().zip(devices).map(open).collect()
    }

    /// Returns bus addresses for `size` bytes at a multiple of `align` and below `below`; None if there are none.
    pub fn free_addresses(&self, size: u64, align: u64, below: Option<u64>) -> Option<u64> {
        let used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        free(&self.allowed, &[&used[..], &[INTERRUPTS]].concat(), size, align, below)
    }

    /// Lets the functions reach `memory` at the bus addresses from `iova` on.
    pub fn map(&self, memory: &Region, iova: u64) -> io::Result<()> {
        let (window, size) = (InWindow::new(memory.clone()), memory.len() as u64);
        let mut map = vfio::vfio_iommu_type1_dma_map {
            argsz: size_of::<vfio::vfio_iommu_type1_dma_map>() as u32,
            flags: vfio::VFIO_DMA_MAP_FLAG_READ | vfio::VFIO_DMA_MAP_FLAG_WRITE,
            vaddr: window.address(0, memory.len()) as u64,
            iova,
            size,
        };
        // SAFETY: it is the structure of this call. The caller keeps the memory mapped until it is withdrawn.
        unsafe { calls::with_struct(self.fd.as_fd(), Call::IommuMapDma, &mut map) }?;
        self.used.lock().unwrap_or_else(PoisonError::into_inner).push((iova, iova + (size - 1)));
        Ok(())
    }

    /// Withdraws the memory that was mapped at `iova`.
    pub fn unmap(&self, iova: u64) -> io::Result<()> {
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(at) = used.iter().position(|&(first, _)| first == iova) else { return Ok(()) };
        let (first, last) = used.swap_remove(at);
        let mut unmap = vfio::vfio_iommu_type1_dma_unmap {
            argsz: size_of::<vfio::vfio_iommu_type1_dma_unmap>() as u32,
            iova: first,
            size: last - first + 1,
            ..Default::default()
        };
        // SAFETY: it is the structure of this call.
        unsafe { calls::with_struct(self.fd.as_fd(), Call::IommuUnmapDma, &mut unmap) }.map(drop)
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

/// Returns the ranges of bus addresses that the IOMMU translates: all below 2^39 if the kernel does not say it.
fn allowed(container: &OwnedFd) -> io::Result<Vec<Addresses>> {
    // The answer is a header, followed by a chain of capabilities of unknown size.
    let mut answer = vec![0u64; 512];
    let info = answer.as_mut_ptr().cast::<vfio::vfio_iommu_type1_info>();
    let bytes = answer.len() * 8;
    // SAFETY: the buffer is aligned and larger than the structure.
    unsafe { (*info).argsz = bytes as u32 };
    // SAFETY: `argsz` is the size of the buffer.
    unsafe { calls::with_struct(container.as_fd(), Call::IommuGetInfo, info) }?;
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
    ranges.retain(|(first, last)| last > first);
    Ok(if ranges.is_empty() { vec![(0, (1 << 39) - 1)] } else { ranges })
}

/// Returns the lowest free bus address; not 0, which chips use for "none".
fn free(allowed: &[Addresses], used: &[Addresses], size: u64, align: u64, below: Option<u64>) -> Option<u64> {
    let limit = below.map_or(u64::MAX, |below| below - 1);
    allowed
        .iter()
        .filter_map(|&(first, last)| {
            let mut iova = first.max(align).checked_next_multiple_of(align)?;
            loop {
                let end = iova.checked_add(size - 1)?;
                if end > last.min(limit) {
                    return None;
                }
                match used.iter().find(|&&(first, last)| iova <= last && first <= end) {
                    None => return Some(iova),
                    Some(&(_, last)) => iova = last.checked_add(1)?.checked_next_multiple_of(align)?,
                }
            }
        })
        .min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bus_addresses_are_aligned_free_and_below_the_limit() {
        let allowed = [(0, 0xfedf_ffff), (0xfef0_0000, (1 << 39) - 1)];
        let mib = 1 << 20;
        assert_eq!(free(&allowed, &[], 4 * mib, 4 * mib, None), Some(4 * mib));
        assert_eq!(free(&allowed, &[(4 * mib, 8 * mib - 1)], 4 * mib, 4 * mib, None), Some(8 * mib));
        assert_eq!(free(&allowed, &[(0, 0xfedf_ffff)], 4 * mib, 4 * mib, Some(1 << 32)), Some(0xff00_0000));
        assert_eq!(free(&allowed, &[(0, 0xffff_ffff)], 4 * mib, 4 * mib, Some(1 << 32)), None);
        assert_eq!(free(&allowed, &[(0, 0xffff_ffff)], 1 << 32, 1 << 32, None), Some(1 << 32));
        assert_eq!(free(&allowed, &[], 1 << 40, 1 << 40, None), None);
        assert_eq!(free(&[(0, u64::MAX)], &[(0, u64::MAX - 1)], 4096, 4096, None), None);
    }
}
