//! Requests of processes and replies of the agent. Each is one datagram of JSON, with descriptors beside it.

use nix::cmsg_space;
use nix::sys::socket::{recvmsg, sendmsg, ControlMessage, ControlMessageOwned, MsgFlags, UnixAddr};
use ntbring_ntb::PortIndex;
use ntbring_pci::measure::LinkMeasurement;
use ntbring_pci::network::Announcement;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

/// Version of the protocol between an agent and the processes of its host.
pub const VERSION: u32 = 4;

/// Largest message, bytes.
const MAX: usize = 64 << 10;

/// Largest number of descriptors of a message: the register page and the slice of each port.
const DESCRIPTORS_MAX: usize = 1 + PortIndex::MAX_PORTS;

/// A request of a process.
#[derive(Debug, Serialize, Deserialize)]
pub enum Request {
    /// The first request: the version of the process.
    Hello { version: u32 },
    /// Gives the process's job windows of `bytes` bytes at the ports with this code.
    Create { bytes: u64, ports: u32 },
    /// Gives the process access to windows that another process of the job and of this host has created.
    Attach { address: [u8; 32] },
    /// Gives the process access to the window of the neighbour at a port, whose slice has the address.
    Open { address: [u8; 32], port: u8, neighbour: [u8; 32], opposite: u8 },
    /// Lets the neighbour at a port write memory of the process, at most `size` bytes at `offset` of a file; the first
    /// `backed` exist. Descriptor: the file.
    Expose { address: [u8; 32], port: u8, token: u64, offset: u64, size: u64, backed: u64 },
    /// Lets the neighbour write up to `backed` bytes of memory that is exposed.
    Grow { port: u8, token: u64, backed: u64 },
    /// Takes exposed memory away from the neighbour.
    Withdraw { port: u8, token: u64 },
    /// Gives the process access to memory of a process of the neighbour at a port, whose port is `opposite`.
    Segment { address: [u8; 32], port: u8, opposite: u8, token: u64 },
    /// Gives the process access to the register page of a job of this host.
    Bells { address: [u8; 32] },
    /// Asks for all hosts that are known.
    Network {},
    /// Asks for a measurement of the link at a port.
    Measure { port: u8 },
}

/// A reply of the agent.
#[derive(Debug, Serialize, Deserialize)]
pub enum Reply {
    /// The version of the agent, the largest window of a job in bytes, and if windows are write-combining.
    Hello { version: u32, window_max: u64, is_combining: bool },
    /// The address of the job's windows, and the port of each, and its offset in its file and its size in bytes.
    /// Descriptors: the register page, and the file of each window.
    Windows { address: [u8; 32], slices: Vec<(u8, u64, u64)> },
    /// The place of the neighbour's slice in the file that maps its window, bytes. Descriptors: that file, and the event
    /// descriptor that rings the neighbour's doorbell.
    Window { offset: u64, len: u64, is_combining: bool },
    /// The agent writes the neighbour's slice, of `len` bytes, for the process. Descriptors: the memory of a lane of
    /// records, and the event descriptor that wakes the agent.
    Relayed { len: u64 },
    /// The memory is exposed now, or is not.
    Exposed { is_exposed: bool },
    /// The place of a process's memory in the file that maps the neighbour's window, bytes. Descriptor: that file.
    Segment { offset: u64, len: u64, is_combining: bool },
    /// Descriptor: the register page.
    Bells {},
    /// All hosts that are known.
    Network { this: u64, hosts: Vec<Announcement> },
    /// The result of the measurement.
    Measured { link: LinkMeasurement },
    /// The request cannot be granted.
    Refused { reason: String },
}

