//! The emulated adapters of a host.

use crate::address::{address_of, open, shared_address_of};
use crate::layout::MemoryLayout;
use ntbring_host::{FileKind, FileName, FileTag, HostError, MemoryFile};
use ntbring_memory::{InWindow, Region};
use ntbring_ntb::fabric::{Backend, Bells, Fabric, FabricAddress, OpenPort, Windows};
use ntbring_ntb::software::{Registers, SoftPort, SoftVector, WindowMemory};
use ntbring_ntb::{LinkState, NtbError, Shortcuts, Side, Vector};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The backend whose hosts are groups of processes of one machine.
pub struct Emulated {
    dir: PathBuf,
    /// The directory that hosts share if they have nothing else in common.
    shared: Option<PathBuf>,
}

impl Emulated {
    /// Returns the backend that allocates windows in the directory `dir` of a memory file system.
    pub fn new(dir: impl Into<PathBuf>) -> Emulated {
        Emulated { dir: dir.into(), shared: None }
    }

    /// Returns the same backend as [`Emulated::new`], for hosts that have nothing in common but the directory `shared`.
    pub fn with_shared_dir(dir: impl Into<PathBuf>, shared: impl Into<PathBuf>) -> Emulated {
        Emulated { dir: dir.into(), shared: Some(shared.into()) }
    }
}

impl Backend for Emulated {
    fn create(&self, windows: Windows) -> Result<Box<dyn Fabric>, NtbError> {
        // A host without neighbours has nothing to share.
        match self.shared.as_deref().filter(|_| windows.bytes > 0) {
            Some(shared) => Ok(Box::new(EmuHost::create_shared(shared, windows)?)),
            None => Ok(Box::new(EmuHost::create(&self.dir, windows)?)),
        }
    }

    fn attach(&self, address: &FabricAddress, windows: Windows) -> Result<Box<dyn Fabric>, NtbError> {
        Ok(Box::new(EmuHost::attach(address, windows, self.shared.as_deref())?))
    }

    fn bells(&self, address: &FabricAddress) -> Result<Arc<dyn Bells>, NtbError> {
        let registers = Registers::new(open(address, self.shared.as_deref())?.first_page()?);
        Ok(Arc::new(ForeignBells { registers }))
    }
}

/// A process's handle for its host in the emulated ring.
pub struct EmuHost {
    windows: Arc<WindowFile>,
    address: FabricAddress,
    registers: Registers,
    /// The directory that hosts share if they have nothing else in common.
    shared: Option<PathBuf>,
}

/// The memory file of a host's windows and its layout; the layout is equal for all hosts of a ring.
struct WindowFile {
    file: MemoryFile,
    layout: MemoryLayout,
    /// The name of the file, in the process that has created a file with a name; otherwise None.
    name: Option<FileName>,
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
    pub fn create(dir: &Path, windows: Windows) -> Result<EmuHost, HostError> {
        let layout = MemoryLayout::of(windows);
        let (file, address) = MemoryFile::create(dir, layout.total())?;
        Self::with(WindowFile { file, layout, name: None }, address_of(address), None)
    }

    /// As [`EmuHost::create`], in a directory that all hosts share, which is all that they have in common.
    pub fn create_shared(dir: &Path, windows: Windows) -> Result<EmuHost, HostError> {
        let layout = MemoryLayout::of(windows);
        let (file, name, address) = FileName::create(dir, layout.total())?;
        Self::with(WindowFile { file, layout, name: Some(name) }, shared_address_of(address), Some(dir))
    }

    /// Attaches to the windows that another process of the host has created with the same parameters. `shared`: the
    /// directory that hosts share if they have nothing else in common.
    pub fn attach(address: &FabricAddress, windows: Windows, shared: Option<&Path>) -> Result<EmuHost, NtbError> {
        let (file, layout) = (open(address, shared)?, MemoryLayout::of(windows));
        if file.size() != layout.total() {
            let what = "its size differs: the host's processes have different settings";
            return Err(HostError::Foreign { pid: file.pid(), what }.into());
        }
        Ok(Self::with(WindowFile { file, layout, name: None }, *address, shared)?)
    }

    fn with(windows: WindowFile, address: FabricAddress, shared: Option<&Path>) -> Result<EmuHost, HostError> {
        let registers = windows.registers()?;
        registers.attend();
        Ok(EmuHost { windows: Arc::new(windows), address, registers, shared: shared.map(Path::to_path_buf) })
    }

    /// Opens the port on `side`, cabled to the opposite port of the host at the address `neighbour`.
    pub fn soft_port(&self, side: Side, neighbour: &FabricAddress) -> Result<EmuPort, NtbError> {
        let file = open(neighbour, self.shared.as_deref())?;
        let peer = WindowFile { file, layout: self.windows.layout, name: None };
        let peer_registers = peer.registers()?;
        let own = (self.windows.clone() as Arc<dyn WindowMemory>, self.registers.clone());
        let shortcuts = if self.shared.is_some() { Shortcuts::NONE } else { Shortcuts::ALL };
        SoftPort::new(side, shortcuts, own, (Arc::new(peer), peer_registers))
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

    fn view(&self, side: Side, neighbour: &FabricAddress) -> Result<Option<InWindow>, NtbError> {
        if self.shared.is_some() {
            return Ok(None);
        }
        let (file, layout) = (open(neighbour, None)?, self.windows.layout);
        Ok(Some(InWindow::new(file.map(layout.window_offset(side), layout.window)?)))
    }

    fn vector(&self, doorbell: usize) -> Arc<dyn Vector> {
        Arc::new(SoftVector::new(self.registers.clone(), doorbell))
    }

    fn leftover(&self) -> Option<PathBuf> {
        self.windows.name.as_ref().map(|name| name.path().to_path_buf())
    }

    fn set_link(&self, side: Side, state: LinkState) {
        self.registers.set_link(side, state);
    }

    fn introduce(&self, is: FileTag) -> Result<(), NtbError> {
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
