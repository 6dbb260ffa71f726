//! What can go wrong at an endpoint.

use super::carrier::Odd;
use super::wire::WireError;
use ntbring_host::HostError;
use ntbring_ntb::NtbError;
use ntbring_queue::{Corrupt, GaveUp};
use ntbring_ring::relay::RelayError;
use ntbring_ring::{Loss, Obstacle};
use ntbring_zerocopy::PackFailed;
use std::sync::Arc;

/// Why an endpoint cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum EndpointError {
    /// The caller asked for something that cannot be.
    #[error("{0}")]
    Argument(String),
    /// A lane holds what the protocol does not allow.
    #[error("the lane from {from}: {error}")]
    Corrupt {
        /// Who writes it.
        from: String,
        /// What it holds.
        error: Corrupt,
    },
    /// A link that damages everything.
    #[error("the lane to {to}: {error}")]
    GaveUp {
        /// Who reads it.
        to: String,
        /// What is wrong.
        error: GaveUp,
    },
    /// An entry that makes no sense.
    #[error("the lane from {from}: {error}")]
    Wire {
        /// Who writes it.
        from: String,
        /// What is wrong.
        error: WireError,
    },
    /// What a carrier cannot take.
    #[error("what comes from {from} {what}")]
    Parcel {
        /// Who has sent it.
        from: String,
        /// What is wrong.
        what: Odd,
    },
    /// A carrier has failed.
    #[error("{0}")]
    Carrier(Arc<EndpointError>),
    /// A piece that belongs to nothing.
    #[error("rank {src} sent {what} (stream {stream})")]
    Stream {
        /// The sender.
        src: u32,
        /// Its stream.
        stream: u8,
        /// What is wrong.
        what: &'static str,
    },
    /// A packet about a payload that was offered, but not as it says.
    #[error("rank {src} {what} (offer or fetch {id})")]
    Offer {
        /// The sender.
        src: u32,
        /// The number it names.
        id: u32,
        /// What is wrong.
        what: &'static str,
    },
    /// A payload could not be packed.
    #[error(transparent)]
    Pack(#[from] PackFailed),
    /// Forwarding has stopped.
    #[error(transparent)]
    Relay(#[from] RelayError),
    /// A rank cannot be reached any more.
    #[error(transparent)]
    Lost(#[from] Loss),
    /// All ranks can be reached, but some cannot reach each other.
    #[error("a collective of all hosts cannot be completed: {0}")]
    Gap(Obstacle),
    /// A process outside the ring could not be reached.
    #[error(transparent)]
    Guest(#[from] NtbError),
    /// A segment could not be created or opened.
    #[error("{0}")]
    Segment(HostError),
    /// Nobody will ever give the lock of a segment back.
    #[error(
        "rank {rank} (process {pid}) has died in the middle of an accumulate: the window it was working on \
         cannot be used any more"
    )]
    Orphaned {
        /// Who had the lock.
        rank: u32,
        /// Its process.
        pid: u32,
    },
    /// An operation on a segment elsewhere that was refused there.
    #[error("an operation on window memory of rank {rank} was refused: {what}")]
    Refused {
        /// Whose memory it is.
        rank: u32,
        /// Why.
        what: &'static str,
    },
    /// The host's forwarder has not taken a segment in.
    #[error("the transfer thread of host {0} cannot serve window memory of this rank: its log says why")]
    Unserved(usize),
    /// Blocks of small collectives that contradict each other.
    #[error("rank {src} {what} (communicator {group})")]
    Sharing {
        /// Whose block it is.
        src: u32,
        /// The group.
        group: u32,
        /// What is wrong.
        what: &'static str,
    },
    /// The lock of a segment holds a number that is nobody's.
    #[error("the lock of a window was overwritten: {0} is no rank of this job")]
    Lock(u32),
    /// Nothing has happened for long, and faults are injected.
    #[error(
        "rank {rank} has waited for {after:?} in vain, and faults are injected (NTBRING_FAULT, patience): {injected} \
         by this rank; on stderr is what it waits for"
    )]
    Stuck {
        /// This rank.
        rank: u32,
        /// How long it has waited.
        after: std::time::Duration,
        /// What it has injected itself.
        injected: String,
    },
    /// The transfer thread could not be started.
    #[error("cannot start the transfer thread: {0}")]
    Thread(std::io::Error),
}

impl From<HostError> for EndpointError {
    fn from(error: HostError) -> EndpointError {
        EndpointError::Guest(error.into())
    }
}
