//! Sessions of processes. Where the kernel shares cores out among them first, a rank that waits makes room for ranks of its
//! own session only.

use nix::unistd::{getsid, Pid};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

const ENABLED: &str = "/proc/sys/kernel/sched_autogroup_enabled";
const GROUPS: &str = "/proc/self/cgroup";
const MOUNTED: &str = "/sys/fs/cgroup";

/// In how many sessions these processes are, those of them that can be seen from here; one, if that makes no difference.
pub fn apart(processes: &[u32]) -> usize {
    let text = |file| fs::read_to_string(file).unwrap_or_default();
    if text(ENABLED).trim() != "1" || is_grouped(Path::new(MOUNTED), &text(GROUPS)) {
        return 1;
    }
    let session = |&process: &u32| getsid(Some(Pid::from_raw(process as i32))).ok();
    processes.iter().filter_map(session).collect::<BTreeSet<Pid>>().len().max(1)
}

/// Whether this process is in a control group that has its share of the cores: sessions mean nothing in there.
fn is_grouped(mounted: &Path, groups: &str) -> bool {
    groups.lines().any(|line| {
        let mut fields = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (fields.next(), fields.next()) else { return false };
        match controllers {
            // Version 2 has this file in all groups that the kernel shares cores out among, and not at the top.
            "" => {
                let start = mounted.join(path.trim_start_matches('/'));
                let mut within = start.ancestors().take_while(|folder| folder.starts_with(mounted));
                within.any(|folder| folder.join("cpu.weight").exists())
            }
            _ => controllers.split(',').any(|name| name == "cpu") && path != "/",
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_groups_that_share_cores_come_before_sessions() {
        let dir = tempfile::tempdir().unwrap();
        let grouped = |groups| is_grouped(dir.path(), groups);
        fs::create_dir_all(dir.path().join("user.slice/login")).unwrap();
        fs::create_dir_all(dir.path().join("system.slice")).unwrap();
        fs::write(dir.path().join("user.slice/cpu.weight"), "100\n").unwrap();
        assert!(grouped("0::/user.slice/login\n"));
        assert!(!grouped("0::/system.slice\n"));
        assert!(!grouped("0::/\n"));
        assert!(grouped("4:memory:/\n2:cpu,cpuacct:/job\n0::/\n"));
        assert!(!grouped("4:memory:/job\n3:cpuacct:/job\n2:cpu:/\n0::/\n"));
        assert!(!grouped("nothing of the kind"));
    }

    #[test]
    fn who_has_gone_is_in_no_session() {
        assert_eq!(apart(&[std::process::id(), i32::MAX as u32]), 1);
        assert_eq!(apart(&[]), 1);
    }
}
