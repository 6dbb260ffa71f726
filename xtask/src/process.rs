//! Starts child processes and makes sure that none of them outlives xtask.
//!
//! Every child has no standard input, a process group of its own, and a mark in its environment. Stragglers are found
//! by the mark: hydra puts MPI processes into process groups of their own, so killing the child's group does not reach
//! them.

use std::fs::{self, File, OpenOptions};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{bail, Context, Result};
use rustix::process::{kill_process, kill_process_group, Pid, Signal};

use crate::ui;

/// The environment variable that marks child processes and their descendants.
const MARK: &str = "XTASK_JOB";

/// Time that a child may take to end after SIGTERM.
const GRACE: Duration = Duration::from_secs(3);

static INTERRUPTED: OnceLock<Arc<AtomicBool>> = OnceLock::new();
static JOBS: AtomicU32 = AtomicU32::new(0);

/// The way in which a child ended.
#[derive(Debug)]
pub struct Outcome {
    /// Its exit status; of a killed child, the status that the kill caused.
    pub status: ExitStatus,
    /// The child exceeded its time limit and was killed.
    pub timed_out: bool,
    /// Time from the start of the child to its end.
    pub elapsed: Duration,
}

impl Outcome {
    /// Returns true if the child ended by itself with exit status 0.
    pub fn success(&self) -> bool {
        self.status.success() && !self.timed_out
    }

    /// Describes the outcome in words.
    pub fn describe(&self) -> String {
        if self.timed_out {
            return format!("out of time after {}", ui::seconds(self.elapsed));
        }
        match (self.status.code(), self.status.signal()) {
            (Some(code), _) => format!("exit status {code}"),
            (None, Some(signal)) => format!("killed by signal {signal}"),
            (None, None) => "ended in an unknown way".to_string(),
        }
    }
}

/// Turns Ctrl-C, SIGTERM and SIGHUP into a flag that every wait checks.
pub fn watch_for_interrupts() -> Result<()> {
    let flag = INTERRUPTED.get_or_init(Arc::default);
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM, signal_hook::consts::SIGHUP] {
        signal_hook::flag::register(signal, Arc::clone(flag)).context("cannot watch for signals")?;
    }
    Ok(())
}

/// Returns true if the user has asked xtask to stop.
pub fn interrupted() -> bool {
    INTERRUPTED.get().is_some_and(|flag| flag.load(Ordering::Relaxed))
}

/// Runs a command whose output goes to xtask's own output. Fails only if the command cannot be started or if the user
/// interrupts it.
pub fn run_shown(command: &mut Command, limit: Option<Duration>) -> Result<Outcome> {
    ui::flush();
    run(command, limit)
}

/// Runs a command whose output is appended to `log`, after a line that shows the command.
pub fn run_logged(command: &mut Command, log: &Path, limit: Option<Duration>) -> Result<Outcome> {
    use std::io::Write;
    let mut file = append(log)?;
    writeln!(file, "$ {}", shown(command)).with_context(|| format!("cannot write {}", log.display()))?;
    run_to(command, file, limit)
}

/// Runs a command whose standard output and standard error together replace the content of `file`.
pub fn run_captured(command: &mut Command, file: &Path, limit: Option<Duration>) -> Result<Outcome> {
    make_parent(file)?;
    let out = File::create(file).with_context(|| format!("cannot write {}", file.display()))?;
    run_to(command, out, limit)
}

/// Runs a command as [`run_logged`] does. Any outcome but success is an error that shows the end of the log.
pub fn check_logged(command: &mut Command, log: &Path) -> Result<()> {
    let outcome = run_logged(command, log, None)?;
    if outcome.success() {
        return Ok(());
    }
    Err(ui::error_with_log(format!("{}: {}", shown(command), outcome.describe()), log))
}

/// Runs a short command and returns its standard output.
pub fn output(command: &mut Command) -> Result<String> {
    let result = command.stdin(Stdio::null()).output().with_context(|| format!("cannot run {}", shown(command)))?;
    if !result.status.success() {
        bail!("{}: {}\n{}", shown(command), result.status, String::from_utf8_lossy(&result.stderr).trim_end());
    }
    Ok(String::from_utf8_lossy(&result.stdout).into_owned())
}

/// Returns the first line that a command prints; None if it fails.
pub fn first_line(command: &mut Command) -> Option<String> {
    output(command).ok()?.lines().next().map(str::to_string)
}

/// Formats a command as one would type it in a shell.
pub fn shown(command: &Command) -> String {
    let mut words = vec![command.get_program().to_string_lossy().into_owned()];
    words.extend(command.get_args().map(|arg| {
        let arg = arg.to_string_lossy();
        if arg.is_empty() || arg.contains([' ', '\'', '"', '$', '\n', ';', '&', '|']) {
            format!("'{}'", arg.replace('\'', "'\\''"))
        } else {
            arg.into_owned()
        }
    }));
    words.join(" ")
}

