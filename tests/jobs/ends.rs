//! Ends of jobs: mpiexec's exit code, the one line that it prints, and nobody is left or waited for.

use crate::harness::*;
use std::fs;
use std::io::Write;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Hosts and ranks of each.
pub const LAYOUTS: [(usize, usize); 3] = [(1, 4), (4, 1), (2, 2)];
/// Time limit for a job to start, fail and end, on a machine that has other work too.
pub const SOON: Duration = Duration::from_secs(20);

/// Returns the number that follows a word in the output of a job.
fn number(ended: &Ended, word: &str) -> i32 {
    let after = ended.stdout.split(word).nth(1).and_then(|rest| rest.split_whitespace().next());
    after.and_then(|number| number.parse().ok()).unwrap_or_else(|| panic!("no {word:?}: {}", all_of(ended)))
}

/// Returns all that is known of the end of a job.
pub fn all_of(ended: &Ended) -> String {
    format!("{:?}\n{}{}", ended.status, ended.stdout, ended.stderr)
}

/// Returns true if a job of four ranks has printed nothing but that they wait.
fn only_waited(ended: &Ended) -> bool {
    ended.stdout.lines().count() == 4 && ended.stdout.lines().all(|line| line.starts_with("waits "))
}

/// Returns the parent of a process.
fn parent(pid: i32) -> i32 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("the process exists");
    let line = status.lines().find_map(|line| line.strip_prefix("PPid:")).expect("each process has a parent");
    line.trim().parse().expect("a number")
}

/// Returns mpiexec's line about a rank as the page of messages has it.
fn of_a_rank(said: &str) -> String {
    format!("`mpiexec: rank R on host H (process P) {said}`")
}

/// Fails the test if the page of messages does not have this row in its table of ends.
fn documented(how: &str, code: i32, line: &str) {
    let page = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/troubleshooting.md")).unwrap();
    let row = format!("| {how} | {code} | {line} |");
    assert!(page.lines().any(|found| found == row), "docs/troubleshooting.md lacks the row\n{row}");
}

#[test]
#[ignore = "needs cargo xtask setup"]
fn the_end_of_one_rank_decides_on_the_exit_code_and_is_told_in_one_line() {
    // The end, mpiexec's exit code, the call that MPI itself reports, and the end of mpiexec's line.
    const ENDS: [([&str; 2], i32, &str, &str); 7] = [
        (["_exit", "3"], 3, "", "has ended with exit code 3 without MPI_Finalize; its last MPI call was MPI_Barrier"),
        (["exit", "21"], 21, "", "has ended with exit code 21 without MPI_Finalize; its last MPI call was MPI_Barrier"),
        (["signal", "9"], 137, "", "was killed by signal 9 (Killed); its last MPI call was MPI_Barrier"),
        (["signal", "11"], 139, "", "was killed by signal 11 (Segmentation fault); its last MPI call was MPI_Barrier"),
        (["abort", "7"], 7, "MPI_Abort(MPI_COMM_WORLD, 7)", "has ended the job with exit code 7"),
        (["abort", "256"], 1, "MPI_Abort(MPI_COMM_WORLD, 256)", "has ended the job with exit code 1"),
        (
            ["abortself", "9"],
            9,
            "MPI_Abort(MPI_COMM_SELF, 9)",
            "has ended with exit code 9 without MPI_Finalize; its last MPI call was MPI_Abort",
        ),
    ];
    for (end, code, of_mpi, of_mpiexec) in ENDS {
        let how = match (end[0], of_mpi) {
            ("signal", _) => format!("is killed by signal {}", end[1]),
            (call, "") => format!("calls `{call}({})`", end[1]),
            (_, call) => format!("calls `{call}`"),
        };
        documented(&how, code, &of_a_rank(of_mpiexec));
    }
    let before = shm();
    for (hosts, per_host) in LAYOUTS {
        for (end, code, of_mpi, of_mpiexec) in ENDS {
            let by = fastrand::usize(0..hosts * per_host);
            let ended = Job::new(hosts, per_host, &["ends", end[0], &by.to_string(), end[1]]).start().end_of_all(SOON);
            let text = format!("{end:?} {by} of {hosts}x{per_host}: {}", all_of(&ended));
            assert_eq!(ended.status.code(), Some(code), "{text}");
            let (host, pid) = (by / per_host, number(&ended, "process "));
            let mut lines: Vec<&str> = ended.stderr.lines().collect();
            let last = format!("mpiexec: rank {by} on host h{host} (process {pid}) {of_mpiexec}");
            assert_eq!(lines.pop(), Some(&last[..]), "{text}");
            if !of_mpi.is_empty() {
                let line = lines.pop().unwrap_or_default();
                assert!(line.starts_with("Abort(") && line.contains(&format!("on node {by} ")), "{text}");
                assert!(line.contains(of_mpi), "{text}");
            }
            assert!(lines.is_empty() && ended.stdout == format!("process {pid}\n"), "{text}");
            nothing_left(&before);
        }
    }
}

