//! Backends: the ways to get at the adapters of a host.
//!
//! One process of each host creates the host's windows ([`Backend::create`]) and publishes their address, the others of that
//! host attach to them; all open the ports to the neighbours, whose addresses they are told. Only the backend understands an
//! address.

use crate::software::SoftPort;
use crate::{LinkState, NtbError, Port, Side, Vector};
use ntbring_host::Introduction;
use std::sync::Arc;

/// The address of a host's windows: bytes that only the backend understands which made them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FabricAddress(pub [u8; FabricAddress::LEN]);

impl FabricAddress {
    /// Bytes of an address.
    pub const LEN: usize = 32;
}

/// The windows that a host needs. All hosts of a ring have the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Windows {
    /// Bytes of each incoming window, a multiple of the page size.
    pub bytes: u64,
    /// Whether a link model keeps accounts of them: as much memory again.
    pub accounts: bool,
}

/// A backend: opens the adapters of hosts.
pub trait Backend: Send + Sync {
    /// Its name in `NTBRING_DEVICE`.
    fn name(&self) -> &'static str;
    /// Creates the windows of a host; called by the host's first process.
    fn create(&self, windows: Windows) -> Result<Box<dyn Fabric>, NtbError>;
    /// Opens the windows of the own host, which another process has created.
    fn attach(&self, address: &FabricAddress, windows: Windows) -> Result<Box<dyn Fabric>, NtbError>;
    /// Opens the doorbells of a host that is no neighbour, for processes of other jobs.
    fn bells(&self, address: &FabricAddress) -> Result<Arc<dyn Bells>, NtbError>;
}

/// A host's adapters, as one of its processes holds them.
pub trait Fabric: Bells {
    /// The address of its windows.
    fn address(&self) -> FabricAddress;
    /// Opens the port on `side`, whose cable leads to the host with that address.
    fn port(&self, side: Side, neighbour: &FabricAddress) -> Result<OpenPort, NtbError>;
    /// An interrupt vector of this host.
    fn vector(&self, doorbell: usize) -> Arc<dyn Vector>;
    /// Makes the port on a side report this state of its link from now on; nothing happens where links are real.
    fn set_link(&self, side: Side, state: LinkState);
    /// Tells tools the host's place in its job.
    fn introduce(&self, is: Introduction) -> Result<(), NtbError>;
}

/// The vectors of a host, to be raised by processes that reach them without a link.
pub trait Bells: Send + Sync {
    /// Raises the vector of a doorbell.
    fn ring(&self, doorbell: usize);
}

/// A port without decorators.
pub enum OpenPort {
    /// Its bridge is memory, beside which decorators keep their state.
    Software(SoftPort),
    /// A real adapter. Link models and faults cannot be put around it.
    Adapter(Arc<dyn Port>),
}
