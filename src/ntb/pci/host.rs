//! All adapters of a host.

use crate::adapter::{Adapter, CONTROL};
use crate::adapter_slices::SliceUse;
use crate::address::SliceAddress;
use crate::circuits::Circuits;
use crate::job::{Allotment, Jobs};
use crate::network::Announcement;
use crate::relay::RelayThread;
use crate::service::{BellEvent, Service};
use crate::slice::HEADER;
use ntbring_ntb::fabric::Windows;
use ntbring_ntb::{NtbError, PortCaps, PortIndex};
use std::sync::Arc;

/// The adapters of this host, which this process owns.
pub struct HostAdapters {
    /// Identity of this host, a random number.
    host: u64,
    adapters: Vec<Arc<Adapter>>,
    jobs: Arc<Jobs>,
    circuits: Arc<Circuits>,
    service: Service,
}

impl HostAdapters {
    /// Takes the adapters into service. `host` is the identity with which they were opened. Fails if no thread can be
    /// started.
    pub fn new(host: u64, adapters: Vec<Arc<Adapter>>) -> std::io::Result<Arc<HostAdapters>> {
        let jobs = Arc::new(Jobs::default());
        let circuits = Arc::new(Circuits::new(host, adapters.clone(), jobs.clone())?);
        let service = Service::start(adapters.clone(), circuits.clone())?;
        Ok(Arc::new(HostAdapters { host, adapters, jobs, circuits, service }))
    }

    /// Returns the identity of this host.
    pub fn identity(&self) -> u64 {
        self.host
    }

    /// Returns the adapter in a port; None if there is none.
    pub fn adapter(&self, port: PortIndex) -> Option<&Arc<Adapter>> {
        self.adapters.iter().find(|adapter| adapter.port() == port)
    }

    /// Returns the adapters whose windows hold the slices of a job's ports. Ports without an adapter share that of
    /// another port of the job: the first one that has one. Fails if none has one.
    pub(crate) fn adapters_of(&self, ports: &[PortIndex]) -> Result<Vec<Arc<Adapter>>, NtbError> {
        let shared = ports.iter().find_map(|&port| self.adapter(port));
        let shared = shared.ok_or_else(|| self.no_adapter(ports))?;
        Ok(ports.iter().map(|&port| self.adapter(port).unwrap_or(shared).clone()).collect())
    }

    /// Returns an event descriptor that rings the doorbell of a slice of a neighbour's window whenever it is signalled.
    pub fn bell(&self, slice: &SliceUse) -> std::io::Result<BellEvent> {
        self.service.bell(&slice.adapter, slice.doorbell())
    }

    /// Returns the capabilities that all adapters have.
    pub fn caps(&self) -> PortCaps {
        let mut caps = PortCaps::SOFTWARE;
        // A ring has two ports; both share the window of a single adapter.
        let shares = if self.adapters.len() == 1 { 2 } else { 1 };
        for one in self.adapters.iter().map(|adapter| adapter.caps()) {
            caps.mapping = one.mapping;
            let slice = (one.window_max - CONTROL) / shares - HEADER as u64;
            caps.window_max = caps.window_max.min(slice / caps.window_size_align * caps.window_size_align);
        }
        caps
    }

    /// Gives a job of a user a slice of a window for each port that it wants. Fails if there is not enough room.
    pub fn allot(self: &Arc<Self>, windows: Windows, user: u32) -> Result<Arc<Allotment>, NtbError> {
        let allotment = Arc::new(Allotment::new(self, windows, user)?);
        self.jobs.add(&allotment);
        Ok(allotment)
    }

    /// Returns the number of free bytes in all windows.
    pub fn free(&self) -> u64 {
        self.adapters.iter().map(|adapter| adapter.free()).sum()
    }

    /// Returns the allotment of a job on this host; None if the address is another host's, or if the job has ended.
    pub fn find(&self, address: &SliceAddress) -> Option<Arc<Allotment>> {
        self.jobs.find(address.key).filter(|_| address.host == self.host)
    }

    /// Returns what is known of all hosts: their names, links and circuits.
    pub fn network(&self) -> Vec<Announcement> {
        self.circuits.announcements()
    }

    /// Returns the thread that carries out the writes of processes.
    pub fn relay(&self) -> &RelayThread {
        self.circuits.relay()
    }

    pub(crate) fn circuits(&self) -> &Circuits {
        &self.circuits
    }

    fn no_adapter(&self, ports: &[PortIndex]) -> NtbError {
        let list = |ports: &mut dyn Iterator<Item = PortIndex>| {
            let ports: Vec<String> = ports.map(|port| port.to_string()).collect();
            if ports.is_empty() {
                "none".to_string()
            } else {
                ports.join(", ")
            }
        };
        let (wanted, present) =
            (list(&mut ports.iter().copied()), list(&mut self.adapters.iter().map(|adapter| adapter.port())));
        let problem = format!(
            "no adapter is in one of the ports {wanted} that the job uses (NTBRING_PORTS); ports with adapters: {present}"
        );
        NtbError::Device { device: "pci".into(), problem }
    }
}
