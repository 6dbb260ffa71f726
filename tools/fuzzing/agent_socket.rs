//! Processes that send the agent any requests, valid ones with other values, in any order, with descriptors, and that end
//! at any moment; they write any bytes into the memory that the agent shares with them. Afterwards an honest process must
//! be served, and from time to time all descriptors, threads and slices are counted.

use crate::common::models::{Model, ModelRing};
use crate::script::Script;
use nix::sys::socket::{
    connect, recvmsg, sendmsg, setsockopt, shutdown, socket, sockopt, AddressFamily, ControlMessage,
    ControlMessageOwned, MsgFlags, Shutdown, SockFlag, SockType, UnixAddr,
};
use nix::sys::time::{TimeVal, TimeValLike};
use ntbring_agent::{AgentBackend, Policy, Server, VERSION};
use ntbring_memory::{OutWindow, Region};
use ntbring_ntb::fabric::{Backend, Fabric, Windows};
use ntbring_ntb::PortList;
use ntbring_pci::memory;
use ntbring_queue::{lines_for, Tag, LINE, TAG};
use serde_json::{json, Value};
use std::fs::File;
use std::io::{IoSlice, IoSliceMut};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock};
use std::time::{Duration, Instant};

const WINDOWS: Windows = Windows { bytes: 64 << 10, accounts: false, ports: PortList::DEFAULT };

/// Number of inputs between two counts of all resources.
const COUNT_EVERY: u64 = 50;

/// Longest time in which the agent releases what processes have had.
const PATIENCE: Duration = Duration::from_secs(15);

/// A user who has no jobs.
const STRANGER: u32 = 54321;

/// The agent of a host of two, and a job of the other one.
struct World {
    ring: ModelRing,
    path: PathBuf,
    _directory: tempfile::TempDir,
    neighbour: [u8; 32],
    _job: Mutex<Box<dyn Fabric>>,
    /// Number of descriptors and of threads, and free bytes of the windows, when no process is connected.
    idle: (usize, usize, u64),
    inputs: AtomicU64,
}

fn count(directory: &str) -> usize {
    std::fs::read_dir(directory).map_or(0, Iterator::count)
}

