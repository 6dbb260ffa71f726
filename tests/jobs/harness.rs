//! Test harness: starts jobs, watches them, and finds their processes.

pub use crate::processes::signal;
use crate::processes::{alive, is_monitor, marked, with_mark};
use crate::watch::Output;
use nix::unistd::Uid;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

fn target() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("target")
}

/// Returns the path of the mpiexec that was built.
pub fn mpiexec() -> PathBuf {
    let path = target().join("mpich/current/bin/mpiexec");
    assert!(path.exists(), "{} is missing: run `cargo xtask setup` first", path.display());
    path
}

/// Returns the path of a program of tests/mpi.
pub fn program(name: &str) -> PathBuf {
    let path = target().join("mpi-tests/release").join(name);
    assert!(path.exists(), "{} is missing: `cargo xtask mpi-test` builds it", path.display());
    path
}

/// All shortcuts but the lanes past hosts.
pub const WITHOUT_LANES: &str = "kernel-copies+segments+windows+processes";

/// Creates a job that is busy for far longer than any test.
pub fn busy(hosts: usize, per_host: usize) -> Job {
    Job::new(hosts, per_host, &["random_traffic", "1", "100000000"])
}

/// Kills a rank of a job of so many hosts with so many ranks each, and checks that the others end soon and name it.
pub fn a_killed_rank_is_named_by_the_others(job: Job, (hosts, per_host): (usize, usize), victim: usize) {
    let job = job.option("-disable-auto-cleanup").start();
    let ranks = job.joined(hosts * per_host);
    let killed = Instant::now();
    signal(ranks[victim].1, libc::SIGKILL);
    while !job.processes().is_empty() && killed.elapsed() < Duration::from_secs(12) {
        std::thread::sleep(Duration::from_millis(20));
    }
    let took = killed.elapsed();
    let name = format!("rank {victim} on host {} (process {}) has died", victim / per_host, ranks[victim].1);
    job.end(Duration::from_secs(40)).failed_saying(&[&name]);
    assert!(took < Duration::from_secs(10), "the others took {took:?} to end");
}

/// A job that is to be started.
pub struct Job {
    command: Command,
    mark: String,
    tail: Vec<String>,
}

/// A running job.
pub struct Running {
    child: Child,
    mark: String,
    started: Instant,
    /// Its output so far.
    pub stdout: Output,
    /// Its standard error so far.
    pub stderr: Output,
}

/// A job that has ended.
pub struct Ended {
    pub status: ExitStatus,
    pub stdout: String,
    pub stderr: String,
}

impl Job {
    /// Creates a job of `program` with its arguments, on `hosts` emulated hosts of `per_host` ranks each.
    pub fn new(hosts: usize, per_host: usize, call: &[&str]) -> Job {
        let tail = vec!["-n".to_string(), (hosts * per_host).to_string()];
        Job::with(&["fork"], hosts, per_host, tail).then(call)
    }

    /// Creates a job with one rank on each of the emulated hosts with these names, which see nothing of each other's
    /// processes. Hosts of several jobs that have the same name are one host.
    pub fn on_separate(names: &[&str], call: &[&str]) -> Job {
        let tail = vec!["-n".to_string(), names.len().to_string()];
        let names = names.iter().map(ToString::to_string).collect();
        Job::with_names(&["fork"], names, tail).then(call).env("NTBRING_SHORTCUTS", "none")
    }

    /// Creates a job with `per_host` ranks on each of some hosts, which have these devices (NTBRING_DEVICE).
    pub fn with_devices(devices: &[String], per_host: usize, call: &[&str]) -> Job {
        let call: Vec<String> = [program(call[0]).display().to_string()]
            .into_iter()
            .chain(call[1..].iter().map(|a| a.to_string()))
            .collect();
        let part = |device: &String| {
            let options = ["-n", &per_host.to_string(), "-env", "NTBRING_DEVICE", device].map(String::from);
            options.into_iter().chain(call.clone()).collect::<Vec<_>>()
        };
        let parts: Vec<Vec<String>> = devices.iter().map(part).collect();
        Job::with(&["fork"], devices.len(), per_host, parts.join(&":".to_string()))
    }

    /// As [`Job::new`], with everything after the hosts given by the caller; `{NAME}` stands for a program.
    pub fn raw(hosts: usize, tail: &[&str]) -> Job {
        let fill = |word: &&str| match word.strip_prefix('{').and_then(|w| w.strip_suffix('}')) {
            Some(name) => program(name).to_string_lossy().into_owned(),
            None => word.to_string(),
        };
        Job::with(&["fork"], hosts, 1, tail.iter().map(fill).collect())
    }

