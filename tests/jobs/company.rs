//! Effects of a job's environment: bound ranks, limits, debuggers, unusual ways to end.

use crate::harness::*;
use nix::sched::{sched_getaffinity, CpuSet};
use nix::sys::ptrace;
use nix::sys::wait::waitpid;
use nix::unistd::Pid;
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

/// Returns the cores that a thread may run on.
fn cores(thread: Pid) -> Vec<usize> {
    let set = sched_getaffinity(thread).unwrap();
    (0..CpuSet::count()).filter(|&core| set.is_set(core).unwrap_or(false)).collect()
}

/// Returns the cores that the forwarder threads of a process may run on.
fn forwarder_threads(pid: i32) -> Vec<Vec<usize>> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).unwrap().map(|task| task.unwrap());
    // The kernel stores 15 bytes of thread names.
    let named = tasks
        .filter(|task| fs::read_to_string(task.path().join("comm")).is_ok_and(|comm| comm.trim() == "ntbring-forward"));
    named.map(|task| cores(Pid::from_raw(task.file_name().to_str().unwrap().parse().unwrap()))).collect()
}

/// Returns the cores of the forwarder threads of all four hosts of a job.
fn forwarder_threads_of(job: Job) -> Vec<Vec<usize>> {
    let job = job.start();
    job.joined(4).iter().flat_map(|&(_, pid)| forwarder_threads(pid)).collect()
}

#[test]
#[ignore = "needs cargo xtask setup"]
fn forwarder_threads_stay_off_cores_that_ranks_are_bound_to() {
    let cores = cores(Pid::from_raw(0));
    let [first, others @ ..] = &cores[..] else { panic!("no core") };
    if others.is_empty() {
        return eprintln!("one core: nothing to stay off");
    }
    assert_eq!(forwarder_threads_of(busy(4, 1)), vec![cores.clone(); 4]);
    let bound = busy(4, 1).option("-bind-to").option(&format!("user:{first}x4"));
    assert_eq!(forwarder_threads_of(bound), vec![others.to_vec(); 4], "ranks are bound to {first}");
    // The job must not use cores that mpiexec itself may not use.
    let within = busy(4, 1).under(&["taskset", "-c", &first.to_string()]);
    assert_eq!(forwarder_threads_of(within), vec![vec![*first]; 4]);
    // A setting comes first; cores that may not be used leave threads where they are.
    let set = busy(4, 1).env("NTBRING_THREAD_CORES", first.to_string());
    assert_eq!(forwarder_threads_of(set), vec![vec![*first]; 4]);
    let unusable = busy(4, 1).env("NTBRING_THREAD_CORES", "1023");
    assert_eq!(forwarder_threads_of(unusable), vec![cores.clone(); 4]);
}

#[test]
#[ignore = "needs cargo xtask setup"]
fn standard_input_may_be_read_late_in_part_or_not_at_all() {
    let fed = |hosts: usize, input: &str, rank_0: &str| {
        let input = format!("{input} | \"$@\"");
        let rank = format!("[ $PMI_RANK = 0 ] || {{ sleep 0.2; exec echo other; }}; {rank_0}");
        let ended = Job::raw(hosts, &["-n", "2", "sh", "-c", &rank]).under(&["sh", "-c", &input, "sh"]).run();
        assert_eq!(ended.stdout.matches("other").count(), 1, "{}", ended.stderr);
        (ended.stdout.replace("other", "").trim().to_string(), ended.status.code())
    };
    for hosts in [1, 2] {
        let said = |text: &str| (text.to_string(), Some(0));
        for _ in 0..5 {
            assert_eq!(fed(hosts, "echo one line", "true"), said(""));
            assert_eq!(fed(hosts, "head -c 300000 /dev/zero", "true"), said(""));
        }
        assert_eq!(fed(hosts, "head -c 300000 /dev/zero", "exit 3"), (String::new(), Some(3)));
        assert_eq!(fed(hosts, "head -c 100000000 /dev/zero", "sleep 0.4; wc -c"), said("100000000"));
        assert_eq!(fed(hosts, "yes", "head -n 1"), said("y"));
        assert_eq!(fed(hosts, "yes", "exec <&-; sleep 0.4; echo without"), said("without"));
    }
}

/// Runs a command in which the two system calls given first (by number) fail with EPERM, as in some containers.
const WITHOUT_CALLS: &str = "
import ctypes, os, struct, sys
first, second = int(sys.argv[1]), int(sys.argv[2])
lines = [(0x20, 0, 0, 0), (0x15, 1, 0, first), (0x15, 0, 1, second), (0x06, 0, 0, 0x50001), (0x06, 0, 0, 0x7fff0000)]
filter = ctypes.create_string_buffer(b''.join(struct.pack('HBBI', *line) for line in lines))
libc = ctypes.CDLL(None, use_errno=True)
program = struct.pack('H6xQ', len(lines), ctypes.addressof(filter))
if libc.prctl(38, 1, 0, 0, 0) or libc.prctl(22, 2, program, 0, 0):
    sys.exit('prctl: ' + os.strerror(ctypes.get_errno()))
