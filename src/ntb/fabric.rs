//! Backends: they open the adapters of a host.
//!
//! One process of each host creates the host's windows ([`Backend::create`]) and publishes their address; the other
//! processes of that host attach to them ([`Backend::attach`]). Every process receives the addresses of the neighbours'
//! windows and opens the ports to them ([`Fabric::port`]). An address is opaque except to the backend that made it.

use crate::software::SoftPort;
use crate::{LinkState, NtbError, Port, PortCaps, PortIndex, PortList, Vector};
use ntbring_host::FileTag;
use ntbring_memory::InWindow;
use std::os::fd::BorrowedFd;
use std::path::PathBuf;
use std::sync::Arc;

/// The address of a host's windows: bytes that are opaque except to the backend that made them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FabricAddress(pub [u8; FabricAddress::LEN]);

impl FabricAddress {
    /// Length of an address, bytes.
    pub const LEN: usize = 32;
}

/// The address of a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortAddress {
    /// The address of its host's windows.
    pub host: FabricAddress,
    /// The number of the port on that host.
    pub port: PortIndex,
}

/// Requirements for the windows of a host; all hosts of a ring have windows of the same size, with accounts or without.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Windows {
    /// Size of each incoming window, bytes; a multiple of the page size.
    pub bytes: u64,
    /// True if a link model needs accounts of the windows, which take as much memory as the windows.
    pub accounts: bool,
    /// The ports that the host uses; each has one incoming window.
    pub ports: PortList,
}

/// A backend: a kind of device, which opens the adapters of hosts.
pub trait Backend: Send + Sync {
    /// Returns the capabilities that all adapters of the host have.
    fn caps(&self) -> PortCaps {
        PortCaps::SOFTWARE
    }
    /// Creates the windows of a host; called by the host's first process.
    fn create(&self, windows: Windows) -> Result<Box<dyn Fabric>, NtbError>;
    /// Opens the windows of this process's host, which another process of the host has created with the same
    /// requirements.
    fn attach(&self, address: &FabricAddress, windows: Windows) -> Result<Box<dyn Fabric>, NtbError>;
    /// Opens the doorbells of a host that is not a neighbour, for processes of other jobs.
    fn bells(&self, address: &FabricAddress) -> Result<Arc<dyn Bells>, NtbError>;
}

/// A process's handle for the adapters of its host.
pub trait Fabric: Bells {
    /// Returns the address of the host's windows.
    fn address(&self) -> FabricAddress;
    /// Opens a port of this host, whose cable leads to the port `opposite` of a neighbour. Fails if one of the two
    /// hosts does not use its port.
    fn port(&self, port: PortIndex, opposite: &PortAddress) -> Result<OpenPort, NtbError>;
    /// Returns the incoming window of a neighbour's port, for reading; None if a host can only write its neighbours'
    /// windows. A reader sees the data there before the neighbour passes it on.
    fn view(&self, _port: &PortAddress) -> Result<Option<InWindow>, NtbError> {
        Ok(None)
    }
    /// Makes memory of a process accessible to the neighbour at a port, which opens it by [`Port::segment`], until the
    /// exposure is dropped. None if the adapter has no room for it, or if the neighbour needs no exposure.
    fn expose(&self, _port: PortIndex, _memory: &Exposed<'_>) -> Result<Option<Box<dyn Exposure>>, NtbError> {
        Ok(None)
    }
    /// Returns the interrupt vector of this host that `doorbell` raises.
    fn vector(&self, doorbell: usize) -> Arc<dyn Vector>;
    /// Makes a port of this host report this link state from now on. It has no effect on real links, and none on ports
    /// that the host does not use.
    fn set_link(&self, port: PortIndex, state: LinkState);
    /// Returns the failure after which the device cannot be used any more; None while it works.
    fn failure(&self) -> Option<NtbError> {
        None
    }
    /// Returns the file that would be left behind if this process were killed; the host's monitor removes it then. No
    /// other resource of a backend outlives the processes that use it.
    fn leftover(&self) -> Option<PathBuf> {
        None
    }
    /// Records the host's position in its job, for tools.
    fn introduce(&self, is: FileTag) -> Result<(), NtbError>;
}

/// Memory of a process that a neighbour shall write.
#[derive(Clone, Copy, Debug)]
pub struct Exposed<'a> {
    /// The token of the segment.
    pub token: u64,
    /// The file of the memory.
    pub file: BorrowedFd<'a>,
    /// Offset of the memory in the file, bytes.
    pub offset: u64,
    /// Largest size of the memory, bytes. Only a part from its start on may become accessible.
    pub size: u64,
    /// Number of bytes that are backed by memory: the neighbour writes no others.
    pub backed: u64,
}

/// Memory that a neighbour can write, until this is dropped.
pub trait Exposure: Send + Sync {
    /// Makes memory accessible that was backed since, up to `backed` bytes from the start.
    fn grow(&self, backed: u64) -> Result<(), NtbError>;
}

/// The interrupt vectors of a host, for processes that raise them without a link.
pub trait Bells: Send + Sync {
    /// Raises the vector that belongs to `doorbell`.
    fn ring(&self, doorbell: usize);
}

/// A port without decorators.
pub enum OpenPort {
    /// A port whose bridge is shared memory; decorators keep their state in additional memory of it.
    Software(SoftPort),
    /// A real adapter. The decorators for link models and faults cannot wrap it.
    Adapter(Arc<dyn Port>),
}
