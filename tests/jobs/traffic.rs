//! `ntbring matrix`, the histograms, and the states of ranks, compared with what a program does.

use crate::harness::{tool, Ended, Job, Stats};
use serde_json::{json, Value};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Returns what the program says it has sent.
fn sent(ended: &Ended) -> Value {
    ended.json().into_iter().find(|line| line["sizes"].is_array()).expect("the program says what it has sent")
}

fn matrix(words: &[&str]) -> Value {
    let (well, text) = tool(&[&["matrix", "--json"], words].concat());
    assert!(well, "{text}");
    serde_json::from_str(&text).expect("one JSON object")
}

fn numbers(value: &Value) -> Vec<u64> {
    value.as_array().unwrap().iter().map(|number| number.as_u64().unwrap()).collect()
}

/// Returns a rank's numbers of messages by the largest size of their class, in all protocols together.
fn classes(line: &Value) -> BTreeMap<u64, u64> {
    let count = |class: &Value| ["packed", "chunked", "rendezvous"].map(|name| class[name].as_u64().unwrap());
    let classes = line["sizes"].as_array().unwrap().iter();
    classes.map(|class| (class["upto"].as_u64().unwrap(), count(class).iter().sum())).collect()
}

fn total(line: &Value, time: &str) -> u64 {
    line["times"][time].as_array().unwrap().iter().map(|class| class["count"].as_u64().unwrap()).sum()
}

#[test]
#[ignore = "needs cargo xtask setup"]
fn matrix_and_histograms_are_what_was_sent() {
    let stats = Stats::new();
    let ended = Job::new(4, 1, &["traffic"]).env("NTBRING_STATS", stats.path()).run().ok();
    let (sent, lines, path) = (sent(&ended), stats.lines(4), stats.path());
    let from = ["--from", path.to_str().unwrap()];
    let found = matrix(&from);
    assert_eq!((&found["msgs"], &found["of"], &found["missing"]), (&sent["msgs"], &json!("ranks"), &json!([])));
    let sizes = numbers(&sent["sizes"]);
    for (from, line) in lines.iter().enumerate() {
        // Bytes are those of payloads, and a header with each message.
        let [msgs, payload] = ["msgs", "bytes"].map(|what| numbers(&sent[what][from]));
        for (to, bytes) in numbers(&found["bytes"][from]).into_iter().enumerate() {
            assert!((16 * msgs[to]..=64 * msgs[to]).contains(&(bytes - payload[to])), "{from} to {to}: {bytes} bytes");
        }
        let of_each = msgs.iter().sum::<u64>() / sizes.len() as u64;
        let mut expected = BTreeMap::new();
        for size in &sizes {
            let class = if *size == 0 { 0 } else { size.next_power_of_two() };
            *expected.entry(class).or_default() += of_each;
        }
        assert_eq!(classes(line), expected, "{line}");
        assert_eq!(total(line, "send_rendezvous"), line["msgs_rendezvous"].as_u64().unwrap(), "{line}");
        assert!(line.get("state").is_none());
    }
    let both = ["send_rendezvous", "receive_rendezvous"];
    let [offered, fetched] = both.map(|time| lines.iter().map(|line| total(line, time)).sum::<u64>());
    assert!(offered > 0 && offered == fetched, "{offered} {fetched}");
    let hosts = matrix(&[&from[..], &["--hosts"]].concat());
    assert_eq!((&hosts["msgs"], &hosts["of"]), (&sent["msgs"], &json!("hosts")), "there is a rank on each host");
    let drawing = path.with_extension("svg");
    let (well, text) = tool(&[&["matrix", "--messages", "--svg", drawing.to_str().unwrap()], &from[..]].concat());
    let all: u64 = numbers(&found["sent_msgs"]).iter().sum();
    assert!(well && text.contains("rank 3") && text.contains(&all.to_string()), "{text}");
    assert!(std::fs::read_to_string(drawing).unwrap().starts_with("<svg"));
}

#[test]
#[ignore = "needs cargo xtask setup"]
fn several_jobs_in_one_file_are_not_summed() {
    let stats = Stats::new();
    (0..2).for_each(|_| _ = Job::new(3, 1, &["traffic"]).env("NTBRING_STATS", stats.path()).run().ok());
    let (well, text) = tool(&["matrix", "--from", stats.path().to_str().unwrap()]);
    assert!(!well && text.contains("several jobs"), "{text}");
}

#[test]
#[ignore = "needs cargo xtask setup"]
fn ranks_say_for_whom_they_wait_and_what_they_keep() {
    let message = json!([{"for": "message", "rank": 0, "count": 1, "bytes": 1000}]);
    let receive = json!([{"for": "receive", "rank": 0, "count": 1, "bytes": 4 << 20}]);
    for (hosts, per_host) in [(4, 1), (2, 2)] {
        let mut job = Job::new(hosts, per_host, &["traffic", "100"]).start();
        let first = job.ranks(4)[0].1.to_string();
        let end = Instant::now() + Duration::from_secs(60);
        let states =
            |ranks: &[Value]| -> Vec<Value> { ranks.iter().map(|rank| rank["state"]["waits"].clone()).collect() };
        let ranks = loop {
            let (_, text) = tool(&["stats", "--json", "--job", &first]);
            let lines = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
            let ranks: Vec<Value> = lines.filter(|line| line["rank"].is_u64()).collect();
            let waits = states(&ranks);
            let kept = ranks.get(1).is_some_and(|rank| rank["state"]["unexpected_msgs"] == 3);
            if kept && waits[1] == message && waits[2] == message && waits[3] == receive {
                break ranks;
            }
            assert!(Instant::now() < end, "{hosts} x {per_host}: {waits:?}");
        };
        assert_eq!(ranks[1]["state"]["unexpected_bytes"], 300);
        assert!(ranks[1..].iter().all(|rank| rank["age_ms"].as_u64() < Some(300)), "{ranks:?}");
        assert!(ranks[0]["age_ms"].as_u64() >= Some(300), "rank 0 computes");
        let found = matrix(&["--job", &first]);
        assert!(found["msgs"][3][0].as_u64() > Some(0), "{found}");
        job.kill();
    }
}
