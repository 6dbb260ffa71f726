//! The memory files that processes of this user hold open.

use crate::file_tag::FileKind;
use crate::memory_file::{FileAddress, MemoryFile};
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

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
