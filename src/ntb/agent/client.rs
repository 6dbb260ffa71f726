//! The backend of ranks over the agent of their host.

use crate::connection::{mapping, Agent};
use crate::message::{Reply, Request};
use crate::segments::{self, SegmentWay};
use ntbring_host::FileTag;
use ntbring_memory::{Mapping, OutWindow, Region};
use ntbring_ntb::fabric::{Backend, Bells, Exposed, Exposure, Fabric, FabricAddress, OpenPort, PortAddress, Windows};
use ntbring_ntb::software::{Registers, SoftVector};
use ntbring_ntb::{LinkState, NtbError, PortCaps, PortIndex, Vector};
use ntbring_pci::measure::LinkMeasurement;
use ntbring_pci::network::Announcement;
use ntbring_pci::relay::{RecordLane, RecordWriter, RelayedGrant};
use ntbring_pci::{memory, Grant, SlicePort};
use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;

/// The backend over the agent of this host.
pub struct AgentBackend {
    agent: Arc<Agent>,
}

impl AgentBackend {
    /// Connects to the agent whose socket is at `path`.
    pub fn connect(path: &Path) -> Result<AgentBackend, NtbError> {
        Ok(AgentBackend { agent: Arc::new(Agent::connect(path)?) })
    }

    /// Returns the identity of this host, and all hosts that its agent knows.
    pub fn network(&self) -> Result<(u64, Vec<Announcement>), NtbError> {
        match self.agent.ask(&Request::Network {})? {
            (Reply::Network { this, hosts }, _) => Ok((this, hosts)),
            (other, _) => Err(self.agent.unexpected(&other)),
        }
    }

    /// Measures the link at a port, with the help of the agents at both ends.
    pub fn measure(&self, port: PortIndex) -> Result<LinkMeasurement, NtbError> {
        match self.agent.ask(&Request::Measure { port: port.get() })? {
            (Reply::Measured { link }, _) => Ok(link),
            (other, _) => Err(self.agent.unexpected(&other)),
        }
    }

    fn fabric(&self, request: &Request) -> Result<AgentFabric, NtbError> {
        let agent = &self.agent;
        let (address, slices, files) = match agent.ask(request)? {
            (Reply::Windows { address, slices }, files) if files.len() == 1 + slices.len() => (address, slices, files),
            (other, _) => return Err(agent.unexpected(&other)),
        };
        let mut files = files.into_iter().map(File::from);
        let registers = agent.registers(files.next())?;
        agent.watch(registers.clone());
        let mut windows = Vec::new();
        for ((port, offset, len), file) in slices.into_iter().zip(files) {
            let port = PortIndex::new(port).ok_or_else(|| agent.failure(format!("there is no port {port}")))?;
            windows.push((port, memory::map(&file, offset, len).map_err(|error| agent.cannot_map(&error))?));
        }
        Ok(AgentFabric { agent: agent.clone(), address: FabricAddress(address), registers, windows })
    }
}

impl Backend for AgentBackend {
    fn caps(&self) -> PortCaps {
        self.agent.caps()
    }

    fn create(&self, windows: Windows) -> Result<Box<dyn Fabric>, NtbError> {
        let fabric = self.fabric(&Request::Create { bytes: windows.bytes, ports: windows.ports.code() })?;
        fabric.registers.attend();
        Ok(Box::new(fabric))
    }

    fn attach(&self, address: &FabricAddress, _windows: Windows) -> Result<Box<dyn Fabric>, NtbError> {
        let fabric = self.fabric(&Request::Attach { address: address.0 })?;
        fabric.registers.attend();
        Ok(Box::new(fabric))
    }

    fn bells(&self, address: &FabricAddress) -> Result<Arc<dyn Bells>, NtbError> {
        match self.agent.ask(&Request::Bells { address: address.0 })? {
            (Reply::Bells {}, files) => {
                Ok(Arc::new(HostBells(self.agent.registers(files.into_iter().next().map(File::from))?)))
            }
            (other, _) => Err(self.agent.unexpected(&other)),
        }
    }
}

/// The interrupt vectors of a job on this host.
struct HostBells(Registers);

impl Bells for HostBells {
    fn ring(&self, doorbell: usize) {
        self.0.interrupt(doorbell);
    }
}

/// A process's windows and registers.
struct AgentFabric {
    agent: Arc<Agent>,
    address: FabricAddress,
    registers: Registers,
    windows: Vec<(PortIndex, Region)>,
}

impl AgentFabric {
    fn held<G: Grant + 'static>(&self, grant: G) -> Arc<dyn Grant> {
        Arc::new(Held { grant, agent: self.agent.clone() })
    }
}

impl Bells for AgentFabric {
    fn ring(&self, doorbell: usize) {
        self.registers.interrupt(doorbell);
    }
}

impl Fabric for AgentFabric {
    fn address(&self) -> FabricAddress {
        self.address
    }