os.execvp(sys.argv[3], sys.argv[3:])
";

#[test]
#[ignore = "needs cargo xtask setup"]
fn copies_by_the_kernel_that_are_forbidden_are_done_without() {
    let calls = [libc::SYS_process_vm_readv, libc::SYS_process_vm_writev].map(|call| call.to_string());
    let without = ["python3", "-c", WITHOUT_CALLS, &calls[0], &calls[1]];
    for forbidden in [false, true] {
        let stats = Stats::new();
        let job = Job::new(2, 1, &["large"]).env("NTBRING_SINGLE_COPY", "16K").env("NTBRING_LOG", "info");
        let job = job.env("NTBRING_STATS", stats.path()).env("NTBRING_SHORTCUTS", "all");
        let ended = if forbidden { job.under(&without) } else { job }.run().ok();
        let copied: u64 = stats.lines(2).iter().map(|line| line["bytes_single_copy"].as_u64().unwrap()).sum();
        let told = ended.stderr.contains("no kernel copies from and to rank 1: Operation not permitted");
        // The calls may be forbidden on this machine in any case.
        assert_eq!(copied == 0, told, "{copied} bytes, {}", ended.stderr);
        assert!(told || !forbidden, "{}", ended.stderr);
    }
}

#[test]
#[ignore = "needs cargo xtask setup"]
fn a_job_on_one_host_says_how_to_have_several_to_those_who_want_to_know() {
    for (level, hosts, per_host, times) in [("info", 1, 4, 1), ("info", 2, 2, 0), ("info", 1, 1, 0), ("warn", 1, 4, 0)]
    {
        let ended = Job::new(hosts, per_host, &["hello"]).env("NTBRING_LOG", level).run().ok();
        assert_eq!(ended.stderr.matches("ranks are on one host").count(), times, "{}", ended.stderr);
    }
}

/// A control group with a memory limit, if one can be created here.
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
        // Processes in the group may still be exiting.
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
    job.failed_saying(&["control group", "bytes of shared memory", "NTBRING_WINDOW"]);
}

#[test]
#[ignore = "needs cargo xtask setup"]
fn a_debugger_may_attach_and_leave() {
    let job = busy(4, 1).start();
    let ranks = job.joined(4);
    let mut attached = 0;
    for round in 0..12 {
        let pid = Pid::from_raw(ranks[round % ranks.len()].1);
        // Not everybody may attach.
        if ptrace::attach(pid).is_ok() {
            attached += 1;
            waitpid(pid, None).unwrap();
            std::thread::sleep(Duration::from_millis(100));
            ptrace::detach(pid, None).unwrap();
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(job.joined(4), ranks, "they go on");
    assert!(attached > 0, "no rank could be attached to");
}

/// Returns the thread ids of a process.
fn threads(pid: i32) -> Vec<String> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    tasks.map(|task| task.unwrap().file_name().into_string().unwrap()).collect()
}

#[test]
#[ignore = "needs cargo xtask setup"]
fn gdb_sees_all_threads_of_a_rank_and_leaves() {
    let gdb = |words: &[&str]| {
        let mut command = Command::new("timeout");
        command.args(["60", "gdb", "-nx"]).args(words).env_remove("DEBUGINFOD_URLS").output()
    };
    if !gdb(&["--version"]).is_ok_and(|output| output.status.success()) {
        return eprintln!("gdb is not installed");
    }
    let job = busy(4, 1).start();
    let pid = job.joined(4)[1].1;
    let threads = threads(pid);
    let output = gdb(&["-p", &pid.to_string(), "-batch", "-ex", "thread apply all bt", "-ex", "detach"]).unwrap();
    let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    assert_eq!(job.joined(4)[1].1, pid, "they go on\n{said}");
    if said.contains("Operation not permitted") {
        return eprintln!("gdb may not attach here:\n{said}");
    }
    assert!(threads.len() > 1 && said.contains("ntbring-forward"), "no forwarder thread\n{said}");
    for thread in threads {
        let named = |end: char| said.contains(&format!("(LWP {thread}{end}"));
        assert!(named(')') || named(' '), "thread {thread} is missing\n{said}");
    }
    assert!(said.contains(&format!("[Inferior 1 (process {pid}) detached]")), "{said}");
}

#[test]
#[ignore = "needs cargo xtask setup"]
fn leaving_without_mpi_finalize_leaves_nothing_behind() {
    let before = shm();
    for (hosts, per_host) in [(4, 1), (2, 2)] {
        // The exit code is determined by mpiexec and not checked.
        let ended = Job::new(hosts, per_host, &["leaver", "exit"]).start().end_of_all(Duration::from_secs(60));
        let said = format!("{}{}", ended.stdout, ended.stderr);
        assert!(!said.contains("signal 11") && !said.contains("FAIL rank"), "{said}");
        nothing_left(&before);
        let job = Job::new(hosts, per_host, &["leaver", "one"]).option("-disable-auto-cleanup").start();
        let ended = job.end(Duration::from_secs(40));
        let host = 1 / per_host;
        ended.failed_saying(&[&format!("rank 1 on host {host} (process "), "has died"]);
        nothing_left(&before);
    }
}
