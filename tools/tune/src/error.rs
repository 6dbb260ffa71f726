//! Errors of a measurement.

use crate::plan::Method;
use ntbring_endpoint::EndpointError;
use ntbring_ring::join::JoinError;
use ntbring_settings::SettingError;

/// Error: the measurement failed.
#[derive(Debug, thiserror::Error)]
pub enum TuneError {
    /// A setting is invalid.
    #[error(transparent)]
    Setting(#[from] SettingError),
    /// The two processes could not join the ring.
    #[error(transparent)]
    Join(#[from] JoinError),
    /// A transfer between them failed.
    #[error(transparent)]
    Endpoint(#[from] EndpointError),
    /// A system call failed.
    #[error("{what}: {cause}")]
    System {
        /// Description of the failed operation.
        what: &'static str,
        /// Error of the system.
        cause: std::io::Error,
    },
    /// The machine has too few cores.
    #[error("two cores are needed to measure messages between two ranks; this process may use {0}")]
    Cores(usize),
    /// A message arrived with modified bytes.
    #[error("a message of {bytes} bytes arrived with modified contents ({way})")]
    Wrong {
        /// Payload in bytes.
        bytes: usize,
        /// Transfer method.
        way: Method,
    },
    /// One of the two processes violated the control protocol.
    #[error("measuring rank {rank} {problem}")]
    Rank {
        /// Number of the rank.
        rank: usize,
        /// Description of the problem.
        problem: String,
    },
}
