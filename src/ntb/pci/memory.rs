//! Memory that a neighbour writes, and that processes of this host share by its descriptor.

use memmap2::{MmapOptions, MmapRaw};
use nix::fcntl::{fallocate, fcntl, FallocateFlags, FcntlArg, SealFlag};
use nix::sys::memfd::{memfd_create, MemFdCreateFlag};
use nix::sys::statfs::{fstatfs, HUGETLBFS_MAGIC, TMPFS_MAGIC};
use ntbring_memory::Region;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::sync::atomic::Ordering;
use std::sync::Arc;

/// Size of a huge page, bytes.
const HUGE: u64 = 2 << 20;

/// A memory file without a name, or a part of a device's memory, and its mapping in this process.
pub struct SharedMemory {
    file: File,
    /// Offset of the memory in the file, bytes.
    offset: u64,
    region: Region,
    is_of_device: bool,
}

impl SharedMemory {
    /// Allocates `size` bytes, all zero: from 2 MiB on in huge pages, if the host has enough of them free.
    pub fn allocate(size: u64) -> io::Result<SharedMemory> {
        let huge = if size >= HUGE {
            Self::with(size, HUGE, MemFdCreateFlag::MFD_HUGETLB | MemFdCreateFlag::MFD_HUGE_2MB).ok()
        } else {
            None
        };
        huge.map_or_else(|| Self::in_small_pages(size), Ok)
    }

    /// Allocates `size` bytes, all zero, of which any pages of 4 KiB can be mapped.
    pub fn in_small_pages(size: u64) -> io::Result<SharedMemory> {
        Self::with(size, 1, MemFdCreateFlag::empty())
    }

    /// Allocates `size` bytes in a file whose size is a multiple of `unit`.
    fn with(size: u64, unit: u64, flags: MemFdCreateFlag) -> io::Result<SharedMemory> {
        let flags = flags | MemFdCreateFlag::MFD_CLOEXEC | MemFdCreateFlag::MFD_ALLOW_SEALING;
        let file = File::from(memfd_create(c"ntbring-window", flags)?);
        let all = size.checked_next_multiple_of(unit).ok_or(io::ErrorKind::InvalidInput)?;
        file.set_len(all)?;
        fallocate(file.as_raw_fd(), FallocateFlags::empty(), 0, all as i64)?;
        // A process that has the descriptor cannot take memory away from the others.
        let seals = SealFlag::F_SEAL_SHRINK | SealFlag::F_SEAL_GROW | SealFlag::F_SEAL_SEAL;
        fcntl(file.as_raw_fd(), FcntlArg::F_ADD_SEALS(seals))?;
        let region = map(&file, 0, size)?;
        Ok(SharedMemory { file, offset: 0, region, is_of_device: false })
    }

    /// Maps `len` bytes at `offset` of a file that holds the memory of a device, both multiples of a page.
    pub fn of_device(file: File, offset: u64, len: u64) -> io::Result<SharedMemory> {
        let region = map(&file, offset, len)?;
        Ok(SharedMemory { file, offset, region, is_of_device: true })
    }

    /// Maps `len` bytes at `offset` of a memory file of another process, both multiples of a page. Fails if the file is of
    /// another kind. This process must not access them: that process may take them away.
    pub fn of_process(file: File, offset: u64, len: u64) -> io::Result<SharedMemory> {
        if fstatfs(&file)?.filesystem_type() != TMPFS_MAGIC {
            return Err(io::Error::other("it is no file of a memory file system"));
        }
        if offset.checked_add(len).is_none_or(|end| file.metadata().map_or(true, |about| end > about.len())) {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let region = map(&file, offset, len)?;
        Ok(SharedMemory { file, offset, region, is_of_device: false })
    }

    /// Sets all bytes to zero.
    pub(crate) fn clear(&self) {
        (0..self.region.len() / 8).for_each(|word| self.region.word(8 * word).store(0, Ordering::Relaxed));
    }

    /// Returns the mapping.
    pub fn region(&self) -> &Region {
        &self.region
    }

    /// Returns the file.
    pub fn file(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    /// Returns the offset of the memory in the file, bytes.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Returns true if the memory is a part of a device's: then the file gives access to all of the device's memory, and
    /// no other device can write it.
    pub fn is_of_device(&self) -> bool {
        self.is_of_device
    }
}

/// Maps `len` bytes at `offset` of a file; the offset is a multiple of the file's pages, and the length of 4 KiB.
pub fn map(file: &File, offset: u64, len: u64) -> io::Result<Region> {
    let len = usize::try_from(len).map_err(io::Error::other)?;
    // Huge pages are unmapped only as a whole.
    let unit = if fstatfs(file)?.filesystem_type() == HUGETLBFS_MAGIC { HUGE as usize } else { 1 };
    let all = len.checked_next_multiple_of(unit).ok_or(io::ErrorKind::InvalidInput)?;
    let map: MmapRaw = MmapOptions::new().offset(offset).len(all).map_raw(file)?;
    let base = map.as_mut_ptr();
    // SAFETY: the mapping lives as long as its owner, and no reference to it exists; it starts at a page.
    Ok(unsafe { Region::new(base, len, Arc::new(map)) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::sys::stat::fstat;

    #[test]
    fn memory_of_any_size_is_zero_and_shared_by_its_file() {
        // With free huge pages (sysctl vm.nr_hugepages) the two larger ones lie in them.
        for size in [4096, HUGE - 4096, HUGE, HUGE + 4096] {
            let memory = SharedMemory::allocate(size).unwrap();
            assert_eq!(memory.region().len() as u64, size);
            let last = size as usize - 8;
            assert_eq!(memory.region().word(last).load(Ordering::Relaxed), 0);
            let again = map(&File::from(memory.file().try_clone_to_owned().unwrap()), 0, size).unwrap();
            memory.region().word(last).store(7, Ordering::Relaxed);
            assert_eq!(again.word(last).load(Ordering::Relaxed), 7);
            drop(again);
            let inode = fstat(memory.file().as_raw_fd()).unwrap().st_ino.to_string();
            let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
            let mappings = maps.lines().filter(|line| line.split_whitespace().nth(4) == Some(&inode)).count();
            assert_eq!(mappings, 1, "only the first mapping is left");
        }
    }
}
