//! The agent's side of the socket.

use crate::clients::{Client, Clients, CONNECTIONS_MAX};
use crate::memory::ProcessMemory;
use crate::message::{receive, send, MessageError, Reply, Request, VERSION};
use nix::poll::{poll, PollFd, PollFlags, PollTimeout};
use nix::sys::socket::{
    accept4, bind, getsockopt, listen, socket, sockopt, AddressFamily, Backlog, SockFlag, SockType, UnixAddr,
};
use nix::unistd::{chown, Group};
use ntbring_host::thread;
use ntbring_memory::Mapping;
use ntbring_ntb::fabric::{FabricAddress, Windows};
use ntbring_ntb::{NtbError, PortIndex, PortList};
use ntbring_pci::relay::{Inlet, Outlet, RecordLane};
use ntbring_pci::{Allotment, BellEvent, HostAdapters, SliceAddress, SliceUse, Way};
use std::collections::HashMap;
use std::fs::{self, Permissions};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The agent's socket.
pub struct Server {
    socket: OwnedFd,
    state: Arc<State>,
}

/// Rules of the agent for the processes of its host.
#[derive(Clone, Debug, Default)]
pub struct Policy {
    /// True if processes map no windows: the agent carries out their writes.
    pub relays: bool,
    /// Group whose members may connect; None: every user may.
    pub group: Option<String>,
}

/// The reason for which there is no isolation over memory of a device.
const ONE_MEMORY: &str =
    "with ivshmem, processes read their windows in memory that all jobs share, so that `isolate` cannot \
                          keep jobs apart: unset it if the users of these machines trust each other";

/// The most jobs in which one process has windows.
const JOBS_MAX: usize = 64;

/// The most times that one process opens a neighbour's window.
const OPENED_MAX: usize = 64;

/// State that all connections share.
struct State {
    adapters: Arc<HostAdapters>,
    /// True if the agent carries out the writes of all processes, so that none can reach the slice of another job.
    relays: bool,
    /// The user who has created the windows of a job, by their key.
    owners: Mutex<HashMap<u64, u32>>,
    clients: Arc<Clients>,
}

impl Server {
    /// Creates the socket at `path`, to which every user may connect; one that an earlier agent has left is replaced.
    /// Fails also if there is no group with the name that the policy gives.
    pub fn new(path: &Path, adapters: Arc<HostAdapters>, policy: &Policy) -> io::Result<Server> {
        if let Some(directory) = path.parent() {
            fs::create_dir_all(directory)?;
        }
        match fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let socket = socket(AddressFamily::Unix, SockType::SeqPacket, SockFlag::SOCK_CLOEXEC, None)?;
        bind(socket.as_raw_fd(), &UnixAddr::new(path)?)?;
        match &policy.group {
            None => fs::set_permissions(path, Permissions::from_mode(0o666))?,
            Some(name) => {
                let no_group = || io::Error::other(format!("there is no group {name}"));
                let group = Group::from_name(name)?.ok_or_else(no_group)?;
                chown(path, None, Some(group.gid))?;
                fs::set_permissions(path, Permissions::from_mode(0o660))?;
            }
        }
        listen(&socket, Backlog::new(128)?)?;
        Ok(Server {
            socket,
            state: Arc::new(State {
                adapters,
                relays: policy.relays,
                owners: Mutex::default(),
                clients: Arc::default(),
            }),
        })
    }

    /// Serves processes, each in a thread of its own. Returns only if the socket fails.
    pub fn run(&self) -> io::Result<()> {
        loop {
            let accepted = accept4(self.socket.as_raw_fd(), SockFlag::SOCK_CLOEXEC);
            let socket = match accepted {
                // SAFETY: the call has returned a new descriptor, which nothing else owns.
                Ok(fd) => unsafe { OwnedFd::from_raw_fd(fd) },
                Err(nix::Error::EINTR | nix::Error::ECONNABORTED) => continue,
                Err(error @ (nix::Error::EMFILE | nix::Error::ENFILE | nix::Error::ENOMEM)) => {
                    log::error!("a process cannot be served: {error}");
                    std::thread::sleep(std::time::Duration::from_millis(100));
                    continue;
                }
                Err(error) => return Err(error.into()),
            };
            let state = self.state.clone();
            if let Err(error) = thread::spawn("ntb-client", move || Connection::serve(socket, state)) {
                log::error!("a process cannot be served: {error}");
            }
        }
    }
}

