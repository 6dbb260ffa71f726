//! Errors of an endpoint.

use crate::wire::WireError;
use ntbring_host::HostError;
use ntbring_ntb::NtbError;
use ntbring_queue::{Corrupt, GaveUp};
use ntbring_ring::relay::RelayError;
use ntbring_ring::{PathFailure, PeerLoss};
use ntbring_zerocopy::PackFailed;
use std::sync::Arc;

/// A violation of the protocol by the other side.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Malformed(pub(crate) &'static str);

/// The reason for which an endpoint cannot continue.
#[derive(Debug, thiserror::Error)]
pub enum EndpointError {
    /// An invalid request of the caller.
    #[error("{0}")]
    Argument(String),
    /// A lane holds an entry that the protocol does not allow.
    #[error("the lane from {from}: {error}")]
    Corrupt {
        /// The writer of the lane.
        from: String,
        /// The invalid entry.
        error: Corrupt,
    },
    /// A link damages so much that retransmission was given up.
    #[error("the lane to {to}: {error}")]
    GaveUp {
        /// The reader of the lane.
        to: String,
        /// The last error.
        error: GaveUp,
    },
    /// An entry that cannot be parsed.
    #[error("the lane from {from}: {error}")]
    Wire {
        /// The writer of the lane.
        from: String,
        /// The parser's error.
        error: WireError,
    },
    /// A datagram that violates the protocol of the reliable connection.
    #[error("invalid datagram: {from} {what}")]
    Datagram {
        /// The sender.
        from: String,
        /// The violation.
        what: Malformed,
    },
    /// The reliable connection has failed earlier.
    #[error("{0}")]
    Reliable(Arc<EndpointError>),
    /// A chunk or message in a stream that does not allow it.
    #[error("rank {src} sent {what} (stream {stream})")]
    Stream {
        /// The sender.
        src: u32,
        /// Number of the stream.
        stream: u8,
        /// The violation.
        what: &'static str,
    },
    /// The announcement of a lane past the hosts between by a rank that has a lane.
    #[error("rank {src} has announced a second lane")]
    SecondLane {
        /// The sender.
        src: u32,
    },
    /// A rendezvous packet that does not match its offer or fetch.
    #[error("rank {src} {what} (offer or fetch {id})")]
    Offer {
        /// The sender.
        src: u32,
        /// Number of the offer or fetch.
        id: u32,
        /// The violation.
        what: &'static str,
    },
    /// A payload could not be packed.
    #[error(transparent)]
    Pack(#[from] PackFailed),
    /// The host's forwarder has stopped.
    #[error(transparent)]
    Relay(#[from] RelayError),
    /// A rank is permanently unreachable.
    #[error(transparent)]
    Lost(#[from] PeerLoss),
    /// The device of this host cannot be used any more.
    #[error("{0}")]
    Device(String),
    /// All ranks can be reached from here, but some cannot reach each other.
    #[error("a collective of all hosts cannot be completed: {0}")]
    RingCut(PathFailure),
    /// A process outside the ring could not be reached.
    #[error(transparent)]
    ExternalPeer(#[from] NtbError),
    /// A segment could not be created or opened.
    #[error("{0}")]
    Segment(HostError),
    /// A segment could not be opened for writing.
    #[error("memory of another host cannot be written: {0}")]
    Writer(NtbError),
    /// Memory of a segment could not be reserved or mapped.
    #[error("memory cannot be reserved: {0}")]
    Memory(std::io::Error),
    /// The holder of a segment's lock has died, so the lock will never be released.
    #[error(
        "rank {rank} (process {pid}) has died in the middle of an accumulate: the window it was working on \
         cannot be used any more"
    )]
    Orphaned {
        /// The rank that held the lock.
        rank: u32,
        /// Its process.
        pid: u32,
    },
    /// A holder of a window's lock has died, so the lock will never be released.
    #[error(
        "rank {rank} (process {pid}) has died while it held the lock of a window, which cannot be locked any more"
    )]
    WindowLock {
        /// The rank that held the lock.
        rank: u32,
        /// Its process.
        pid: u32,
    },
    /// A one-sided operation that the target's host refused.
    #[error("an operation on window memory of rank {rank} was refused: {what}")]
    Refused {
        /// The rank that owns the memory.
        rank: u32,
        /// The reason.
        what: &'static str,
    },
    /// The host's forwarder has not registered a segment.
    #[error("the forwarder thread of host {0} cannot serve window memory of this rank: its log says why")]
    Unserved(usize),
    /// Blocks of a small allgather that contradict each other.
    #[error("rank {src} {what} (communicator {group})")]
    Allgather {
        /// The member that sent the block.
        src: u32,
        /// The group.
        group: u32,
        /// The contradiction.
        what: &'static str,
    },
    /// The lock of a segment holds a number that is no rank's.
    #[error("the lock of a window was overwritten: {0} is no rank of this job")]
    Lock(u32),
    /// No progress for a long time while faults are injected (receive timeout).
    #[error(
        "rank {rank} has waited for {after:?} in vain, and faults are injected (NTBRING_FAULT, timeout): {injected} \
         by this rank; its state is on stderr"
    )]
    Stuck {
        /// This rank.
        rank: u32,
        /// Time without progress.
        after: std::time::Duration,
        /// The faults that this rank itself has injected.
        injected: String,
    },
    /// The forwarder thread could not be started.
    #[error("cannot start the forwarder thread: {0}")]
    Thread(std::io::Error),
}

impl From<HostError> for EndpointError {
    fn from(error: HostError) -> EndpointError {
        EndpointError::ExternalPeer(error.into())
    }
}
