//! `ntbring stats`: the counters of a running job.

use crate::harness::{busy, tool, Job, Stats, WITHOUT_LANES};
use serde_json::Value;
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// Returns the tool's output for a job: the lines of its ranks, and of its links.
fn look(job: &str) -> (Vec<Value>, Vec<Value>) {
    let (_, text) = tool(&["stats", "--json", "--job", job]);
    let lines = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    lines.partition(|line| line["rank"].is_u64())
}

fn names(line: &Value) -> BTreeSet<String> {
    line.as_object().unwrap().keys().cloned().collect()
}

#[test]
#[ignore = "needs cargo xtask setup"]
fn counters_of_a_running_job_can_be_seen() {
    let mut job = busy(4, 1).env("NTBRING_SHORTCUTS", WITHOUT_LANES).start();
    let first = job.ranks(4)[0].1.to_string();
    let end = Instant::now() + Duration::from_secs(60);
    let sum = |lines: &[Value], name: &str| lines.iter().filter_map(|line| line[name].as_u64()).sum::<u64>();
    let relayed = |lines: &[Value]| sum(lines, "msgs_relayed").min(sum(lines, "forwarded_chunks"));
    // First all ranks have joined and have counted something, then more.
    let mut before = None;
    let (ranks, links) = loop {
        assert!(Instant::now() < end, "{:?}", look(&first));
        let (ranks, links) = look(&first);
        let now = relayed(&ranks);
        if ranks.len() == 4 && now > 0 && *before.get_or_insert(now) < now {
            break (ranks, links);
        }
    };
    let hosts: Vec<_> = ranks.iter().map(|line| (line["rank"].as_u64(), line["host"].as_u64())).collect();
    assert_eq!(hosts, Vec::from_iter((0..4).map(|n| (Some(n), Some(n)))));
    assert!(ranks.iter().all(|line| line["age_ms"].is_u64() && line["job"].as_u64() == first.parse().ok()));
    // Both directions of each link.
    let ends: Vec<_> =
        links.iter().map(|line| (line["from"].as_u64().unwrap(), line["to"].as_u64().unwrap())).collect();
    assert_eq!(ends, [(0, 1), (1, 0), (1, 2), (2, 1), (2, 3), (3, 2), (3, 0), (0, 3)]);
    assert!(sum(&links, "sent_bytes") > 0 && sum(&links, "forwarded_chunks") > 0, "{links:?}");
    assert!(links.iter().all(|line| line["state"] == "up"));
    let (well, text) = tool(&["stats", "--job", &first]);
    assert!(well && text.contains("4 ranks on 4 hosts") && text.contains("forwarded_chunks"), "{text}");
    assert!(text.contains("3 to 0"), "{text}");
    assert_eq!(job.processes().len(), 4, "the job does not mind");
    job.kill();
    assert!(tool(&["stats", "--job", &first]).1.contains("there is no such job"));
}

#[test]
#[ignore = "needs cargo xtask setup"]
fn counters_are_named_as_in_the_line_at_the_end() {
    let stats = Stats::new();
    let job = Job::new(4, 1, &["random_traffic", "1", "400"]).env("NTBRING_STATS", stats.path()).start();
    let first = job.ranks(4)[0].1.to_string();
    let end = Instant::now() + Duration::from_secs(60);
    let seen = loop {
        assert!(Instant::now() < end, "no counters of job {first}");
        match look(&first).0.into_iter().next() {
            Some(line) => break line,
            None => assert!(!job.processes().is_empty(), "it was over before anybody looked"),
        }
    };
    // The end of the job is not an error for `--watch`.
    assert!(tool(&["stats", "--job", &first, "--watch", "0.2", "--json"]).0);
    job.end(Duration::from_secs(90)).ok();
    let mut wanted = names(&stats.lines(4)[0]);
    wanted.extend(["job", "age_ms", "state"].map(String::from));
    assert_eq!(names(&seen), wanted);
}
