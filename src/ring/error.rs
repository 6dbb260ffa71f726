//! What can be in the way of joining.

use super::handshake::HandshakeError;
use super::plan::TooSmall;
use super::topology::TopologyError;
use ntbring_host::HostError;
use ntbring_ntb::NtbError;

/// Why a process cannot join.
#[derive(Debug, thiserror::Error)]
pub enum JoinError {
    /// The job does not make a ring.
    #[error(transparent)]
    Topology(#[from] TopologyError),
    /// The windows are too small.
    #[error(transparent)]
    TooSmall(#[from] TooSmall),
    /// The device.
    #[error(transparent)]
    Ntb(#[from] NtbError),
    /// A service of this host.
    #[error(transparent)]
    Host(HostError),
    /// The host's windows, or MPICH's shared memory beside them, do not fit.
    #[error("no room for the host's window memory: {0}, or set NTBRING_WINDOW to less")]
    NoRoom(HostError),
    /// The neighbours disagree.
    #[error(transparent)]
    Handshake(#[from] HandshakeError),
    /// Nobody answered.
    #[error(
        "host {host}: no answer from {whom} within {seconds} s (NTBRING_CONNECT_TIMEOUT); it may hang or have died"
    )]
    Timeout {
        /// This host.
        host: usize,
        /// Who should have answered.
        whom: String,
        /// The time that was given.
        seconds: u64,
    },
    /// A decorator for a link that is real.
    #[error("{name} is for emulated links: with real adapters (NTBRING_DEVICE) it cannot be used")]
    RealLinks {
        /// The setting.
        name: &'static str,
    },
    /// A backend that opens ports of several kinds for one host.
    #[error("the ports of this host are of different kinds")]
    MixedPorts,
    /// A rank that should be on this host but is not.
    #[error(
        "rank {rank} is said to be on host {host} as this rank is, but is on another machine, or in a container with \
         processes of its own: give hosts of their own to machines and containers"
    )]
    Elsewhere {
        /// The rank.
        rank: u32,
        /// Its host.
        host: usize,
    },
    /// A rank has died meanwhile.
    #[error("rank {rank} on host {host} (process {pid}) has died while joining the ring")]
    Died {
        /// The rank.
        rank: u32,
        /// Its host.
        host: usize,
        /// Its process.
        pid: u32,
    },
    /// An address that is not one.
    #[error("the address of rank {rank} cannot be used: {what}")]
    Address {
        /// The rank.
        rank: u32,
        /// What is wrong.
        what: String,
    },
    /// The host's first rank has failed, with this text.
    #[error("{0}")]
    Leader(String),
    /// A fault is to be on a link that there is not.
    #[error("NTBRING_FAULT names the link {a}-{b}, but in a ring of {hosts} hosts these two are no neighbours")]
    NoLink {
        /// The one host.
        a: u16,
        /// The other.
        b: u16,
        /// Hosts in the ring.
        hosts: usize,
    },
    /// The thread that delivers what is late.
    #[error("NTBRING_FAULT: cannot start the thread that delays writes: {0}")]
    Late(std::io::Error),
    /// The record of accesses cannot be written.
    #[error("NTBRING_TRACE: cannot create {path}: {cause}")]
    Trace {
        /// The file.
        path: String,
        /// What the system said.
        cause: std::io::Error,
    },
}

impl From<HostError> for JoinError {
    fn from(error: HostError) -> JoinError {
        match error {
            HostError::NoSpace { .. } | HostError::NoReserve { .. } => JoinError::NoRoom(error),
            error => JoinError::Host(error),
        }
    }
}
