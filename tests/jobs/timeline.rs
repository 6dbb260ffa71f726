//! `NTBRING_TIMELINE`: the trace of a job, and `ntbring timeline merge`.

use crate::harness::{busy, signal, tool, Job, Stats};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tempfile::TempDir;

/// The trace of a job.
struct Trace(Value);

impl Trace {
    fn read(file: &Path) -> Trace {
        Trace(serde_json::from_str(&fs::read_to_string(file).expect("there is a trace")).expect("it is JSON"))
    }

    fn events(&self) -> &[Value] {
        self.0["traceEvents"].as_array().unwrap()
    }

    /// Returns the events of one phase.
    fn of<'a>(&'a self, phase: &'a str) -> impl Iterator<Item = &'a Value> {
        self.events().iter().filter(move |event| event["ph"] == phase)
    }

    /// Returns the number of spans of a rank whose names begin so.
    fn spans(&self, rank: u64, start: &str) -> u64 {
        self.of("X").filter(|e| e["pid"] == rank && e["name"].as_str().unwrap().starts_with(start)).count() as u64
    }

    /// Checks what holds of every trace: its events have all fields, spans nest, and every rank is there.
    fn check(&self, ranks: u64) {
        let ns = |value: &Value| (value.as_f64().expect("a time") * 1000.0).round() as i64;
        let mut tracks: HashMap<(u64, u64), Vec<(i64, i64)>> = HashMap::new();
        for event in self.events() {
            let track = (event["pid"].as_u64().unwrap(), event["tid"].as_u64().unwrap());
            assert!(track.0 < ranks && event["name"].is_string(), "{event}");
            match event["ph"].as_str().unwrap() {
                "M" => assert!(event["args"].is_object()),
                "X" => tracks.entry(track).or_default().push((ns(&event["ts"]), ns(&event["dur"]))),
                "i" => assert!(event["s"] == "t" && ns(&event["ts"]) >= 0),
                "s" | "f" | "b" | "e" => assert!(event["id"].is_string() && ns(&event["ts"]) >= 0),
                other => panic!("{other} is no phase that is used: {event}"),
            }
        }
        for (track, mut spans) in tracks {
            spans.sort_by_key(|(from, lasts)| (*from, -lasts));
            let mut open: Vec<i64> = Vec::new();
            for (from, lasts) in spans {
                assert!(lasts >= 0);
                while open.last().is_some_and(|end| *end <= from) {
                    open.pop();
                }
                assert!(open.last().is_none_or(|end| *end >= from + lasts), "spans of {track:?} overlap at {from}");
                open.push(from + lasts);
            }
        }
        let named = self.of("M").filter(|event| event["name"] == "process_name");
        let pids: BTreeSet<u64> = named.map(|event| event["pid"].as_u64().unwrap()).collect();
        assert_eq!(pids, (0..ranks).collect());
    }
}

/// A directory with the file of a trace.
struct Place(TempDir);

impl Place {
    fn new() -> Place {
        Place(tempfile::tempdir().unwrap())
    }

    fn file(&self) -> PathBuf {
        self.0.path().join("trace.json")
    }

    fn names(&self) -> Vec<String> {
        let names = fs::read_dir(self.0.path()).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap());
        let mut names = Vec::from_iter(names);
        names.sort();
        names
    }
}

/// Returns the sum of these counters of a line of the statistics.
fn sum(line: &Value, names: &[&str]) -> u64 {
    names.iter().map(|name| line[name].as_u64().unwrap()).sum()
}

