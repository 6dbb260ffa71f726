//! The emulated adapters of a host.

use crate::layout::MemoryLayout;
use bytes::{Buf, BufMut};
use ntbring_host::{place, FileAddress, FileKind, HostError, Introduction, MemoryFile};
use ntbring_memory::Region;
use ntbring_ntb::fabric::{Backend, Bells, Fabric, FabricAddress, OpenPort, Windows};
use ntbring_ntb::software::{Registers, SoftPort, SoftVector, WindowMemory};
use ntbring_ntb::{LinkState, NtbError, Shortcuts, Side, Vector};
use std::path::PathBuf;
use std::sync::Arc;

/// The backend whose hosts are groups of processes of one machine.
pub struct Emulated {
    dir: PathBuf,
}

impl Emulated {
    /// Returns the backend that allocates windows in the directory `dir` of a memory file system.
    pub fn new(dir: impl Into<PathBuf>) -> Emulated {
        Emulated { dir: dir.into() }
    }
}

impl Backend for Emulated {
    fn create(&self, windows: Windows) -> Result<Box<dyn Fabric>, NtbError> {
        Ok(Box::new(EmuHost::create(&self.dir, windows)?))
    }

    fn attach(&self, address: &FabricAddress, windows: Windows) -> Result<Box<dyn Fabric>, NtbError> {
        Ok(Box::new(EmuHost::attach(address, windows)?))
    }

    fn bells(&self, address: &FabricAddress) -> Result<Arc<dyn Bells>, NtbError> {
        let registers = Registers::new(MemoryFile::open(&file_of(address)?)?.first_page()?);
        Ok(Arc::new(ForeignBells { registers }))
    }
}

/// Returns the address of the windows in `file`. It includes the number of the machine and process namespace
/// ([`place`]), outside of which the file cannot be found.
pub fn address_of(file: FileAddress) -> FabricAddress {
    let mut address = FabricAddress([0; FabricAddress::LEN]);
    let mut to = &mut address.0[..];
    file.put(&mut to);
    to.put_u64_le(place());
    address
}

/// Returns the memory file at an address; fails if the address is of another machine or process namespace.
pub fn file_of(address: &FabricAddress) -> Result<FileAddress, NtbError> {
    let mut from = &address.0[..];
    let file = FileAddress::get(&mut from);
    match from.get_u64_le() == place() {
        true => Ok(file),
        false => Err(NtbError::Elsewhere),
    }
}

/// A process's handle for its host in the emulated ring.
pub struct EmuHost {
    windows: Arc<WindowFile>,
    address: FabricAddress,
    registers: Registers,
}

/// The memory file of a host's windows and its layout; the layout is equal for all hosts of a ring.
struct WindowFile {
    file: MemoryFile,
    layout: MemoryLayout,
}

impl WindowFile {
    fn registers(&self) -> Result<Registers, HostError> {
        Ok(Registers::new(self.file.first_page()?))
    }
}

impl WindowMemory for WindowFile {
    fn window(&self) -> u64 {
        self.layout.window
    }

    fn window_offset(&self, side: Side) -> u64 {
        self.layout.window_offset(side)
    }

    fn map(&self, offset: u64, len: u64) -> Result<Region, NtbError> {
        // The accounts are not part of the memory that a bridge makes accessible.
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
    /// Creates the host's windows in the directory `dir`; called by one of the host's processes.
    pub fn create(dir: &std::path::Path, windows: Windows) -> Result<EmuHost, HostError> {
        let layout = MemoryLayout::of(windows);
        let (file, address) = MemoryFile::create(dir, layout.total())?;
        Self::with(file, address_of(address), layout)
    }

    /// Attaches to the windows that another process of the host has created with the same parameters.
    pub fn attach(address: &FabricAddress, windows: Windows) -> Result<EmuHost, NtbError> {
        let (at, layout) = (file_of(address)?, MemoryLayout::of(windows));
        let file = MemoryFile::open(&at)?;
        if file.size() != layout.total() {
            let what = "its size differs: the host's processes have different settings";
            return Err(HostError::Foreign { pid: at.pid, what }.into());
        }
        Ok(Self::with(file, *address, layout)?)
    }

    fn with(file: MemoryFile, address: FabricAddress, layout: MemoryLayout) -> Result<EmuHost, HostError> {
        let windows = WindowFile { file, layout };
        let registers = windows.registers()?;
        registers.attend();
        Ok(EmuHost { windows: Arc::new(windows), address, registers })
    }

    /// Opens the port on `side`, cabled to the opposite port of the host at the address `neighbour`.
    pub fn soft_port(&self, side: Side, neighbour: &FabricAddress) -> Result<EmuPort, NtbError> {
        let peer = WindowFile { file: MemoryFile::open(&file_of(neighbour)?)?, layout: self.windows.layout };
        let peer_registers = peer.registers()?;
        let own = (self.windows.clone() as Arc<dyn WindowMemory>, self.registers.clone());
        SoftPort::new(side, Shortcuts::ALL, own, (Arc::new(peer), peer_registers))
    }
}

impl Bells for EmuHost {
    fn ring(&self, doorbell: usize) {
        self.registers.interrupt(doorbell);
    }
}

impl Fabric for EmuHost {
    fn address(&self) -> FabricAddress {
        self.address
    }

    fn port(&self, side: Side, neighbour: &FabricAddress) -> Result<OpenPort, NtbError> {
        Ok(OpenPort::Software(self.soft_port(side, neighbour)?))
    }

    fn vector(&self, doorbell: usize) -> Arc<dyn Vector> {
        Arc::new(SoftVector::new(self.registers.clone(), doorbell))
    }

    fn set_link(&self, side: Side, state: LinkState) {
        self.registers.set_link(side, state);
    }

    fn introduce(&self, is: Introduction) -> Result<(), NtbError> {
        Ok(self.windows.file.set_kind(FileKind::Windows(is).word())?)
    }
}

/// One emulated NTB adapter.
pub type EmuPort = SoftPort;

/// The interrupt vectors of a host that is not a neighbour; only its register page is mapped.
struct ForeignBells {
    registers: Registers,
}

impl Bells for ForeignBells {
    fn ring(&self, doorbell: usize) {
        self.registers.interrupt(doorbell);
    }
}
