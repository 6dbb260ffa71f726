//! The result of joining parts, and its errors.

use std::io;
use std::path::PathBuf;

/// The parts that were joined.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Merged {
    /// Number of events in the trace.
    pub events: u64,
    /// Number of events that were overwritten by later ones, and number of ranks that have lost any.
    pub lost: (u64, u32),
    /// Ranks without a part.
    pub missing: Vec<u32>,
    /// Ranks that have not ended in MPI_Finalize.
    pub unfinished: Vec<u32>,
    /// The parts.
    pub parts: Vec<PathBuf>,
}

/// Parts that cannot be joined.
#[derive(Debug, thiserror::Error)]
pub enum MergeError {
    /// There are no parts.
    #[error("there are no parts of {file} (such as {part}): a job leaves them if it has run with NTBRING_TIMELINE={file} and has not ended in MPI_Finalize")]
    NoParts {
        /// The file of the trace.
        file: PathBuf,
        /// The part of rank 0.
        part: PathBuf,
    },
    /// A file or directory cannot be read.
    #[error("{path} cannot be read: {error}")]
    Read {
        /// The file.
        path: PathBuf,
        /// The problem.
        error: io::Error,
    },
    /// A file is no part, or of another version.
    #[error("{path} is no part of a timeline of this version of ntbring")]
    NotAPart {
        /// The file.
        path: PathBuf,
    },
    /// A part is shorter than its header says.
    #[error("{path} is truncated: it has {have} bytes of {need}; copy it again, or remove it to leave its rank out")]
    Truncated {
        /// The part.
        path: PathBuf,
        /// Its size.
        have: u64,
        /// The size that it must have.
        need: u64,
    },
    /// Parts belong to different jobs.
    #[error("{path} and {other} belong to different jobs: remove those of the job that you do not want")]
    OtherJob {
        /// A part.
        path: PathBuf,
        /// A part of another job.
        other: PathBuf,
    },
    /// The trace cannot be written.
    #[error("the timeline {file} cannot be written: {error}; its parts {file}.*.part are left, `ntbring timeline merge {file}` joins them")]
    Write {
        /// The file.
        file: PathBuf,
        /// The problem.
        error: io::Error,
    },
}
