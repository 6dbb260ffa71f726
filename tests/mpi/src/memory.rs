//! Memory and other resources of a process.

use std::fs;

/// Returns the resident memory of this process without shared mappings, in bytes.
pub fn resident() -> usize {
    status(std::process::id(), "RssAnon:") * 1024
}

/// Returns a number of a process's status file; memory is in KiB.
pub fn status(pid: u32, field: &str) -> usize {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("Linux has /proc");
    let line = status.lines().find(|line| line.starts_with(field)).expect("a field of the status");
    line.split_whitespace().nth(1).and_then(|number| number.parse().ok()).expect("a number")
}

/// Resources that a process uses.
#[derive(Clone, Copy, Debug)]
pub struct Usage {
    /// Number of descriptors.
    pub descriptors: usize,
    /// Number of mappings.
    pub mappings: usize,
    /// Bytes of the heap that are allocated.
    pub heap: usize,
    /// Bytes of memory in its page table, including shared mappings.
    pub resident: usize,
}

impl Usage {
    /// Returns the resources of this process.
    pub fn now() -> Self {
        // SAFETY: the call has no preconditions.
        let heap = unsafe { libc::mallinfo2() };
        Self {
            // The descriptor for reading the directory is not counted.
            descriptors: fs::read_dir("/proc/self/fd").expect("Linux has /proc").count() - 1,
            mappings: fs::read_to_string("/proc/self/maps").expect("Linux has /proc").lines().count(),
            heap: heap.uordblks + heap.hblkhd,
            resident: status(std::process::id(), "VmRSS:") * 1024,
        }
    }
}
