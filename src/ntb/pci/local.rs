//! The backend over adapters that this process owns.

use crate::address::SliceAddress;
use crate::host::HostAdapters;
use crate::job::{Allotment, Way};
use crate::relay::{Inlet, Outlet, RecordLane, RecordWriter, RelayedGrant};
use crate::segments::CableGrant;
use crate::slice::{Grant, SlicePort};
use ntbring_host::FileTag;
use ntbring_memory::OutWindow;
use ntbring_ntb::fabric::{Backend, Bells, Exposed, Exposure, Fabric, FabricAddress, OpenPort, PortAddress, Windows};
use ntbring_ntb::software::{Bank, SoftVector};
use ntbring_ntb::{LinkState, NtbError, PortCaps, PortIndex, Vector};
use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;

/// The backend over adapters that this process owns; all ranks of the host are threads of it.
pub struct LocalAdapters(pub Arc<HostAdapters>);

impl LocalAdapters {
    fn find(&self, address: &FabricAddress) -> Result<LocalFabric, NtbError> {
        let problem = "the address does not belong to a job on this host".to_string();
        let found = SliceAddress::decode(address).and_then(|address| self.0.find(&address));
        let allotment = found.ok_or(NtbError::Device { device: "pci".into(), problem })?;
        Ok(LocalFabric { allotment })
    }
}

impl Backend for LocalAdapters {
    fn caps(&self) -> PortCaps {
        self.0.caps()
    }

    fn create(&self, windows: Windows) -> Result<Box<dyn Fabric>, NtbError> {
        Ok(Box::new(LocalFabric { allotment: self.0.allot(windows, nix::unistd::getuid().as_raw(), &|| false)? }))
    }

    fn attach(&self, address: &FabricAddress, _windows: Windows) -> Result<Box<dyn Fabric>, NtbError> {
        Ok(Box::new(self.find(address)?))
    }

    fn bells(&self, address: &FabricAddress) -> Result<Arc<dyn Bells>, NtbError> {
        Ok(Arc::new(self.find(address)?))
    }
}

struct LocalFabric {
    allotment: Arc<Allotment>,
}

impl LocalFabric {
    /// Returns access to a slice of `len` bytes through an outlet.
    fn relayed(&self, outlet: Arc<Outlet>, bank: Bank, len: u64) -> Result<OutletGrant, NtbError> {
        let failure = |problem: String| NtbError::Device { device: "pci".into(), problem };
        let lane = RecordLane::allocate().map_err(|error| failure(format!("memory of a lane: {error}")))?;
        let (Some(inlet), Ok(event)) = (Inlet::local(&lane), lane.event.as_fd().try_clone_to_owned()) else {
            return Err(failure("no more descriptors".into()));
        };
        let registers = self.allotment.registers().clone();
        let writer = RecordWriter::new(lane.memory.region().clone(), event, registers, bank);
        let writer = writer.ok_or_else(|| failure("a lane that is too small".into()))?;
        self.allotment.owner().relay().watch(&lane.event).map_err(|error| failure(error.to_string()))?;
        let name = fastrand::u64(..);
        outlet.add(name, inlet);
        Ok(OutletGrant { grant: RelayedGrant::new(writer, len), outlet, name })
    }
}

/// Access to a slice through an outlet, until this is dropped.
struct OutletGrant {
    grant: RelayedGrant,
    outlet: Arc<Outlet>,
    name: u64,
}

impl Grant for OutletGrant {
    fn map(&self, offset: u64, len: u64) -> Result<OutWindow, NtbError> {
        self.grant.map(offset, len)
    }

    fn ring(&self) {
        self.grant.ring();
    }
}

impl Drop for OutletGrant {
    fn drop(&mut self) {
        self.outlet.remove(self.name);
    }
}

impl Bells for LocalFabric {
    fn ring(&self, doorbell: usize) {
        self.allotment.registers().interrupt(doorbell);
    }
}

impl Fabric for LocalFabric {
    fn address(&self) -> FabricAddress {
        self.allotment.address().encode()
    }

    fn port(&self, port: PortIndex, opposite: &PortAddress) -> Result<OpenPort, NtbError> {
        let problem = "the neighbour's address is not of a host with adapters".to_string();
        let address = SliceAddress::decode(&opposite.host);
        let address = address.ok_or(NtbError::Device { device: "pci".into(), problem })?;
        let way = self.allotment.reach(port, &address, opposite.port, &|| false)?;
        let unused = NtbError::NoPort { of: "this host", port, ports: self.allotment.registers().ports() };
        let (Some(own), Some(bank)) = (self.allotment.slice(port), self.allotment.registers().bank(port)) else {
            return Err(unused);
        };
        let (caps, incoming) = (own.adapter.caps(), own.memory.region().clone());
        let grant: Arc<dyn Grant> = match way {
            Way::Direct(slice) => Arc::new(CableGrant::new(slice, &self.allotment, port, opposite.port)),
            Way::Relayed(outlet) => Arc::new(self.relayed(outlet, bank, incoming.len() as u64)?),
        };
        let registers = (self.allotment.registers().clone(), bank);
        Ok(OpenPort::Adapter(Arc::new(SlicePort::new(port, caps, registers, incoming, grant)?)))
    }

    fn expose(&self, port: PortIndex, memory: &Exposed<'_>) -> Result<Option<Box<dyn Exposure>>, NtbError> {
        let Exposed { token, file, offset, size, backed } = *memory;
        let failure = |error: io::Error| NtbError::Device { device: "pci".into(), problem: error.to_string() };
        let file = file.try_clone_to_owned().map_err(failure)?;
        let exposed = self.allotment.expose_memory(port, token, (file, offset), size, backed);
        Ok(exposed.map(|memory| Box::new(memory) as Box<dyn Exposure>))
    }

    fn vector(&self, doorbell: usize) -> Arc<dyn Vector> {
        Arc::new(SoftVector::new(self.allotment.registers().clone(), doorbell))
    }

    fn set_link(&self, _port: PortIndex, _state: LinkState) {}

    fn introduce(&self, _is: FileTag) -> Result<(), NtbError> {
        Ok(())
    }
}