/// Runs a job, checks its trace against its statistics, and returns both.
fn agrees(hosts: usize, per_host: usize, env: &[(&str, &str)], call: &[&str]) -> (Trace, Vec<Value>) {
    let (place, stats) = (Place::new(), Stats::new());
    let job = Job::new(hosts, per_host, call).env("NTBRING_TIMELINE", place.file()).env("NTBRING_STATS", stats.path());
    let ended = env.iter().fold(job, |job, (name, value)| job.env(name, value)).run().ok();
    assert_eq!(place.names(), ["trace.json"], "the parts are gone: {}", ended.stderr);
    let (trace, lines) = (Trace::read(&place.file()), stats.lines(hosts * per_host));
    trace.check((hosts * per_host) as u64);
    assert_eq!(trace.0["otherData"]["events_lost"], 0);
    for (line, rank) in lines.iter().zip(0..) {
        let sent = sum(line, &["msgs_local", "msgs_direct", "msgs_relayed"]);
        assert_eq!(trace.spans(rank, "send to "), sent, "messages of rank {rank}");
        assert_eq!(trace.spans(rank, "receive from "), sum(line, &["msgs_received"]), "messages to rank {rank}");
        assert_eq!(trace.spans(rank, "sleep"), sum(line, &["sleeps"]), "sleeps of rank {rank}");
        let waits = line["times"]["wait"].as_array().unwrap().iter().map(|class| class["count"].as_u64().unwrap());
        // The statistics leave out a wait that has not ended when the rank leaves.
        let more = trace.spans(rank, "wait") - waits.sum::<u64>();
        assert!(more <= 1, "rank {rank} has {more} more waits");
    }
    let hops = trace.of("i").count() as u64;
    assert_eq!(hops, lines.iter().map(|line| sum(line, &["forwarded_chunks"])).sum::<u64>(), "hops");
    // Each message that has arrived has an arrow from its sender, and does not arrive before it was sent.
    let ends = |phase| {
        let end = |event: &Value| (event["id"].as_str().unwrap().to_string(), event["ts"].as_f64().unwrap());
        trace.of(phase).map(end).collect::<BTreeMap<_, _>>()
    };
    let (from, to) = (ends("s"), ends("f"));
    assert!(!to.is_empty() && to.keys().eq(from.keys()), "{} arrows begin, {} end", from.len(), to.len());
    let late = to.iter().map(|(id, end)| from[id] - end).fold(f64::MIN, f64::max);
    assert!(late < 5.0, "a message arrives {late} us before it was sent");
    (trace, lines)
}

#[test]
#[ignore = "needs cargo xtask setup"]
fn messages_are_those_of_the_statistics() {
    for (hosts, per_host, calls) in [(4, 1, "all"), (2, 2, "coarse")] {
        let env = [("NTBRING_TIMELINE_CALLS", calls)];
        let (trace, _) = agrees(hosts, per_host, &env, &["random_traffic", "1", "10"]);
        for rank in 0..4 {
            assert_eq!(trace.spans(rank, "MPI_Isend") > 0, calls == "all");
            assert_eq!(trace.spans(rank, "MPI_Finalize"), 0);
        }
        assert!((0..4).any(|rank| trace.spans(rank, "wait in MPI_") > 0));
        let tags: BTreeSet<u64> = trace.of("X").filter_map(|event| event["args"]["tag"].as_u64()).collect();
        assert!((0..3).all(|tag| tags.contains(&tag)), "{tags:?}");
        assert!(trace.of("b").count() > 0 && trace.of("b").count() == trace.of("e").count(), "payloads");
    }
}

#[test]
#[ignore = "needs cargo xtask setup"]
fn hops_show_where_messages_are_forwarded() {
    let (trace, lines) = agrees(4, 1, &[("NTBRING_SHORTCUTS", "none")], &["random_traffic", "2", "10"]);
    let hops: Vec<_> = trace.of("i").collect();
    assert!(hops.len() as u64 > lines.iter().map(|line| sum(line, &["msgs_relayed"])).sum::<u64>() / 2);
    for hop in hops {
        let [at, src, dst] = [&hop["pid"], &hop["args"]["src"], &hop["args"]["dst"]].map(|rank| rank.as_u64().unwrap());
        assert!(at != src && at != dst && (src + 4 - dst) % 4 == 2, "{hop}");
    }
}

#[test]
#[ignore = "needs cargo xtask setup"]
fn collectives_are_spans_with_their_names() {
    for (hosts, per_host) in [(4, 1), (2, 2)] {
        let place = Place::new();
        let job = Job::new(hosts, per_host, &["small_collectives"]).env("NTBRING_TIMELINE", place.file());
        job.env("NTBRING_TIMELINE_EVENTS", "1M").run().ok();
        let trace = Trace::read(&place.file());
        trace.check(4);
        let number = |rank| ["MPI_Allreduce", "MPI_Barrier", "MPI_Reduce"].map(|name| trace.spans(rank, name));
        assert!(number(0).iter().all(|count| *count > 0));
        let all: Vec<_> = (1..4).map(|rank| trace.spans(rank, "MPI_Allreduce")).collect();
        assert_eq!(all, [trace.spans(0, "MPI_Allreduce"); 3]);
    }
}

