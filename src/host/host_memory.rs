//! Memory that all processes of a host share.

use crate::introduction::FileKind;
use crate::memory_file::{FileAddress, MemoryFile, PAGE};
use crate::{HostError, Introduction};
use ntbring_memory::Region;
use std::path::Path;

/// Memory of a host, as one of its processes holds it.
pub struct HostMemory {
    file: MemoryFile,
    address: FileAddress,
    bytes: Region,
    notes: Region,
}

impl HostMemory {
    /// Creates `bytes` bytes of memory, rounded up to whole pages, all of them zero; done by one process of the host.
    pub fn create(dir: &Path, bytes: u64) -> Result<HostMemory, HostError> {
        let (file, address) = MemoryFile::create(dir, PAGE as u64 + bytes.next_multiple_of(PAGE as u64))?;
        Self::with(file, address)
    }

    /// Opens the memory that another process has created, with at least `bytes` bytes.
    pub fn open(address: FileAddress, bytes: u64) -> Result<HostMemory, HostError> {
        let file = MemoryFile::open(&address)?;
        if file.size() < PAGE as u64 + bytes {
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

    /// Its address, for other processes of the host.
    pub fn address(&self) -> FileAddress {
        self.address
    }

    /// Its bytes.
    pub fn bytes(&self) -> Region {
        self.bytes.clone()
    }

    /// Two words, 0 at first, that tools can read, too.
    pub fn notes(&self) -> Region {
        self.notes.clone()
    }

    /// Tells tools the host's place in its job.
    pub fn introduce(&self, is: Introduction) -> Result<(), HostError> {
        self.file.set_kind(FileKind::Host(is).word())
    }
}
