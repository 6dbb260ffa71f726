//! Routes of messages, proved by the statistics and by an independent record of every access.

use crate::harness::*;
use serde_json::Value;

fn field(line: &Value, name: &str) -> u64 {
    line[name].as_u64().unwrap_or_else(|| panic!("{name} is missing in {line}"))
}

fn with_stats(hosts: usize, call: &[&str]) -> Vec<Value> {
    with_shortcuts("all", hosts, call)
}

fn with_shortcuts(shortcuts: &str, hosts: usize, call: &[&str]) -> Vec<Value> {
    let stats = Stats::new();
    Job::new(hosts, 1, call).env("NTBRING_STATS", stats.path()).env("NTBRING_SHORTCUTS", shortcuts).run().ok();
    stats.lines(hosts)
}

#[test]
#[ignore = "needs cargo xtask setup"]
fn opposite_hosts_are_relayed_without_lanes_and_neighbours_are_not() {
    let lines = with_shortcuts(WITHOUT_LANES, 4, &["pingpong", "1000", "8", "2"]);
    assert!(field(&lines[0], "msgs_relayed") >= 1000 && field(&lines[2], "msgs_relayed") >= 1000);
    let between: u64 = [1, 3].iter().map(|&h: &usize| field(&lines[h], "forwarded_chunks")).sum();
    assert!(between >= 2000, "{between}");
    let lines = with_shortcuts(WITHOUT_LANES, 4, &["pingpong", "1000", "8", "1"]);
    for line in &lines {
        assert_eq!(field(line, "msgs_relayed"), 0, "{line}");
        assert_eq!(field(line, "forwarded_chunks"), 0, "{line}");
    }
    assert!(field(&lines[0], "msgs_direct") >= 1000);
}

#[test]
#[ignore = "needs cargo xtask setup"]
fn opposite_hosts_are_reached_past_those_between() {
    let lines = with_stats(4, &["pingpong", "1000", "8", "2"]);
    for line in [&lines[0], &lines[2]] {
        assert!(field(line, "msgs_direct") >= 900, "{line}");
        assert!(line["peers"].as_array().unwrap().iter().any(|peer| peer["distance"] == 2 && peer["relayed"] == false));
    }
    let between: u64 = [1, 3].iter().map(|&h: &usize| field(&lines[h], "forwarded_chunks")).sum();
    assert!(between <= 100, "{between}");
}

/// Returns the maximum number of heads that may be returned for `lines` lines of data.
fn heads(line: &Value, lines: u64) -> u64 {
    let half_lane = field(line, "lane_bytes") / 64 / 2;
    lines / half_lane + 1
}

#[test]
#[ignore = "needs cargo xtask setup"]
fn a_ping_pong_needs_no_heads_but_for_laps() {
    let lines = with_stats(2, &["pingpong", "10000", "8", "1"]);
    for line in &lines {
        let updates = field(line, "head_updates");
        assert!(updates <= heads(line, 10_000 + 100), "{updates} in {line}");
    }
}

#[test]
#[ignore = "needs cargo xtask setup"]
fn a_stream_needs_a_head_per_half_lane() {
    let lines = with_stats(2, &["stream", "100000", "8", "1"]);
    let updates = field(&lines[1], "head_updates");
    assert!(updates >= 1 && updates <= heads(&lines[1], 100_000 + 100), "{updates} in {}", lines[1]);
}

#[test]
#[ignore = "needs cargo xtask setup"]
fn the_record_of_accesses_agrees_with_the_statistics() {
    for call in [&["pingpong", "2000", "8", "1"][..], &["stream", "20000", "100", "1"][..]] {
        let (stats, dir) = (Stats::new(), tempfile::tempdir().unwrap());
        let trace = dir.path().join("trace");
        let job = Job::new(2, 1, call).env("NTBRING_STATS", stats.path()).env("NTBRING_TRACE", &trace);
        // Credits for unexpected messages are entries, too, so they are turned off. Without shortcuts, doorbells of
        // receivers that are awake are counted, but not written.
        let job = job.env("NTBRING_UNEXPECTED", "off").env("NTBRING_SHORTCUTS", "all");
        job.run().ok();
        for line in stats.lines(2) {
            let file = dir.path().join(format!("trace.{}", field(&line, "rank")));
            let record = std::fs::read_to_string(file).unwrap();
            let accesses: Vec<Value> = record.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
            let stores = || accesses.iter().filter(|a| a["op"] == "store");
            // Two hosts of one rank have five lanes, so a window begins with five credits of 64 bytes.
            let credits = stores().filter(|a| field(a, "offset") < 5 * 64).count() as u64;
            assert_eq!(credits, field(&line, "head_updates"), "{line}");
            let rings = accesses.iter().filter(|a| a["op"] == "ring").count() as u64;
            assert_eq!(rings, field(&line, "doorbells"), "{line}");
            // A tag is a word with bit 63 set. There is one for each entry, and here every message is one entry.
            let tags = stores().filter(|a| field(a, "offset") >= 5 * 64 && field(a, "value") >> 63 == 1);
            let fillings = tags.clone().filter(|a| field(a, "value") >> 16 & 0xff == 0xff).count() as u64;
            assert_eq!(tags.count() as u64 - fillings, field(&line, "msgs_direct"), "{line}");
        }
    }
}

#[test]
#[ignore = "needs cargo xtask setup"]
fn everything_holds_over_weakly_ordered_windows() {
    for (hosts, per_host, call) in
        [(4, 1, &["sizes"][..]), (4, 1, &["random_traffic"]), (2, 2, &["any_source"]), (5, 1, &["all_to_all_large"])]
    {
        Job::new(hosts, per_host, call).env("NTBRING_WEAK", "42").run().ok();
    }
}

#[test]
#[ignore = "needs cargo xtask setup"]
fn doubled_and_delayed_writes_do_no_harm() {
    for (hosts, per_host, call) in
        [(4, 1, &["sizes"][..]), (4, 1, &["random_traffic"]), (2, 2, &["any_source"]), (3, 1, &["window_operations"])]
    {
        let job = Job::new(hosts, per_host, call).env("NTBRING_FAULT", "double=0.1,delay=0.0005:100us,seed=4");
        assert!(job.run().ok().stderr.contains("faults are injected"));
    }
}

#[test]
#[ignore = "needs cargo xtask setup"]
fn a_link_that_stays_down_ends_the_job_with_an_error() {
    let job = Job::new(2, 1, &["pingpong", "100000000", "8", "1"]);
    let job = job.env("NTBRING_FAULT", "down=at:300ms,timeout=1s");
    // Two hosts have two links, either of which may be named.
    job.run().failed_saying(&["the link between host ", " has gone down, and nothing goes round it", "NTBRING_FAULT"]);
}