    /// Creates a job with one rank on each host, started by a launcher with options of its own.
    pub fn with_launcher(hosts: usize, launcher: &[&str], call: &[&str]) -> Job {
        Job::with(launcher, hosts, 1, vec!["-n".to_string(), hosts.to_string()]).then(call)
    }

    fn with(launcher: &[&str], hosts: usize, per_host: usize, tail: Vec<String>) -> Job {
        Job::with_names(launcher, (0..hosts).map(|h| format!("h{h}:{per_host}")).collect(), tail)
    }

    fn with_names(launcher: &[&str], names: Vec<String>, tail: Vec<String>) -> Job {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let mark = format!("{}-{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
        let mut command = Command::new(mpiexec());
        command.arg("-launcher").args(launcher).args(["-hosts", &names.join(",")]);
        // cargo adds its own target directory, which contains a debug build of the library.
        command
            .env_remove("LD_LIBRARY_PATH")
            .env("RING_JOB", &mark)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command.process_group(0);
        Job { command, mark, tail }
    }

    fn then(mut self, call: &[&str]) -> Job {
        self.tail.push(program(call[0]).to_string_lossy().into_owned());
        self.tail.extend(call[1..].iter().map(|a| a.to_string()));
        self
    }

    /// Sets a variable for all ranks.
    pub fn env(mut self, name: &str, value: impl AsRef<std::ffi::OsStr>) -> Job {
        self.command.env(name, value);
        self
    }

    /// Adds an option for mpiexec, before the number of ranks.
    pub fn option(mut self, option: &str) -> Job {
        self.command.arg(option);
        self
    }

    /// Runs the job in a mount namespace where /dev/shm is a new file system of `size`.
    pub fn with_small_shm(self, size: &str) -> Job {
        // Without root the mount needs a user namespace of its own.
        let root = Uid::effective().is_root();
        let mount = format!("mount -t tmpfs -o size={size} tmpfs /dev/shm && exec \"$@\"");
        self.under(&["unshare", if root { "-m" } else { "-rm" }, "sh", "-c", &mount, "sh"])
    }

    /// Sets the command that runs mpiexec: the words before it.
    pub fn under(mut self, words: &[&str]) -> Job {
        self.command.args(&self.tail);
        let mut command = Command::new(words[0]);
        command.args(&words[1..]);
        command.arg(self.command.get_program()).args(self.command.get_args());
        for (name, value) in self.command.get_envs() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
        Job { command, mark: self.mark, tail: vec![] }
    }

    /// As [`Job::run`], and fails the test if a monitor stays.
    pub fn run_without_monitors_left(self) -> Ended {
        let mark = self.mark.clone();
        let ended = self.run();
        let start = Instant::now();
        while with_mark(&mark).any(|(pid, _)| is_monitor(pid)) {
            assert!(start.elapsed() < Duration::from_secs(20), "a monitor is left");
            std::thread::sleep(Duration::from_millis(10));
        }
        ended
    }

    pub fn start(mut self) -> Running {
        let started = Instant::now();
        let mut child = self.command.args(&self.tail).spawn().expect("mpiexec must start");
        let stdout = Output::of(child.stdout.take().unwrap());
        let stderr = Output::of(child.stderr.take().unwrap());
        Running { child, mark: self.mark, started, stdout, stderr }
    }

    /// Runs the job to its end; fails the test if that takes longer than a minute and a half.
    pub fn run(self) -> Ended {
        self.start().end(Duration::from_secs(90))
    }
}

impl Running {
    /// Returns the job's ranks as `(rank, pid)`, once all `count` have started.
    pub fn ranks(&self, count: usize) -> Vec<(u32, i32)> {
        let end = Instant::now() + Duration::from_secs(30);
        loop {
            let ranks = self.processes();
            // A monitor that was forked just now looks like its rank.
            let numbers: BTreeSet<u32> = ranks.iter().map(|(rank, _)| *rank).collect();
            if ranks.len() == count && numbers.len() == count {
                return ranks;
            }
            assert!(Instant::now() < end, "{} of {count} ranks have started", ranks.len());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Returns the job's ranks that exist now.
    pub fn processes(&self) -> Vec<(u32, i32)> {
        marked(&self.mark)
    }

    /// Returns the monitors of the job's hosts, by the first rank of the host.
    pub fn monitors(&self) -> Vec<(u32, i32)> {
        let monitors = with_mark(&self.mark).filter(|(pid, _)| is_monitor(*pid));
        monitors.filter_map(|(pid, rank)| Some((rank?, pid))).collect()
    }

    /// As [`Running::end`], and fails the test if a rank outlives mpiexec.
    pub fn end_of_all(self, limit: Duration) -> Ended {
        let mark = self.mark.clone();
        let ended = self.end(limit);
        let until = Instant::now() + Duration::from_secs(5);
        while let Some(&(rank, pid)) = marked(&mark).first() {
            if Instant::now() > until {
                marked(&mark).iter().for_each(|&(_, pid)| signal(pid, libc::SIGKILL));
                panic!("rank {rank} (process {pid}) is still there\n{}\n{}", ended.stdout, ended.stderr);
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        ended
    }

    /// Waits for the job's end; kills the job and fails the test if it takes too long.
    pub fn end(mut self, limit: Duration) -> Ended {
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break Some(status);
            }
            if self.started.elapsed() > limit {
                break None;
            }
            std::thread::sleep(Duration::from_millis(10));
        };
        if status.is_none() {
            self.kill();
        }
        let (stdout, stderr) = (self.stdout.whole(), self.stderr.whole());
        let status = status.unwrap_or_else(|| panic!("not over after {limit:?}\n{stdout}\n{stderr}"));
        Ended { status, stdout, stderr }
    }

    /// Kills mpiexec, its proxies, which may still start ranks, and all ranks, and waits until their files are closed.
    pub fn kill(&mut self) {
        let mut all = vec![self.child.id() as i32];
        let killed = Instant::now();
        while killed.elapsed() < Duration::from_secs(10) {
            all.extend(with_mark(&self.mark).map(|(pid, _)| pid));
            all.retain(|&pid| alive(pid));
            if all.is_empty() {
                break;
            }
            all.iter().for_each(|&pid| signal(pid, libc::SIGKILL));
            std::thread::sleep(Duration::from_millis(5));
        }
        let _ = self.child.wait();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            self.kill();
        }
    }
}

impl Ended {
    /// Fails the test unless the job has succeeded.
    pub fn ok(self) -> Ended {
        assert!(self.status.success(), "{:?}\n{}\n{}", self.status, self.stdout, self.stderr);
        self
    }

