//! The memory limit of the control group, and the memory of the machine. The kernel does not refuse an allocation of
//! shared memory beyond them: it kills processes without an error message, so they are checked before.

use crate::cgroup::{self, Group};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// File names of the memory controller in a version of control groups, and its directory below the mount point.
struct Version {
    folder: &'static str,
    limit: &'static str,
    used: &'static str,
    /// Fields of `memory.stat` for page cache, which the kernel reclaims before it kills a process.
    idle: [&'static str; 2],
}

const V1: Version = Version {
    folder: "memory",
    limit: "memory.limit_in_bytes",
    used: "memory.usage_in_bytes",
    idle: ["total_inactive_file", "total_active_file"],
};

const V2: Version =
    Version { folder: "", limit: "memory.max", used: "memory.current", idle: ["inactive_file", "active_file"] };

/// Allocations from this size on are compared with the memory of the machine, bytes.
const LARGE: u64 = 16 << 20;

/// Memory of the machine that large allocations leave to others: this part of what is available.
const MARGIN: u64 = 20;

/// Fails if `bytes` more bytes would exceed the memory limit of a control group of this process, or if there are many and
/// the machine does not have them.
pub fn check(bytes: u64) -> io::Result<()> {
    let left =
        if bytes < LARGE { None } else { fs::read_to_string("/proc/meminfo").ok().and_then(|text| available(&text)) };
    if let Some(left) = left.map(|left| left - left / MARGIN).filter(|&left| left < bytes) {
        let text = format!("the machine has {left} bytes of memory left for it");
        return Err(io::Error::new(io::ErrorKind::OutOfMemory, text));
    }
    match tightest(Path::new(cgroup::MOUNTED), &cgroup::own()) {
        Some((left, file)) if left < bytes => Err(io::Error::new(
            io::ErrorKind::OutOfMemory,
            format!("the limit of the control group, {}, leaves {left} bytes", file.display()),
        )),
        _ => Ok(()),
    }
}

/// Returns the number of bytes that the machine can still give to programs, from the text of `/proc/meminfo`.
fn available(meminfo: &str) -> Option<u64> {
    let field = |name: &str| {
        let line = meminfo.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
        line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()
    };
    Some((field("MemAvailable")? + field("SwapFree").unwrap_or(0)) * 1024)
}

/// Returns the smallest remaining allowance of these groups and their ancestors, bytes, and the file with that limit;
/// None if there is no limit.
fn tightest(mounted: &Path, groups: &[Group]) -> Option<(u64, PathBuf)> {
    let limits = |group: &Group| {
        let version = match group {
            _ if group.is_unified() => V2,
            _ if group.controls("memory") => V1,
            _ => return Vec::new(),
        };
        let folders = group.folders(&mounted.join(version.folder));
        folders.iter().filter_map(|folder| left(folder, &version)).collect()
    };
    groups.iter().flat_map(limits).min()
}

fn left(folder: &Path, version: &Version) -> Option<(u64, PathBuf)> {
    let number = |name: &str| fs::read_to_string(folder.join(name)).ok()?.trim().parse::<u64>().ok();
    // The text "max" is not a number and means no limit.
    let limit = number(version.limit)?;
    let stat = fs::read_to_string(folder.join("memory.stat")).unwrap_or_default();
    let fields = stat.lines().filter_map(|line| line.split_once(' '));
    let idle: u64 =
        fields.filter(|(name, _)| version.idle.contains(name)).filter_map(|(_, n)| n.parse::<u64>().ok()).sum();
    let used = number(version.used)?.saturating_sub(idle);
    Some((limit.saturating_sub(used), folder.join(version.limit)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(folder: &Path, files: &[(&str, &str)]) {
        fs::create_dir_all(folder).unwrap();
        files.iter().for_each(|(name, text)| fs::write(folder.join(name), text).unwrap());
    }

    #[test]
    fn the_tightest_group_above_counts_without_its_page_cache() {
        let dir = tempfile::tempdir().unwrap();
        let at = |path: &str| dir.path().join(path);
        group(&at("job/step"), &[("memory.max", "max\n"), ("memory.current", "900\n")]);
        let stat = "anon 5\ninactive_file 100\nactive_file 20\nshmem 7\n";
        group(&at("job"), &[("memory.max", "1000\n"), ("memory.current", "900\n"), ("memory.stat", stat)]);
        assert_eq!(tightest(dir.path(), &cgroup::parse("0::/job/step\n")), Some((220, at("job/memory.max"))));
        assert_eq!(tightest(dir.path(), &cgroup::parse("0::/other\n")), None);
        assert_eq!(tightest(dir.path(), &cgroup::parse("")), None);
    }

    #[test]
    fn version_1_has_a_folder_and_names_of_its_own() {
        let dir = tempfile::tempdir().unwrap();
        let group_folder = dir.path().join("memory/job");
        let files = [("memory.limit_in_bytes", "1000\n"), ("memory.usage_in_bytes", "1100\n"), ("memory.stat", "x\n")];
        group(&group_folder, &files);
        let groups = "5:cpu,cpuacct:/\n4:hugetlb,memory:/job\n0::/\n";
        assert_eq!(tightest(dir.path(), &cgroup::parse(groups)), Some((0, group_folder.join("memory.limit_in_bytes"))));
    }

    #[test]
    fn a_container_sees_its_own_group_at_the_top() {
        let dir = tempfile::tempdir().unwrap();
        group(dir.path(), &[("memory.max", "70\n"), ("memory.current", "30\n")]);
        assert_eq!(
            tightest(dir.path(), &cgroup::parse("0::/the/hosts/path\n")),
            Some((40, dir.path().join("memory.max")))
        );
    }

    #[test]
    fn what_is_little_is_allowed_and_what_no_machine_has_is_refused() {
        check(1).unwrap();
        assert_eq!(check(1 << 60).unwrap_err().kind(), io::ErrorKind::OutOfMemory);
    }

    #[test]
    fn available_memory_and_swap_space_count() {
        let text = "MemTotal:  900 kB\nMemFree: 1 kB\nMemAvailable:   50 kB\nSwapFree:  7 kB\n";
        assert_eq!((available(text), available("MemTotal: 1 kB\n")), (Some(57 << 10), None));
    }
}