/// Error of the exchange with the agent or a process.
#[derive(Debug, thiserror::Error)]
pub enum MessageError {
    /// The other side has closed the connection.
    #[error("the connection was closed")]
    Closed,
    /// The other side has not answered in time.
    #[error("no answer in time")]
    Silent,
    /// A system call failed.
    #[error(transparent)]
    System(#[from] io::Error),
    /// The message is not valid.
    #[error("an invalid message: {0}")]
    Invalid(String),
}

/// The most descriptors that the kernel passes with one message.
const SCM_MAX_FD: usize = 253;

/// Sends a message with descriptors.
pub fn send(socket: BorrowedFd, message: &impl Serialize, descriptors: &[BorrowedFd]) -> Result<(), MessageError> {
    let bytes = serde_json::to_vec(message).map_err(|error| MessageError::Invalid(error.to_string()))?;
    let raw: Vec<RawFd> = descriptors.iter().map(|fd| fd.as_raw_fd()).collect();
    let rights = [ControlMessage::ScmRights(&raw)];
    let control = if raw.is_empty() { &[][..] } else { &rights[..] };
    let sent = sendmsg::<UnixAddr>(socket.as_raw_fd(), &[IoSlice::new(&bytes)], control, MsgFlags::MSG_NOSIGNAL, None);
    match sent {
        Ok(_) => Ok(()),
        Err(nix::Error::EPIPE | nix::Error::ECONNRESET) => Err(MessageError::Closed),
        Err(error) => Err(MessageError::System(error.into())),
    }
}

/// Receives a message with its descriptors. One that has more of them than any may have is invalid, and this process gets
/// none of them.
pub fn receive<T: DeserializeOwned>(socket: BorrowedFd) -> Result<(T, Vec<OwnedFd>), MessageError> {
    // Room for as many as the kernel passes, so that it installs none that this process does not get to know.
    let mut space = cmsg_space!([RawFd; SCM_MAX_FD]);
    let mut bytes = vec![0; MAX];
    let mut parts = [IoSliceMut::new(&mut bytes)];
    let flags = MsgFlags::MSG_CMSG_CLOEXEC;
    let received = loop {
        match recvmsg::<UnixAddr>(socket.as_raw_fd(), &mut parts, Some(&mut space), flags) {
            Err(nix::Error::EINTR) => {}
            Err(nix::Error::ECONNRESET) => return Err(MessageError::Closed),
            Err(nix::Error::EAGAIN) => return Err(MessageError::Silent),
            Err(error) => return Err(MessageError::System(error.into())),
            Ok(received) => break received,
        }
    };
    let mut descriptors = Vec::new();
    for control in received.cmsgs().map_err(|error| MessageError::System(error.into()))? {
        if let ControlMessageOwned::ScmRights(raw) = control {
            // SAFETY: the kernel has installed these descriptors for this message, and nothing else owns them.
            descriptors.extend(raw.into_iter().map(|fd| unsafe { OwnedFd::from_raw_fd(fd) }));
        }
    }
    let is_cut = received.flags.intersects(MsgFlags::MSG_TRUNC | MsgFlags::MSG_CTRUNC);
    if is_cut || descriptors.len() > DESCRIPTORS_MAX {
        return Err(MessageError::Invalid("it is too long, or has descriptors that are not expected".into()));
    }
    match received.bytes {
        0 => Err(MessageError::Closed),
        len => match serde_json::from_slice(&bytes[..len]) {
            Ok(message) => Ok((message, descriptors)),
            Err(error) => Err(MessageError::Invalid(error.to_string())),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::sys::socket::{socketpair, AddressFamily, SockFlag, SockType};
    use nix::unistd::{pipe, read};
    use std::os::fd::AsFd;

    fn pair() -> (OwnedFd, OwnedFd) {
        socketpair(AddressFamily::Unix, SockType::SeqPacket, None, SockFlag::SOCK_CLOEXEC).unwrap()
    }

    #[test]
    fn descriptors_that_nobody_asked_for_are_closed() {
        for count in [DESCRIPTORS_MAX + 1, 100, SCM_MAX_FD] {
            let ((to, from), (end, other)) = (pair(), pipe().unwrap());
            send(to.as_fd(), &Request::Network {}, &vec![other.as_fd(); count]).unwrap();
            drop(other);
            let received: Result<(Request, _), _> = receive(from.as_fd());
            assert!(matches!(received, Err(MessageError::Invalid(_))), "{received:?}");
            // The end of the pipe is reached only when no process has the other end.
            assert_eq!(read(end.as_raw_fd(), &mut [0]), Ok(0), "{count} descriptors");
        }
    }

    #[test]
    fn messages_arrive_with_their_descriptors() {
        let ((to, from), (_end, other)) = (pair(), pipe().unwrap());
        send(to.as_fd(), &Reply::Relayed { len: 7 }, &[other.as_fd(); DESCRIPTORS_MAX]).unwrap();
        let (reply, files) = receive(from.as_fd()).unwrap();
        assert!(matches!(reply, Reply::Relayed { len: 7 }) && files.len() == DESCRIPTORS_MAX);
        drop(to);
        assert!(matches!(receive::<Reply>(from.as_fd()), Err(MessageError::Closed)));
    }
}