/// One process that is connected. It loses all that it was given when the connection ends.
struct Connection {
    socket: OwnedFd,
    user: u32,
    process: i32,
    /// Dropped after the process has lost all.
    _client: Client,
    state: Arc<State>,
    has_greeted: bool,
    allotments: HashMap<u64, Arc<Allotment>>,
    /// The slices of neighbours' windows that the process can write.
    uses: Vec<(BellEvent, SliceUse)>,
    /// The lanes of records of the process.
    lanes: Vec<Lane>,
    /// Memory of the process that neighbours can write, and theirs that it can write.
    memory: ProcessMemory,
}

/// A lane of records that a process writes, until this is dropped.
struct Lane {
    outlet: Arc<Outlet>,
    name: u64,
    lane: RecordLane,
}

impl Drop for Lane {
    fn drop(&mut self) {
        self.outlet.remove(self.name);
    }
}

/// A reply, with what owns the descriptors that go with it.
enum Grant {
    Plain(Reply),
    Windows(Reply, Arc<Allotment>),
    Window(Reply, OwnedFd, OwnedFd),
    /// The latest lane of the process.
    Lane(Reply),
    Segment(Reply, OwnedFd),
}

impl Drop for Connection {
    /// Takes all back that the process was given.
    fn drop(&mut self) {
        self.uses.clear();
        self.lanes.clear();
        self.memory.clear();
        for (key, allotment) in self.allotments.drain() {
            let is_last = Arc::strong_count(&allotment) == 1;
            drop(allotment);
            if is_last {
                self.state.owners().remove(&key);
            }
        }
    }
}

impl Connection {
    fn serve(socket: OwnedFd, state: Arc<State>) {
        let (user, process) = match getsockopt(&socket, sockopt::PeerCredentials) {
            Ok(credentials) => (credentials.uid(), credentials.pid()),
            Err(error) => return log::warn!("a process without credentials is not served: {error}"),
        };
        let Some(client) = state.clients.admit(user, process) else {
            return log::warn!(
                "process {process} of user {user} is not served: the user has {CONNECTIONS_MAX} already"
            );
        };
        let (allotments, uses, lanes) = (HashMap::new(), Vec::new(), Vec::new());
        let memory = ProcessMemory::new(state.relays);
        let has_greeted = false;
        let _client = client;
        let mut connection =
            Connection { socket, user, process, _client, state, has_greeted, allotments, uses, lanes, memory };
        match connection.serve_requests() {
            Ok(()) | Err(MessageError::Closed) => log::debug!("process {process} has disconnected"),
            Err(error) => log::warn!("process {process} of user {user} is disconnected: {error}"),
        }
    }

    fn serve_requests(&mut self) -> Result<(), MessageError> {
        loop {
            let (request, files) = receive::<Request>(self.socket.as_fd())?;
            log::debug!("process {} of user {}: {request:?}", self.process, self.user);
            let grant = self.grant(request, files).unwrap_or_else(|reason| {
                log::info!("process {} of user {}: refused: {reason}", self.process, self.user);
                Grant::Plain(Reply::Refused { reason })
            });
            let socket = self.socket.as_fd();
            match &grant {
                Grant::Plain(reply) => send(socket, reply, &[])?,
                Grant::Windows(reply, allotment) => {
                    let slices = allotment.slices().iter().map(|slice| slice.memory.file());
                    let all: Vec<BorrowedFd> = [allotment.page().file()].into_iter().chain(slices).collect();
                    // Only a request for windows is answered with the memory of these.
                    let count = if matches!(reply, Reply::Bells {}) { 1 } else { all.len() };
                    send(socket, reply, &all[..count])?;
                }
                Grant::Window(reply, file, event) => send(socket, reply, &[file.as_fd(), event.as_fd()])?,
                Grant::Segment(reply, file) => send(socket, reply, &[file.as_fd()])?,
                Grant::Lane(reply) => {
                    let lane = self.lanes.last().map(|lane| [lane.lane.memory.file(), lane.lane.event.as_fd()]);
                    send(socket, reply, lane.as_ref().map_or(&[], |files| files))?
                }
            }
        }
    }

