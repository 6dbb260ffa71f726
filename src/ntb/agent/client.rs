//! The backend of ranks over the agent of their host.

use crate::message::{receive, send, Reply, Request, VERSION};
use crate::segments::{self, SegmentWay};
use nix::poll::{poll, PollFd, PollFlags, PollTimeout};
use nix::sys::eventfd::{EfdFlags, EventFd};
use nix::sys::socket::{connect, setsockopt, socket, sockopt, AddressFamily, SockFlag, SockType, UnixAddr};
use nix::sys::time::{TimeVal, TimeValLike};
use ntbring_host::FileTag;
use ntbring_memory::{Mapping, OutWindow, Region};
use ntbring_ntb::fabric::{Backend, Bells, Exposed, Exposure, Fabric, FabricAddress, OpenPort, PortAddress, Windows};
use ntbring_ntb::software::{Registers, SoftVector, PAGE};
use ntbring_ntb::{LinkState, NtbError, PortCaps, PortIndex, Vector, DOORBELLS};
use ntbring_pci::measure::LinkMeasurement;
use ntbring_pci::network::Announcement;
use ntbring_pci::relay::{RecordLane, RecordWriter, RelayedGrant};
use ntbring_pci::{memory, Grant, SlicePort};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Longest time in which the agent answers, seconds. It may wait for a link to come up before it does.
const ANSWER_TIMEOUT: i64 = 60;

/// The backend over the agent of this host.
pub struct AgentBackend {
    agent: Arc<Agent>,
}

/// A connection to the agent.
pub(crate) struct Agent {
    path: PathBuf,
    socket: OwnedFd,
    /// Held while a request waits for its reply.
    asking: Mutex<()>,
    caps: PortCaps,
    watched: Arc<Watched>,
}

/// What a thread does when the agent ends.
struct Watched {
    /// Becomes readable when the thread is to end.
    over: EventFd,
    /// True if the agent has ended.
    is_gone: AtomicBool,
    /// The register pages of this process.
    registers: Mutex<Vec<Registers>>,
}

impl Watched {
    /// Waits until the agent has ended, or this process has disconnected. If the agent has ended, it takes the links down
    /// and wakes all threads that sleep, so that they look at [`Fabric::failure`].
    fn wait(&self, socket: OwnedFd) {
        // The end of a connection is always reported.
        let mut descriptors =
            [PollFd::new(socket.as_fd(), PollFlags::empty()), PollFd::new(self.over.as_fd(), PollFlags::POLLIN)];
        while matches!(poll(&mut descriptors, PollTimeout::NONE), Err(nix::Error::EINTR)) {}
        if descriptors[0].revents().is_none_or(|events| events.is_empty()) {
            return;
        }
        self.is_gone.store(true, Ordering::Release);
        for registers in self.registers.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            let banks = registers.ports().ports().iter().filter_map(|&port| registers.bank(port)).collect::<Vec<_>>();
            banks.into_iter().for_each(|bank| registers.set_link(bank, LinkState::Down));
            (0..DOORBELLS).for_each(|doorbell| registers.interrupt(doorbell));
        }
    }
}

impl Drop for Agent {
    /// Ends the thread that waits for the agent's end. The connection ends when the host's monitor, which may have a copy
    /// of the socket, has ended as well.
    fn drop(&mut self) {
        // It fails only if the count is at its maximum, and then the thread has been told.
        let _ = self.watched.over.arm();
    }
}

