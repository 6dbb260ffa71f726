//! Failure detector for processes of this machine. A process that is only stopped is not dead and is never reported.
//!
//! The evidence is a process descriptor (pidfd), which becomes readable when the process ends. If pidfds are not
//! available (an old kernel, a memory checker or sandbox in between, too many open files), it is the process's entry in
//! `/proc`.

use std::fs;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::time::Duration;

/// Detects the end of other processes of the machine.
pub struct Watch {
    watched: Vec<(u32, Evidence)>,
}

enum Evidence {
    Descriptor(OwnedFd),
    /// The process with this id that was started at this time, in clock ticks since boot.
    Entry {
        pid: u32,
        started: u64,
    },
}

impl Watch {
    /// Watches processes, given as pairs `(id, pid)`; ids are chosen by the caller. A process that
    /// cannot be found has already ended, and its id is returned as an error.
    pub fn new(processes: impl IntoIterator<Item = (u32, u32)>) -> Result<Watch, (u32, io::Error)> {
        let watched = processes.into_iter().map(|(id, pid)| Ok((id, evidence(pid).map_err(|e| (id, e))?)));
        Ok(Watch { watched: watched.collect::<Result<_, _>>()? })
    }

    /// Returns the ids of the watched processes that have ended. Does not block.
    pub fn dead(&self) -> Vec<u32> {
        self.look(0)
    }

    /// Waits until a watched process has ended, at most for about `timeout`. Returns the ids of those that have.
    pub fn wait(&self, timeout: Duration) -> Vec<u32> {
        let dead = self.look(timeout.as_millis() as libc::c_int);
        // Without a descriptor, nothing ends the sleep.
        if dead.is_empty() && self.watched.iter().any(|(_, evidence)| matches!(evidence, Evidence::Entry { .. })) {
            return self.look(0);
        }
        dead
    }

    /// Ends the watch of a process.
    pub fn forget(&mut self, id: u32) {
        self.watched.retain(|(watched, _)| *watched != id);
    }

    /// Returns the ids of the processes that have ended; waits for the first for `timeout` milliseconds.
    fn look(&self, timeout: libc::c_int) -> Vec<u32> {
        let (mut fds, mut ids, mut dead) = (Vec::new(), Vec::new(), Vec::new());
        for (id, evidence) in &self.watched {
            match evidence {
                Evidence::Descriptor(fd) => {
                    fds.push(libc::pollfd { fd: fd.as_raw_fd(), events: libc::POLLIN, revents: 0 });
                    ids.push(*id);
                }
                Evidence::Entry { pid, started } if start_time(*pid) != Some(*started) => dead.push(*id),
                Evidence::Entry { .. } => {}
            }
        }
        let timeout = if dead.is_empty() { timeout } else { 0 };
        // SAFETY: `fds` is a live vector of the given length.
        let n = unsafe { libc::poll(fds.as_mut_ptr(), fds.len() as libc::nfds_t, timeout) };
        if n > 0 {
            let ended = fds.iter().zip(ids).filter(|(fd, _)| fd.revents & libc::POLLIN != 0);
            dead.extend(ended.map(|(_, id)| id));
        }
        dead
    }
}

fn evidence(pid: u32) -> io::Result<Evidence> {
    // SAFETY: the system call takes no pointers.
    let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, pid as libc::pid_t, 0) };
    if fd >= 0 {
        // SAFETY: the kernel has just returned this descriptor; nothing else in this process owns it.
        return Ok(Evidence::Descriptor(unsafe { OwnedFd::from_raw_fd(fd as i32) }));
    }
    let error = io::Error::last_os_error();
    match start_time(pid) {
        Some(started) => Ok(Evidence::Entry { pid, started }),
        None => Err(error),
    }
}

/// Returns the start time of a process, in clock ticks since boot; None if it has ended.
fn start_time(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name, in parentheses, may contain any character. It is followed by the state, 18 other fields, the start
    // time.
    let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace();
    let state = fields.next()?;
    (!matches!(state, "Z" | "X")).then(|| fields.nth(18)?.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn the_end_of_a_process_is_seen_either_way() {
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        let pid = child.id();
        let by_entry = Watch { watched: vec![(7, Evidence::Entry { pid, started: start_time(pid).unwrap() })] };
        let both = [Watch::new([(7, pid)]).unwrap(), by_entry];
        assert!(both.iter().all(|watch| watch.dead().is_empty()));
        child.kill().unwrap();
        // The child is a zombie until it is waited for; it has ended nevertheless.
        while start_time(pid).is_some() {
            std::thread::yield_now();
        }
        assert!(both.iter().all(|watch| watch.dead() == [7]));
        child.wait().unwrap();
        assert!(both.iter().all(|watch| watch.dead() == [7] && watch.wait(Duration::from_secs(60)) == [7]));
        let [mut one, _] = both;
        one.forget(7);
        assert!(one.wait(Duration::from_millis(1)).is_empty());
        assert!(matches!(Watch::new([(3, pid)]), Err((3, _))));
    }

    #[test]
    fn another_process_of_the_same_number_is_not_the_same() {
        let pid = std::process::id();
        let watch = Watch { watched: vec![(1, Evidence::Entry { pid, started: start_time(pid).unwrap() - 1 })] };
        assert_eq!(watch.dead(), [1]);
    }
}