    fn grant(&mut self, request: Request, files: Vec<OwnedFd>) -> Result<Grant, String> {
        if !matches!(request, Request::Expose { .. }) && !files.is_empty() {
            return Err("the request has descriptors".into());
        }
        match request {
            Request::Hello { version } if version == VERSION => {
                self.has_greeted = true;
                let caps = self.state.adapters.caps();
                let is_combining = caps.mapping == Mapping::WriteCombining;
                Ok(Grant::Plain(Reply::Hello { version: VERSION, window_max: caps.window_max, is_combining }))
            }
            Request::Hello { version } => Err(format!(
                "ntbringd has version {VERSION} of its protocol, the library version {version}: install one"
            )),
            _ if !self.has_greeted => Err("the first request must be a greeting".into()),
            Request::Create { bytes, ports } => self.create(bytes, ports),
            Request::Attach { address } => {
                let allotment = self.find(&address)?;
                self.admit_job(allotment.address().key)?;
                self.allotments.insert(allotment.address().key, allotment.clone());
                Ok(Grant::Windows(windows(&allotment), allotment))
            }
            Request::Expose { .. } | Request::Grow { .. } | Request::Withdraw { .. } => {
                self.memory.grant(&request, files, &self.allotments).map(Grant::Plain)
            }
            Request::Segment { address, port, opposite, token } => self.segment(&address, (port, opposite), token),
            Request::Open { address, port, neighbour, opposite } => self.open(&address, port, &neighbour, opposite),
            Request::Network {} => {
                let adapters = &self.state.adapters;
                Ok(Grant::Plain(Reply::Network { this: adapters.identity(), hosts: adapters.network() }))
            }
            Request::Measure { port } => {
                let port = PortIndex::new(port).ok_or("there is no such port")?;
                let adapter = self.state.adapters.adapter(port).ok_or_else(|| format!("port {port} has no adapter"))?;
                let link = adapter.measure().map_err(|error| format!("port {port}: {error}"))?;
                Ok(Grant::Plain(Reply::Measured { link }))
            }
            Request::Bells { address } => Ok(Grant::Windows(Reply::Bells {}, self.find(&address)?)),
        }
    }

    fn create(&mut self, bytes: u64, ports: u32) -> Result<Grant, String> {
        self.admit_job(0)?;
        let ports = PortList::of_code(ports).ok_or("an invalid list of ports")?;
        let windows = Windows { bytes, accounts: false, ports };
        let clients = &self.state.clients;
        let allotment = self.state.adapters.allot(windows, self.user, &|| clients.is_one_ending());
        let allotment = allotment.map_err(|error| error.to_string())?;
        if self.state.relays && allotment.slices().iter().any(|slice| slice.memory.is_of_device()) {
            return Err(ONE_MEMORY.into());
        }
        let key = allotment.address().key;
        self.state.owners().insert(key, self.user);
        self.allotments.insert(key, allotment.clone());
        Ok(Grant::Windows(self::windows(&allotment), allotment))
    }

    /// Returns the reason if the process may not have windows of another job, that with this key.
    fn admit_job(&self, key: u64) -> Result<(), String> {
        match self.allotments.len() < JOBS_MAX || self.allotments.contains_key(&key) {
            true => Ok(()),
            false => Err(format!("the process has windows of {JOBS_MAX} jobs already")),
        }
    }

    /// Returns true if the process has ended, or has closed the connection.
    fn is_closed(&self) -> bool {
        let mut sockets = [PollFd::new(self.socket.as_fd(), PollFlags::empty())];
        poll(&mut sockets, PollTimeout::ZERO).is_ok_and(|count| count > 0)
    }

    /// Returns the windows of a job of this process's user.
    fn find(&self, address: &[u8; 32]) -> Result<Arc<Allotment>, String> {
        let address = SliceAddress::decode(&FabricAddress(*address)).ok_or("an invalid address")?;
        let is_own = self.state.owners().get(&address.key) == Some(&self.user);
        let found = self.state.adapters.find(&address).filter(|_| is_own);
        found.ok_or_else(|| "no job of this user has windows with this address on this host".into())
    }

