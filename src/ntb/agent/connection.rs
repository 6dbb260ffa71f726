//! The connection of a process to the agent of its host.

use crate::message::{receive, send, Reply, Request, VERSION};
use nix::poll::{poll, PollFd, PollFlags, PollTimeout};
use nix::sys::eventfd::{EfdFlags, EventFd};
use nix::sys::socket::{connect, setsockopt, socket, sockopt, AddressFamily, SockFlag, SockType, UnixAddr};
use nix::sys::time::{TimeVal, TimeValLike};
use ntbring_memory::Mapping;
use ntbring_ntb::software::{Registers, PAGE};
use ntbring_ntb::{LinkState, NtbError, PortCaps, DOORBELLS};
use ntbring_pci::memory;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Longest time in which the agent answers, seconds. It may wait for a link to come up before it does.
const ANSWER_TIMEOUT: i64 = 60;

/// A connection to the agent.
pub struct Agent {
    path: PathBuf,
    socket: OwnedFd,
    /// Held while a request waits for its reply.
    asking: Mutex<()>,
    caps: PortCaps,
    watched: Arc<Watched>,
}

/// The work of a thread when the agent ends.
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
    /// and wakes all threads that sleep, so that they look at the failure of the device.
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

/// Returns the kind of mapping of windows.
pub fn mapping(is_combining: bool) -> Mapping {
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
    /// Connects to the agent whose socket is at `path`.
    pub fn connect(path: &Path) -> Result<Agent, NtbError> {
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
                Ok(agent)
            }
            (other, _) => Err(agent.unexpected(&other)),
        }
    }

    /// Returns the capabilities of all ports of the host.
    pub fn caps(&self) -> PortCaps {
        self.caps
    }

    /// Takes the links in these registers down when the agent ends.
    pub fn watch(&self, registers: Registers) {
        self.watched.registers.lock().unwrap_or_else(PoisonError::into_inner).push(registers);
    }

    /// Returns true if the agent has ended.
    pub fn is_gone(&self) -> bool {
        self.watched.is_gone.load(Ordering::Acquire)
    }

    /// Returns the descriptor of the connection.
    pub fn descriptor(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// Sends a request and returns the reply. Fails if the agent refuses it or has ended.
    pub fn ask(&self, request: &Request) -> Result<(Reply, Vec<OwnedFd>), NtbError> {
        self.ask_with(request, &[])
    }

    /// As [`Agent::ask`], with descriptors beside the request.
    pub fn ask_with(&self, request: &Request, files: &[BorrowedFd]) -> Result<(Reply, Vec<OwnedFd>), NtbError> {
        let _asking = self.asking.lock().unwrap_or_else(PoisonError::into_inner);
        let socket = self.socket.as_fd();
        let answer = send(socket, request, files).and_then(|()| receive(socket));
        match answer.map_err(|error| self.failure(format!("ntbringd: {error}")))? {
            (Reply::Refused { reason }, _) => Err(self.failure(reason)),
            answer => Ok(answer),
        }
    }

    /// Returns the error with a reason.
    pub fn failure(&self, problem: String) -> NtbError {
        failure(&self.path, problem)
    }

    /// Returns the error for a reply of another kind than was asked for.
    pub fn unexpected(&self, reply: &Reply) -> NtbError {
        self.failure(format!("ntbringd has sent an unexpected reply: {reply:?}"))
    }

    /// Returns the two descriptors of a reply.
    pub fn two(&self, files: Vec<OwnedFd>) -> Result<[OwnedFd; 2], NtbError> {
        let problem = "ntbringd has not sent the two descriptors of a window";
        <[OwnedFd; 2]>::try_from(files).map_err(|_| self.failure(problem.into()))
    }

    /// Returns the error for memory that cannot be mapped.
    pub fn cannot_map(&self, error: &io::Error) -> NtbError {
        self.failure(format!("mapping a window: {error}"))
    }

    /// Maps a register page.
    pub fn registers(&self, file: Option<File>) -> Result<Registers, NtbError> {
        let file = file.ok_or_else(|| self.failure("ntbringd has sent no register page".into()))?;
        let page = memory::map(&file, 0, PAGE as u64).map_err(|error| self.cannot_map(&error))?;
        let registers = Registers::open(page);
        registers.ok_or_else(|| self.failure("ntbringd has sent an invalid register page".into()))
    }
}
