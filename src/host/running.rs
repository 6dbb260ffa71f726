//! Discovery of the hosts and processes of running jobs, for tools.

use crate::file_tag::FileKind;
use crate::memory_file::{FileAddress, MemoryFile};
use crate::stats_page::StatsPage;
use crate::FileTag;
use ntbring_memory::Region;
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// The shared memory of a host of a running job.
pub struct RunningHostMemory {
    /// The host's position in its job.
    pub is: FileTag,
    /// The line after the header that the host's processes use ([`MemoryFile::notes`]).
    pub notes: Region,
}

impl RunningHostMemory {
    /// Returns the memory of all hosts of this user's jobs on this machine. A job with several VCIs (virtual
    /// communication interfaces of MPICH) lists each of its hosts more than once.
    pub fn all() -> io::Result<Vec<RunningHostMemory>> {
        let mut found = BTreeMap::new();
        look_through(|address, kind, memory| {
            if let (FileKind::Host(is), Ok(notes)) = (kind, memory.notes()) {
                found.insert((is, address.inode), RunningHostMemory { is, notes });
            }
        })?;
        Ok(found.into_values().collect())
    }
}

/// One VCI of a process of a running job.
pub struct RunningProcess {
    /// Id of the process of the job's rank 0, which identifies the job.
    pub job: u32,
    /// The stats page that the process writes.
    pub stats_page: StatsPage,
}

impl RunningProcess {
    /// Returns all processes of this user's jobs on this machine.
    pub fn all() -> io::Result<Vec<RunningProcess>> {
        let mut found = BTreeMap::new();
        look_through(|address, kind, memory| {
            if let (FileKind::Process { job }, Ok(stats_page)) = (kind, StatsPage::of(memory)) {
                found.insert((job, address.inode), RunningProcess { job, stats_page });
            }
        })?;
        Ok(found.into_values().collect())
    }
}

/// Calls `take` with an address, the kind and the memory of every memory file of this user's jobs on this host. It may
/// be called more than once for a file, as several processes hold it open.
pub fn look_through(mut take: impl FnMut(FileAddress, FileKind, &MemoryFile)) -> io::Result<()> {
    let me = nix::unistd::geteuid().as_raw();
    for process in fs::read_dir("/proc")?.flatten() {
        let Some(pid) = process.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else { continue };
        if process.metadata().is_ok_and(|meta| meta.uid() == me) {
            // A process that has ended meanwhile has no descriptors.
            for descriptor in fs::read_dir(process.path().join("fd")).into_iter().flatten().flatten() {
                if let Some((memory, address)) = found(pid, &descriptor.path()) {
                    if let Some(kind) = memory.kind().ok().and_then(FileKind::parse) {
                        take(address, kind, &memory);
                    }
                }
            }
        }
    }
    Ok(())
}

/// Returns the memory file behind a descriptor and its address; None if it is not a memory file of ntbring.
fn found(pid: u32, descriptor: &Path) -> Option<(MemoryFile, FileAddress)> {
    // A memory file has no name, which procfs shows as "(deleted)".
    if !fs::read_link(descriptor).ok()?.to_string_lossy().ends_with(" (deleted)") {
        return None;
    }
    let fd = descriptor.file_name()?.to_str()?.parse().ok()?;
    let (memory, inode) = MemoryFile::found(pid, descriptor)?;
    let token = memory.token()?;
    Some((memory, FileAddress { pid, fd, inode, token }))
}
