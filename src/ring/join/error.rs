//! Errors of joining the ring.

use super::greeting::HandshakeError;
use crate::layout::TooSmall;
use crate::ports::RingPorts;
use crate::topology::TopologyError;
use ntbring_host::HostError;
use ntbring_ntb::NtbError;

/// Reasons for which a process cannot join the ring.
#[derive(Debug, thiserror::Error)]
pub enum JoinError {
    /// The job does not make a ring.
    #[error(transparent)]
    Topology(#[from] TopologyError),
    /// The windows are too small.
    #[error(transparent)]
    TooSmall(#[from] TooSmall),
    /// The device reports an error.
    #[error(transparent)]
    Ntb(NtbError),
    /// A service of this host (memory files, process watch) fails.
    #[error(transparent)]
    Host(HostError),
    /// The host's windows, or MPICH's shared memory beside them, do not fit into memory.
    #[error("the host's windows do not fit (set NTBRING_WINDOW to less): {0}")]
    NoRoom(HostError),
    /// The neighbours disagree.
    #[error(transparent)]
    Handshake(#[from] HandshakeError),
    /// A neighbour, or the host's first rank, did not answer in time.
    #[error(
        "host {host}: no answer from {whom} within {seconds} s (NTBRING_CONNECT_TIMEOUT); it may hang or have died"
    )]
    Timeout {
        /// This host.
        host: usize,
        /// Description of the host or rank that should have answered.
        whom: String,
        /// The timeout, seconds.
        seconds: u64,
    },
    /// A setting asks for a decorator (link model or faults) that real adapters do not support.
    #[error("{name} is for emulated links: with real adapters (NTBRING_DEVICE) it cannot be used")]
    RealLinks {
        /// The setting.
        name: &'static str,
    },
    /// An adapter lacks a capability that the ring needs.
    #[error("the adapters of host {host} cannot be used: {what}")]
    Unfit {
        /// This host.
        host: usize,
        /// The capability and the requirement.
        what: String,
    },
    /// The backend has opened ports of different kinds for one host.
    #[error("the ports of this host are of different kinds")]
    MixedPorts,
    /// A rank is declared to be on this host but is on another machine or in another process namespace.
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
    /// Ranks of one host are configured to use different ports.
    #[error(
        "host {host}: NTBRING_PORTS is {mine} at rank {rank}, but {first} at the host's first rank: all ranks of a \
         host need the same ports"
    )]
    Ports {
        /// The host.
        host: usize,
        /// This rank.
        rank: u32,
        /// Its ports.
        mine: RingPorts,
        /// The ports of the host's first rank.
        first: RingPorts,
    },
    /// A rank has died while joining.
    #[error("rank {rank} on host {host} (process {pid}) has died while joining the ring")]
    Died {
        /// The rank.
        rank: u32,
        /// Its host.
        host: usize,
        /// Its process id.
        pid: u32,
    },
    /// The card of a rank is invalid.
    #[error("the address of rank {rank} cannot be used: {what}")]
    Address {
        /// The rank.
        rank: u32,
        /// The defect that was found.
        what: String,
    },
    /// A setting that must be the same at all ranks is not.
    #[error("rank {rank} and rank {other} disagree on {what}: {mine} here, {theirs} there")]
    Disagree {
        /// This rank.
        rank: u32,
        /// The rank with another value.
        other: u32,
        /// The setting.
        what: &'static str,
        /// This rank's value.
        mine: &'static str,
        /// The other rank's value.
        theirs: &'static str,
    },
    /// The host's first rank has failed, with this error text.
    #[error("{0}")]
    Leader(String),
    /// A fault is configured for a link that does not exist.
    #[error("NTBRING_FAULT names the link {a}-{b}, but in a ring of {hosts} hosts these two are no neighbours")]
    NoLink {
        /// One of the two hosts.
        a: u16,
        /// The other host.
        b: u16,
        /// Number of hosts in the ring.
        hosts: usize,
    },
    /// The thread that delivers delayed writes cannot be started.
    #[error("NTBRING_FAULT: cannot start the thread that delays writes: {0}")]
    Late(std::io::Error),
    /// The monitor of this host cannot be started.
    #[error("cannot start the monitor process of this host, which tells the others that it lives: {0}")]
    Monitor(std::io::Error),
    /// The record of accesses cannot be written.
    #[error("NTBRING_TRACE: cannot create {path}: {cause}")]
    Trace {
        /// The file.
        path: String,
        /// The system's error.
        cause: std::io::Error,
    },
}

impl JoinError {
    /// Returns true if the error may be a consequence of the death of another process.
    pub(super) fn follows_a_death(&self) -> bool {
        let is_gone = |cause: &std::io::Error| cause.kind() == std::io::ErrorKind::NotFound;
        match self {
            JoinError::Died { .. } | JoinError::Leader(_) => true,
            JoinError::Host(HostError::Open { cause, .. }) => is_gone(cause),
            _ => false,
        }
    }
}

impl From<HostError> for JoinError {
    fn from(error: HostError) -> JoinError {
        match error {
            HostError::NoSpace { .. } | HostError::NoReserve { .. } => JoinError::NoRoom(error),
            error => JoinError::Host(error),
        }
    }
}

impl From<NtbError> for JoinError {
    fn from(error: NtbError) -> JoinError {
        match error {
            NtbError::Host(error) => error.into(),
            error => JoinError::Ntb(error),
        }
    }
}
