//! The memory of emulated hosts: access to it, invalid addresses, and removal of its files.

use ntbring_emu::{address_of, file_of, EmuHost, EmuPort, MemoryLayout, RunningHost};
use ntbring_host::{check_space, FileAddress, FileTag, HostError, HostMemory, Watch};
use ntbring_memory::{InWindow, OutWindow};
use ntbring_ntb::fabric::{Bells, Fabric, FabricAddress, PortAddress, Windows};
use ntbring_ntb::{LinkState, NtbError, Port, PortIndex, PortList};
use std::fs::{self, File};
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

const WINDOWS: Windows = Windows { bytes: 64 << 10, accounts: false, ports: PortList::DEFAULT };
/// The ports of such hosts.
const LEFT: PortIndex = PortIndex::ALL[0];
const RIGHT: PortIndex = PortIndex::ALL[1];

/// Opens a port whose cable leads to the other port of the host at an address.
fn cabled(host: &EmuHost, port: PortIndex, to: FabricAddress) -> Result<EmuPort, NtbError> {
    host.soft_port(port, &PortAddress { host: to, port: if port == LEFT { RIGHT } else { LEFT } })
}

fn create() -> EmuHost {
    EmuHost::create(Path::new("/dev/shm"), WINDOWS).unwrap()
}

fn opened(address: &FileAddress) -> PathBuf {
    format!("/proc/{}/fd/{}", address.pid, address.fd).into()
}

fn foreign<E: Into<NtbError>>(result: Result<impl Sized, E>) -> &'static str {
    match result.map_err(Into::into) {
        Err(NtbError::Host(HostError::Foreign { pid, what })) => {
            assert_eq!(pid, std::process::id());
            what
        }
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("it was accepted"),
    }
}

fn file_address(host: &EmuHost) -> FileAddress {
    file_of(&host.address()).unwrap()
}

/// Returns the address of any open file of this process.
fn address_of_file(file: &File) -> FileAddress {
    let inode = file.metadata().unwrap().ino();
    FileAddress { pid: std::process::id(), fd: file.as_raw_fd() as u32, inode, token: 0 }
}

#[test]
fn a_hosts_memory_has_no_name_and_belongs_to_its_user_alone() {
    let dir = tempfile::tempdir_in("/dev/shm").unwrap();
    let host = EmuHost::create(dir.path(), WINDOWS).unwrap();
    let meta = fs::metadata(opened(&file_address(&host))).unwrap();
    assert_eq!(meta.mode() & 0o7777, 0o600);
    assert_eq!(meta.nlink(), 0);
    assert_eq!(meta.len(), MemoryLayout::of(WINDOWS).total());
    assert!(
        meta.blocks() * 512 >= MemoryLayout::of(WINDOWS).total(),
        "pages are missing that a write would have to find"
    );
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
}

#[test]
fn nothing_is_left_of_a_host() {
    let dir = tempfile::tempdir_in("/dev/shm").unwrap();
    let (a, b) = (EmuHost::create(dir.path(), WINDOWS).unwrap(), EmuHost::create(dir.path(), WINDOWS).unwrap());
    let inode = file_address(&b).inode.to_string();
    let mapped = || {
        let maps = fs::read_to_string("/proc/self/maps").unwrap();
        maps.lines().filter(|line| line.split_whitespace().nth(4) == Some(&inode)).count()
    };
    let port = cabled(&a, RIGHT, b.address()).unwrap();
    let window = port.outgoing(0, 4096).unwrap();
    assert!(mapped() >= 3);
    drop(b);
    window.part(1024, 8).store(0, 5);
    assert!(mapped() >= 2, "what is still in use stays");
    drop(port);
    drop(window);
    assert_eq!(mapped(), 0);
    drop(a);
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
}

#[test]
fn a_port_maps_nothing_but_what_it_is_told_to() {
    let (a, b) = (create(), create());
    let layout = MemoryLayout::of(WINDOWS);
    let port = cabled(&a, RIGHT, b.address()).unwrap();
    let _window = port.outgoing(layout.window_offset(LEFT).unwrap(), WINDOWS.bytes).unwrap();
    let inode = file_address(&b).inode.to_string();
    let maps = fs::read_to_string("/proc/self/maps").unwrap();
    let mut mapped: Vec<(u64, u64)> = maps
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>())
        .filter(|fields| fields[4] == inode)
        .map(|fields| {
            let (from, to) = fields[0].split_once('-').unwrap();
            let hex = |text| u64::from_str_radix(text, 16).unwrap();
            (hex(fields[2]), hex(to) - hex(from))
        })
        .collect();
    mapped.sort();
    mapped.dedup();
    // The register page of `b` and the window; its other window is not mapped. Adjacent mappings are one line in the
    // list.
    let end = |&(offset, len): &(u64, u64)| offset + len;
    assert_eq!(mapped.iter().map(end).max(), layout.window_offset(RIGHT), "{mapped:x?}");
}

