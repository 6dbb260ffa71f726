//! Memory and other resources of a process.

use std::fs;

/// Resident memory of this process, shared mappings left out, in bytes.
pub fn resident() -> usize {
    status(std::process::id(), "RssAnon:") * 1024
}

/// A number of a process's status; memory is in KiB.
pub fn status(pid: u32, field: &str) -> usize {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("Linux has /proc");
    let line = status.lines().find(|line| line.starts_with(field)).expect("a field of the status");
    line.split_whitespace().nth(1).and_then(|number| number.parse().ok()).expect("a number")
}

/// Resources that a process uses.
#[derive(Clone, Copy, Debug)]
pub struct Usage {
    /// Descriptors.
    pub descriptors: usize,
    /// Mappings.
    pub mappings: usize,
    /// Bytes of the heap that are allocated.
    pub heap: usize,
    /// Bytes of memory in its page table, shared mappings with them.
    pub resident: usize,
}

impl Usage {
    /// Of this process.
    pub fn now() -> Self {
        // SAFETY: takes no pointers.
        let heap = unsafe { libc::mallinfo2() };
        Self {
            // The one for reading the directory is not counted.
            descriptors: fs::read_dir("/proc/self/fd").expect("Linux has /proc").count() - 1,
            mappings: fs::read_to_string("/proc/self/maps").expect("Linux has /proc").lines().count(),
            heap: heap.uordblks + heap.hblkhd,
            resident: status(std::process::id(), "VmRSS:") * 1024,
        }
    }
}
