//! A server of memory that virtual machines share (QEMU's ivshmem-doorbell).
//!
//! It has a socket for each end of a cable. A machine that connects gets an id, the memory, and the event descriptors with
//! which it interrupts the others; the others get its descriptor, and hear when it has gone. Each message is a number of
//! 8 bytes, little endian, with at most one descriptor.

use anyhow::{Context, Result};
use nix::errno::Errno;
use nix::sys::eventfd::{EfdFlags, EventFd};
use nix::sys::socket::{sendmsg, ControlMessage, MsgFlags, UnixAddr};
use ntbring_pci::memory::SharedMemory;
use std::io::{IoSlice, Read};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

/// Version of the protocol.
const VERSION: i64 = 0;
/// The number that announces the memory.
const MEMORY: i64 = -1;

/// Number of ids.
const IDS: i64 = 1 << 16;

/// A machine that is connected, with its one vector.
struct Peer {
    id: i64,
    socket: UnixStream,
    event: EventFd,
}

/// The memory of a cable, and the machines at its ends.
struct Shared {
    memory: SharedMemory,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    peers: Vec<Peer>,
    next_id: i64,
}

/// Starts to serve a cable with a memory of `size` bytes, at a socket for each end.
pub fn serve(size: u64, ends: &[impl AsRef<Path>]) -> Result<Vec<JoinHandle<()>>> {
    let memory = SharedMemory::allocate(size).context("memory for a cable")?;
    let shared = Arc::new(Shared { memory, state: Mutex::default() });
    let listen = |path: &Path| {
        // An earlier server may have left it.
        let _ = std::fs::remove_file(path);
        UnixListener::bind(path).with_context(|| format!("listening at {}", path.display()))
    };
    let start = |path: &Path| {
        let (listener, shared) = (listen(path)?, shared.clone());
        Ok(thread::spawn(move || listener.incoming().flatten().for_each(|socket| shared.clone().admit(socket))))
    };
    ends.iter().map(|path| start(path.as_ref())).collect()
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a machine, and starts a thread that waits for its end.
    fn admit(self: Arc<Self>, socket: UnixStream) {
        match self.add(&socket) {
            Ok(id) => {
                log::info!("peer {id} has come");
                thread::spawn(move || {
                    wait_for_end(socket);
                    self.remove(id);
                });
            }
            Err(error) => log::warn!("a machine is not served: {error:#}"),
        }
    }

    fn add(&self, socket: &UnixStream) -> Result<i64> {
        let mut state = self.state();
        let is_free = |id: &i64| state.peers.iter().all(|peer| peer.id != *id);
        let id = (state.next_id..IDS).chain(0..state.next_id).find(is_free).context("no free id")?;
        let flags = EfdFlags::EFD_NONBLOCK | EfdFlags::EFD_CLOEXEC;
        let event = EventFd::from_flags(flags).context("an event descriptor")?;
        send(socket, VERSION, None)?;
        send(socket, id, None)?;
        send(socket, MEMORY, Some(self.memory.file()))?;
        for other in &state.peers {
            send(socket, other.id, Some(other.event.as_fd()))?;
        }
        for other in &state.peers {
            // One that has just ended is removed by its own thread.
            let _ = send(&other.socket, id, Some(event.as_fd()));
        }
        send(socket, id, Some(event.as_fd()))?;
        // A machine that starts again has another id than before.
        state.next_id = (id + 1) % IDS;
        state.peers.push(Peer { id, socket: socket.try_clone()?, event });
        Ok(id)
    }

    fn remove(&self, id: i64) {
        let mut state = self.state();
        state.peers.retain(|peer| peer.id != id);
        log::info!("peer {id} has gone");
        for peer in &state.peers {
            let _ = send(&peer.socket, id, None);
        }
    }
}

/// Waits until the other side has closed the connection; machines send nothing.
fn wait_for_end(mut socket: UnixStream) {
    let mut bytes = [0; 64];
    while matches!(socket.read(&mut bytes), Ok(count) if count > 0) {}
}

/// Sends a number, with a descriptor if there is one.
fn send(socket: &UnixStream, number: i64, descriptor: Option<BorrowedFd>) -> Result<()> {
    let (bytes, raw) = (number.to_le_bytes(), descriptor.map(|fd| [fd.as_raw_fd()]));
    let rights = raw.as_ref().map(|raw| [ControlMessage::ScmRights(raw)]);
    let control = rights.as_ref().map_or(&[][..], |rights| &rights[..]);
    let parts = [IoSlice::new(&bytes)];
    loop {
        match sendmsg::<UnixAddr>(socket.as_raw_fd(), &parts, control, MsgFlags::MSG_NOSIGNAL, None) {
            Err(Errno::EINTR) => {}
            sent => return sent.map(drop).context("sending to a machine"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::sys::socket::{recvmsg, ControlMessageOwned};
    use std::fs::File;
    use std::io::IoSliceMut;
    use std::os::fd::FromRawFd;
    use std::time::Duration;

    /// Receives a number with its descriptor, as QEMU does.
    fn receive(socket: &UnixStream) -> (i64, Option<File>) {
        let (mut bytes, mut space) = ([0; 8], nix::cmsg_space!([i32; 1]));
        let mut parts = [IoSliceMut::new(&mut bytes)];
        let message = recvmsg::<UnixAddr>(socket.as_raw_fd(), &mut parts, Some(&mut space), MsgFlags::empty()).unwrap();
        assert_eq!(message.bytes, 8);
        let file = message.cmsgs().unwrap().find_map(|control| match control {
            // SAFETY: the descriptor was installed for this message, and nothing else owns it.
            ControlMessageOwned::ScmRights(raw) => raw.first().map(|&fd| unsafe { File::from_raw_fd(fd) }),
            _ => None,
        });
        (i64::from_le_bytes(bytes), file)
    }

    fn numbers(socket: &UnixStream, count: usize) -> (Vec<i64>, Vec<Option<File>>) {
        (0..count).map(|_| receive(socket)).unzip()
    }

    #[test]
    fn machines_get_the_memory_and_hear_of_each_other() {
        let directory = tempfile::tempdir().unwrap();
        let ends = ["a", "b"].map(|end| directory.path().join(end));
        serve(1 << 20, &ends).unwrap();
        let connect = |end: usize| {
            let socket = UnixStream::connect(&ends[end]).unwrap();
            socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
            socket
        };
        let first = connect(0);
        let (ids, files) = numbers(&first, 4);
        assert_eq!(ids, [VERSION, 0, MEMORY, 0]);
        assert_eq!(files.iter().map(Option::is_some).collect::<Vec<_>>(), [false, false, true, true]);
        assert_eq!(files[2].as_ref().unwrap().metadata().unwrap().len(), 1 << 20);
        let second = connect(1);
        let (ids, files) = numbers(&second, 5);
        assert_eq!(ids, [VERSION, 1, MEMORY, 0, 1]);
        // The second interrupts the first.
        let bell = files[3].as_ref().unwrap();
        nix::unistd::write(bell, &1u64.to_ne_bytes()).unwrap();
        let (id, event) = receive(&first);
        assert!(id == 1 && event.is_some());
        drop((second, files));
        let (id, event) = receive(&first);
        assert!(id == 1 && event.is_none(), "a machine that has gone is announced without a descriptor");
        let (ids, _) = numbers(&connect(1), 5);
        assert_eq!(ids, [VERSION, 2, MEMORY, 0, 2], "a machine that starts again has a new id");
    }
}