#[test]
fn processes_of_one_host_share_its_memory_and_its_vectors() {
    let host = HostMemory::create(Path::new("/dev/shm"), 8 << 10).unwrap();
    let again = HostMemory::open(host.address(), 8 << 10).unwrap();
    OutWindow::new(host.bytes()).store(16, 42);
    OutWindow::new(host.notes()).store(8, 43);
    assert_eq!(InWindow::new(again.bytes()).load(16), 42);
    assert_eq!(InWindow::new(again.notes()).load(8), 43);
    let what = foreign(HostMemory::open(host.address(), 16 << 10));
    assert!(what.contains("different settings"), "{what}");
    let host = create();
    let again = EmuHost::attach(&host.address(), WINDOWS, None).unwrap();
    assert_eq!(again.address(), host.address());
    let vector = again.vector(3);
    let ticket = vector.arm();
    host.ring(3);
    assert!(vector.sleep(ticket, std::time::Duration::from_secs(60)));
    vector.disarm();
}

#[test]
fn tools_find_hosts_and_take_their_links_down_and_up() {
    let (a, b) = (create(), create());
    let is = FileTag { job: 4_000_000_007, host: 0, hosts: 2, faulty: true, joined: true };
    a.introduce(is).unwrap();
    let port = cabled(&a, RIGHT, b.address()).unwrap();
    let running = RunningHost::all().unwrap();
    let host = running.iter().find(|host| host.is == is).unwrap();
    assert_eq!(host.ports(), WINDOWS.ports);
    assert_eq!(host.link(PortIndex::ALL[2]), None);
    host.set_link(PortIndex::ALL[2], LinkState::Down);
    for (state, outages) in [(LinkState::Up, 0), (LinkState::Down, 1), (LinkState::Down, 1), (LinkState::Up, 1)] {
        host.set_link(RIGHT, state);
        assert_eq!((host.link(RIGHT), port.link(), port.outages()), (Some(state), state, outages));
        assert_eq!(host.link(LEFT), Some(LinkState::Up));
    }
}

#[test]
fn processes_of_one_host_must_agree_on_its_size() {
    let host = create();
    let what = foreign(EmuHost::attach(&host.address(), Windows { bytes: 128 << 10, ..WINDOWS }, None));
    assert!(what.contains("different settings"), "{what}");
}

#[test]
fn processes_of_one_host_must_agree_on_its_ports() {
    let host = create();
    let ports = PortList::new(&[RIGHT, LEFT]).unwrap();
    let what = foreign(EmuHost::attach(&host.address(), Windows { ports, ..WINDOWS }, None));
    assert!(what.contains("different settings (NTBRING_PORTS)"), "{what}");
}

#[test]
fn a_host_has_memory_for_the_ports_that_it_uses() {
    let [zero, one, two, three] = PortIndex::ALL;
    for list in [&[three][..], &[two, three], &[one, zero], &[three, zero, one, two]] {
        let ports = PortList::new(list).unwrap();
        let layout = MemoryLayout::of(Windows { ports, ..WINDOWS });
        assert_eq!(layout.total(), 4096 + list.len() as u64 * WINDOWS.bytes);
        let host = EmuHost::create(Path::new("/dev/shm"), Windows { ports, ..WINDOWS }).unwrap();
        let peer = create();
        for port in PortIndex::ALL {
            let opened = host.soft_port(port, &PortAddress { host: peer.address(), port: zero });
            match list.iter().position(|&used| used == port) {
                Some(n) => assert_eq!(opened.unwrap().incoming_offset(), 4096 + n as u64 * WINDOWS.bytes),
                None => {
                    let text = opened.err().unwrap().to_string();
                    assert!(
                        text.starts_with(&format!("this host does not use its port {port}, only these: ")),
                        "{text}"
                    );
                }
            }
        }
    }
}