#[test]
#[ignore = "needs cargo xtask setup"]
fn an_exception_that_nothing_catches_is_told_by_cpp_and_its_place_by_mpiexec() {
    let compiler = mpiexec().with_file_name("mpicxx");
    if !compiler.exists() {
        return eprintln!("skipped: this profile of the installation has no C++");
    }
    let dir = tempfile::tempdir().unwrap();
    let (program, source) = (dir.path().join("thrown"), concat!(env!("CARGO_MANIFEST_DIR"), "/tests/jobs/thrown.cc"));
    let compiled = Command::new(compiler).arg(source).arg("-o").arg(&program).env_remove("LD_LIBRARY_PATH").status();
    assert!(compiled.unwrap().success(), "thrown.cc does not compile");
    let said = "was killed by signal 6 (Aborted); its last MPI call was MPI_Barrier";
    documented("throws an exception that nothing catches (C++)", 134, &of_a_rank(said));
    for (hosts, per_host) in LAYOUTS {
        let ended = Job::new(hosts, per_host, &[program.to_str().unwrap(), "3"]).start().end_of_all(SOON);
        let text = all_of(&ended);
        let last = format!("mpiexec: rank 3 on host h{} (process {}) {said}", 3 / per_host, number(&ended, "process "));
        let lines: Vec<&str> = ended.stderr.lines().collect();
        let of_cpp = ["terminate called after throwing an instance of 'std::runtime_error'", "  what():  too cold"];
        assert_eq!(lines, [of_cpp[0], of_cpp[1], &last], "{text}");
        assert_eq!(ended.status.code(), Some(134), "{text}");
    }
}

#[test]
#[ignore = "needs cargo xtask setup"]
fn the_cause_counts_and_not_the_errors_of_those_that_wait_for_the_dead() {
    for (hosts, per_host) in LAYOUTS {
        for (end, code) in [(["signal", "9"], 137), (["_exit", "3"], 3), (["signal", "11"], 139)] {
            for by in 0..hosts * per_host {
                let call = ["ends", end[0], &by.to_string(), end[1], "waiting"];
                let ended = Job::new(hosts, per_host, &call).start().end_of_all(SOON);
                let text = format!("{call:?} on {hosts}x{per_host}: {}", all_of(&ended));
                assert_eq!(ended.status.code(), Some(code), "{text}");
                let lines: Vec<&str> = ended.stderr.lines().filter(|line| line.contains("mpiexec")).collect();
                let (host, pid) = (by / per_host, number(&ended, "process "));
                let who = format!("mpiexec: rank {by} on host h{host} (process {pid}) ");
                assert!(lines.len() == 1 && lines[0].starts_with(&who), "{text}");
                assert!(!text.contains("HYD") && !text.contains("assert"), "{text}");
            }
        }
    }
}

#[test]
#[ignore = "needs cargo xtask setup"]
fn a_fatal_mpi_error_is_told_by_mpi_and_its_place_by_mpiexec() {
    for (hosts, per_host) in LAYOUTS {
        let ended = Job::new(hosts, per_host, &["ends", "error", "3"]).start().end_of_all(SOON);
        let text = all_of(&ended);
        assert!(ended.status.code().is_some_and(|code| code != 0), "{text}");
        let (host, pid) = (3 / per_host, number(&ended, "process "));
        let line = format!("mpiexec: rank 3 on host h{host} (process {pid}) has ended the job with exit code");
        assert!(ended.stderr.lines().last().is_some_and(|last| last.starts_with(&line)), "{text}");
        assert_eq!(ended.stderr.matches("mpiexec").count(), 1, "{text}");
        assert_eq!(ended.stderr.matches("Abort(").count(), 1, "{text}");
    }
}

#[test]
#[ignore = "needs cargo xtask setup"]
fn exit_codes_after_mpi_finalize_and_without_mpi_are_passed_on_without_a_word() {
    documented("returns 5 from `main` after MPI_Finalize", 5, "none");
    for (hosts, per_host) in LAYOUTS {
        for (by, code) in [("3", 5), ("-1", 5), ("-1", 0)] {
            let call = ["ends", "finalized", by, &code.to_string()];
            let ended = Job::new(hosts, per_host, &call).start().end_of_all(SOON);
            assert_eq!((ended.status.code(), &ended.stderr[..]), (Some(code), ""), "{by} of {hosts}x{per_host}");
        }
    }
    for hosts in [1, 4] {
        let ended = Job::raw(hosts, &["-n", "4", "sh", "-c", "exit 4"]).start().end_of_all(SOON);
        assert_eq!((ended.status.code(), &ended.stderr[..]), (Some(4), ""), "{hosts} hosts");
        let ended = Job::raw(hosts, &["-n", "4", "sh", "-c", "[ $PMI_RANK != 2 ] || exit 6"]).start().end_of_all(SOON);
        assert_eq!((ended.status.code(), &ended.stderr[..]), (Some(6), ""), "{hosts} hosts");
    }
}

