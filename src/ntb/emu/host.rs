//! An emulated host and its ports.

use crate::layout::MemoryLayout;
use crate::running::Introduction;
use ntbring_host::{FileAddress, HostError, MemoryFile};
use ntbring_memory::Region;
use ntbring_ntb::software::{Registers, SoftPort, SoftVector, WindowMemory};
use ntbring_ntb::{LinkState, NtbError, Side, Vector};
use std::path::Path;
use std::sync::Arc;

/// A host of the emulated ring, as one of its processes holds it.
pub struct EmuHost {
    memory: Arc<HostMemory>,
    address: FileAddress,
    registers: Registers,
    local: Region,
}

/// A host's memory file and its layout, which all hosts of a ring share.
struct HostMemory {
    file: MemoryFile,
    layout: MemoryLayout,
}

impl HostMemory {
    fn registers(&self) -> Result<Registers, HostError> {
        Ok(Registers::new(self.file.first_page()?))
    }
}

impl WindowMemory for HostMemory {
    fn window(&self) -> u64 {
        self.layout.window
    }

    fn window_offset(&self, side: Side) -> u64 {
        self.layout.window_offset(side)
    }

    fn map(&self, offset: u64, len: u64) -> Result<Region, NtbError> {
        // The accounts are no part of the memory that a bridge would show.
        let size = self.file.size().saturating_sub(self.layout.accounts_total());
        if offset > size || len > size - offset {
            return Err(NtbError::Aperture { offset, len, size });
        }
        Ok(self.file.map(offset, len)?)
    }

    fn accounts(&self, offset: u64, len: u64) -> Result<Region, NtbError> {
        let size = self.file.size();
        match self.layout.accounts_offset(size, offset) {
            Some(at) if self.layout.accounts => Ok(self.file.map(at, len)?),
            _ => Err(NtbError::Aperture { offset, len, size }),
        }
    }
}

impl EmuHost {
    /// Creates the host's memory; done by one of its processes.
    pub fn create(dir: &Path, layout: MemoryLayout) -> Result<EmuHost, HostError> {
        let (file, address) = MemoryFile::create(dir, layout.total())?;
        Self::with(file, address, layout)
    }

    /// Joins a host that another process of it created with the same layout.
    pub fn join(address: FileAddress, layout: MemoryLayout) -> Result<EmuHost, HostError> {
        let file = MemoryFile::open(&address)?;
        if file.size() != layout.total() {
            let what = "its size differs: the host's processes have different settings";
            return Err(HostError::Foreign { pid: address.pid, what });
        }
        Self::with(file, address, layout)
    }

    /// Opens memory without windows that any process has created.
    pub fn visit(address: FileAddress) -> Result<EmuHost, HostError> {
        let file = MemoryFile::open(&address)?;
        let layout = MemoryLayout { window: 0, local: 0, accounts: false };
        let local = file.size() - layout.total();
        Self::with(file, address, MemoryLayout { local, ..layout })
    }

    fn with(file: MemoryFile, address: FileAddress, layout: MemoryLayout) -> Result<EmuHost, HostError> {
        let memory = HostMemory { file, layout };
        let registers = memory.registers()?;
        registers.attend();
        let local = memory.file.map(layout.local_offset(), layout.local)?;
        Ok(EmuHost { memory: Arc::new(memory), address, registers, local })
    }

    /// Tells tools the host's place in its job.
    pub fn introduce(&self, is: Introduction) -> Result<(), HostError> {
        self.memory.file.set_kind(is.word())
    }

    /// Two words, 0 at first, that processes of the host may use as they like, and that tools can read.
    pub fn notes(&self) -> Result<Region, HostError> {
        self.memory.file.notes()
    }

    /// The address of its memory, for other processes.
    pub fn address(&self) -> FileAddress {
        self.address
    }

    /// The part of its memory that only its own processes map.
    pub fn local(&self) -> Region {
        self.local.clone()
    }

    /// A vector of this host, raised by either port or by [`EmuHost::ring`].
    pub fn vector(&self, doorbell: usize) -> Arc<dyn Vector> {
        Arc::new(SoftVector::new(self.registers.clone(), doorbell))
    }

    /// Raises a vector of this host from inside it.
    pub fn ring(&self, doorbell: usize) {
        self.registers.interrupt(doorbell);
    }

    /// Makes its port on a side report this state of the link from now on.
    pub fn set_link(&self, side: Side, state: LinkState) {
        self.registers.set_link(side, state);
    }

    /// The port on `side`, cabled to the opposite port of the host at `neighbour`.
    pub fn port(&self, side: Side, neighbour: &FileAddress) -> Result<EmuPort, NtbError> {
        let peer = HostMemory { file: MemoryFile::open(neighbour)?, layout: self.memory.layout };
        let peer_registers = peer.registers()?;
        SoftPort::new(side, (self.memory.clone(), self.registers.clone()), (Arc::new(peer), peer_registers))
    }
}

/// One emulated NTB adapter.
pub type EmuPort = SoftPort;

/// The vectors of a host that is no neighbour, for processes that meet outside the ring.
pub struct ForeignBell {
    registers: Registers,
}

impl ForeignBell {
    /// Maps the register page of a host, and nothing else of it.
    pub fn open(host: &FileAddress) -> Result<ForeignBell, HostError> {
        Ok(ForeignBell { registers: Registers::new(MemoryFile::open(host)?.first_page()?) })
    }

    /// Raises one of its vectors.
    pub fn ring(&self, doorbell: usize) {
        self.registers.interrupt(doorbell);
    }
}
