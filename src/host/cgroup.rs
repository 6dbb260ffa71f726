//! The control groups (version 1 and 2) that this process belongs to.

use std::fs;
use std::path::{Path, PathBuf};

const LIST: &str = "/proc/self/cgroup";

/// Mount point of the control group hierarchies.
pub const MOUNTED: &str = "/sys/fs/cgroup";

/// A group in one control group hierarchy. Version 1 has one hierarchy per set of controllers, version 2 one for all.
pub struct Group {
    controllers: String,
    path: String,
}

/// Returns the groups of this process; empty if the kernel has no control groups.
pub fn own() -> Vec<Group> {
    parse(&fs::read_to_string(LIST).unwrap_or_default())
}

/// Parses lines of the form `number:controllers:path`. Other lines are skipped.
pub fn parse(list: &str) -> Vec<Group> {
    let group = |line: &str| {
        let mut fields = line.splitn(3, ':').skip(1).map(String::from);
        Some(Group { controllers: fields.next()?, path: fields.next()? })
    };
    list.lines().filter_map(group).collect()
}

impl Group {
    /// Returns true if the group is in the hierarchy of version 2.
    pub fn is_unified(&self) -> bool {
        self.controllers.is_empty()
    }

    /// Returns true if the group is in a hierarchy of version 1 with this controller.
    pub fn controls(&self, controller: &str) -> bool {
        self.controllers.split(',').any(|name| name == controller)
    }

    /// Returns true if the group is the root of its hierarchy, judged by its path as this process sees it.
    pub fn is_top(&self) -> bool {
        self.path == "/"
    }

    /// Returns the directories of this group and of all its ancestors, from its own up to the mount point `root`. In a
    /// container the path may be the host's while the mounted hierarchy is the container's own; then it is `root`
    /// alone.
    pub fn folders(&self, root: &Path) -> Vec<PathBuf> {
        let inside = root.join(self.path.trim_start_matches('/'));
        let start = if inside.is_dir() { &inside } else { root };
        start.ancestors().take_while(|folder| folder.starts_with(root)).map(PathBuf::from).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_and_anything_else_is_passed_over() {
        let groups = parse("4:cpu,cpuacct:/a:b\n0::/\nnothing of the kind\n1:name=systemd:/\n");
        assert_eq!(groups.len(), 3);
        assert!(groups[0].controls("cpu") && groups[0].controls("cpuacct") && !groups[0].controls("acct"));
        assert!(!groups[0].is_unified() && !groups[0].is_top() && groups[0].path == "/a:b");
        assert!(groups[1].is_unified() && groups[1].is_top() && !groups[1].controls("cpu"));
        assert!(!groups[2].is_unified());
    }

    #[test]
    fn a_container_sees_its_own_group_at_the_top() {
        let dir = tempfile::tempdir().unwrap();
        let job = dir.path().join("job");
        fs::create_dir_all(job.join("step")).unwrap();
        let folders = |list| parse(list)[0].folders(dir.path());
        assert_eq!(folders("0::/job/step\n"), [job.join("step"), job, dir.path().into()]);
        assert_eq!(folders("0::/the/hosts/path\n"), [dir.path()]);
    }
}
