//! Errors of a host's services.

use std::io;

/// Reasons for which shared memory cannot be created, opened or mapped.
#[derive(Debug, thiserror::Error)]
pub enum HostError {
    /// Too little memory is free in the memory file system or within the memory limit of the control group.
    #[error(
        "cannot allocate {bytes} bytes of shared memory in {dir}: {cause}. \
         Free space there, or set NTBRING_SHM_DIR to another directory"
    )]
    NoSpace {
        /// Number of bytes requested.
        bytes: u64,
        /// The directory of the memory file system.
        dir: String,
        /// The operating system's error.
        cause: io::Error,
    },
    /// No file can be created in the directory that hosts have in common.
    #[error(
        "cannot create a file for NTBRING_DEVICE=emu:{dir}: {cause}. \
         It must be a directory of a tmpfs, writable for this user, that all hosts share"
    )]
    Shared {
        /// The directory.
        dir: String,
        /// The operating system's error.
        cause: io::Error,
    },
    /// A window file of a neighbour is not in the directory that hosts have in common.
    #[error(
        "cannot open the windows of another host, {path}: {cause}. \
         NTBRING_DEVICE=emu:DIR must name the same directory on all hosts, and their users must be the same"
    )]
    Absent {
        /// The file.
        path: String,
        /// The operating system's error.
        cause: io::Error,
    },
    /// Fewer bytes are free than a library that allocates lazily may still use; running out would raise SIGBUS.
    #[error(
        "{left} bytes are left in {dir}, but {reserve} may still be needed there. \
         Free space, or enlarge it (--shm-size for a container)"
    )]
    NoReserve {
        /// Number of free bytes.
        left: u64,
        /// Number of bytes that may still be needed.
        reserve: u64,
        /// The directory of the memory file system.
        dir: String,
    },
    /// The memory of another process could not be opened.
    #[error("cannot open the shared memory of process {pid}: {cause}")]
    Open {
        /// Id of the process that owns the memory.
        pid: u32,
        /// The operating system's error.
        cause: io::Error,
    },
    /// A memory file does not match its address.
    #[error("the shared memory of process {pid} does not match its address: {what}")]
    Foreign {
        /// Id of the process that owns the memory.
        pid: u32,
        /// The difference between the file and its address.
        what: &'static str,
    },
    /// A requested mapping reaches beyond the end of a memory file.
    #[error("{len} bytes at {offset} are not within the {size} bytes of the memory file")]
    Beyond {
        /// Offset of the mapping, bytes.
        offset: u64,
        /// Length of the mapping, bytes.
        len: u64,
        /// Length of the file, bytes.
        size: u64,
    },
}

impl HostError {
    /// Returns true if the cause is in this process or machine, which has too many open files or too little memory.
    pub fn is_exhausted(&self) -> bool {
        let own = [libc::EMFILE, libc::ENFILE, libc::ENOMEM];
        matches!(self, HostError::Open { cause, .. } if cause.raw_os_error().is_some_and(|code| own.contains(&code)))
    }
}