impl AgentBackend {
    /// Connects to the agent whose socket is at `path`.
    pub fn connect(path: &Path) -> Result<AgentBackend, NtbError> {
        let connected = || {
            let socket = socket(AddressFamily::Unix, SockType::SeqPacket, SockFlag::SOCK_CLOEXEC, None)?;
            setsockopt(&socket, sockopt::ReceiveTimeout, &TimeVal::seconds(ANSWER_TIMEOUT))?;
            connect(socket.as_raw_fd(), &UnixAddr::new(path)?)?;
            Ok(socket)
        };
        let socket = connected().map_err(|error: nix::Error| {
            let why = match error {
                nix::Error::ENOENT | nix::Error::ECONNREFUSED => {
                    "; the agent of this host does not run: start it with `systemctl start ntbringd`, or unset \
                     NTBRING_DEVICE for the emulated ring"
                }
                _ => "",
            };
            failure(path, format!("connecting to ntbringd: {error}{why}"))
        })?;
        let over = EventFd::from_flags(EfdFlags::EFD_NONBLOCK | EfdFlags::EFD_CLOEXEC);
        let over = over.map_err(|error| failure(path, format!("creating an event descriptor: {error}")))?;
        let watched = Arc::new(Watched { over, is_gone: false.into(), registers: Mutex::default() });
        let of_thread = watched.clone();
        let started = socket
            .try_clone()
            .and_then(|socket| ntbring_host::thread::spawn("ntb-agent", move || of_thread.wait(socket)));
        started.map_err(|error| failure(path, format!("starting a thread: {error}")))?;
        let mut agent =
            Agent { path: path.into(), socket, asking: Mutex::default(), caps: PortCaps::SOFTWARE, watched };
        match agent.ask(&Request::Hello { version: VERSION })? {
            (Reply::Hello { window_max, is_combining, .. }, _) => {
                (agent.caps.window_max, agent.caps.mapping) = (window_max, mapping(is_combining));
                Ok(AgentBackend { agent: Arc::new(agent) })
            }
            (other, _) => Err(agent.unexpected(&other)),
        }
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
        agent.watched.registers.lock().unwrap_or_else(PoisonError::into_inner).push(registers.clone());
        let mut windows = Vec::new();
        for ((port, offset, len), file) in slices.into_iter().zip(files) {
            let port = PortIndex::new(port).ok_or_else(|| agent.failure(format!("there is no port {port}")))?;
            windows.push((port, memory::map(&file, offset, len).map_err(|error| agent.cannot_map(&error))?));
        }
        Ok(AgentFabric { agent: agent.clone(), address: FabricAddress(address), registers, windows })
    }
}

pub(crate) fn mapping(is_combining: bool) -> Mapping {
    if is_combining {
        Mapping::WriteCombining
    } else {
        Mapping::Uncached
    }
}

fn failure(path: &Path, problem: String) -> NtbError {
    NtbError::Device { device: format!("pci:{}", path.display()), problem }
}

impl Agent {
    /// Sends a request and returns the reply. Fails if the agent refuses it or has ended.
    pub(crate) fn ask(&self, request: &Request) -> Result<(Reply, Vec<OwnedFd>), NtbError> {
        self.ask_with(request, &[])
    }

    /// As [`Agent::ask`], with descriptors beside the request.
    pub(crate) fn ask_with(&self, request: &Request, files: &[BorrowedFd]) -> Result<(Reply, Vec<OwnedFd>), NtbError> {
        let _asking = self.asking.lock().unwrap_or_else(PoisonError::into_inner);
        let socket = self.socket.as_fd();
        let answer = send(socket, request, files).and_then(|()| receive(socket));
        match answer.map_err(|error| self.failure(format!("ntbringd: {error}")))? {
            (Reply::Refused { reason }, _) => Err(self.failure(reason)),
            answer => Ok(answer),
        }
    }

    fn failure(&self, problem: String) -> NtbError {
        failure(&self.path, problem)
    }

    pub(crate) fn unexpected(&self, reply: &Reply) -> NtbError {
        self.failure(format!("ntbringd has sent an unexpected reply: {reply:?}"))
    }

    /// Returns the two descriptors of a reply.
    fn two(&self, files: Vec<OwnedFd>) -> Result<[OwnedFd; 2], NtbError> {
        let problem = "ntbringd has not sent the two descriptors of a window";
        <[OwnedFd; 2]>::try_from(files).map_err(|_| self.failure(problem.into()))
    }

    pub(crate) fn cannot_map(&self, error: &io::Error) -> NtbError {
        self.failure(format!("mapping a window: {error}"))
    }

    /// Maps a register page.
    fn registers(&self, file: Option<File>) -> Result<Registers, NtbError> {
        let file = file.ok_or_else(|| self.failure("ntbringd has sent no register page".into()))?;
        let page = memory::map(&file, 0, PAGE as u64).map_err(|error| self.cannot_map(&error))?;
        let registers = Registers::open(page);
        registers.ok_or_else(|| self.failure("ntbringd has sent an invalid register page".into()))
    }
}

impl Backend for AgentBackend {
    fn caps(&self) -> PortCaps {
        self.agent.caps
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
        let mut caps = self.agent.caps;
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
        let is_gone = self.agent.watched.is_gone.load(Ordering::Acquire);
        is_gone.then(|| self.agent.failure("ntbringd of this host has ended, and with it all jobs that use it".into()))
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
        all.push(self.agent.socket.as_fd());
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
