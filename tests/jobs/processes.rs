//! The processes of a job, found by a mark in their environment.

use std::fs;

/// Returns the ranks of the job with this mark that exist now.
pub fn marked(mark: &str) -> Vec<(u32, i32)> {
    let ranks = with_mark(mark).filter(|(pid, _)| !is_monitor(*pid));
    let mut found: Vec<(u32, i32)> = ranks.filter_map(|(pid, rank)| Some((rank?, pid))).collect();
    found.sort();
    found
}

/// Returns true if a process is the monitor of a host; such a process has the environment of the host's first rank.
pub fn is_monitor(pid: i32) -> bool {
    fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name.trim_end() == "ntbring-monitor")
}

/// Returns all processes of the job with this mark that exist now, and the rank of those that have one.
pub fn with_mark(mark: &str) -> impl Iterator<Item = (i32, Option<u32>)> + '_ {
    fs::read_dir("/proc").unwrap().filter_map(move |entry| {
        let pid: i32 = entry.ok()?.file_name().to_str()?.parse().ok()?;
        let environ = fs::read(format!("/proc/{pid}/environ")).ok()?;
        let var = |name: &str| {
            let vars = environ.split(|&b| b == 0).filter_map(|v| std::str::from_utf8(v).ok());
            vars.filter_map(|v| v.split_once('=')).find(|(n, _)| *n == name).map(|(_, v)| v.to_string())
        };
        (var("RING_JOB")? == mark).then(|| (pid, var("PMI_RANK").and_then(|rank| rank.parse().ok())))
    })
}

/// Returns true if a process may still hold files open: its threads do until they are zombies.
pub fn alive(pid: i32) -> bool {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let mut states = threads.filter_map(|thread| fs::read_to_string(thread.path().join("stat")).ok());
    states.any(|stat| stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X'])))
}

/// Sends a signal to a process that a test has started.
pub fn signal(pid: i32, signal: i32) {
    // SAFETY: a plain system call; the pid comes from a job of this test.
    unsafe { libc::kill(pid, signal) };
}
