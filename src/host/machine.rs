//! Identity of the machine, process namespace and host in which a process runs.

use std::env;
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

/// Variables in which launchers name the host that a process belongs to: Hydra's, then Slurm's.
const HOST_NAMES: [&str; 2] = ["MPIR_CVAR_CH3_INTERFACE_HOSTNAME", "SLURMD_NODENAME"];

/// Returns a hash of the name that the launcher has given to this process's host, at least 1; 0 if it gave none. Jobs on
/// several emulated hosts of one machine recognise by it which of their hosts are the same.
pub fn host_name() -> u32 {
    let name = HOST_NAMES.iter().find_map(|name| env::var(name).ok().filter(|value| !value.is_empty()));
    name.map_or(0, |name| {
        let mut hasher = DefaultHasher::new();
        name.hash(&mut hasher);
        (hasher.finish() as u32).max(1)
    })
}