#[test]
#[ignore = "needs cargo xtask setup"]
fn the_latest_events_stay_in_bounded_memory() {
    let place = Place::new();
    let job = Job::new(4, 1, &["random_traffic", "1", "60"]).env("NTBRING_TIMELINE", place.file());
    let ended = job.env("NTBRING_TIMELINE_EVENTS", "4K").env("NTBRING_TIMELINE_CALLS", "all").run().ok();
    assert!(ended.stderr.contains("were overwritten by later ones"), "{}", ended.stderr);
    let trace = Trace::read(&place.file());
    trace.check(4);
    let about = &trace.0["otherData"];
    let kept = about["events"].as_u64().unwrap();
    assert!((4 * 3000..=4 * 4200).contains(&kept) && about["events_lost"].as_u64().unwrap() > 0, "{about}");
    assert_eq!(trace.of("M").filter(|event| event["name"] == "process_labels").count(), 4);
}

#[test]
#[ignore = "needs cargo xtask setup"]
fn files_that_cannot_be_written_are_warnings() {
    let dir = Path::new("/nonexistent/trace");
    let ended = Job::new(2, 1, &["ring"]).env("NTBRING_TIMELINE", dir).run().ok();
    for word in
        ["NTBRING_TIMELINE", "/nonexistent/trace.0.part", "No such file or directory", "no timeline is recorded"]
    {
        assert!(ended.stderr.contains(word), "{word:?} is missing in {}", ended.stderr);
    }
    let ended = Job::new(2, 1, &["ring"]).env("NTBRING_TIMELINE", "/dev").run().ok();
    assert!(ended.stderr.contains("is not a regular file"), "{}", ended.stderr);
    let job = Job::new(2, 1, &["ring"]).env("NTBRING_TIMELINE_EVENTS", "64M").with_small_shm("200M");
    let ended = job.env("NTBRING_TIMELINE", "/dev/shm/trace").run().ok();
    assert!(ended.stderr.contains("No space left on device"), "{}", ended.stderr);
    Job::new(2, 1, &["ring"]).env("NTBRING_TIMELINE_EVENTS", "1K").run().failed_saying(&["allowed: 4K to 64M"]);
    Job::new(2, 1, &["ring"]).env("NTBRING_TIMELINE_CALLS", "few").run().failed_saying(&["allowed: coarse or all"]);
}

#[test]
#[ignore = "needs cargo xtask setup"]
fn the_parts_of_a_job_that_runs_or_has_died_can_be_joined() {
    let place = Place::new();
    let file = place.file();
    let merge = || tool(&["timeline", "merge", file.to_str().unwrap()]);
    let (well, text) = merge();
    assert!(!well && text.contains("there are no parts of"), "{text}");
    let job = busy(4, 1).env("NTBRING_TIMELINE", &file).env("NTBRING_TIMELINE_EVENTS", "16K");
    let job = job.option("-disable-auto-cleanup").start();
    let ranks = job.joined(4);
    let (well, text) = merge();
    assert!(well && text.contains("of 4 ranks") && text.contains("ranks 0, 1, 2, 3"), "{text}");
    Trace::read(&file).check(4);
    signal(ranks[2].1, libc::SIGKILL);
    job.end(Duration::from_secs(40)).failed_saying(&["rank 2 on host 2"]);
    let (well, text) = merge();
    assert!(well && text.contains("of 4 ranks"), "{text}");
    let trace = Trace::read(&file);
    trace.check(4);
    assert!((0..4).all(|rank| trace.spans(rank, "send to ") > 0), "also of the rank that was killed");
    let part = place.0.path().join("trace.json.2.part");
    let bytes = fs::read(&part).unwrap();
    fs::write(&part, &bytes[..bytes.len() / 2]).unwrap();
    let (well, text) = merge();
    assert!(!well && text.contains("trace.json.2.part is truncated"), "{text}");
    fs::remove_file(&part).unwrap();
    let (well, text) = merge();
    assert!(well && text.contains("of 3 ranks") && text.contains("without a part: ranks 2"), "{text}");
}
