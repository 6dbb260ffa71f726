//! Waiting ranks use no CPU time, and transit needs no rank.
//!
//! `cargo xtask test` runs these tests one at a time, without others beside them: they measure times.

use crate::harness::*;

#[test]
#[ignore = "needs cargo xtask setup"]
fn ranks_that_wait_use_less_than_a_quarter_of_a_core_in_total() {
    // What ranks use before they sleep for long counts fully: more allowance for more ranks.
    for (hosts, per_host, seconds) in [(4, 1, "1"), (4, 2, "2")] {
        for mode in ["recv", "probe", "mprobe", "barrier", "fence", "expose", "lock"] {
            let ended = Job::new(hosts, per_host, &["blocked_wait", seconds, mode]).run().ok();
            let json = ended.json();
            let used = json.iter().find_map(|j| j["total_cpu_s"].as_f64()).expect("the program says how much it used");
            let limit = seconds.parse::<f64>().unwrap() / 4.0;
            assert!(used < limit, "{used} s of CPU in {seconds} s, {mode}, {hosts} x {per_host}");
        }
    }
}

#[test]
#[ignore = "needs cargo xtask setup"]
fn ranks_that_wait_sleep_although_nobody_reads_the_registers_of_others() {
    let stats = Stats::new();
    let job = Job::new(4, 1, &["blocked_wait", "2", "recv"])
        .env("NTBRING_SHORTCUTS", "none")
        .env("NTBRING_STATS", stats.path());
    let used = job.run().ok().json().iter().find_map(|j| j["total_cpu_s"].as_f64());
    assert!(used.is_some_and(|used| used < 2.0 / 4.0), "{used:?} s of CPU in 2 s");
    // Short sleeps at first, until the requests are confirmed; a sleep that no ring ends takes 100 ms.
    for line in stats.lines(4) {
        let sleeps = line["sleeps"].as_u64().expect("a count");
        assert!(sleeps < 240, "{sleeps} sleeps in 2 s: {line}");
    }
}

/// Ranks must share mpiexec's session: otherwise sched_yield does not pass cores among them, where the kernel shares
/// cores out among sessions first.
#[test]
#[ignore = "needs cargo xtask setup"]
fn ranks_stay_in_the_session_of_mpiexec_but_not_at_its_terminal() {
    let terminal = ["sh", "-c", "exec script -qec \"cat /proc/self/stat; $*\" /dev/null", "sh"];
    let ended = Job::raw(4, &["-n", "8", "cat", "/proc/self/stat"]).env("SHELL", "/bin/sh").under(&terminal).run().ok();
    let found: Vec<[i64; 4]> = ended.stdout.lines().filter(|line| line.contains(" (cat) ")).map(process).collect();
    let ([_, _, session, terminal], ranks) = (found[0], &found[1..]);
    assert!(terminal != 0 && ranks.len() == 8, "{}", ended.stdout);
    for rank in ranks {
        assert_eq!(rank[1..], [rank[0], session, 0], "{}", ended.stdout);
    }
}

/// Some launchers put ranks into sessions of their own; the warning appears only if that matters.
#[test]
#[ignore = "needs cargo xtask setup"]
fn ranks_in_sessions_of_their_own_are_told_what_that_costs() {
    let crowd = (2 * std::thread::available_parallelism().expect("some cores").get()).to_string();
    let warnings = |launcher: &[&str]| {
        let args = [&["-n", &crowd][..], launcher, &["{hello}"]].concat();
        Job::raw(2, &args).run().ok().stderr.matches("sessions, among which the kernel shares cores").count()
    };
    let read = |file| std::fs::read_to_string(file).unwrap_or_default();
    let shared = read("/proc/sys/kernel/sched_autogroup_enabled").trim() == "1";
    // With control groups of version 2 it is harder to find out if they take precedence, so both results are accepted.
    let first =
        read("/proc/self/cgroup").lines().any(|line| line.ends_with(":cpu:/") || line.ends_with(":cpu,cpuacct:/"));
    assert_eq!(warnings(&[]), 0);
    let told = warnings(&["setsid", "--wait"]);
    assert!(told <= usize::from(shared) && (told == 1 || !(shared && first)), "{told} warnings");
}

#[test]
#[ignore = "needs cargo xtask setup"]
fn messages_pass_through_a_host_that_computes() {
    let ended = Job::new(4, 1, &["transit_compute"]).run().ok();
    let median = ended.json().iter().find_map(|j| j["median_us"].as_f64()).expect("the program says how long it took");
    // If messages waited for the end of the computation, this would take two seconds.
    assert!(median < 100_000.0, "{median} us");
}

#[test]
#[ignore = "needs cargo xtask setup"]
fn more_than_is_allowed_is_kept_with_one_warning() {
    let job = Job::new(2, 1, &["held_back", "behind", "5000"]).env("NTBRING_UNEXPECTED", "2M");
    let ended = job.run().ok();
    let warned = ended.stderr.lines().filter(|line| line.contains("than NTBRING_UNEXPECTED allows")).count();
    assert_eq!(warned, 1, "{}", ended.stderr);
}

/// Parses a line of `/proc/PID/stat`. Returns the process, its group, its session, and its terminal or 0.
fn process(stat: &str) -> [i64; 4] {
    let words: Vec<&str> = stat.split_whitespace().collect();
    [0, 4, 5, 6].map(|i| words[i].parse().expect("a number"))
}
