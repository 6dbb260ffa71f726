//! Ranks that fork, call system() and start programs while messages of all sizes are in transit, to neighbours and
//! further: nothing is disturbed, and a child inherits none of the library's descriptors.

use std::process::Command;

use ntbring_mpi_tests::{arg, exchange, shifts, Job};

/// Runs a child that computes and ends in the manner given by `leave`. Returns its exit status.
fn forked(leave: &str) -> i32 {
    // SAFETY: the child only computes and exits, which is allowed even if the parent has other threads.
    unsafe {
        let child = libc::fork();
        assert!(child >= 0, "fork: {}", std::io::Error::last_os_error());
        if child == 0 {
            let sum: u64 = (0..1000_u64).map(std::hint::black_box).sum();
            let code = if sum == 499_500 { 7 } else { 1 };
            match leave {
                "exit" => libc::exit(code),
                _ => libc::_exit(code),
            }
        }
        let mut status = 0;
        assert_eq!(libc::waitpid(child, &mut status, 0), child, "waitpid: {}", std::io::Error::last_os_error());
        libc::WEXITSTATUS(status)
    }
}

/// Returns the list of descriptors that a started program has.
fn inherited() -> String {
    let out = Command::new("ls").args(["-l", "/proc/self/fd"]).output().expect("ls must start");
    String::from_utf8_lossy(&out.stdout).into_owned()
}

fn main() {
    let job = Job::start("child_processes");
    let rounds = arg(1, 20);
    let tag = |round: i32, shift: i32| round * 100 + shift;
    for round in 0..rounds {
        for shift in shifts(job.size) {
            for size in [8, 3_000, 300_000] {
                exchange(&job.world, shift, tag(round, shift), size);
            }
        }
        match round % 4 {
            0 => assert_eq!(forked("_exit"), 7),
            1 => assert_eq!(forked("exit"), 7),
            // SAFETY: the argument is a constant C string.
            2 => assert_eq!(unsafe { libc::system(c"exit 3".as_ptr()) } >> 8, 3),
            _ => {
                let listed = inherited();
                assert!(!listed.contains("shm") && !listed.contains("pidfd"), "{listed}");
            }
        }
        // Changes of the environment during a job have no effect on the settings.
        std::env::set_var("NTBRING_WINDOW", "nonsense");
        std::env::set_var("LC_ALL", ["nowhere", "C.UTF-8"][round as usize % 2]);
        // SAFETY: the argument is a constant C string; no other thread of this program reads the locale.
        unsafe { libc::setlocale(libc::LC_ALL, c"".as_ptr()) };
    }
    job.finish();
}