    fn open(&mut self, address: &[u8; 32], port: u8, neighbour: &[u8; 32], opposite: u8) -> Result<Grant, String> {
        let decode = |address: &[u8; 32]| SliceAddress::decode(&FabricAddress(*address)).ok_or("an invalid address");
        let (address, neighbour) = (decode(address)?, decode(neighbour)?);
        let allotment =
            self.allotments.get(&address.key).ok_or("the process has no windows with this address")?.clone();
        if self.uses.len() + self.lanes.len() >= OPENED_MAX {
            return Err(format!("the process has opened {OPENED_MAX} windows already"));
        }
        let (port, opposite) = PortIndex::new(port).zip(PortIndex::new(opposite)).ok_or("there is no such port")?;
        let own = allotment.slice(port).map(|slice| slice.memory.region().len() as u64);
        let cannot = |error: NtbError| error.to_string();
        let slice = match allotment.reach(port, &neighbour, opposite, &|| self.is_closed()).map_err(cannot)? {
            Way::Relayed(outlet) => return self.relayed(&allotment, outlet, own.unwrap_or(0)),
            Way::Direct(slice) => slice,
        };
        if self.state.relays || slice.adapter.window_file().is_none() {
            let (len, outlet) = (slice.range.len, allotment.relayed(port, slice).map_err(cannot)?);
            return self.relayed(&allotment, outlet, len);
        }
        let (file, start) = slice.adapter.window_file().ok_or("the adapter's window cannot be mapped")?;
        let is_combining = slice.adapter.caps().mapping == Mapping::WriteCombining;
        let cannot = |error: io::Error| error.to_string();
        let bell = allotment.owner().bell(&slice).map_err(cannot)?;
        let file = file.try_clone_to_owned().map_err(cannot)?;
        let event = bell.event.try_clone().map_err(cannot)?;
        let reply = Reply::Window { offset: start + slice.range.offset, len: slice.range.len, is_combining };
        self.uses.push((bell, slice));
        Ok(Grant::Window(reply, file, event))
    }

    /// Gives the process access to memory of a process of a neighbour.
    fn segment(&mut self, address: &[u8; 32], (port, opposite): (u8, u8), token: u64) -> Result<Grant, String> {
        let address = SliceAddress::decode(&FabricAddress(*address)).ok_or("an invalid address")?;
        let allotment = self.allotments.get(&address.key).ok_or("the process has no windows with this address")?;
        let ports = PortIndex::new(port).zip(PortIndex::new(opposite)).ok_or("there is no such port")?;
        Ok(match self.memory.open(allotment, ports, token)? {
            Some((reply, file)) => Grant::Segment(reply, file),
            None => Grant::Plain(Reply::Exposed { is_exposed: false }),
        })
    }

    /// Gives the process a lane of records, which the agent carries out in a slice of `len` bytes.
    fn relayed(&mut self, allotment: &Allotment, outlet: Arc<Outlet>, len: u64) -> Result<Grant, String> {
        let cannot = |error: io::Error| format!("a lane of records: {error}");
        let lane = RecordLane::allocate().map_err(cannot)?;
        let inlet = Inlet::local(&lane).ok_or("a lane that is too small")?;
        allotment.owner().relay().watch(&lane.event).map_err(cannot)?;
        let name = fastrand::u64(..);
        outlet.add(name, inlet);
        self.lanes.push(Lane { outlet, name, lane });
        Ok(Grant::Lane(Reply::Relayed { len }))
    }
}

/// Returns the reply that describes windows.
fn windows(allotment: &Allotment) -> Reply {
    let slices = allotment.slices().iter().map(|slice| {
        let memory = &slice.memory;
        (slice.port.get(), memory.offset(), memory.region().len() as u64)
    });
    Reply::Windows { address: allotment.address().encode().0, slices: slices.collect() }
}

impl State {
    fn owners(&self) -> MutexGuard<'_, HashMap<u64, u32>> {
        self.owners.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
