//! The counted session of a process.

use crate::connection::send_all;
use crate::hosts::{parse_mapping, Split};
use crate::job::Lookup;
use crate::manager::Manager;
use crate::turn::Turn;
use crate::{Job, Limits, PmiError};
use nix::errno::Errno;
use nix::poll::{poll, PollFd, PollFlags};
use std::collections::BTreeMap;
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::{Mutex, MutexGuard, Once, PoisonError};
use std::time::{Duration, Instant};

/// Time for which an abort waits for the end of this process.
const ABORT_WAIT: Duration = Duration::from_secs(10);

/// A session with the process manager: opened by each user, and closed by each.
///
/// The last [`Session::close`] tells the process manager that this process is done, and ends the connection. If
/// somebody has called [`Session::keep`], that is put off to the end of the process, so that the session can be opened
/// again. A process that ends while its session is open tells the process manager nothing, which then ends the job.
#[derive(Debug, Default)]
pub struct Session {
    turn: Turn,
    state: Mutex<State>,
    /// Descriptor of the connection, or -1: for an abort, which does not wait for its turn.
    fd: AtomicI32,
    /// The end of the connection is put off to the end of the process.
    kept: AtomicBool,
    /// The process is ending: nothing is put off any more.
    exiting: AtomicBool,
}

#[derive(Debug, Default)]
struct State {
    users: u32,
    /// The connection of PMI_FD has been used up.
    finalized: bool,
    link: Option<Link>,
}

#[derive(Debug)]
struct Link {
    job: Job,
    /// The process that has connected.
    pid: u32,
    to: Partner,
}

#[derive(Debug)]
enum Partner {
    Manager(Manager),
    /// No process manager: what this process has put.
    Nobody(BTreeMap<String, String>),
}

static SESSION: Session = Session::new();

/// Returns the session of this process.
pub fn session() -> &'static Session {
    &SESSION
}

extern "C" fn at_exit() {
    // A panic must not leave a function of C.
    let _ = std::panic::catch_unwind(|| SESSION.exit());
}

impl Session {
    /// Creates a session that is not open.
    pub const fn new() -> Session {
        let state = State { users: 0, finalized: false, link: None };
        Session {
            turn: Turn::new(),
            state: Mutex::new(state),
            fd: AtomicI32::new(-1),
            kept: AtomicBool::new(false),
            exiting: AtomicBool::new(false),
        }
    }

