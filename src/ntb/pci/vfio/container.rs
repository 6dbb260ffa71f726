//! The memory of this process that functions reach, and the bus addresses at which they reach it. All functions that are
//! opened together have one memory map.

use ntbring_memory::{InWindow, Region};
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A range of bus addresses, first and last.
pub(super) type Addresses = (u64, u64);

/// Interrupts of x86 processors: writes to these bus addresses never reach memory.
const INTERRUPTS: Addresses = (0xfee0_0000, 0xfeef_ffff);

/// Ranges of bus addresses that an IOMMU is taken to translate if the kernel does not tell them.
const USUAL: Addresses = (0, (1 << 39) - 1);

/// One of the kernel's interfaces to the IOMMU.
pub(super) trait Iommu: Send + Sync {
    /// Returns the ranges of bus addresses that are translated; none if the kernel does not tell them.
    fn ranges(&self) -> io::Result<Vec<Addresses>>;
    /// Makes `size` bytes of this process from `address` on accessible at the bus addresses from `iova` on.
    ///
    /// # Safety
    /// The memory must stay mapped until it is withdrawn.
    unsafe fn map(&self, address: u64, size: u64, iova: u64) -> io::Result<()>;
    /// Withdraws the memory that was mapped at `iova`.
    fn unmap(&self, iova: u64, size: u64) -> io::Result<()>;
}

/// The memory map of functions that were opened together.
pub struct Container {
    iommu: Box<dyn Iommu>,
    /// Ranges of bus addresses that the IOMMU translates.
    allowed: Vec<Addresses>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Bus addresses that a function has, with or without memory.
    reserved: Vec<Addresses>,
    /// Bus addresses at which memory is mapped.
    mapped: Vec<Addresses>,
}

impl Container {
    /// Returns the empty memory map of an IOMMU.
    pub(super) fn new(iommu: Box<dyn Iommu>) -> io::Result<Container> {
        let mut allowed = iommu.ranges()?;
        allowed.retain(|(first, last)| last > first);
        if allowed.is_empty() {
            allowed.push(USUAL);
        }
        Ok(Container { iommu, allowed, state: Mutex::default() })
    }

    /// Reserves bus addresses for `size` bytes at a multiple of `align` and below `below`, for as long as the map exists;
    /// None if there are none.
    pub fn reserve_addresses(&self, size: u64, align: u64, below: Option<u64>) -> Option<u64> {
        let mut state = self.state();
        let iova = free(&self.allowed, &[&state.reserved[..], &[INTERRUPTS]].concat(), size, align, below)?;
        state.reserved.push((iova, iova + (size - 1)));
        Some(iova)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets the functions reach `memory` at the bus addresses from `iova` on.
    pub fn map(&self, memory: &Region, iova: u64) -> io::Result<()> {
        let (window, size) = (InWindow::new(memory.clone()), memory.len() as u64);
        // SAFETY: the caller keeps the memory mapped until it is withdrawn.
        unsafe { self.iommu.map(window.address(0, memory.len()) as u64, size, iova) }?;
        self.state().mapped.push((iova, iova + (size - 1)));
        Ok(())
    }

    /// Withdraws the memory that was mapped at `iova`.
    pub fn unmap(&self, iova: u64) -> io::Result<()> {
        let mut state = self.state();
        let Some(at) = state.mapped.iter().position(|&(first, _)| first == iova) else { return Ok(()) };
        let (first, last) = state.mapped.swap_remove(at);
        self.iommu.unmap(iova, last - first + 1)
    }
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

    /// An IOMMU that maps nothing.
    struct Nothing;

    impl Iommu for Nothing {
        fn ranges(&self) -> io::Result<Vec<Addresses>> {
            Ok(Vec::new())
        }

        unsafe fn map(&self, _address: u64, _size: u64, _iova: u64) -> io::Result<()> {
            Ok(())
        }

        fn unmap(&self, _iova: u64, _size: u64) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn two_functions_have_different_addresses_however_little_memory_is_mapped() {
        let container = Container::new(Box::new(Nothing)).unwrap();
        let first = container.reserve_addresses(4 << 20, 4096, None).unwrap();
        container.map(&Region::anonymous(4096), first).unwrap();
        let second = container.reserve_addresses(4 << 20, 4096, None).unwrap();
        assert!(second >= first + (4 << 20));
        container.unmap(first).unwrap();
        assert!(container.reserve_addresses(4 << 20, 4096, None).unwrap() >= second + (4 << 20));
    }

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
