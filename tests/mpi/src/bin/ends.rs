//! Ends of a rank while the others wait, outside MPI. `ends HOW RANK [CODE]`: this rank (-1: each rank) calls exit
//! (`exit`) or _exit (`_exit`) with that code, MPI_Abort on all ranks (`abort`) or on itself (`abortself`), makes a
//! fatal MPI error (`error`), or is killed by that signal (`signal`); or it returns that code after MPI_Finalize
//! (`finalized`). With `waiting` after the code, the others wait for a message of that rank. With `wait`, no rank ends.
//!
//! `ends daemon RANK closed|open`: starts a child that leaves the session, with closed files or with the rank's, and
//! lives on for a time, and then ends well. `ends cpus`: prints the processors on which each rank may run, without MPI.
//!
//! A rank prints its process id before it ends, or waits outside MPI (`wait`), and that of a daemon.

use std::io::Write;
use std::time::Duration;

use mpi::ffi;
use mpi::topology::SimpleCommunicator;
use mpi::traits::*;
use ntbring_mpi_tests::raw::byte;
use ntbring_mpi_tests::{arg, fail, Job};

/// Longer than any test waits for the end of a job.
const LIFE: u32 = 60;

fn main() {
    let (how, by): (String, i32) = (arg(1, "wait".into()), arg(2, 0));
    if how == "cpus" {
        let rank = std::env::var("PMI_RANK").expect("mpiexec numbers its processes");
        let status = std::fs::read_to_string("/proc/self/status").expect("Linux has /proc");
        let line = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
        return println!("rank {rank} {}", line.expect("a field of the status").trim());
    }
    let job = Job::start("ends");
    let concerned = by < 0 || by == job.rank;
    if how == "daemon" {
        if concerned {
            announce("daemon", daemon(&arg::<String>(3, "closed".into())));
        }
        job.world.barrier();
        return job.finish();
    }
    if how == "finalized" {
        drop(job);
        std::process::exit(if concerned { arg(3, 0) } else { 0 });
    }
    // All have started.
    job.world.barrier();
    if how == "wait" {
        announce("waits", std::process::id());
    } else if concerned {
        announce("process", std::process::id());
        end(&job, &how, arg(3, 0));
    }
    if arg(4, String::new()) == "waiting" {
        job.world.process_at_rank(by).receive::<u8>();
    }
    std::thread::sleep(Duration::from_secs(u64::from(LIFE)));
    fail("the job goes on");
}

/// Ends this process.
fn end(job: &Job, how: &str, code: i32) {
    match how {
        "exit" => std::process::exit(code),
        // SAFETY: ends the process.
        "_exit" => unsafe { libc::_exit(code) },
        // SAFETY: the calls have no memory-safety preconditions. Rust has a handler of its own for some signals.
        "signal" => unsafe {
            libc::signal(code, libc::SIG_DFL);
            libc::raise(code);
        },
        "abort" => job.world.abort(code),
        "abortself" => SimpleCommunicator::self_comm().abort(code),
        // SAFETY: a negative count is refused before the buffer is looked at.
        "error" => _ = unsafe { ffi::MPI_Send(std::ptr::null(), -1, byte(), 0, 0, job.world.as_raw()) },
        other => fail(format!("there is no end '{other}'")),
    }
}

/// Prints a process id at once, whatever comes next.
fn announce(what: &str, pid: u32) {
    println!("{what} {pid}");
    std::io::stdout().flush().expect("mpiexec reads the output");
}

/// Starts a child that leaves the session and lives on. Returns its process id.
fn daemon(files: &str) -> u32 {
    let closes = files == "closed";
    // SAFETY: the child makes system calls only.
    unsafe {
        let child = libc::fork();
        assert!(child >= 0, "fork: {}", std::io::Error::last_os_error());
        if child == 0 {
            libc::setsid();
            if closes {
                (0..3).for_each(|fd| _ = libc::close(fd));
            }
            libc::sleep(LIFE);
            libc::_exit(0);
        }
        child.unsigned_abs()
    }
}
