//! The adapters of a host, with the threads that serve them.

use crate::adapter::Adapter;
use crate::adapter::SliceUse;
use crate::allotment::PAGE;
use crate::circuits::{Circuits, Exposes};
use crate::control::CONTROL;
use crate::network::Announcement;
use crate::relay::{RelayThread, LANE};
use crate::service::{BellEvent, Service};
use crate::slice::HEADER;
use ntbring_ntb::{NtbError, PortCaps, PortIndex};
use std::sync::Arc;

/// Number of ports that a job uses.
const PORTS_OF_JOB: u64 = 2;

/// Part of a window that no job can have for its ports, bytes: there the circuits of the job, and those of another one
/// between whose hosts this one is, have their lanes and heads, one for each of two directions.
const FOR_CIRCUITS: u64 = 2 * PORTS_OF_JOB * PAGE + 2 * LANE;

/// Smaller windows keep at most one part in so many for circuits.
const SHARE_FOR_CIRCUITS: u64 = 4;

/// The adapters of a host, with the threads that serve them.
pub struct Adapters {
    /// Identity of this host, a random number.
    host: u64,
    all: Vec<Arc<Adapter>>,
    circuits: Arc<Circuits>,
    service: Service,
}

impl Adapters {
    /// Starts the threads. `host` is the identity with which the adapters were opened; `jobs` exposes slices at the ends
    /// of circuits. Fails if no thread can be started.
    pub(crate) fn new(host: u64, all: Vec<Arc<Adapter>>, jobs: Arc<dyn Exposes>) -> std::io::Result<Adapters> {
        let circuits = Arc::new(Circuits::new(host, all.clone(), jobs)?);
        let service = Service::start(all.clone(), circuits.clone())?;
        Ok(Adapters { host, all, circuits, service })
    }

    /// Returns the identity of this host.
    pub fn identity(&self) -> u64 {
        self.host
    }

    /// Returns the adapter in a port; None if there is none.
    pub fn adapter(&self, port: PortIndex) -> Option<&Arc<Adapter>> {
        self.all.iter().find(|adapter| adapter.port() == port)
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

    /// Returns the capabilities that all adapters have. The largest window is that of which every adapter has room for
    /// all ports of a job, beside the lanes of circuits: the ports share a window if the host has one adapter only, and if
    /// both neighbours are reached by the same cable.
    pub fn caps(&self) -> PortCaps {
        let mut caps = PortCaps::SOFTWARE;
        for one in self.all.iter().map(|adapter| adapter.caps()) {
            caps.mapping = one.mapping;
            let room = one.window_max - CONTROL;
            let room = room - FOR_CIRCUITS.min(room / SHARE_FOR_CIRCUITS);
            let slice = room / PORTS_OF_JOB - HEADER as u64;
            caps.window_max = caps.window_max.min(slice / caps.window_size_align * caps.window_size_align);
        }
        caps
    }

    /// Returns the number of free bytes in all windows.
    pub fn free(&self) -> u64 {
        self.all.iter().map(|adapter| adapter.free()).sum()
    }

    /// Returns what is known of all hosts: their names, links and circuits.
    pub fn network(&self) -> Vec<Announcement> {
        self.circuits.announcements()
    }

    /// Exchanges news with the neighbours and brings circuits forward now. The thread that serves the adapters does so, too.
    pub fn exchange(&self) {
        self.circuits.tick();
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
            (list(&mut ports.iter().copied()), list(&mut self.all.iter().map(|adapter| adapter.port())));
        let problem = format!(
            "no adapter is in one of the ports {wanted} that the job uses (NTBRING_PORTS); ports with adapters: {present}"
        );
        NtbError::Device { device: "pci".into(), problem }
    }
}
