//! What else there is in a program or on a machine: bound ranks, limits, debuggers, other ways to leave.

use crate::harness::*;
use nix::sched::{sched_getaffinity, CpuSet};
use nix::sys::ptrace;
use nix::sys::wait::waitpid;
use nix::unistd::Pid;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

/// Long enough for all ranks to have joined and to be at it, on a machine that has other work too.
const JOINED: Duration = Duration::from_secs(2);

/// The cores that this test may use.
fn cores() -> Vec<usize> {
    let set = sched_getaffinity(Pid::from_raw(0)).unwrap();
    (0..CpuSet::count()).filter(|&core| set.is_set(core).unwrap_or(false)).collect()
}

/// Where each thread with that name of a process may run, as `/proc` says it.
fn threads(pid: i32, name: &str) -> Vec<String> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).unwrap().map(|task| task.unwrap().path());
    let named = tasks.filter(|task| fs::read_to_string(task.join("comm")).is_ok_and(|comm| comm.trim() == name));
    let allowed = |task: PathBuf| {
        let status = fs::read_to_string(task.join("status")).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).unwrap();
        line.trim().to_string()
    };
    named.map(allowed).collect()
}

/// Of four hosts whose ranks are bound to `bind`, where the transfer threads may run.
fn transfer_threads(bind: Option<usize>, within: Option<usize>) -> Vec<String> {
    let mut job = Job::new(4, 1, &["random_traffic", "1", "100000000"]);
    if let Some(core) = bind {
        job = job.option("-bind-to").option(&format!("user:{core}"));
    }
    if let Some(core) = within {
        job = job.under(&["taskset", "-c", &core.to_string()]);
    }
    let job = job.start();
    let ranks = job.ranks(4);
    std::thread::sleep(JOINED);
    // The kernel knows threads by 15 bytes of their names.
    ranks.iter().flat_map(|&(_, pid)| threads(pid, "ntbring-transfe")).collect()
}

#[test]
#[ignore = "needs cargo xtask setup"]
fn transfer_threads_stay_off_cores_that_ranks_are_bound_to() {
    let cores = cores();
    let [first, .., last] = cores[..] else { return eprintln!("one core: nothing to stay off") };
    let others: Vec<String> = cores[1..].iter().map(|core| core.to_string()).collect();
    let everywhere = transfer_threads(None, None);
    assert_eq!(everywhere.len(), 4);
    let bound = transfer_threads(Some(first), None);
    if cores.len() == 2 {
        assert_eq!(bound, vec![others[0].clone(); 4], "ranks are bound to {first}");
    } else {
        assert!(bound.iter().all(|allowed| *allowed != first.to_string()), "{bound:?}, and ranks are bound to {first}");
    }
    // What mpiexec itself was not given is not the job's.
    assert_eq!(transfer_threads(None, Some(last)), vec![last.to_string(); 4]);
}

/// A control group with a memory limit, if one can be made here.
struct Group(PathBuf);

impl Group {
    fn new(limit: u64) -> Option<Group> {
        let top = PathBuf::from("/sys/fs/cgroup");
        let name = format!("ntbring-test-{}", std::process::id());
        for (folder, file) in [(top.join("memory"), "memory.limit_in_bytes"), (top, "memory.max")] {
            let group = folder.join(&name);
            if fs::create_dir(&group).is_ok() {
                let group = Group(group);
                if fs::write(group.0.join(file), limit.to_string()).is_ok() {
                    return Some(group);
                }
            }
        }
        None
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // Who was in it may still be on its way out.
        for _ in 0..50 {
            if fs::remove_dir(&self.0).is_ok() {
                return;
            }
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}

#[test]
#[ignore = "needs cargo xtask setup"]
fn the_limit_of_a_control_group_is_an_error_and_not_a_kill() {
    let Some(group) = Group::new(64 << 20) else { return eprintln!("no control group can be made here") };
    let enter = format!("echo $$ > {}/cgroup.procs && exec \"$@\"", group.0.display());
    let job = |call: &[&str]| Job::new(2, 1, call).under(&["sh", "-c", &enter, "sh"]);
    job(&["hello"]).run().ok();
    let job = job(&["hello"]).env("NTBRING_WINDOW", "64M").run();
    job.failed_saying(&["control group", "bytes of window memory", "NTBRING_WINDOW"]);
}

#[test]
#[ignore = "needs cargo xtask setup"]
fn a_debugger_may_attach_and_leave() {
    let job = Job::new(4, 1, &["random_traffic", "3", "3000"]).start();
    let ranks = job.ranks(4);
    for round in 0..12 {
        let pid = Pid::from_raw(ranks[round % ranks.len()].1);
        // Those that are through have left.
        if ptrace::attach(pid).is_ok() {
            waitpid(pid, None).unwrap();
            std::thread::sleep(Duration::from_millis(100));
            ptrace::detach(pid, None).unwrap();
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    job.end(Duration::from_secs(80)).ok();
}

#[test]
#[ignore = "needs cargo xtask setup"]
fn leaving_without_mpi_finalize_leaves_nothing_behind() {
    let before = shm();
    for (hosts, per_host) in [(4, 1), (2, 2)] {
        // What the exit code then is, is mpiexec's business.
        Job::new(hosts, per_host, &["leaver", "exit"]).run();
        nothing_left(&before);
        let job = Job::new(hosts, per_host, &["leaver", "one"]).option("-disable-auto-cleanup").start();
        let ended = job.end(Duration::from_secs(40));
        let host = 1 / per_host;
        ended.failed_saying(&[&format!("rank 1 on host {host} (process "), "has died"]);
        nothing_left(&before);
    }
}
