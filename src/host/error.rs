//! Errors of a host's services.

use std::io;

/// Why shared memory could not be created, opened or mapped.
#[derive(Debug, thiserror::Error)]
pub enum HostError {
    /// The memory file system, or the memory limit of the control group, has too little left.
    #[error(
        "cannot allocate {bytes} bytes of shared memory in {dir}: {cause}. \
         Free space there, or set NTBRING_SHM_DIR to another directory"
    )]
    NoSpace {
        /// Bytes asked for.
        bytes: u64,
        /// The directory.
        dir: String,
        /// The system's reason.
        cause: io::Error,
    },
    /// Fewer bytes are left than a program that allocates lazily may still use: running out would end in SIGBUS.
    #[error("{left} bytes are left in {dir}, but {reserve} may still be needed there")]
    NoReserve {
        /// Bytes left.
        left: u64,
        /// Bytes that may be needed.
        reserve: u64,
        /// The directory.
        dir: String,
    },
    /// The memory of another process could not be opened.
    #[error("cannot open the shared memory of process {pid}: {cause}")]
    Open {
        /// The process that owns it.
        pid: u32,
        /// The system's reason.
        cause: io::Error,
    },
    /// A memory file is not what its address promised.
    #[error("the shared memory of process {pid} is not what its address says: {what}")]
    Foreign {
        /// The process that owns it.
        pid: u32,
        /// The difference.
        what: &'static str,
    },
    /// A mapping beyond the end of a memory file was asked for.
    #[error("{len} bytes at {offset} are not within the {size} bytes of the memory file")]
    Beyond {
        /// First byte of the mapping.
        offset: u64,
        /// Its length, bytes.
        len: u64,
        /// Length of the file, bytes.
        size: u64,
    },
}