    fn port(&self, port: PortIndex, opposite: &PortAddress) -> Result<OpenPort, NtbError> {
        let unused = || NtbError::NoPort { of: "this host", port, ports: self.registers.ports() };
        let (_, incoming) = self.windows.iter().find(|(index, _)| *index == port).ok_or_else(unused)?;
        let bank = self.registers.bank(port).ok_or_else(unused)?;
        let request = Request::Open {
            address: self.address.0,
            port: port.get(),
            neighbour: opposite.host.0,
            opposite: opposite.port.get(),
        };
        let (grant, mapping): (Arc<dyn Grant>, Mapping) = match self.agent.ask(&request)? {
            (Reply::Window { offset, len, is_combining }, files) => {
                let [file, event] = self.agent.two(files)?;
                let mapping = mapping(is_combining);
                let way = SegmentWay {
                    agent: self.agent.clone(),
                    address: self.address.0,
                    port: port.get(),
                    opposite: opposite.port.get(),
                };
                (self.held(MappedGrant { file: file.into(), offset, len, mapping, event, way }), mapping)
            }
            (Reply::Relayed { len }, files) => {
                let [file, event] = self.agent.two(files)?;
                let memory = memory::map(&file.into(), 0, RecordLane::size());
                let memory = memory.map_err(|error| self.agent.cannot_map(&error))?;
                let writer = RecordWriter::new(memory, event, self.registers.clone(), bank);
                let writer = writer.ok_or_else(|| self.agent.failure("a lane that is too small".into()))?;
                (self.held(RelayedGrant::new(writer, len)), Mapping::Coherent)
            }
            (other, _) => return Err(self.agent.unexpected(&other)),
        };
        let mut caps = self.agent.caps();
        caps.mapping = mapping;
        let registers = (self.registers.clone(), bank);
        Ok(OpenPort::Adapter(Arc::new(SlicePort::new(port, caps, registers, incoming.clone(), grant)?)))
    }

    fn expose(&self, port: PortIndex, memory: &Exposed<'_>) -> Result<Option<Box<dyn Exposure>>, NtbError> {
        segments::expose(&self.agent, (self.address, port), memory)
    }

    fn vector(&self, doorbell: usize) -> Arc<dyn Vector> {
        Arc::new(SoftVector::new(self.registers.clone(), doorbell))
    }

    fn set_link(&self, _port: PortIndex, _state: LinkState) {}

    fn failure(&self) -> Option<NtbError> {
        self.agent
            .is_gone()
            .then(|| self.agent.failure("ntbringd of this host has ended, and with it all jobs that use it".into()))
    }

    fn introduce(&self, _is: FileTag) -> Result<(), NtbError> {
        Ok(())
    }
}

/// Access to a slice of the neighbour's window, which lasts as long as the connection.
struct Held<G> {
    grant: G,
    agent: Arc<Agent>,
}

impl<G: Grant> Grant for Held<G> {
    fn map(&self, offset: u64, len: u64) -> Result<OutWindow, NtbError> {
        self.grant.map(offset, len)
    }

    fn ring(&self) {
        self.grant.ring();
    }

    fn reaches_segments(&self) -> bool {
        self.grant.reaches_segments()
    }

    fn segment(&self, token: u64) -> Result<Option<OutWindow>, NtbError> {
        self.grant.segment(token)
    }

    fn lose_rather_than_wait(&self) {
        self.grant.lose_rather_than_wait();
    }

    fn descriptors(&self) -> Vec<BorrowedFd<'_>> {
        let mut all = self.grant.descriptors();
        all.push(self.agent.descriptor());
        all
    }
}

/// Access through a file that maps the slice.
struct MappedGrant {
    file: File,
    /// Offset of the slice in the file, bytes.
    offset: u64,
    len: u64,
    mapping: Mapping,
    /// Rings the neighbour's doorbell.
    event: OwnedFd,
    way: SegmentWay,
}

impl Grant for MappedGrant {
    fn map(&self, offset: u64, len: u64) -> Result<OutWindow, NtbError> {
        if offset.checked_add(len).is_none_or(|end| end > self.len) {
            return Err(NtbError::Aperture { offset, len, size: self.len });
        }
        let region = memory::map(&self.file, self.offset + offset, len).map_err(|error| NtbError::Device {
            device: "pci".into(),
            problem: format!("mapping a window: {error}"),
        })?;
        Ok(OutWindow::mapped(region, self.mapping))
    }

    fn reaches_segments(&self) -> bool {
        true
    }

    fn segment(&self, token: u64) -> Result<Option<OutWindow>, NtbError> {
        self.way.segment(token)
    }

    fn ring(&self) {
        // It fails only if the count is at its maximum, and then the agent has not rung yet.
        let _ = nix::unistd::write(&self.event, &1u64.to_ne_bytes());
    }

    fn descriptors(&self) -> Vec<BorrowedFd<'_>> {
        vec![self.file.as_fd(), self.event.as_fd()]
    }
}
