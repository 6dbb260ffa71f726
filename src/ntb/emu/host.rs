//! The emulated adapters of a host.

use crate::address::{address_of, open, shared_address_of};
use crate::layout::MemoryLayout;
use ntbring_host::{FileKind, FileName, FileTag, HostError, MemoryFile};
use ntbring_memory::{InWindow, Region};
use ntbring_ntb::fabric::{Backend, Bells, Fabric, FabricAddress, OpenPort, PortAddress, Windows};
use ntbring_ntb::software::{Registers, SoftEnd, SoftPort, SoftVector, WindowMemory};
use ntbring_ntb::{LinkState, NtbError, PortIndex, Shortcuts, Vector};
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
        let registers = registers_of(&open(address, self.shared.as_deref())?)?;
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

/// The memory file of a host's windows and its layout; hosts of a ring differ only in their ports.
struct WindowFile {
    file: MemoryFile,
    layout: MemoryLayout,
    /// The name of the file, in the process that has created a file with a name; otherwise None.
    name: Option<FileName>,
}

/// Returns the registers in a window file.
fn registers_of(file: &MemoryFile) -> Result<Registers, HostError> {
    let what = "its list of ports is not valid";
    Registers::open(file.first_page()?).ok_or(HostError::Foreign { pid: file.pid(), what })
}

impl WindowMemory for WindowFile {
    fn window(&self) -> u64 {
        self.layout.window
    }

    fn window_offset(&self, port: PortIndex) -> Option<u64> {
        self.layout.window_offset(port)
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
        let registers = Registers::create(file.first_page()?, layout.ports);
        Ok(Self::with(WindowFile { file, layout, name: None }, registers, address_of(address), None))
    }

    /// As [`EmuHost::create`], in a directory that all hosts share, which is all that they have in common.
    pub fn create_shared(dir: &Path, windows: Windows) -> Result<EmuHost, HostError> {
        let layout = MemoryLayout::of(windows);
        let (file, name, address) = FileName::create(dir, layout.total())?;
        let registers = Registers::create(file.first_page()?, layout.ports);
        let windows = WindowFile { file, layout, name: Some(name) };
        Ok(Self::with(windows, registers, shared_address_of(address), Some(dir)))
    }

    /// Attaches to the windows that another process of the host has created with the same parameters. `shared`: the
    /// directory that hosts share if they have nothing else in common.
    pub fn attach(address: &FabricAddress, windows: Windows, shared: Option<&Path>) -> Result<EmuHost, NtbError> {
        let (file, layout) = (open(address, shared)?, MemoryLayout::of(windows));
        let registers = registers_of(&file)?;
        let differs = match (file.size() == layout.total(), registers.ports() == layout.ports) {
            (false, _) => Some("its size differs: the host's processes have different settings"),
            (_, false) => Some("its ports differ: the host's processes have different settings (NTBRING_PORTS)"),
            (true, true) => None,
        };
        match differs {
            Some(what) => Err(HostError::Foreign { pid: file.pid(), what }.into()),
            None => Ok(Self::with(WindowFile { file, layout, name: None }, registers, *address, shared)),
        }
    }

    fn with(windows: WindowFile, registers: Registers, address: FabricAddress, shared: Option<&Path>) -> EmuHost {
        registers.attend();
        EmuHost { windows: Arc::new(windows), address, registers, shared: shared.map(Path::to_path_buf) }
    }

    /// Opens a port, cabled to the port `opposite` of another host. Fails if one of the hosts does not use its port.
    pub fn soft_port(&self, port: PortIndex, opposite: &PortAddress) -> Result<EmuPort, NtbError> {
        let (peer, peer_registers) = self.peer(open(&opposite.host, self.shared.as_deref())?)?;
        let own: SoftEnd = (self.windows.clone(), self.registers.clone(), port);
        let shortcuts = if self.shared.is_some() { Shortcuts::NONE } else { Shortcuts::ALL };
        SoftPort::new(shortcuts, own, (Arc::new(peer), peer_registers, opposite.port))
    }

    /// Returns the windows and registers in the window file of a neighbour.
    fn peer(&self, file: MemoryFile) -> Result<(WindowFile, Registers), NtbError> {
        let registers = registers_of(&file)?;
        let layout = MemoryLayout { ports: registers.ports(), ..self.windows.layout };
        Ok((WindowFile { file, layout, name: None }, registers))
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

    fn port(&self, port: PortIndex, opposite: &PortAddress) -> Result<OpenPort, NtbError> {
        Ok(OpenPort::Software(self.soft_port(port, opposite)?))
    }

    fn view(&self, port: &PortAddress) -> Result<Option<InWindow>, NtbError> {
        if self.shared.is_some() {
            return Ok(None);
        }
        let (peer, registers) = self.peer(open(&port.host, None)?)?;
        let unused = NtbError::NoPort { of: "the neighbour", port: port.port, ports: registers.ports() };
        let offset = peer.layout.window_offset(port.port).ok_or(unused)?;
        Ok(Some(InWindow::new(peer.file.map(offset, peer.layout.window)?)))
    }

    fn vector(&self, doorbell: usize) -> Arc<dyn Vector> {
        Arc::new(SoftVector::new(self.registers.clone(), doorbell))
    }

    fn leftover(&self) -> Option<PathBuf> {
        self.windows.name.as_ref().map(|name| name.path().to_path_buf())
    }

    fn set_link(&self, port: PortIndex, state: LinkState) {
        self.registers.bank(port).into_iter().for_each(|bank| self.registers.set_link(bank, state));
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
