//! Jobs that end while they start: hosts that are not reached, and signals.

use crate::ends::{all_of, LAYOUTS, SOON};
use crate::harness::*;
use crate::made::{launcher, library};

#[test]
#[ignore = "needs cargo xtask setup"]
fn a_host_that_the_launcher_does_not_reach_ends_the_job_and_is_named() {
    const START: &str = "exec sh -c \"$*\"";
    // This proxy connects after the job has ended.
    const START_LATE: &str = "{ trap '' TERM; sleep 2; exec sh -c \"$*\"; }";
    let dir = tempfile::tempdir().unwrap();
    for first in [START, START_LATE, "exit 255", "exec sleep 60"] {
        for (second, how) in [("exit 255", "exit code 255"), ("kill -9 $$", "signal 9")] {
            let path = launcher(dir.path(), [first, second]);
            let job = Job::with_launcher(2, &["ssh", "-launcher-exec", &path], &["ends", "wait"]);
            let ended = job.start().end_of_all(SOON);
            let text = format!("{first}, {second}: {}", all_of(&ended));
            assert_eq!(ended.status.code(), Some(1), "{text}");
            let lines: Vec<&str> = ended.stderr.lines().collect();
            let host =
                if first == "exit 255" { "mpiexec: no process was started on host h" } else { "host h1: ssh has" };
            assert!(lines.len() == 2 && lines[0].contains(host), "{text}");
            assert!(first == "exit 255" || lines[0].ends_with(how), "{text}");
            assert_eq!(lines[1], "mpiexec: with -launcher fork all hosts are emulated on this machine", "{text}");
        }
    }
    let job = Job::with_launcher(2, &["ssh", "-launcher-exec", "./no-such-launcher"], &["hello"]);
    let ended = job.start().end_of_all(SOON);
    assert!(ended.stderr.contains("cannot run ./no-such-launcher: No such file"), "{}", all_of(&ended));
    assert!(ended.stderr.contains("exit code 127") && !ended.stderr.contains("HYD"), "{}", all_of(&ended));
    // Some launchers end while the proxy starts.
    let later = "{ (sleep 1; exec sh -c \"$*\") & exit 0; }";
    let path = launcher(dir.path(), [later, later]);
    Job::with_launcher(2, &["ssh", "-launcher-exec", &path], &["hello"]).run().ok();
}

#[test]
#[ignore = "needs cargo xtask setup"]
fn a_signal_to_mpiexec_ends_the_job_while_it_starts() {
    for (hosts, per_host) in LAYOUTS {
        for _ in 0..10 {
            let delay = format!("0.{:03}", fastrand::u32(1..150));
            let job = Job::new(hosts, per_host, &["ends", "wait"]).under(&["timeout", &delay]);
            let ended = job.start().end_of_all(SOON);
            let text = format!("after {delay} s on {hosts}x{per_host}: {}", all_of(&ended));
            assert_eq!(ended.status.code(), Some(124), "{text}");
            let lines: Vec<&str> = ended.stderr.lines().collect();
            assert!(lines.len() <= 1 && lines.iter().all(|line| line.contains("signal 15 (Terminated)")), "{text}");
        }
    }
}

#[test]
#[ignore = "needs cargo xtask setup"]
fn a_signal_between_fork_and_exec_is_not_lost() {
    let dir = tempfile::tempdir().unwrap();
    let slow = "#define _GNU_SOURCE\n#include <dlfcn.h>\n#include <string.h>\n#include <unistd.h>\n\
        int execvp(const char *file, char *const words[])\n{\n\
            int (*next)(const char *, char *const *) = dlsym(RTLD_NEXT, \"execvp\");\n\
            for (int i = 0; i < 150 && strstr(file, \"ends\"); i++)\n\
                usleep(10000);\n\
            return next(file, words);\n}\n";
    let slow = library(dir.path(), "slow", slow);
    for (hosts, per_host) in LAYOUTS {
        let job = Job::new(hosts, per_host, &["ends", "wait"]).env("LD_PRELOAD", &slow);
        let ended = job.under(&["timeout", "0.3"]).start().end_of_all(SOON);
        let text = format!("{hosts}x{per_host}: {}", all_of(&ended));
        assert!(ended.status.code() == Some(124) && ended.stdout.is_empty(), "{text}");
        // None if mpiexec has not begun to pass on signals.
        let lines: Vec<&str> = ended.stderr.lines().collect();
        assert!(lines.len() <= 1 && lines.iter().all(|line| line.contains("signal 15 (Terminated)")), "{text}");
    }
}
