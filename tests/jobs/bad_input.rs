//! Invalid settings and environments: each ends in an error that explains how to fix it.

use crate::harness::*;
use crate::made::{launcher, library};
use nix::unistd::Uid;

#[test]
#[ignore = "needs cargo xtask setup"]
fn unknown_and_malformed_settings_stop_the_job() {
    let job = Job::new(2, 1, &["hello"]).env("NTBRING_WINDWO", "1M");
    job.run().failed_saying(&["NTBRING_WINDWO is not a setting", "did you mean NTBRING_WINDOW?"]);
    let job = Job::new(2, 1, &["hello"]).env("NTBRING_CHUNK", "lots");
    job.run().failed_saying(&["NTBRING_CHUNK=\"lots\"", "allowed: auto, or 64 to 4M"]);
    let job = Job::new(2, 1, &["hello"]).env("NTBRING_SHM_DIR", "/nowhere");
    job.run().failed_saying(&["/nowhere", "No such file"]);
}

#[test]
#[ignore = "needs cargo xtask setup"]
fn a_tuned_file_that_makes_no_sense_stops_the_job_and_one_for_another_machine_does_not() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("tuned.json");
    let job = || Job::new(2, 1, &["hello"]).env("NTBRING_TUNED", &file).env("NTBRING_LOG", "info");
    job().run().failed_saying(&["tuned.json", "is not there"]);
    std::fs::write(&file, "{\"format\": 1}").unwrap();
    job().run().failed_saying(&["tuned.json", "is malformed", "NTBRING_TUNED=off"]);
    let place = r#"{"cpu": "another", "cores": 1, "link_model": "none"}"#;
    let entry = format!(r#"{{"made_for": {place}, "ntbring": "0", "thresholds": {{"NTBRING_EAGER_MAX": "5K"}}}}"#);
    std::fs::write(&file, format!(r#"{{"format": 1, "tuned": [{entry}]}}"#)).unwrap();
    let said = job().run().ok();
    assert_eq!((said.stdout + &said.stderr).matches("is not used: it was made for another").count(), 2);
}

#[test]
#[ignore = "needs cargo xtask setup"]
fn a_small_dev_shm_is_an_error_and_not_a_bus_error() {
    for (hosts, per_host, size) in [(4, 1, "1m"), (2, 2, "5m"), (4, 2, "64k"), (8, 2, "64m")] {
        let job = Job::new(hosts, per_host, &["sizes"]).with_small_shm(size);
        job.run().failed_saying(&["/dev/shm", "NTBRING_WINDOW"]);
    }
    // Where it is just large enough the job runs, as in a container, which has 64 MiB.
    for (hosts, per_host, size) in [(2, 1, "6m"), (4, 1, "64m"), (8, 1, "64m"), (2, 4, "64m")] {
        Job::new(hosts, per_host, &["sizes"]).with_small_shm(size).run().ok();
    }
}

#[test]
#[ignore = "needs cargo xtask setup"]
fn windows_too_small_for_their_lanes_say_what_would_do() {
    let job = |window: &str| Job::new(2, 4, &["hello"]).env("NTBRING_WINDOW", window).run();
    let said = job("64K").failed_saying(&["NTBRING_WINDOW=65536 is too small", "would do"]);
    let all = said.stdout + &said.stderr;
    let needed = all.split("NTBRING_WINDOW=").filter_map(|s| s.split_once(" would do")).next().unwrap().0;
    job(needed).ok();
}

#[test]
#[ignore = "needs cargo xtask setup"]
fn hosts_that_disagree_are_told_on_what() {
    for (name, other) in [("NTBRING_WINDOW", "2M"), ("NTBRING_CHUNK", "4K")] {
        let job = Job::raw(2, &["-n", "1", "-env", name, other, "{hello}", ":", "-n", "1", "{hello}"]);
        job.run().failed_saying(&["disagree on", name]);
    }
}

#[test]
#[ignore = "needs cargo xtask setup"]
fn a_library_of_another_abi_version_is_refused_by_name() {
    let dir = tempfile::tempdir().unwrap();
    let names = ["open", "address", "connect", "limits", "send", "poll", "release", "idle", "flush", "close"];
    let mut code = String::from("unsigned ntbring_abi_version(void) { return 99; }\n");
    code += "const char *ntbring_error_text(void) { return \"\"; }\n";
    for name in names {
        code += &format!("int ntbring_{name}(void) {{ return -1; }}\n");
    }
    library(dir.path(), "ntbring", &code);
    let job = Job::new(2, 1, &["hello"]).env("LD_LIBRARY_PATH", dir.path());
    job.run().failed_saying(&["ABI version 99", "was built for version"]);
}

#[test]
#[ignore = "needs cargo xtask setup"]
fn hosts_that_are_not_on_one_machine_are_told_so() {
    // For this check, a container with a process namespace of its own is another machine.
    let dir = tempfile::tempdir().unwrap();
    let unshare = if Uid::effective().is_root() { "unshare -pf --mount-proc" } else { "unshare -rpf --mount-proc" };
    let start = "exec sh -c \"$*\"";
    let path = launcher(dir.path(), [start, &start.replace("exec", &format!("exec {unshare}"))]);
    let job = Job::with_launcher(2, &["ssh", "-launcher-exec", &path], &["hello"]);
    job.run().failed_saying(&["is on another machine, or in a container"]);
}

#[test]
#[ignore = "needs cargo xtask setup"]
fn two_jobs_at_once_do_not_meet() {
    let before = shm();
    let jobs: Vec<Running> =
        (1..=2).map(|seed| Job::new(4, 1, &["random_traffic", &seed.to_string()]).start()).collect();
    for job in jobs {
        job.end(std::time::Duration::from_secs(90)).ok();
    }
    nothing_left(&before);
}
