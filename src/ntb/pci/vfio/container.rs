//! IOMMU groups, and the container that holds them: its memory map is that of all functions in it.

use super::calls::{self, Call};
use ntbring_memory::{InWindow, Region};
use std::io;
use std::mem::size_of;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Mutex, PoisonError};
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
    /// Returns the container with this descriptor, in which these groups are and which has an IOMMU.
    pub(super) fn new(fd: OwnedFd, groups: Vec<OwnedFd>) -> io::Result<Container> {
        let allowed = allowed(&fd)?;
        Ok(Container { fd, _groups: groups, allowed, used: Mutex::default() })
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
