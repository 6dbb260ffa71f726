//! Evidence that a process has died: descriptors of processes, which become readable then.
//! A process that is only stopped is not dead and never reported.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// Watches other processes of the machine.
pub struct Watch {
    watched: Vec<(u32, OwnedFd)>,
}

impl Watch {
    /// Watches the processes `(id, pid)`; ids are the caller's names for them. A process that
    /// cannot be found has died already and is returned as an error with its id.
    pub fn new(processes: impl IntoIterator<Item = (u32, u32)>) -> Result<Watch, (u32, io::Error)> {
        let mut watched = Vec::new();
        for (id, pid) in processes {
            // SAFETY: a plain system call without pointers.
            let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, pid as libc::pid_t, 0) };
            if fd < 0 {
                return Err((id, io::Error::last_os_error()));
            }
            // SAFETY: the kernel has just given us this descriptor; nobody else owns it.
            watched.push((id, unsafe { OwnedFd::from_raw_fd(fd as i32) }));
        }
        Ok(Watch { watched })
    }

    /// The ids of the watched processes that have ended. Does not block.
    pub fn dead(&self) -> Vec<u32> {
        let mut fds: Vec<libc::pollfd> = self
            .watched
            .iter()
            .map(|(_, fd)| libc::pollfd { fd: fd.as_raw_fd(), events: libc::POLLIN, revents: 0 })
            .collect();
        // SAFETY: the array is ours and as long as we say; a time-out of 0 does not block.
        let n = unsafe { libc::poll(fds.as_mut_ptr(), fds.len() as libc::nfds_t, 0) };
        if n <= 0 {
            return Vec::new();
        }
        let ended = fds.iter().zip(&self.watched).filter(|(fd, _)| fd.revents & libc::POLLIN != 0);
        ended.map(|(_, (id, _))| *id).collect()
    }
}