#[test]
#[ignore = "needs cargo xtask setup"]
fn an_exit_with_success_without_mpi_finalize_ends_those_that_may_wait() {
    let said =
        "has ended without MPI_Finalize while others of its host were running; its last MPI call was MPI_Barrier";
    documented("calls `exit(0)` while others of its host run", 1, &of_a_rank(said));
    for (hosts, per_host) in LAYOUTS {
        let ended = Job::new(hosts, per_host, &["ends", "exit", "2", "0", "waiting"]).start().end_of_all(SOON);
        let (host, pid) = (2 / per_host, number(&ended, "process "));
        let text = format!("{hosts}x{per_host}: {}", all_of(&ended));
        if per_host > 1 {
            assert!(ended.stderr.ends_with(&format!("rank 2 on host h{host} (process {pid}) {said}\n")), "{text}");
            assert_eq!(ended.status.code(), Some(1), "{text}");
        } else {
            // mpiexec sees a process that has ended well; those that wait for it see that it is gone.
            ended.failed_saying(&[&format!("rank 2 on host {host} (process {pid}) has died")]);
        }
    }
}

#[test]
#[ignore = "needs cargo xtask setup"]
fn a_program_that_cannot_be_run_ends_the_job_and_is_named() {
    let line = "`mpiexec: rank R on host H cannot run ./no-such-program: No such file or directory`";
    documented("is a program that does not exist", 127, line);
    let cases = [("./no-such-program", 127, "No such file or directory"), ("/etc", 126, "Permission denied")];
    for (program, code, why) in cases {
        // The first ranks run, and would wait for the others for ever.
        for (hosts, tail) in [(1, vec!["-n", "4", program]), (4, vec!["-n", "4", program])]
            .into_iter()
            .chain([1, 4].map(|hosts| (hosts, vec!["-n", "2", "{ends}", "wait", ":", "-n", "2", program])))
        {
            let ended = Job::raw(hosts, &tail).start().end_of_all(SOON);
            let text = format!("{tail:?} on {hosts} hosts: {}", all_of(&ended));
            assert_eq!(ended.status.code(), Some(code), "{text}");
            let lines: Vec<&str> = ended.stderr.lines().collect();
            assert!(lines.len() == 1 && lines[0].starts_with("mpiexec: rank "), "{text}");
            assert!(lines[0].ends_with(&format!(" cannot run {program}: {why}")), "{text}");
        }
    }
}

#[test]
#[ignore = "needs cargo xtask setup"]
fn a_signal_to_mpiexec_ends_the_job_with_one_line() {
    let line = "was killed by signal 2 (Interrupt), which mpiexec has received and passed on; its last MPI call was MPI_Barrier";
    documented("(Ctrl-C)", 130, &of_a_rank(line));
    documented("(`timeout 3 mpiexec ...`)", 124, &of_a_rank(&line.replace("2 (Interrupt)", "15 (Terminated)")));
    for (hosts, per_host) in LAYOUTS {
        for (number, name) in [(libc::SIGTERM, "Terminated"), (libc::SIGINT, "Interrupt")] {
            let job = Job::new(hosts, per_host, &["ends", "wait"]).start();
            let ranks = job.said(4, "waits");
            signal(parent(parent(ranks[0].1)), number);
            let ended = job.end_of_all(SOON);
            let text = all_of(&ended);
            assert_eq!(ended.status.code(), Some(128 + number), "{text}");
            let said = |(rank, pid): &(u32, i32)| {
                let host = *rank as usize / per_host;
                format!(
                    "mpiexec: rank {rank} on host h{host} (process {pid}) was killed by signal {number} ({name}), \
                     which mpiexec has received and passed on; its last MPI call was MPI_Barrier\n"
                )
            };
            assert!(ranks.iter().any(|rank| ended.stderr == said(rank)) && only_waited(&ended), "{text}");
        }
    }
}