fn run_to(command: &mut Command, out: File, limit: Option<Duration>) -> Result<Outcome> {
    let err = out.try_clone().context("cannot duplicate a file descriptor")?;
    command.stdout(out).stderr(err);
    run(command, limit)
}

fn run(command: &mut Command, limit: Option<Duration>) -> Result<Outcome> {
    if interrupted() {
        bail!("interrupted");
    }
    let mark = format!("{}.{}", std::process::id(), JOBS.fetch_add(1, Ordering::Relaxed));
    let start = Instant::now();
    let mut child = command
        .stdin(Stdio::null())
        .process_group(0)
        .env(MARK, &mark)
        .spawn()
        .with_context(|| format!("cannot start {}", shown(command)))?;
    let mut pause = Duration::from_millis(1);
    loop {
        if let Some(status) = child.try_wait().context("cannot wait for a child")? {
            reap_stragglers(&mark);
            return Ok(Outcome { status, timed_out: false, elapsed: start.elapsed() });
        }
        let timed_out = limit.is_some_and(|limit| start.elapsed() >= limit);
        if timed_out || interrupted() {
            let status = end(&mut child, &mark)?;
            if !timed_out {
                bail!("interrupted");
            }
            return Ok(Outcome { status, timed_out, elapsed: start.elapsed() });
        }
        thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(20));
    }
}

/// Ends a child and all its descendants: first with SIGTERM, so that mpiexec can end its processes itself, then with
/// SIGKILL.
fn end(child: &mut Child, mark: &str) -> Result<ExitStatus> {
    let group = Pid::from_child(child);
    // An error means that the group has ended already.
    let _ = kill_process_group(group, Signal::TERM);
    let start = Instant::now();
    while start.elapsed() < GRACE {
        if let Some(status) = child.try_wait()? {
            reap_stragglers(mark);
            return Ok(status);
        }
        thread::sleep(Duration::from_millis(20));
    }
    let _ = kill_process_group(group, Signal::KILL);
    kill_marked(mark);
    let status = child.wait().context("cannot wait for a child")?;
    reap_stragglers(mark);
    Ok(status)
}

/// Kills the remaining processes of a job that has ended. Processes that are about to end get a short time to do so.
fn reap_stragglers(mark: &str) {
    let first = marked(mark);
    if first.is_empty() {
        return;
    }
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(1) {
        thread::sleep(Duration::from_millis(20));
        if marked(mark).is_empty() {
            return;
        }
    }
    kill_marked(mark);
}

fn kill_marked(mark: &str) {
    // Two passes: a process may have forked between the search and the kill.
    for _ in 0..2 {
        for pid in marked(mark) {
            if let Some(pid) = Pid::from_raw(pid) {
                let _ = kill_process(pid, Signal::KILL);
            }
        }
    }
}

/// Returns the ids of the processes that carry this mark in their environment. Zombies have no environment and are not
/// found.
fn marked(mark: &str) -> Vec<i32> {
    let wanted = format!("{MARK}={mark}");
    let Ok(entries) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok())
        .filter(|pid| {
            fs::read(format!("/proc/{pid}/environ"))
                .is_ok_and(|env| env.split(|byte| *byte == 0).any(|item| item == wanted.as_bytes()))
        })
        .collect()
}

fn append(log: &Path) -> Result<File> {
    make_parent(log)?;
    OpenOptions::new().create(true).append(true).open(log).with_context(|| format!("cannot write {}", log.display()))
}

fn make_parent(file: &Path) -> Result<()> {
    let Some(parent) = file.parent() else {
        return Ok(());
    };
    fs::create_dir_all(parent).with_context(|| format!("cannot create {}", parent.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sh(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn exit_status_and_output_are_reported() {
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().join("sub/log");
        let outcome = run_logged(&mut sh("echo hello; echo there >&2; exit 3"), &log, None).unwrap();
        assert_eq!(outcome.describe(), "exit status 3");
        let text = fs::read_to_string(log).unwrap();
        assert!(text.starts_with("$ sh -c '"), "{text}");
        assert!(text.ends_with("hello\nthere\n"), "{text}");
    }

    #[test]
    fn a_timeout_kills_even_what_left_the_process_group() {
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().join("log");
        let script = "trap '' TERM; setsid sh -c 'trap \"\" TERM; echo pid $$; sleep 60' & wait; sleep 60";
        let outcome = run_captured(&mut sh(script), &log, Some(Duration::from_millis(300))).unwrap();
        assert!(outcome.timed_out);
        let text = fs::read_to_string(log).unwrap();
        let pid = text.trim().strip_prefix("pid ").unwrap();
        let state = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        assert!(state.is_empty() || state.contains(") Z"), "{state}");
    }

    #[test]
    fn commands_are_shown_as_typed() {
        assert_eq!(shown(&sh("a b")), "sh -c 'a b'");
    }
}