    /// Returns the turn that a question on the session's connection needs.
    pub fn turn(&self) -> &Turn {
        &self.turn
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens the session once more. The first call connects to the process manager that the environment names.
    pub fn open(&self) -> Result<Job, PmiError> {
        self.open_with(&|name| std::env::var_os(name).map(|value| value.to_string_lossy().into_owned()))
    }

    /// The same, with another environment.
    pub(crate) fn open_with(&self, lookup: Lookup) -> Result<Job, PmiError> {
        let _turn = self.turn.hold();
        let mut state = self.state();
        if state.link.is_none() {
            if state.finalized && lookup("PMI_FD").is_some() {
                return Err(PmiError::Finalized);
            }
            let (job, to) = match Manager::find(lookup)? {
                Some((manager, job)) => (job, Partner::Manager(manager)),
                None => {
                    let job = Job { rank: 0, size: 1, spawned: false, fd: None, limits: Limits::ALONE };
                    (job, Partner::Nobody(BTreeMap::new()))
                }
            };
            self.fd.store(job.fd.unwrap_or(-1), Ordering::SeqCst);
            state.link = Some(Link { job, pid: std::process::id(), to });
        }
        state.users += 1;
        Ok(state.link.as_ref().ok_or(PmiError::NotOpen)?.job)
    }

    /// Closes the session once.
    pub fn close(&self) -> Result<(), PmiError> {
        let _turn = self.turn.hold();
        let mut state = self.state();
        state.users = state.users.checked_sub(1).ok_or(PmiError::NotOpen)?;
        if state.users > 0 || (self.kept() && !self.exiting.load(Ordering::SeqCst)) {
            return Ok(());
        }
        self.finish(&mut state)
    }

    /// Puts off the end of the connection to the end of this process, from now on.
    pub fn keep(&self) {
        static REGISTERED: Once = Once::new();
        if std::ptr::eq(self, &SESSION) {
            REGISTERED.call_once(|| {
                // SAFETY: the function can be called at any time, and is never unloaded without being called.
                if unsafe { libc::atexit(at_exit) } != 0 {
                    log::warn!("no memory for atexit: the process manager will believe that this process has failed");
                }
            });
        }
        self.kept.store(true, Ordering::SeqCst);
    }

    fn kept(&self) -> bool {
        self.kept.load(Ordering::SeqCst)
    }

    /// The process is ending: does what the last close has put off. A session that is open, and one in which another
    /// thread asks at the moment, is left as it is: such a process has not ended as it should.
    pub(crate) fn exit(&self) {
        self.exiting.store(true, Ordering::SeqCst);
        let Some(_turn) = self.turn.try_hold() else { return };
        let mut state = self.state();
        if state.users == 0 {
            if let Err(error) = self.finish(&mut state) {
                log::debug!("at the end of the process: {error}");
            }
        }
    }

    fn finish(&self, state: &mut State) -> Result<(), PmiError> {
        let Some(link) = state.link.take() else { return Ok(()) };
        self.fd.store(-1, Ordering::SeqCst);
        state.finalized = link.job.fd.is_some();
        match link.to {
            // A child that was forked later must not speak for its parent.
            Partner::Manager(_) if self.kept() && link.pid != std::process::id() => Ok(()),
            Partner::Manager(manager) => manager.finalize(),
            Partner::Nobody(_) => Ok(()),
        }
    }

    /// Runs a question on the open session.
    fn ask<T>(&self, question: impl FnOnce(&Job, &mut Partner) -> Result<T, PmiError>) -> Result<T, PmiError> {
        let _turn = self.turn.hold();
        let mut state = self.state();
        let link = state.link.as_mut();
        let link = link.ok_or(PmiError::NotOpen)?;
        question(&link.job, &mut link.to)
    }

    /// Publishes a value, which other processes can get after a barrier.
    pub fn put(&self, key: &str, value: &str) -> Result<(), PmiError> {
        self.ask(|job, partner| {
            check_word("key", key, job.limits.key)?;
            check_word("value", value, job.limits.value)?;
            match partner {
                Partner::Manager(manager) => manager.put(key, value),
                Partner::Nobody(map) => {
                    map.insert(key.into(), value.into());
                    Ok(())
                }
            }
        })
    }

    /// Returns a value that a process of the job has published.
    pub fn get(&self, key: &str) -> Result<String, PmiError> {
        self.ask(|job, partner| {
            check_word("key", key, job.limits.key)?;
            match partner {
                Partner::Manager(manager) => manager.get(key),
                Partner::Nobody(map) => {
                    let none = || PmiError::NoKey { key: key.into(), reason: "there is only this process".into() };
                    map.get(key).cloned().ok_or_else(none)
                }
            }
        })
    }

    /// Waits until all processes of the job are in the barrier. The process manager does not tell barriers of several
    /// users apart.
    pub fn barrier(&self) -> Result<(), PmiError> {
        self.ask(|_, partner| match partner {
            Partner::Manager(manager) => manager.barrier(),
            Partner::Nobody(_) => Ok(()),
        })
    }

    /// Returns the host of each rank, and the number of hosts. Hosts are numbered without gaps in the order of the
    /// process manager's numbers. As in MPICH, MPIR_CVAR_NOLOCAL and MPIR_CVAR_NUM_CLIQUES split them.
    pub fn hosts(&self) -> Result<(Vec<u32>, u32), PmiError> {
        let size = self.ask(|job, _| Ok(job.size as usize))?;
        if size == 1 {
            return Ok((vec![0], 1));
        }
        let split = Split::from_environment(&|name| std::env::var(name).ok());
        if split == Split::Ranks {
            return Ok(split.apply(vec![0; size]));
        }
        let mapping = match self.get("PMI_process_mapping") {
            Ok(mapping) if mapping.is_empty() => Err(PmiError::NoMapping { reason: "it is empty".into() }),
            Err(PmiError::NoKey { reason, .. }) => Err(PmiError::NoMapping { reason }),
            other => other,
        }?;
        Ok(split.apply(parse_mapping(&mapping, size)?))
    }

    /// Asks the process manager to end the job with an exit code, even while another thread has the turn. Returns only
    /// if there is no process manager, or if it lets this process live for ten seconds; the caller then ends it.
    pub fn abort(&self, code: i32) -> Result<(), PmiError> {
        let fd = self.fd.load(Ordering::SeqCst);
        if fd < 0 {
            return Ok(());
        }
        send_all(fd, format!("cmd=abort exitcode={code}\n").as_bytes())?;
        // SAFETY: open until the session ends, which no thread of a process that aborts should do.
        let fd = unsafe { BorrowedFd::borrow_raw(fd) };
        let end = Instant::now() + ABORT_WAIT;
        while let Some(left) = end.checked_duration_since(Instant::now()) {
            let mut fds = [PollFd::new(fd, PollFlags::from_bits_retain(libc::POLLRDHUP))];
            match poll(&mut fds, left.as_millis() as u16) {
                Ok(0) | Err(Errno::EINTR) => {}
                _ => break,
            }
        }
        Ok(())
    }
}

/// Checks that a key or value can be part of a line.
fn check_word(what: &'static str, text: &str, limit: usize) -> Result<(), PmiError> {
    let allowed = |byte: u8| byte.is_ascii_graphic() && (what == "value" || byte != b'=');
    if text.is_empty() || !text.bytes().all(allowed) {
        return Err(PmiError::Word { what, text: text.chars().take(80).collect() });
    }
    match text.len() < limit {
        true => Ok(()),
        false => Err(PmiError::TooLong { what, size: text.len(), max: limit - 1 }),
    }
}
