//! Jobs that were started independently of each other, and a process that was not started by mpiexec.

use crate::harness::*;
use std::process::Command;
use std::time::Duration;

#[test]
#[ignore = "needs cargo xtask setup"]
fn jobs_that_know_a_ports_name_connect() {
    let before = shm();
    for ((hosts, per_host), (other_hosts, other_per_host)) in [((2, 1), (3, 1)), ((2, 2), (1, 2))] {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("port");
        let part = |hosts, per_host, part: &str| {
            Job::new(hosts, per_host, &["strangers", part, file.to_str().unwrap()]).start()
        };
        let jobs = [part(hosts, per_host, "accept"), part(other_hosts, other_per_host, "connect")];
        for job in jobs {
            assert!(job.end(Duration::from_secs(80)).ok().stdout.contains("ok strangers"));
        }
        nothing_left(&before);
    }
}

/// The ring of one of the jobs carries the messages: of the first one, of the second one, and of both.
#[test]
#[ignore = "needs cargo xtask setup"]
fn jobs_on_separate_hosts_connect() {
    let before = shm();
    let hosts: [[&[&str]; 2]; 3] =
        [[&["h0", "h1"], &["h1"]], [&["h2"], &["h0", "h1", "h2"]], [&["h0", "h1"], &["h1", "h0"]]];
    for [accepts, connects] in hosts {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("port");
        let part = |hosts, part| Job::on_separate(hosts, &["strangers", part, file.to_str().unwrap()]).start();
        let [accepts, connects] = [part(accepts, "accept"), part(connects, "connect")];
        for job in [accepts, connects] {
            assert!(job.end(Duration::from_secs(80)).ok().stdout.contains("ok strangers"));
        }
        nothing_left(&before);
    }
}

#[test]
#[ignore = "needs cargo xtask setup"]
fn a_job_leaves_though_another_was_killed_that_it_has_sent_to() {
    let before = shm();
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("port");
    let call = |part| ["strangers", part, file.to_str().unwrap(), "doomed"];
    let near = ["accept", "connect"].map(|part| Job::new(2, 1, &call(part)));
    let far = [("accept", ["h0", "h1"]), ("connect", ["h1", "h0"])];
    let far = far.map(|(part, hosts)| Job::on_separate(&hosts, &call(part)));
    for jobs in [near, far] {
        let [stays, dies] = jobs.map(Job::start);
        assert!(stays.end_of_all(Duration::from_secs(30)).ok().stdout.contains("ok strangers"));
        dies.end_of_all(Duration::from_secs(30)).failed_saying(&["mpiexec: rank ", "was killed by signal 9"]);
        std::fs::remove_file(&file).unwrap();
    }
    nothing_left(&before);
}

#[test]
#[ignore = "needs cargo xtask setup"]
fn a_server_is_told_of_clients_that_die_and_keeps_nothing_of_them() {
    let before = shm();
    let fates = ["parts", "dies", "vanishes", "leaves", "drops", "drops", "parts", "vanishes", "dies", "leaves"];
    let all = |hosts, per_host| {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("port");
        let (file, count) =
            (file.to_str().unwrap(), fates.iter().filter(|&&fate| fate != "vanishes").count().to_string());
        let server = Job::new(hosts, per_host, &["server", "serve", file, &count]).start();
        for fate in fates {
            let client = Job::new(1, 1, &["server", "client", file, fate]).start().end_of_all(Duration::from_secs(30));
            assert_eq!(client.status.success(), ["parts", "leaves"].contains(&fate), "{fate}: {}", client.stderr);
        }
        assert!(server.end_of_all(Duration::from_secs(150)).ok().stdout.contains("ok server"));
        assert!(Job::new(1, 1, &["server", "client", file, "late"]).run().ok().stdout.contains("ok server"));
    };
    // Both at once, since most of the time the server watches what it keeps.
    std::thread::scope(|scope| [(2, 1), (1, 2)].map(|(hosts, per_host)| _ = scope.spawn(move || all(hosts, per_host))));
    nothing_left(&before);
}

/// The clients are on the host of the server's second rank.
#[test]
#[ignore = "needs cargo xtask setup"]
fn a_server_is_told_of_clients_on_another_host() {
    let before = shm();
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("port");
    let file = file.to_str().unwrap();
    let fates = ["parts", "dies", "vanishes", "leaves", "drops", "parts"];
    let server = Job::on_separate(&["h0", "h1"], &["server", "serve", file, "5"]).start();
    for fate in fates {
        let client = Job::on_separate(&["h1"], &["server", "client", file, fate]).start();
        let client = client.end_of_all(Duration::from_secs(30));
        assert_eq!(client.status.success(), ["parts", "leaves"].contains(&fate), "{fate}: {}", client.stderr);
    }
    assert!(server.end_of_all(Duration::from_secs(150)).ok().stdout.contains("ok server"));
    assert!(Job::on_separate(&["h1"], &["server", "client", file, "late"]).run().ok().stdout.contains("ok server"));
    nothing_left(&before);
}

#[test]
#[ignore = "needs cargo xtask setup"]
fn a_program_without_mpiexec_is_a_job_of_one() {
    let before = shm();
    let run = Command::new("timeout").arg("60").arg(program("zero")).env_remove("LD_LIBRARY_PATH").output().unwrap();
    assert!(run.status.success() && run.stdout.starts_with(b"ok zero"), "{run:?}");
    nothing_left(&before);
}
