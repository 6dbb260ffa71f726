//! Links that lose and damage packets, with NTBRING_RELIABILITY.

use crate::harness::{busy, tool, Job, Stats};
use serde_json::Value;
use std::time::{Duration, Instant};

const BAD: &str = "flip=0.001,drop=0.001,double=0.01,delay=0.0005:100us,bell=0.1";

#[test]
#[ignore = "needs cargo xtask setup"]
fn what_is_lost_or_damaged_is_sent_again() {
    for (hosts, per_host, call) in [
        (4, 1, &["random_traffic"][..]),
        (2, 2, &["all_to_all_large"]),
        (3, 1, &["nonblocking_collectives"]),
        (5, 1, &["one_sided"]),
        (4, 1, &["window_operations"]),
    ] {
        let stats = Stats::new();
        let job = Job::new(hosts, per_host, call).env("NTBRING_RELIABILITY", "retry").env("NTBRING_FAULT", BAD);
        job.env("NTBRING_STATS", stats.path()).run().ok();
        let lines = stats.lines(hosts * per_host);
        let sum = |counter: &str| lines.iter().map(|line| line[counter].as_u64().unwrap()).sum::<u64>();
        assert!(sum("resent") > 0 && sum("damaged") > 0 && sum("bytes_direct") > 0, "{call:?}");
    }
}

#[test]
#[ignore = "needs cargo xtask setup"]
fn links_that_go_down_and_up_lose_nothing() {
    let job = Job::new(4, 1, &["random_traffic", "7", "30"]).env("NTBRING_RELIABILITY", "retry");
    job.env("NTBRING_FAULT", "down=every:300ms:for:100ms,flip=0.0001").run().ok();
}

/// Messages take the other route round the ring; those between the ring's last two hosts pass through all others.
#[test]
#[ignore = "needs cargo xtask setup"]
fn a_link_that_stays_down_is_gone_round() {
    for (hosts, per_host, call) in [
        (2, 1, &["random_traffic", "3", "400"][..]),
        (3, 2, &["random_traffic", "4", "60"]),
        (4, 1, &["random_traffic", "5", "200"]),
        (5, 1, &["random_traffic", "6", "100"]),
    ] {
        let stats = Stats::new();
        let job = Job::new(hosts, per_host, call).env("NTBRING_RELIABILITY", "retry");
        let job = job.env("NTBRING_FAULT", "down=0-1:at:20ms").env("NTBRING_STATS", stats.path());
        job.run().ok();
        let lines = stats.lines(hosts * per_host);
        let sum = |counter: &str| lines.iter().map(|line| line[counter].as_u64().unwrap()).sum::<u64>();
        // With three hosts, packets are forwarded only because of the link that is down.
        assert!(hosts != 3 || sum("forwarded_chunks") > 0, "it was over before the link went down");
    }
}

/// A link goes down and comes up repeatedly, while packets are damaged, lost and duplicated.
#[test]
#[ignore = "needs cargo xtask setup"]
fn everything_comes_once_and_in_order_while_links_come_and_go() {
    let faults = "flip=0.0001,drop=0.0001,double=0.0001,down=0-1:every:700ms:for:300ms";
    let stats = Stats::new();
    let job = Job::new(4, 1, &["random_traffic", "9", "800"]).env("NTBRING_RELIABILITY", "retry");
    job.env("NTBRING_FAULT", faults).env("NTBRING_STATS", stats.path()).run().ok();
    let lines = stats.lines(4);
    let sum = |counter: &str| lines.iter().map(|line| line[counter].as_u64().unwrap()).sum::<u64>();
    assert!(sum("resent") > 0 && sum("reroutes") > 0, "{lines:?}");
}

#[test]
#[ignore = "needs cargo xtask setup"]
fn what_is_damaged_is_an_error_that_names_the_link() {
    for fault in ["flip=0.01", "drop=0.01"] {
        let job = Job::new(2, 1, &["pingpong", "100000", "64", "1"]).env("NTBRING_RELIABILITY", "detect");
        job.env("NTBRING_FAULT", fault).run().failed_saying(&["the lane from", "the link has lost or changed it"]);
    }
}

#[test]
#[ignore = "needs cargo xtask setup"]
fn hosts_must_agree_and_values_make_sense() {
    let job = Job::new(2, 1, &["hello"]).env("NTBRING_RELIABILITY", "perhaps");
    job.run().failed_saying(&["NTBRING_RELIABILITY=\"perhaps\"", "off, detect, or retry"]);
}

#[test]
#[ignore = "needs cargo xtask setup"]
fn links_go_down_and_up_on_command() {
    let job = Job::new(3, 1, &["pingpong", "1000000", "64", "1"]).env("NTBRING_RELIABILITY", "retry");
    let job = job.env("NTBRING_FAULT", "command,timeout=280s").start();
    let first = job.ranks(3)[0].1.to_string();
    let mine = || {
        let (_, jobs) = tool(&["jobs", "--json"]);
        let mut lines = jobs.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        lines.find(|line| line["job"].as_u64() == first.parse().ok())
    };
    let end = Instant::now() + Duration::from_secs(30);
    let down = || mine().expect("it is still running")["links_down"].to_string();
    while mine().is_none() {
        assert!(Instant::now() < end, "{first} is not among the running jobs");
    }
    assert_eq!(down(), "[]");
    while !tool(&["link", "down", "1-0", "--job", &first]).0 {
        assert!(Instant::now() < end, "not all hosts of {first} have joined");
    }
    assert_eq!(down(), r#"["0-1"]"#);
    let topo = || serde_json::from_str::<Value>(&tool(&["topo", "--job", &first, "--json"]).1).unwrap();
    // All packets take the route through host 2.
    while ["to_the_left", "to_the_right"].map(|way| topo()["hosts"][0][way].to_string()) != ["[1,2]", "[]"] {
        assert!(Instant::now() < end, "{}", topo());
    }
    let (_, said) = tool(&["topo", "--job", &first]);
    assert!(said.contains("0 -x- 1 --- 2 --- 0") && said.contains("links down: 0-1"), "{said}");
    assert!(tool(&["link", "down", "0-3", "--job", &first]).1.contains("0-3 is no link"));
    std::thread::sleep(Duration::from_millis(500));
    assert_eq!(job.processes().len(), 3, "no process continues, and none gives up");
    assert_eq!(tool(&["link", "up", "0-1", "--job", &first]), (true, String::new()));
    job.end(Duration::from_secs(280)).ok();
    assert!(tool(&["link", "up", "0-1", "--job", &first]).1.contains("job"));
}

#[test]
#[ignore = "needs cargo xtask setup"]
fn links_of_a_job_without_faults_cannot_be_taken_down() {
    let mut job = busy(2, 1).start();
    let first = job.joined(2)[0].1.to_string();
    let (_, text) = tool(&["link", "down", "0-1", "--job", &first]);
    job.kill();
    assert!(text.contains("cannot be taken down") && text.contains("NTBRING_FAULT=command"), "{text}");
}
