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

/// Returns a hash of the name that the launcher has given to this process's host, at least 1; 0 if it gave none. Jobs
/// on several emulated hosts of one machine recognise by it which of their hosts are the same.
pub fn host_name() -> u32 {
    let name = HOST_NAMES.iter().find_map(|name| env::var(name).ok().filter(|value| !value.is_empty()));
    name.map_or(0, |name| {
        let mut hasher = DefaultHasher::new();
        name.hash(&mut hasher);
        (hasher.finish() as u32).max(1)
    })
}

/// The place of a process: its job, and the host on which it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Token of the mailbox of the job's rank 0, which identifies the job.
    pub job: u64,
    /// Machine and process namespace ([`machine`]).
    pub machine: u64,
    /// Hash of the host's name ([`host_name`]) if hosts of one machine count as separate; otherwise 0.
    pub host_name: u32,
}

impl Place {
    /// Returns true if processes at both places are on one host, of whatever jobs. A process whose job does not count
    /// hosts of a machine as separate is on one host with all of them.
    pub fn is_near(&self, other: &Place) -> bool {
        let names = [self.host_name, other.host_name];
        self.machine == other.machine && (names[0] == names[1] || names.contains(&0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_are_near_on_one_machine_unless_its_hosts_count_as_separate() {
        for (a, b, near) in [
            ((1, 0), (1, 0), true),
            ((1, 0), (2, 0), false),
            ((1, 5), (1, 5), true),
            ((1, 5), (1, 6), false),
            ((1, 0), (1, 6), true),
            ((1, 5), (2, 5), false),
        ] {
            let [a, b] = [(a, 1), (b, 2)].map(|((machine, host_name), job)| Place { job, machine, host_name });
            assert_eq!((a.is_near(&b), b.is_near(&a)), (near, near), "{a:?} {b:?}");
        }
    }
}
