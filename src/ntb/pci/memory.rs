//! Memory that a neighbour writes, and that processes of this host share by its descriptor.

use memmap2::{MmapOptions, MmapRaw};
use nix::fcntl::{fallocate, fcntl, FallocateFlags, FcntlArg, SealFlag};
use nix::sys::memfd::{memfd_create, MemFdCreateFlag};
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
    /// Allocates `size` bytes, all zero: in huge pages if the size is a multiple of 2 MiB and the host has some free.
    pub fn allocate(size: u64) -> io::Result<SharedMemory> {
        let huge = if size % HUGE == 0 { Self::with(size, MemFdCreateFlag::MFD_HUGETLB).ok() } else { None };
        huge.map_or_else(|| Self::with(size, MemFdCreateFlag::empty()), Ok)
    }

    fn with(size: u64, flags: MemFdCreateFlag) -> io::Result<SharedMemory> {
        let flags = flags | MemFdCreateFlag::MFD_CLOEXEC | MemFdCreateFlag::MFD_ALLOW_SEALING;
        let file = File::from(memfd_create(c"ntbring-window", flags)?);
        file.set_len(size)?;
        fallocate(file.as_raw_fd(), FallocateFlags::empty(), 0, size as i64)?;
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

/// Maps `len` bytes at `offset` of a file, both multiples of a page.
pub fn map(file: &File, offset: u64, len: u64) -> io::Result<Region> {
    let len = usize::try_from(len).map_err(io::Error::other)?;
    let map: MmapRaw = MmapOptions::new().offset(offset).len(len).map_raw(file)?;
    let base = map.as_mut_ptr();
    // SAFETY: the mapping lives as long as its owner, and no reference to it exists; it starts at a page.
    Ok(unsafe { Region::new(base, len, Arc::new(map)) })
}