    /// Fails the test unless the job has failed and printed all of `words` to stderr (or stdout: mpiexec forwards the
    /// output of its ranks there).
    pub fn failed_saying(self, words: &[&str]) -> Ended {
        let said = format!("{}\n{}", self.stdout, self.stderr);
        let bad = !self.status.success() || self.status.signal().is_some();
        assert!(bad, "it should have failed:\n{said}");
        for word in words {
            assert!(said.contains(word), "{word:?} is missing in:\n{said}");
        }
        assert!(!said.contains("SIGBUS") && !said.contains("panicked"), "{said}");
        self
    }

    /// Returns the JSON objects among the lines of the job's standard output.
    pub fn json(&self) -> Vec<Value> {
        self.stdout.lines().filter_map(|l| serde_json::from_str(l.trim()).ok()).collect()
    }
}

/// A file for the statistics of one job.
pub struct Stats {
    dir: tempfile::TempDir,
}

impl Stats {
    pub fn new() -> Stats {
        Stats { dir: tempfile::tempdir().unwrap() }
    }

    pub fn path(&self) -> PathBuf {
        self.dir.path().join("stats")
    }

    /// Returns the lines, by rank.
    pub fn lines(&self, ranks: usize) -> Vec<Value> {
        let text = fs::read_to_string(self.path()).expect("the job wrote its statistics");
        let mut lines: Vec<Value> = text.lines().map(|l| serde_json::from_str(l).expect("a JSON line")).collect();
        assert_eq!(lines.len(), ranks, "one line a rank");
        lines.sort_by_key(|l| l["rank"].as_u64());
        lines
    }
}

/// Runs the user's tool. Returns true if it succeeded, and its output.
pub fn tool(words: &[&str]) -> (bool, String) {
    let output = tool_command(words).output().unwrap();
    (output.status.success(), String::from_utf8([output.stdout, output.stderr].concat()).unwrap())
}

/// Returns a command that runs the user's tool.
pub fn tool_command(words: &[&str]) -> Command {
    let mut command = Command::new(target().join("mpich/current/bin/ntbring"));
    command.args(words);
    command
}

/// Returns the files that are in /dev/shm now.
pub fn shm() -> BTreeSet<String> {
    let names =
        fs::read_dir("/dev/shm").unwrap().filter_map(|e| Some(e.ok()?.file_name().to_string_lossy().into_owned()));
    names.collect()
}

/// Fails the test if /dev/shm contains files that were not there before, and that stay; files of jobs of other tests,
/// which start or run beside this one, disappear.
pub fn nothing_left(before: &BTreeSet<String>) {
    let end = Instant::now() + Duration::from_secs(20);
    // What comes now is of others: the test's own jobs have ended.
    let mut left: Vec<String> = shm().difference(before).cloned().collect();
    while !left.is_empty() {
        assert!(Instant::now() < end, "left in /dev/shm: {left:?}");
        std::thread::sleep(Duration::from_millis(50));
        let now = shm();
        left.retain(|name| now.contains(name));
    }
}