#[test]
fn a_port_that_the_neighbour_does_not_use_cannot_be_reached() {
    let (a, b) = (create(), create());
    let opposite = PortAddress { host: b.address(), port: PortIndex::ALL[3] };
    let expected = "the neighbour does not use its port 3, only these: 0, 1 (NTBRING_PORTS)";
    assert_eq!(a.soft_port(RIGHT, &opposite).err().unwrap().to_string(), expected);
    assert_eq!(a.view(&opposite).err().unwrap().to_string(), expected);
}

#[test]
fn what_is_no_host_is_refused() {
    let host = create();
    let right = file_address(&host);
    // Another job's token.
    let what = foreign(cabled(&host, RIGHT, address_of(FileAddress { token: right.token ^ 1, ..right })));
    assert_eq!(what, "it belongs to another job");
    // A descriptor that was closed and reused.
    let what = foreign(cabled(&host, RIGHT, address_of(FileAddress { inode: right.inode + 1, ..right })));
    assert_eq!(what, "another file has taken its place");
    // Files that are not a host's memory.
    let file = tempfile::tempfile_in("/dev/shm").unwrap();
    assert_eq!(foreign(cabled(&host, LEFT, address_of(address_of_file(&file)))), "it is shorter than a page");
    file.set_len(4095).unwrap();
    assert_eq!(foreign(cabled(&host, LEFT, address_of(address_of_file(&file)))), "it is shorter than a page");
    file.set_len(1 << 20).unwrap();
    assert_eq!(foreign(cabled(&host, LEFT, address_of(address_of_file(&file)))), "it is not memory of ntbring");
    // A host's memory that has been truncated.
    let cut = create();
    File::options().write(true).open(opened(&file_address(&cut))).unwrap().set_len(8192).unwrap();
    foreign(cabled(&host, LEFT, cut.address()));
}

#[test]
fn what_is_not_there_cannot_be_opened() {
    let host = create();
    for address in [
        FileAddress { fd: 1 << 20, ..file_address(&host) },
        FileAddress { pid: u32::MAX, ..file_address(&host) },
        // A directory cannot be mapped for writing.
        address_of_file(&File::open("/dev/shm").unwrap()),
    ] {
        match cabled(&host, RIGHT, address_of(address)) {
            Err(NtbError::Host(HostError::Open { pid, .. })) => assert_eq!(pid, address.pid),
            Err(other) => panic!("{other}"),
            Ok(_) => panic!("{address:?} was opened"),
        }
    }
}

#[test]
fn a_place_without_room_is_named() {
    let huge = Windows { bytes: 1 << 50, ..WINDOWS };
    for (dir, layout) in [("/dev/shm", huge), ("/dev/shm/there is no such directory", WINDOWS)] {
        match EmuHost::create(Path::new(dir), layout) {
            Err(error @ HostError::NoSpace { .. }) => {
                let text = error.to_string();
                assert!(text.contains(dir) && text.contains("NTBRING_SHM_DIR"), "{text}");
            }
            Err(other) => panic!("{other}"),
            Ok(_) => panic!("it was created"),
        }
    }
}

#[test]
fn what_others_need_of_the_place_is_left_to_them() {
    match check_space(Path::new("/dev/shm"), 1 << 50) {
        Err(error @ HostError::NoReserve { .. }) => assert!(error.to_string().contains("/dev/shm"), "{error}"),
        Err(other) => panic!("{other}"),
        Ok(()) => panic!("there cannot be so much room"),
    }
    check_space(Path::new("/dev/shm"), 4096).unwrap();
}

#[test]
fn only_the_dead_are_reported() {
    let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
    let pid = child.id();
    let watch = Watch::new([(3, std::process::id()), (7, pid)]).unwrap_or_else(|(id, e)| panic!("{id}: {e}"));
    assert!(watch.dead().is_empty());
    // SAFETY: the call has no memory-safety preconditions; the process is a child that has not been waited for.
    unsafe { libc::kill(pid as i32, libc::SIGSTOP) };
    std::thread::sleep(std::time::Duration::from_millis(20));
    assert!(watch.dead().is_empty(), "a process that is stopped is not dead");
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(watch.dead(), [7]);
    assert_eq!(Watch::new([(5, pid)]).err().map(|(id, _)| id), Some(5));
}