#[test]
#[ignore = "needs cargo xtask setup"]
fn a_killed_proxy_or_mpiexec_takes_the_job_with_it() {
    documented("(`kill -9` of mpiexec)", 137, "none");
    let line = "`mpiexec: the proxy of host H, with ranks 0, 1, was killed by signal 9 (Killed)`";
    documented("(`kill -9` of a host's proxy)", 137, line);
    let before = shm();
    for (hosts, per_host) in LAYOUTS {
        let job = Job::new(hosts, per_host, &["ends", "wait"]).start();
        let ranks = job.said(4, "waits");
        signal(parent(ranks[3].1), libc::SIGKILL);
        let ended = job.end_of_all(SOON);
        let text = all_of(&ended);
        let all: Vec<String> = (4 - per_host..4).map(|rank| rank.to_string()).collect();
        let whose = format!("h{}, with rank{} {}", hosts - 1, if per_host > 1 { "s" } else { "" }, all.join(", "));
        let line = format!("mpiexec: the proxy of host {whose}, was killed by signal 9 (Killed)\n");
        assert_eq!(ended.stderr, line, "{text}");
        assert!(ended.status.code() == Some(137) && only_waited(&ended), "{text}");

        let job = Job::new(hosts, per_host, &["ends", "wait"]).start();
        let ranks = job.said(4, "waits");
        signal(parent(parent(ranks[0].1)), libc::SIGKILL);
        let ended = job.end_of_all(SOON);
        assert!(ended.stderr.is_empty() && only_waited(&ended), "{}", all_of(&ended));
        nothing_left(&before);
    }
}

#[test]
#[ignore = "needs cargo xtask setup"]
fn a_daemon_of_a_rank_is_not_waited_for() {
    for (hosts, per_host) in LAYOUTS {
        for (by, files) in [("0", "closed"), ("-1", "closed"), ("2", "open"), ("-1", "open")] {
            let started = Instant::now();
            let ended = Job::new(hosts, per_host, &["ends", "daemon", by, files]).run();
            let took = started.elapsed();
            let daemons: Vec<&str> = ended.stdout.lines().filter_map(|line| line.strip_prefix("daemon ")).collect();
            daemons.iter().for_each(|pid| signal(pid.parse().expect("a process id"), libc::SIGKILL));
            assert_eq!(daemons.len(), if by == "-1" { 4 } else { 1 }, "{}", all_of(&ended));
            assert!(took < Duration::from_secs(15), "the job took {took:?}");
            ended.ok();
        }
    }
    // Others that end soon have time for the rest of the output.
    let script = "exec > >(sleep 0.05; cat); echo all of it";
    let ended = Job::raw(1, &["-n", "1", "bash", "-c", script]).run().ok();
    assert_eq!(ended.stdout, "all of it\n");
}

#[test]
#[ignore = "needs cargo xtask setup"]
fn ranks_of_emulated_hosts_are_bound_to_different_cores() {
    let bound = |(hosts, per_host): (usize, usize), options: &[&str]| {
        let job = options.iter().fold(Job::new(hosts, per_host, &["ends", "cpus"]), |job, option| job.option(option));
        let mut lines: Vec<String> = job.run().ok().stdout.lines().map(String::from).collect();
        lines.sort();
        assert_eq!(lines.len(), hosts * per_host);
        lines
    };
    let places = |lines: &[String]| {
        lines.iter().map(|line| line.splitn(3, ' ').nth(2).map(String::from)).collect::<std::collections::BTreeSet<_>>()
    };
    if places(&bound((1, 4), &["-bind-to", "core"])).len() < 2 {
        return eprintln!("there is one core only");
    }
    let ways: [&[&str]; 5] = [
        &["-bind-to", "core"],
        &["-bind-to", "hwthread"],
        &["-bind-to", "numa"],
        &["-bind-to", "user:1,0,0,1"],
        &["-bind-to", "hwthread", "-map-by", "core"],
    ];
    for options in ways {
        let on_one = bound((1, 4), options);
        for layout in [(4, 1), (2, 2)] {
            assert_eq!(bound(layout, options), on_one, "{options:?} on {layout:?}");
        }
    }
}

#[test]
#[ignore = "needs cargo xtask setup"]
fn rank_0_reads_the_input_of_mpiexec_and_the_others_find_its_end() {
    for (hosts, per_host) in LAYOUTS {
        let names: Vec<String> = (0..hosts).map(|host| format!("h{host}:{per_host}")).collect();
        let mut command = Command::new("timeout");
        command.arg("60").arg(mpiexec()).args(["-launcher", "fork", "-hosts", &names.join(","), "-n", "4"]);
        command.args(["sh", "-c", "echo $PMI_RANK $(wc -c)"]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        child.stdin.take().unwrap().write_all(&[b'x'; 100_000]).unwrap();
        let output = child.wait_with_output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let mut lines: Vec<&str> = text.lines().collect();
        lines.sort();
        assert_eq!(lines, ["0 100000", "1 0", "2 0", "3 0"], "on {hosts}x{per_host}");
    }
}
