//! The memory that all processes of a host share.

use crate::file_tag::FileKind;
use crate::memory_file::{FileAddress, MemoryFile, PAGE};
use crate::{FileTag, HostError};
use ntbring_memory::Region;
use std::path::Path;

/// A process's mapping of its host's shared memory.
pub struct HostMemory {
    file: MemoryFile,
    address: FileAddress,
    bytes: Region,
    notes: Region,
}

impl HostMemory {
    /// Creates `bytes` bytes of zeroed memory, rounded up to whole pages; called by one process of the host.
    pub fn create(dir: &Path, bytes: u64) -> Result<HostMemory, HostError> {
        let (file, address) = MemoryFile::create(dir, PAGE as u64 + bytes.next_multiple_of(PAGE as u64))?;
        Self::with(file, address)
    }

    /// Opens the memory that another process of the host has created. Fails unless it has `bytes` bytes, rounded up
    /// to whole pages; 0: any number.
    pub fn open(address: FileAddress, bytes: u64) -> Result<HostMemory, HostError> {
        let file = MemoryFile::open(&address)?;
        if bytes > 0 && file.size() != PAGE as u64 + bytes.next_multiple_of(PAGE as u64) {
            let what = "its size differs: the host's processes have different settings";
            return Err(HostError::Foreign { pid: address.pid, what });
        }
        Self::with(file, address)
    }

    fn with(file: MemoryFile, address: FileAddress) -> Result<HostMemory, HostError> {
        let bytes = file.map(PAGE as u64, file.size() - PAGE as u64)?;
        let notes = file.notes()?;
        Ok(HostMemory { file, address, bytes, notes })
    }

    /// Returns the address of the memory, for other processes of the host.
    pub fn address(&self) -> FileAddress {
        self.address
    }

    /// Returns the memory without its header page.
    pub fn bytes(&self) -> Region {
        self.bytes.clone()
    }

    /// Returns a line of 64 bytes, initially zeros, that tools can read, too.
    pub fn notes(&self) -> Region {
        self.notes.clone()
    }

    /// Records the host's position in its job in the header, for tools.
    pub fn introduce(&self, is: FileTag) -> Result<(), HostError> {
        self.file.set_kind(FileKind::Host(is).word())
    }
}
