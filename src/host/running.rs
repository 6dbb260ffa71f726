//! The processes of running jobs, found from outside: by tools.

use crate::bulletin::Bulletin;
use crate::memory_file::MemoryFile;
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// The upper half of the kind of a memory file that is a mailbox; the lower half is the job's number.
const PROCESS: u64 = 1 << 24;

/// The kind of the mailbox of a process of this job.
pub(crate) fn process_of(job: u32) -> u64 {
    u64::from(job) | PROCESS << 32
}

/// The job whose process has a mailbox of this kind; None if it is no mailbox.
fn job_of(kind: u64) -> Option<u32> {
    (kind >> 32 == PROCESS).then_some(kind as u32)
}

/// A process of a running job: one of its VCIs.
pub struct RunningProcess {
    /// The process of the job's rank 0.
    pub job: u32,
    /// What it says of itself.
    pub bulletin: Bulletin,
}

impl RunningProcess {
    /// All processes of this user's jobs on this machine.
    pub fn all() -> io::Result<Vec<RunningProcess>> {
        let mut found = BTreeMap::new();
        look_through(|inode, memory| {
            let job = memory.kind().ok().and_then(job_of);
            if let Some((job, bulletin)) = job.zip(Bulletin::of(memory).ok()) {
                found.insert((job, inode), RunningProcess { job, bulletin });
            }
        })?;
        Ok(found.into_values().collect())
    }
}

/// Calls `take` with every memory file of this user's jobs and its inode, with some more than once.
pub fn look_through(mut take: impl FnMut(u64, &MemoryFile)) -> io::Result<()> {
    let me = nix::unistd::geteuid().as_raw();
    for process in fs::read_dir("/proc")?.flatten() {
        let Some(pid) = process.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else { continue };
        if process.metadata().is_ok_and(|meta| meta.uid() == me) {
            // A process that ends meanwhile has none.
            for descriptor in fs::read_dir(process.path().join("fd")).into_iter().flatten().flatten() {
                if let Some((memory, inode)) = found(pid, &descriptor.path()) {
                    take(inode, &memory);
                }
            }
        }
    }
    Ok(())
}

/// The memory that a descriptor is, if it is a job's, and its inode.
fn found(pid: u32, descriptor: &Path) -> Option<(MemoryFile, u64)> {
    // It has no name.
    match fs::read_link(descriptor).ok()?.to_string_lossy().ends_with(" (deleted)") {
        true => MemoryFile::found(pid, descriptor),
        false => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_mailboxes_have_the_kind_of_a_process() {
        assert_eq!(job_of(process_of(4_000_000_000)), Some(4_000_000_000));
        assert_eq!((job_of(0), job_of(7 << 32 | 5)), (None, None));
    }
}
