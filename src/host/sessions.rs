//! Sessions of processes. If the kernel's scheduler divides processor time among sessions first (autogroup), a
//! waiting rank that yields gives time only to ranks of its own session.

use crate::cgroup::{self, Group};
use nix::unistd::{getsid, Pid};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

const ENABLED: &str = "/proc/sys/kernel/sched_autogroup_enabled";

/// Returns the number of different sessions of these processes, as far as they are visible to this process; 1 if
/// sessions do not influence scheduling.
pub fn apart(processes: &[u32]) -> usize {
    let enabled = fs::read_to_string(ENABLED).unwrap_or_default();
    if enabled.trim() != "1" || is_grouped(Path::new(cgroup::MOUNTED), &cgroup::own()) {
        return 1;
    }
    let session = |&process: &u32| getsid(Some(Pid::from_raw(process as i32))).ok();
    processes.iter().filter_map(session).collect::<BTreeSet<Pid>>().len().max(1)
}

/// Returns true if this process is in a control group with a share of processor time of its own: sessions do not
/// influence scheduling in such a group.
fn is_grouped(mounted: &Path, groups: &[Group]) -> bool {
    groups.iter().any(|group| {
        if group.is_unified() {
            // Every group with the cpu controller has this file; the root group does not.
            return group.folders(mounted).iter().any(|folder| folder.join("cpu.weight").exists());
        }
        let tree = mounted.join("cpu");
        // In a container a group may look like the root, but only the real root has this file.
        let is_inner = || tree.is_dir() && !tree.join("release_agent").exists();
        group.controls("cpu") && (!group.is_top() || is_inner())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_groups_that_share_cores_come_before_sessions() {
        let dir = tempfile::tempdir().unwrap();
        let grouped = |groups| is_grouped(dir.path(), &cgroup::parse(groups));
        fs::create_dir_all(dir.path().join("user.slice/login")).unwrap();
        fs::create_dir_all(dir.path().join("system.slice")).unwrap();
        fs::write(dir.path().join("user.slice/cpu.weight"), "100\n").unwrap();
        assert!(grouped("0::/user.slice/login\n"));
        assert!(!grouped("0::/system.slice\n"));
        assert!(!grouped("0::/\n"));
        assert!(grouped("4:memory:/\n2:cpu,cpuacct:/job\n0::/\n"));
        assert!(!grouped("4:memory:/job\n3:cpuacct:/job\n2:cpu:/\n0::/\n"));
        fs::create_dir(dir.path().join("cpu")).unwrap();
        assert!(grouped("2:cpu,cpuacct:/\n"));
        fs::write(dir.path().join("cpu/release_agent"), "\n").unwrap();
        assert!(!grouped("2:cpu,cpuacct:/\n"));
    }

    #[test]
    fn who_has_gone_is_in_no_session() {
        assert_eq!(apart(&[std::process::id(), i32::MAX as u32]), 1);
        assert_eq!(apart(&[]), 1);
    }
}
