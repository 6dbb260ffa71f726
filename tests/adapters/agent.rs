//! The agent's socket, over modelled adapters.

use super::common::models::{Model, ModelRing};
use ntbring_agent::{AgentBackend, Policy, Server};
use ntbring_host::Segment;
use ntbring_ntb::fabric::{Backend, Exposed, FabricAddress, OpenPort, PortAddress, Windows};
use ntbring_ntb::{PortIndex, PortList};
use std::io::{Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

const WINDOWS: Windows = Windows { bytes: 64 << 10, accounts: false, ports: PortList::DEFAULT };

/// Starts the agent of a host of the ring; it runs until the test program ends.
fn agent(ring: &ModelRing, host: usize, directory: &Path) -> AgentBackend {
    let path = directory.join("agent.sock");
    let server = Server::new(&path, ring.adapters(host), &Policy::default()).unwrap();
    std::thread::spawn(move || server.run());
    AgentBackend::connect(&path).unwrap()
}

/// Connects to the agent without the client's code.
fn raw(directory: &Path) -> std::fs::File {
    use nix::sys::socket::{connect, socket, AddressFamily, SockFlag, SockType, UnixAddr};
    let socket: OwnedFd = socket(AddressFamily::Unix, SockType::SeqPacket, SockFlag::SOCK_CLOEXEC, None).unwrap();
    connect(socket.as_raw_fd(), &UnixAddr::new(&directory.join("agent.sock")).unwrap()).unwrap();
    // SAFETY: the descriptor is given away by the call before.
    unsafe { std::fs::File::from_raw_fd(std::os::fd::IntoRawFd::into_raw_fd(socket)) }
}

fn until(what: &str, condition: impl Fn() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < Duration::from_secs(20), "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn error<T>(result: Result<T, ntbring_ntb::NtbError>) -> String {
    result.err().expect("an error").to_string()
}

#[test]
fn processes_share_the_windows_of_their_job_until_the_last_has_ended() {
    let (ring, directory) = (ModelRing::new(Model::Skx, 2, 1 << 20), tempfile::tempdir().unwrap());
    let (free, first) = (ring.free(), agent(&ring, 0, directory.path()));
    let created = first.create(WINDOWS).unwrap();
    let second = AgentBackend::connect(&directory.path().join("agent.sock")).unwrap();
    let attached = second.attach(&created.address(), WINDOWS).unwrap();
    assert_eq!(attached.address(), created.address());
    // A ring of one process wakes the other: they have one register page.
    let vector = attached.vector(3);
    let ticket = vector.arm();
    created.ring(3);
    assert!(vector.sleep(ticket, Duration::from_secs(20)));
    vector.disarm();
    assert!(ring.free() < free);
    drop((created, first));
    std::thread::sleep(Duration::from_millis(200));
    assert!(ring.free() < free, "a process of the job is still there");
    drop((attached, second));
    until("the windows are free again", || ring.free() == free);
}

#[test]
fn what_cannot_be_granted_is_refused_with_the_reason() {
    let (ring, directory) = (ModelRing::new(Model::Skx, 2, 1 << 20), tempfile::tempdir().unwrap());
    let backend = agent(&ring, 0, directory.path());
    let too_large = error(backend.create(Windows { bytes: 2 << 20, ..WINDOWS }));
    assert!(too_large.contains("NTBRING_WINDOW"), "{too_large}");
    for bytes in [1 << 40, u64::MAX] {
        let too_large = error(backend.create(Windows { bytes, ..WINDOWS }));
        assert!(too_large.contains("NTBRING_WINDOW"), "no memory is allocated for it: {too_large}");
    }
    let [.., two, three] = PortIndex::ALL;
    let no_adapter = error(backend.create(Windows { ports: PortList::new(&[two, three]).unwrap(), ..WINDOWS }));
    assert!(
        no_adapter.contains("no adapter is in one of the ports 2, 3") && no_adapter.contains("NTBRING_PORTS"),
        "{no_adapter}"
    );
    let unknown = error(backend.attach(&FabricAddress([7; 32]), WINDOWS));
    assert!(unknown.contains("invalid address"), "{unknown}");
    let created = backend.create(WINDOWS).unwrap();
    let mut stolen = created.address();
    stolen.0[8] ^= 1;
    let stolen = error(backend.attach(&stolen, WINDOWS));
    assert!(stolen.contains("no job of this user"), "{stolen}");
    let [zero, one, ..] = PortIndex::ALL;
    let neighbour = ring.backend(1).create(WINDOWS).unwrap();
    assert!(created.port(one, &PortAddress { host: neighbour.address(), port: zero }).is_ok());
    let nobody = error(AgentBackend::connect(Path::new("/nowhere/agent.sock")));
    assert!(nobody.contains("does not run"), "{nobody}");
}

#[test]
fn a_link_is_measured_by_the_agents_at_both_ends() {
    let (ring, directory) = (ModelRing::new(Model::Skx, 2, 1 << 20), tempfile::tempdir().unwrap());
    let backend = agent(&ring, 0, directory.path());
    let [zero, one, two, ..] = PortIndex::ALL;
    until("the links are up", || backend.network().unwrap().1.iter().all(|host| host.cables.len() == 2));
    for port in [zero, one] {
        let link = backend.measure(port).unwrap();
        assert_eq!((link.port, link.peer_port, link.peer), (port.get(), 1 - port.get(), ring.adapters(1).identity()));
        assert_eq!((link.generation, link.width), (3, 8));
        assert!(link.latency_ns > 0 && link.outgoing > 0 && link.incoming > 0, "{link:?}");
    }
    // Every cable has a rate, which each end has measured when the link came up.
    let (_, hosts) = backend.network().unwrap();
    assert!(hosts.iter().flat_map(|host| &host.cables).all(|cable| cable.rate > 0), "{hosts:?}");
    let missing = error(backend.measure(two));
    assert!(missing.contains("port 2 has no adapter"), "{missing}");
    ring.cables[0].lock().set_cable(false);
    until("the link is down", || ring.adapters(0).network().iter().any(|host| host.cables.len() == 1));
    let down = [zero, one].map(|port| backend.measure(port).err().map(|error| error.to_string()));
    let down: Vec<String> = down.into_iter().flatten().collect();
    assert!(matches!(&down[..], [text] if text.contains("the link is down")), "{down:?}");
}

#[test]
fn nonsense_ends_one_connection_only() {
    let (ring, directory) = (ModelRing::new(Model::Skx, 2, 1 << 20), tempfile::tempdir().unwrap());
    let backend = agent(&ring, 0, directory.path());
    let mut random = fastrand::Rng::with_seed(3);
    for round in 0..200 {
        let mut socket = raw(directory.path());
        let bytes: Vec<u8> = match round % 4 {
            0 => (0..random.usize(1..5000)).map(|_| random.u8(..)).collect(),
            1 => b"{\"Create\":{\"bytes\":1e300,\"ports\":-1}}".to_vec(),
            2 => b"{\"Attach\":{\"address\":[1,2,3]}}".to_vec(),
            _ => vec![b'['; 4000],
        };
        // The agent may have closed the connection already.
        let _ = socket.write_all(&bytes);
        let mut answer = [0; 4096];
        assert!(matches!(socket.read(&mut answer), Ok(0) | Err(_)), "the connection is closed");
    }
    let mut early = raw(directory.path());
    early.write_all(b"{\"Create\":{\"bytes\":4096,\"ports\":513}}").unwrap();
    let mut answer = [0; 4096];
    let len = early.read(&mut answer).unwrap();
    assert!(String::from_utf8_lossy(&answer[..len]).contains("the first request must be a greeting"));
    let other: Arc<dyn Backend> = Arc::new(backend);
    assert!(other.create(WINDOWS).is_ok(), "others are served as before");
}

/// Returns an agent of each host of a ring, as processes see them.
fn agents(ring: &ModelRing, hosts: usize, directory: &Path, relays: bool) -> Vec<Arc<dyn Backend>> {
    let start = |host: usize| -> Arc<dyn Backend> {
        let path = directory.join(format!("agent{host}.sock"));
        let server = Server::new(&path, ring.adapters(host), &Policy { relays, group: None }).unwrap();
        std::thread::spawn(move || server.run());
        Arc::new(AgentBackend::connect(&path).unwrap())
    };
    (0..hosts).map(start).collect()
}

#[test]
fn a_process_writes_a_window_that_it_cannot_map_through_the_agent() {
    a_process_reaches_its_neighbour(Model::Skx, true);
}

#[test]
fn processes_map_their_windows_in_the_memory_of_a_device() {
    a_process_reaches_its_neighbour(Model::Ivshmem, false);
}

#[test]
fn jobs_in_one_memory_cannot_be_isolated() {
    let (ring, directory) = (ModelRing::new(Model::Ivshmem, 2, 1 << 20), tempfile::tempdir().unwrap());
    let free = ring.free();
    let refused = error(agents(&ring, 1, directory.path(), true)[0].create(WINDOWS));
    assert!(refused.contains("`isolate` cannot keep jobs apart"), "{refused}");
    until("the windows are free again", || ring.free() == free);
}

fn a_process_reaches_its_neighbour(model: Model, relays: bool) {
    let (ring, directory) = (ModelRing::new(model, 3, 1 << 20), tempfile::tempdir().unwrap());
    let agents = agents(&ring, 3, directory.path(), relays);
    let fabrics: Vec<_> = agents.iter().map(|agent| agent.create(WINDOWS).unwrap()).collect();
    let [zero, one, ..] = PortIndex::ALL;
    let open = |host: usize, to: usize| {
        let (port, opposite) = if to == (host + 1) % 3 { (one, zero) } else { (zero, one) };
        match fabrics[host].port(port, &PortAddress { host: fabrics[to].address(), port: opposite }).unwrap() {
            OpenPort::Adapter(port) => port,
            OpenPort::Software(_) => panic!("adapters are modelled"),
        }
    };
    let (right, left) = (open(0, 1), open(1, 0));
    let window = right.outgoing(0, 64 << 10).unwrap();
    let bytes: Vec<u8> = (0..60_000u32).map(|i| i as u8).collect();
    window.write_bytes(8, &bytes);
    window.fence();
    window.store(0, 7);
    right.ring(5);
    until("the word arrives", || left.incoming().load(0) == 7);
    let mut arrived = vec![0; bytes.len()];
    left.incoming().read(8, &mut arrived);
    assert!(arrived == bytes, "the bytes arrive before the word");
    until("the doorbell rings", || left.doorbells() == 1 << 5);
    right.peer_scratchpad(3, 99);
    until("the scratchpad is written", || left.scratchpad(3) == 99);
}

#[test]
fn processes_notice_the_end_of_the_agent() {
    use nix::sys::socket::{accept, bind, listen, socket, AddressFamily, Backlog, SockFlag, SockType, UnixAddr};
    let (ring, directory) = (ModelRing::new(Model::Skx, 2, 1 << 20), tempfile::tempdir().unwrap());
    let path = directory.path().join("agent.sock");
    // The connection leads through this test, which cuts it, as the kernel does when the agent's process ends.
    let server = Server::new(&directory.path().join("real.sock"), ring.adapters(0), &Policy::default()).unwrap();
    std::thread::spawn(move || server.run());
    let outer: OwnedFd = socket(AddressFamily::Unix, SockType::SeqPacket, SockFlag::SOCK_CLOEXEC, None).unwrap();
    bind(outer.as_raw_fd(), &UnixAddr::new(&path).unwrap()).unwrap();
    listen(&outer, Backlog::new(1).unwrap()).unwrap();
    let relay = std::thread::spawn(move || {
        // SAFETY: the call returns a new descriptor, which nothing else owns.
        let client = unsafe { OwnedFd::from_raw_fd(accept(outer.as_raw_fd()).unwrap()) };
        let real = AgentSocket::connect(&directory.path().join("real.sock"));
        (0..2).for_each(|_| real.answer(&client));
        (client, real, directory)
    });
    let backend = AgentBackend::connect(&path).unwrap();
    let fabric = backend.create(WINDOWS).unwrap();
    assert!(fabric.failure().is_none());
    let vector = fabric.vector(3);
    let ticket = vector.arm();
    drop(relay.join().unwrap());
    assert!(vector.sleep(ticket, Duration::from_secs(20)), "sleepers are woken");
    let failure = fabric.failure().expect("a failure").to_string();
    assert!(failure.contains("ntbringd of this host has ended"), "{failure}");
}

/// A connection to an agent that passes messages on with their descriptors.
struct AgentSocket(std::fs::File);

impl AgentSocket {
    fn connect(path: &Path) -> AgentSocket {
        use nix::sys::socket::{connect, socket, AddressFamily, SockFlag, SockType, UnixAddr};
        let socket: OwnedFd = socket(AddressFamily::Unix, SockType::SeqPacket, SockFlag::SOCK_CLOEXEC, None).unwrap();
        connect(socket.as_raw_fd(), &UnixAddr::new(path).unwrap()).unwrap();
        AgentSocket(socket.into())
    }

    /// Passes one request on, and its answer back.
    fn answer(&self, client: &OwnedFd) {
        pass(client.as_raw_fd(), self.0.as_raw_fd());
        pass(self.0.as_raw_fd(), client.as_raw_fd());
    }
}

fn pass(from: i32, to: i32) {
    use nix::sys::socket::{recvmsg, sendmsg, ControlMessage, ControlMessageOwned, MsgFlags, UnixAddr};
    use std::io::{IoSlice, IoSliceMut};
    let (mut bytes, mut space) = (vec![0; 64 << 10], nix::cmsg_space!([i32; 8]));
    let mut parts = [IoSliceMut::new(&mut bytes)];
    let message = recvmsg::<UnixAddr>(from, &mut parts, Some(&mut space), MsgFlags::empty()).unwrap();
    let descriptors: Vec<i32> = message
        .cmsgs()
        .unwrap()
        .flat_map(|one| match one {
            ControlMessageOwned::ScmRights(all) => all,
            _ => Vec::new(),
        })
        .collect();
    let len = message.bytes;
    let rights = [ControlMessage::ScmRights(&descriptors)];
    let control = if descriptors.is_empty() { &[][..] } else { &rights[..] };
    sendmsg::<UnixAddr>(to, &[IoSlice::new(&bytes[..len])], control, MsgFlags::empty(), None).unwrap();
    descriptors.into_iter().for_each(|fd| nix::unistd::close(fd).unwrap());
}

#[test]
fn a_user_has_a_bounded_number_of_connections() {
    let (ring, directory) = (ModelRing::new(Model::Skx, 2, 1 << 20), tempfile::tempdir().unwrap());
    let _backend = agent(&ring, 0, directory.path());
    let greeting = format!("{{\"Hello\":{{\"version\":{}}}}}", ntbring_agent::VERSION);
    let answers = |socket: &mut std::fs::File| {
        let mut answer = [0; 4096];
        socket.write_all(greeting.as_bytes()).is_ok() && matches!(socket.read(&mut answer), Ok(len) if len > 0)
    };
    let mut served = Vec::new();
    loop {
        let mut socket = raw(directory.path());
        if !answers(&mut socket) {
            break;
        }
        served.push(socket);
        assert!(served.len() <= 1024);
    }
    assert_eq!(served.len(), 1023, "the first one is the test's own");
    served.pop();
    until("there is room again", || answers(&mut raw(directory.path())));
}

#[test]
fn a_group_that_does_not_exist_is_named() {
    let (ring, directory) = (ModelRing::new(Model::Skx, 2, 1 << 20), tempfile::tempdir().unwrap());
    let policy = Policy { relays: false, group: Some("no-such-group".into()) };
    let error = Server::new(&directory.path().join("agent.sock"), ring.adapters(0), &policy).err().unwrap();
    assert!(error.to_string().contains("there is no group no-such-group"), "{error}");
}

#[test]
fn memory_of_a_process_is_exposed_until_it_is_withdrawn() {
    let directory = tempfile::tempdir().unwrap();
    for (model, relays) in [(Model::Skx, false), (Model::Skx, true), (Model::Ivshmem, false)] {
        let ring = ModelRing::new(model, 2, 1 << 20);
        let (agents, before) = (agents(&ring, 2, directory.path(), relays), ring.free());
        let fabrics: Vec<_> = agents.iter().map(|agent| agent.create(WINDOWS).unwrap()).collect();
        let [zero, one, ..] = PortIndex::ALL;
        let expose = |file: BorrowedFd, offset: u64, size: u64| {
            fabrics[0].expose(one, &Exposed { token: 1 << 40, file, offset, size, backed: 5000 })
        };
        let memory = Segment::create(Path::new("/dev/shm"), 64 << 10).unwrap().0;
        let (file, offset) = memory.file().unwrap();
        assert!(expose(file, offset, 64 << 10).unwrap().is_none(), "the port is not open, so its way is not known");
        let _port = fabrics[0].port(one, &PortAddress { host: fabrics[1].address(), port: zero }).unwrap();
        let free = ring.free();
        let Some(exposed) = expose(file, offset, 64 << 10).unwrap() else {
            assert!(relays || model == Model::Ivshmem);
            continue;
        };
        assert!(!relays && model == Model::Skx && ring.free() + (64 << 10) == free);
        exposed.grow(64 << 10).unwrap();
        let twice = error(expose(file, offset, 64 << 10));
        assert!(twice.contains("already"), "{twice}");
        drop(exposed);
        until("the memory is withdrawn", || ring.free() == free);
        assert!(expose(file, offset, 68 << 10).unwrap().is_none(), "the file is shorter");
        let disk = std::fs::File::open(env!("CARGO_MANIFEST_DIR").to_string() + "/Cargo.toml").unwrap();
        assert!(expose(disk.as_fd(), 0, 4096).unwrap().is_none(), "it is no memory");
        assert!(expose(file, 100, 4096).unwrap().is_none(), "only whole pages are exposed");
        drop((fabrics, _port, agents));
        until("the process has ended", || ring.free() == before);
    }
}