impl World {
    fn get() -> &'static World {
        static WORLD: OnceLock<World> = OnceLock::new();
        WORLD.get_or_init(World::new)
    }

    fn new() -> World {
        let (ring, directory) = (ModelRing::new(Model::Skx, 2, 1 << 20), tempfile::tempdir().expect("a directory"));
        let path = directory.path().join("agent.sock");
        let server = Server::new(&path, ring.adapters(0), &Policy { relays: true, group: None }).expect("a socket");
        std::thread::spawn(move || server.run());
        let job = ring.backend(1).create(WINDOWS).expect("windows");
        let neighbour = job.address().0;
        let mut world = World {
            ring,
            path,
            _directory: directory,
            neighbour,
            _job: Mutex::new(job),
            idle: Default::default(),
            inputs: AtomicU64::new(0),
        };
        world.serve_honest();
        std::thread::sleep(Duration::from_millis(500));
        world.idle = world.used();
        world
    }

    fn used(&self) -> (usize, usize, u64) {
        (count("/proc/self/fd"), count("/proc/self/task"), self.ring.free())
    }

    /// Lets an honest process have windows.
    fn serve_honest(&self) {
        let start = Instant::now();
        loop {
            let backend = AgentBackend::connect(&self.path).expect("an honest process is served");
            match backend.create(WINDOWS) {
                Ok(fabric) => return assert!(fabric.failure().is_none()),
                Err(error) => assert!(start.elapsed() < PATIENCE, "an honest process gets no windows: {error}"),
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Checks that nothing is held for processes that have ended.
    fn check(&self) {
        let start = Instant::now();
        // Programs that run this may open descriptors of their own for a moment.
        while self.used() != self.idle {
            assert!(start.elapsed() < PATIENCE, "descriptors, threads, bytes: {:?}, not {:?}", self.used(), self.idle);
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

/// A process that is connected.
struct Process {
    socket: OwnedFd,
    is_stranger: bool,
    /// The address that the agent has told last.
    address: [u8; 32],
    /// The memory that the agent shares, the events, and the place of the next record.
    memory: Vec<Region>,
    files: Vec<OwnedFd>,
    cursor: (usize, u16),
}

impl Process {
    fn connect(world: &World, is_stranger: bool) -> Option<Process> {
        let socket = socket(AddressFamily::Unix, SockType::SeqPacket, SockFlag::SOCK_CLOEXEC, None).ok()?;
        let set_user = |user: u32| {
            // SAFETY: the call has no memory arguments. Other than the C library's function, it concerns this thread alone.
            unsafe { libc::syscall(libc::SYS_setresuid, -1, user as i32, -1) == 0 }
        };
        let is_stranger = is_stranger && nix::unistd::geteuid().is_root() && set_user(STRANGER);
        let connected = connect(socket.as_raw_fd(), &UnixAddr::new(&world.path).ok()?);
        assert!(!is_stranger || set_user(0), "the thread is root again");
        connected.ok()?;
        setsockopt(&socket, sockopt::ReceiveTimeout, &TimeVal::milliseconds(4)).ok()?;
        setsockopt(&socket, sockopt::SendTimeout, &TimeVal::milliseconds(4)).ok()?;
        let (memory, files) = (Vec::new(), Vec::new());
        Some(Process { socket, is_stranger, address: [0; 32], memory, files, cursor: (0, 0) })
    }

    /// Sends bytes with a number of descriptors.
    fn send(&self, bytes: &[u8], descriptors: usize) {
        let raw: Vec<RawFd> = vec![self.socket.as_raw_fd(); descriptors];
        let rights = [ControlMessage::ScmRights(&raw)];
        let control = if raw.is_empty() { &[][..] } else { &rights[..] };
        // The agent may have closed the connection already.
        let _ =
            sendmsg::<UnixAddr>(self.socket.as_raw_fd(), &[IoSlice::new(bytes)], control, MsgFlags::MSG_NOSIGNAL, None);
    }

    /// Receives a reply, if there is one soon.
    fn receive(&mut self) {
        let (mut bytes, mut space) = (vec![0; 64 << 10], nix::cmsg_space!([RawFd; 8]));
        let mut parts = [IoSliceMut::new(&mut bytes)];
        let flags = MsgFlags::MSG_CMSG_CLOEXEC;
        let Ok(received) = recvmsg::<UnixAddr>(self.socket.as_raw_fd(), &mut parts, Some(&mut space), flags) else {
            return;
        };
        let mut files = Vec::new();
        for control in received.cmsgs().expect("all descriptors") {
            if let ControlMessageOwned::ScmRights(raw) = control {
                // SAFETY: the kernel has installed these descriptors for this message.
                files.extend(raw.into_iter().map(|fd| unsafe { OwnedFd::from_raw_fd(fd) }));
            }
        }
        let len = received.bytes;
        let Ok(reply) = serde_json::from_slice::<Value>(&bytes[..len]) else {
            return assert_eq!(len, 0, "a reply that cannot be understood");
        };
        let is_refused = ["Refused", "Hello", "Network", "Measured"].iter().any(|kind| reply.get(kind).is_some());
        assert!(is_refused || !files.is_empty(), "{reply}");
        assert!(is_refused == files.is_empty(), "{reply}");
        if let Some(address) = reply["Windows"]["address"].as_array() {
            let bytes: Vec<u8> = address.iter().filter_map(Value::as_u64).map(|byte| byte as u8).collect();
            self.address = bytes.try_into().expect("an address");
        }
        for file in files {
            let file = File::from(file);
            let len = file.metadata().map_or(0, |about| about.len());
            if len > 0 {
                self.memory.extend(memory::map(&file, 0, len));
            }
            self.files.push(file.into());
        }
        let behind = self.files.len().saturating_sub(8);
        self.files.drain(..behind);
        let behind = self.memory.len().saturating_sub(6);
        self.memory.drain(..behind);
    }

    /// Writes into memory that the agent shares, and wakes the agent.
    fn write(&mut self, script: &mut Script) {
        let Some(region) = self.memory.len().checked_sub(1).map(|last| usize::from(script.byte()) % (last + 1)) else {
            return;
        };
        let window = OutWindow::new(self.memory[region].clone());
        let len = window.len();
        match script.below(3) {
            0 => window.store(8 * usize::from(script.short()) % len, script.word()),
            _ if len > 128 << 10 => {
                let (kind, size) = (script.below(6), usize::from(script.byte()));
                let (line, sequence) = self.cursor;
                let at = 4096 + line * LINE;
                let any = u64::from(script.short());
                let offset = script.pick(&[0, 8, 4096, 9, u64::MAX, 1 << 17, any]);
                window.write_bytes(at + TAG + 8, &vec![script.byte(); size.saturating_sub(8)]);
                window.store(at + TAG, offset);
                let len = if script.byte() < 20 { script.int() & 0xf_ffff } else { size as u32 };
                window.store(at, Tag { sequence, kind, len, meta: 0 }.word());
                self.cursor = ((line + lines_for(size)) % 2000, sequence.wrapping_add(1));
            }
            _ => window.store(len - 8, script.word()),
        }
        for file in &self.files {
            // A descriptor of memory takes the bytes, too.
            let _ = nix::unistd::write(file, &1u64.to_ne_bytes());
        }
    }
}

/// Returns a request, most often a valid one.
fn request(script: &mut Script, world: &World, own: [u8; 32]) -> Vec<u8> {
    let address = |script: &mut Script| {
        let mut address = script.pick(&[own, own, own, world.neighbour, [0; 32]]);
        if script.byte() < 20 {
            address[usize::from(script.below(32))] ^= 1 << script.below(8);
        }
        address
    };
    let value = match script.below(8) {
        0 => json!({"Hello": {"version": script.pick(&[VERSION.into(), VERSION.into(), 1, u64::MAX])}}),
        1 => {
            let (any, code) = (u64::from(script.short()), script.int());
            let bytes = script.pick(&[64 << 10, 4096, 0, 1 << 40, u64::MAX, any]);
            // The code of the ports 0 and 1, or any.
            let ports = script.pick(&[PortList::DEFAULT.code(), PortList::DEFAULT.code(), code]);
            json!({"Create": {"bytes": bytes, "ports": ports}})
        }
        2 => json!({"Attach": {"address": address(script)}}),
        3 => json!({"Bells": {"address": address(script)}}),
        4 if script.byte() < 3 => json!({"Measure": {"port": script.below(4)}}),
        4 => json!({"Network": {}}),
        _ => {
            let (port, opposite) = (script.pick(&[0u8, 1, 2, 255]), script.pick(&[1u8, 0, 3, 200]));
            let neighbour = if script.byte() < 200 { world.neighbour } else { address(script) };
            json!({"Open": {"address": address(script), "port": port, "neighbour": neighbour, "opposite": opposite}})
        }
    };
    let mut bytes = value.to_string().into_bytes();
    if script.byte() < 25 {
        let at = usize::from(script.short()) % bytes.len();
        match script.below(4) {
            0 => bytes.truncate(at),
            1 => bytes[at] = script.byte(),
            2 => bytes.extend(script.some(255)),
            _ => bytes.extend(vec![b' '; 70_000]),
        }
    }
    bytes
}

/// Runs one input.
pub fn run(data: &[u8]) {
    let world = World::get();
    let mut script = Script(data);
    let mut processes: Vec<Process> = Vec::new();
    // An address that the agent has told one of the processes.
    let mut known = [0; 32];
    while !script.is_over() {
        if processes.is_empty() || script.byte() < 20 {
            if processes.len() == 4 {
                processes.remove(usize::from(script.below(4)));
            }
            let Some(process) = Process::connect(world, script.byte() < 40) else { continue };
            if script.byte() < 230 {
                process.send(json!({"Hello": {"version": VERSION}}).to_string().as_bytes(), 0);
            }
            processes.push(process);
        }
        let which = usize::from(script.byte()) % processes.len();
        let process = &mut processes[which];
        match script.below(12) {
            0..=3 => {
                let own = if script.byte() < 200 && process.address != [0; 32] { process.address } else { known };
                let bytes = request(&mut script, world, own);
                process.send(&bytes, 0);
            }
            4 => process.send(&script.some(255), 0),
            5 => {
                let bytes = request(&mut script, world, known);
                process.send(&bytes, usize::from(script.byte()).min(253));
            }
            6 | 7 => {
                process.receive();
                if process.address != [0; 32] {
                    known = process.address;
                }
                let (address, is_stranger) = (process.address, process.is_stranger);
                let has_same = |other: &Process| other.is_stranger != is_stranger && other.address == address;
                assert!(address == [0; 32] || !processes.iter().any(has_same), "windows of another user");
            }
            8 | 9 => process.write(&mut script),
            10 => drop(shutdown(
                process.socket.as_raw_fd(),
                script.pick(&[Shutdown::Read, Shutdown::Write, Shutdown::Both]),
            )),
            _ => drop(processes.remove(which)),
        }
    }
    drop(processes);
    world.serve_honest();
    if world.inputs.fetch_add(1, Ordering::Relaxed) % COUNT_EVERY == COUNT_EVERY - 1 {
        world.check();
    }
}
