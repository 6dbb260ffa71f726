//! A sidecar: a process beside this one that outlives it and is not one of its children.

use nix::errno::Errno;
use nix::sys::signal::{self, SigSet, SigmaskHow};
use nix::sys::wait::{waitpid, WaitStatus};
use nix::unistd::{dup2, fork, setsid, ForkResult};
use std::ffi::CStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};

/// First descriptor after standard input, output and error.
const FIRST: libc::c_uint = 3;

/// Runs `body` in a new process that outlives this one and ends when `body` returns or panics.
///
/// The new process has this one's memory as it is now, but none of its threads, and of its descriptors only those that
/// `keep` returns for the state that `body` is given. It is no child of this process, and it is in a session of its own:
/// the program's waits for its children do not return it, readers of this process's output reach the end of the output
/// while it still runs, and signals to this process's group or terminal do not reach it. Only SIGKILL ends it. The program
/// may see one SIGCHLD. `body` must not use anything that a thread of this process may have locked, such as a logger.
/// Fails if no process can be created.
pub fn start<S>(
    name: &CStr,
    state: S,
    keep: impl FnOnce(&S) -> Vec<BorrowedFd<'_>>,
    body: impl FnOnce(S),
) -> io::Result<()> {
    let mut keep: Vec<RawFd> = keep(&state).iter().map(BorrowedFd::as_raw_fd).collect();
    keep.sort_unstable();
    let null = File::options().read(true).write(true).open("/dev/null")?;
    // No handler of the program runs in the new processes.
    let mut before = SigSet::empty();
    signal::sigprocmask(SigmaskHow::SIG_BLOCK, Some(&SigSet::all()), Some(&mut before))?;
    // SAFETY: the child uses no lock that another thread may have held during the fork, except those of the allocator;
    // allocators that register fork handlers, as that of the C library does, restore their locks in the child.
    let forked = unsafe { fork() };
    if let Ok(ForkResult::Child) = forked {
        // This process ends after the second fork, so that init becomes the sidecar's parent. Its exit code is 0, or
        // the error for which there is no sidecar.
        let settled = settle(name, &null, &keep);
        // SAFETY: as above.
        match settled.and_then(|()| unsafe { fork() }) {
            Ok(ForkResult::Child) => {
                let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| body(state)));
                leave(0)
            }
            Ok(ForkResult::Parent { .. }) => leave(0),
            Err(error) => leave(error as i32),
        }
    }
    let _ = signal::sigprocmask(SigmaskHow::SIG_SETMASK, Some(&before), None);
    let ForkResult::Parent { child } = forked? else { unreachable!("the child has left") };
    loop {
        match waitpid(child, None) {
            Err(Errno::EINTR) => {}
            Ok(WaitStatus::Exited(_, code)) if code != 0 => return Err(io::Error::from_raw_os_error(code)),
            // Waiting fails where the program ignores the ends of its children.
            _ => return Ok(()),
        }
    }
}

/// Closes the connections of this process to the one from which it was forked: session, descriptors and name.
fn settle(name: &CStr, null: &File, keep: &[RawFd]) -> nix::Result<()> {
    setsid()?;
    for standard in (0..FIRST as i32).filter(|standard| !keep.contains(standard)) {
        dup2(null.as_raw_fd(), standard)?;
    }
    let mut from = FIRST;
    let ends = keep.iter().map(|&kept| kept as libc::c_uint).chain([libc::c_uint::MAX]);
    for end in ends {
        if from < end && !close_range(from, end - 1) {
            close_all(keep);
            break;
        }
        from = from.max(end.saturating_add(1));
    }
    // SAFETY: the argument is a NUL-terminated string, which the kernel copies.
    unsafe { libc::prctl(libc::PR_SET_NAME, name.as_ptr()) };
    Ok(())
}

/// Closes the descriptors from `first` to `last`. Returns false if the kernel cannot do that at once.
fn close_range(first: libc::c_uint, last: libc::c_uint) -> bool {
    // SAFETY: the system call takes no pointers; this process has no other thread that might use a descriptor, and the
    // state that it keeps needs none of those in the range.
    unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) == 0 }
}

/// Closes all descriptors but the standard ones and those in `keep`, on kernels without the system call that closes a
/// range of them.
fn close_all(keep: &[RawFd]) {
    let open = std::fs::read_dir("/proc/self/fd").into_iter().flatten().flatten();
    let open: Vec<i32> = open.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    for descriptor in open.into_iter().filter(|fd| *fd >= FIRST as i32 && !keep.contains(fd)) {
        let _ = nix::unistd::close(descriptor);
    }
}

/// Ends this process without the program's exit handlers and destructors.
fn leave(code: i32) -> ! {
    // SAFETY: the system call takes no pointers.
    unsafe { libc::_exit(code) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd;
    use std::path::Path;
    use std::time::{Duration, Instant};

    #[test]
    fn a_sidecar_has_the_descriptors_that_it_keeps_and_is_no_child() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("told");
        let (kept, lost) = (File::open("/dev/zero").unwrap(), File::open("/dev/zero").unwrap());
        let twice = kept.try_clone().unwrap();
        fn keep(files: &[File; 2]) -> Vec<BorrowedFd<'_>> {
            [0, 1, 1].map(|which| files[which].as_fd()).to_vec()
        }
        start(c"companion", [twice, kept], keep, |_| {
            let open = std::fs::read_dir("/proc/self/fd").map_or(0, Iterator::count);
            let of = |link: &str| std::fs::read_link(link).unwrap_or_default().display().to_string();
            let told = format!("{} {} {open} {}", std::process::id(), of("/proc/self/fd/1"), nix::unistd::getppid());
            let part = file.with_extension("part");
            let _ = std::fs::write(&part, told).and_then(|()| std::fs::rename(&part, &file));
        })
        .unwrap();
        let start = Instant::now();
        while !file.exists() {
            assert!(start.elapsed() < Duration::from_secs(60));
            std::thread::sleep(Duration::from_millis(1));
        }
        let told = std::fs::read_to_string(&file).unwrap();
        let [pid, out, open, parent] = told.split(' ').collect::<Vec<_>>().try_into().unwrap();
        // Beside the standard ones and the two there is the directory that is being read.
        assert_eq!((out, open), ("/dev/null", "6"));
        drop(lost);
        assert_ne!(parent, std::process::id().to_string());
        while Path::new(&format!("/proc/{pid}/fd/0")).exists() {
            assert!(start.elapsed() < Duration::from_secs(60));
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}
