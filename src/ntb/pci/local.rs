//! The backend over adapters that this process owns.

use crate::address::SliceAddress;
use crate::host::{Allotment, HostAdapters};
use crate::slice::SlicePort;
use ntbring_host::FileTag;
use ntbring_ntb::fabric::{Backend, Bells, Fabric, FabricAddress, OpenPort, PortAddress, Windows};
use ntbring_ntb::software::SoftVector;
use ntbring_ntb::{LinkState, NtbError, PortCaps, PortIndex, Vector};
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
        Ok(Box::new(LocalFabric { allotment: self.0.allot(windows, nix::unistd::getuid().as_raw())? }))
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
        let slice = self.allotment.reach(port, &address, opposite.port)?;
        let unused = NtbError::NoPort { of: "this host", port, ports: self.allotment.registers().ports() };
        let (Some(own), Some(bank)) = (self.allotment.slice(port), self.allotment.registers().bank(port)) else {
            return Err(unused);
        };
        let (caps, incoming) = (slice.adapter.caps(), own.memory.region().clone());
        let registers = (self.allotment.registers().clone(), bank);
        Ok(OpenPort::Adapter(Arc::new(SlicePort::new(port, caps, registers, incoming, Arc::new(slice))?)))
    }

    fn vector(&self, doorbell: usize) -> Arc<dyn Vector> {
        Arc::new(SoftVector::new(self.allotment.registers().clone(), doorbell))
    }

    fn set_link(&self, _port: PortIndex, _state: LinkState) {}

    fn introduce(&self, _is: FileTag) -> Result<(), NtbError> {
        Ok(())
    }
}
