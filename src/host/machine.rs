//! Identity of the machine and process namespace in which a process runs.

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};

/// Returns a hash of the machine's boot id and the process namespace. Processes with the same value see each other
/// under the same process ids.
pub fn machine() -> u64 {
    let mut hasher = DefaultHasher::new();
    fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().hash(&mut hasher);
    fs::read_link("/proc/self/ns/pid").unwrap_or_default().hash(&mut hasher);
    hasher.finish()
}
