//! Tests of parts and traces. Only one timeline can be on in a process, so they take turns.

use super::layout::{block, fact, State, BLOCK_BYTES, BLOCK_EVENTS, HEADER_BYTES};
use super::*;
use serde_json::Value;
use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};
use tempfile::TempDir;

static TURN: Mutex<()> = Mutex::new(());

/// A timeline of one rank, in a directory of its own.
struct Recording {
    dir: TempDir,
    _turn: MutexGuard<'static, ()>,
}

impl Recording {
    fn start(rank: u32, job: u64, events: usize) -> Recording {
        let recording =
            Recording { _turn: TURN.lock().unwrap_or_else(|e| e.into_inner()), dir: tempfile::tempdir().unwrap() };
        start_in(recording.dir.path(), rank, job, events);
        recording
    }

    /// Stops recording and returns the trace of all parts.
    fn trace(&self) -> Value {
        let file = stop().expect("it has recorded").file;
        merge(&file, Parts::All).unwrap();
        serde_json::from_str(&fs::read_to_string(file).unwrap()).unwrap()
    }
}

fn start_in(dir: &Path, rank: u32, job: u64, events: usize) {
    start_with(dir, rank, job, events, Calls::All);
}

fn start_with(dir: &Path, rank: u32, job: u64, events: usize, calls: Calls) {
    let file = dir.join("t");
    let tagged = 1 << 63;
    start(&Job { file: &file, events, job, rank, ranks: 2, host: rank, tagged, calls }).unwrap();
}

/// Stops recording; the next part of this process is one of the same file again.
fn stop_all(dir: &Path, rank: u32) {
    let stopped = stop().unwrap();
    let (from, to) = (part_path(&stopped.file, rank), part_path(&dir.join("t"), rank));
    if from != to {
        fs::rename(from, to).unwrap();
    }
}

fn message(number: u32) -> Message {
    Message { peer: 1, vci: 0, handler: 63, way: Way::Packed, bytes: 8, tag: -3, number }
}

/// Returns the events of a trace of these phases.
fn of<'a>(trace: &'a Value, phases: &'a str) -> impl Iterator<Item = &'a Value> {
    let events = trace["traceEvents"].as_array().unwrap();
    events.iter().filter(move |event| phases.contains(event["ph"].as_str().unwrap()))
}

fn us(value: &Value) -> f64 {
    value.as_f64().unwrap()
}

#[test]
fn all_kinds_of_events_are_in_the_trace() {
    let recording = Recording::start(0, 1, 4096);
    assert!(is_on());
    // SAFETY: constant strings.
    let from = unsafe {
        name_waits_by(c"internal_Wait".as_ptr());
        called(c"internal_Allreduce".as_ptr())
    };
    sent(begin(), message(1));
    received(Message { way: Way::Chunked, handler: 5, ..message(1) });
    received(Message { peer: 9, ..message(1) });
    forwarded(0, 1, 64, true);
    has_moved(Direction::In, 1, 100_000, Instant::now() - Duration::from_micros(50));
    slept(1, Duration::from_micros(20));
    waited(0, Duration::from_micros(30), Instant::now() - Duration::from_micros(10));
    // SAFETY: constant strings.
    unsafe { ended(c"internal_Allreduce".as_ptr(), from) };
    let trace = recording.trace();
    assert!(!is_on() && begin() == 0);
    let spans: Vec<&Value> = of(&trace, "X").collect();
    let names: Vec<&str> = spans.iter().map(|span| span["name"].as_str().unwrap()).collect();
    for name in ["send to 1", "receive from 1", "receive from 9", "sleep", "wait in MPI_Wait", "MPI_Allreduce"] {
        assert!(names.contains(&name), "{name} is not among {names:?}");
    }
    let find = |name: &str| spans.iter().find(|span| span["name"] == name).unwrap();
    assert_eq!(find("send to 1")["args"]["tag"], -3);
    assert!(find("receive from 1")["args"]["tag"].is_null(), "this handler's messages have none");
    assert_eq!((us(&find("wait in MPI_Wait")["dur"]), us(&find("sleep")["dur"])), (30.0, 20.0));
    let (call, send) = (find("MPI_Allreduce"), find("send to 1"));
    assert!(us(&call["ts"]) <= us(&send["ts"]) && us(&send["ts"]) < us(&call["ts"]) + us(&call["dur"]));
    let ends: Vec<&Value> = of(&trace, "be").collect();
    assert!(us(&ends[1]["ts"]) - us(&ends[0]["ts"]) >= 50.0);
    assert_eq!(of(&trace, "i").next().unwrap()["args"]["side"], "right");
    // The message of a process outside the job has no arrow.
    assert_eq!((of(&trace, "s").count(), of(&trace, "f").count()), (1, 1));
    assert_eq!(trace["otherData"]["events_lost"], 0);
    assert_eq!(trace["otherData"]["ranks_missing"][0], 1);
}

#[test]
fn the_oldest_events_are_overwritten_and_counted() {
    let recording = Recording::start(0, 1, 4096);
    let room = 4096_usize.div_ceil(BLOCK_EVENTS) * BLOCK_EVENTS;
    let count = 3 * room as u32 + 5;
    (0..count).for_each(|number| sent(begin(), message(number)));
    let trace = recording.trace();
    let numbers: Vec<u64> = of(&trace, "X").map(|span| span["args"]["number"].as_u64().unwrap()).collect();
    assert!(numbers.len() <= room && numbers.len() > room - BLOCK_EVENTS);
    let first = u64::from(count) - numbers.len() as u64;
    assert_eq!(numbers, Vec::from_iter(first..count.into()), "the latest ones are there, in order");
    assert_eq!(trace["otherData"]["events_lost"], first);
}

#[test]
fn threads_share_the_room_without_mixing_their_events() {
    let recording = Recording::start(0, 1, 8192);
    let (threads, each) = (6, 20_000);
    std::thread::scope(|scope| {
        for thread in 0..threads {
            scope.spawn(move || {
                for number in 0..each {
                    // Every word of an event depends on its number and thread.
                    let (bytes, tag) = (u64::from(number) << 8 | u64::from(thread), number as i32);
                    sent(begin(), Message { peer: thread, bytes, tag, ..message(number) });
                }
            });
        }
    });
    let trace = recording.trace();
    let mut last = HashMap::new();
    let mut count = 0;
    for span in of(&trace, "X") {
        let [peer, bytes, tag, number] =
            ["peer", "bytes", "tag", "number"].map(|name| span["args"][name].as_u64().unwrap());
        assert_eq!((bytes, tag), (number << 8 | peer, number));
        assert!(last.insert(peer, number).is_none_or(|before| before < number), "events of a thread are in order");
        count += 1;
    }
    assert_eq!(count + trace["otherData"]["events_lost"].as_u64().unwrap(), u64::from(threads * each));
    assert!(last.values().any(|number| *number == u64::from(each) - 1));
}

#[test]
fn polls_in_a_row_are_one_event() {
    let recording = Recording::start(0, 1, 4096);
    // SAFETY: constant strings.
    let call = |name: &'static std::ffi::CStr| unsafe { ended(name.as_ptr(), called(name.as_ptr())) };
    let test = c"internal_Test";
    (0..10_000).for_each(|_| call(test));
    sent(begin(), message(1));
    call(test);
    let send = c"internal_Send";
    (0..3).for_each(|_| call(send));
    let trace = recording.trace();
    let calls = |name| of(&trace, "X").filter(move |span| span["name"] == name).map(|span| &span["args"]["calls"]);
    assert_eq!(calls("MPI_Test").filter_map(Value::as_u64).sum::<u64>(), 10_001);
    assert!(calls("MPI_Test").count() < 500, "interruptions may divide them");
    assert_eq!(calls("MPI_Send").count(), 3);
}

#[test]
fn calls_that_are_many_are_left_out_but_their_waits_are_named() {
    let recording = Recording::start(0, 1, 4096);
    let dir = recording.dir.path();
    stop_all(dir, 0);
    start_with(dir, 0, 1, 4096, Calls::Coarse);
    for name in [c"internal_Recv", c"internalX_Ibcast", c"internal_Win_fence", c"internal_Test"] {
        // SAFETY: constant strings.
        let from = unsafe {
            name_waits_by(name.as_ptr());
            called(name.as_ptr())
        };
        waited(0, Duration::from_nanos(1), Instant::now());
        // SAFETY: constant strings.
        unsafe { ended(name.as_ptr(), from) };
    }
    let trace = recording.trace();
    let of_kind = |kind| of(&trace, "X").filter(move |span| span["cat"] == kind);
    let calls: Vec<&Value> = of_kind("call").map(|span| &span["name"]).collect();
    assert_eq!(calls, ["MPI_Ibcast", "MPI_Win_fence"]);
    let mut waits: Vec<&str> = of_kind("wait").map(|span| span["name"].as_str().unwrap()).collect();
    waits.sort();
    assert_eq!(waits, ["wait in MPI_Ibcast", "wait in MPI_Recv", "wait in MPI_Test", "wait in MPI_Win_fence"]);
    // SAFETY: NULL is no place.
    unsafe { name_waits_by(std::ptr::null()) };
}

#[test]
fn waits_of_several_threads_do_not_overlap() {
    let recording = Recording::start(0, 1, 4096);
    let now = Instant::now() + Duration::from_secs(1);
    for (ago, lasted) in [(900, 100), (850, 60), (700, 100), (720, 10), (500, 50)] {
        waited(0, Duration::from_micros(lasted), now - Duration::from_micros(ago) - Duration::from_secs(1));
    }
    let trace = recording.trace();
    let spans: Vec<(f64, f64)> = of(&trace, "X").map(|span| (us(&span["ts"]), us(&span["dur"]))).collect();
    assert_eq!(spans.len(), 5);
    assert!(spans.windows(2).all(|pair| pair[0].0 + pair[0].1 <= pair[1].0 + 0.001), "{spans:?}");
}

#[test]
fn names_are_escaped() {
    let recording = Recording::start(0, 1, 4096);
    // SAFETY: a constant string.
    unsafe { ended(c"a \"quoted\"\n\\name".as_ptr(), begin()) };
    let trace = recording.trace();
    assert_eq!(of(&trace, "X").next().unwrap()["name"], "a \"quoted\"\n\\name");
}

#[test]
fn arrows_join_the_parts_of_two_ranks() {
    let recording = Recording::start(0, 7, 4096);
    let dir = recording.dir.path();
    sent(begin(), Message { peer: 1, ..message(1) });
    stop_all(dir, 0);
    start_in(dir, 1, 7, 4096);
    received(Message { peer: 0, ..message(1) });
    stop_all(dir, 1);
    let merged = merge(&dir.join("t"), Parts::All).unwrap();
    assert_eq!((merged.events, merged.lost, merged.missing.len(), merged.unfinished.len()), (2, (0, 0), 0, 0));
    let trace: Value = serde_json::from_str(&fs::read_to_string(dir.join("t")).unwrap()).unwrap();
    let (from, to) = (of(&trace, "s").next().unwrap(), of(&trace, "f").next().unwrap());
    assert_eq!((&from["id"], &from["pid"], &to["pid"]), (&to["id"], &0.into(), &1.into()));
    assert!(us(&from["ts"]) < us(&to["ts"]));
}

#[test]
fn the_part_of_a_process_that_has_died_or_still_runs_can_be_read() {
    let recording = Recording::start(1, 1, 4096);
    let file = recording.dir.path().join("t");
    sent(begin(), message(1));
    let file = if part_path(&file, 1).exists() {
        file
    } else {
        // Another test of this process has recorded before.
        let name = fs::read_dir(recording.dir.path()).unwrap().next().unwrap().unwrap().file_name();
        recording.dir.path().join(name.to_str().unwrap().strip_suffix(".1.part").unwrap())
    };
    let merged = merge(&file, Parts::All).unwrap();
    assert_eq!((merged.events, merged.missing, merged.unfinished), (1, vec![0], vec![1]));
    let text = fs::read_to_string(&file).unwrap();
    assert!(text.contains("did not end in MPI_Finalize"), "{text}");
    stop();
}

#[test]
fn parts_that_cannot_be_joined_are_named() {
    let recording = Recording::start(0, 1, 4096);
    let dir = recording.dir.path();
    let file = dir.join("t");
    sent(begin(), message(1));
    stop_all(dir, 0);
    let fails = || merge(&file, Parts::All).unwrap_err().to_string();
    let part = part_path(&file, 0);
    let whole = fs::read(&part).unwrap();
    for len in [0, HEADER_BYTES - 1, HEADER_BYTES, whole.len() - 1] {
        fs::write(&part, &whole[..len]).unwrap();
        assert!(fails().contains("t.0.part is truncated"), "{len}: {}", fails());
    }
    let mut other = whole.clone();
    other[7] ^= 1;
    fs::write(&part, other).unwrap();
    assert!(fails().contains("is no part"), "{}", fails());
    fs::write(&part, &whole).unwrap();
    let mut other = whole.clone();
    other[8 * fact::JOB] ^= 1;
    other[8 * fact::RANK] = 1;
    fs::write(part_path(&file, 1), other).unwrap();
    assert!(fails().contains("belong to different jobs"), "{}", fails());
    // Rank 0 of a job leaves out what other jobs have left.
    assert_eq!(merge(&file, Parts::Of { job: 1, ranks: 2 }).unwrap().missing, [1]);
    [0, 1].into_iter().for_each(|rank| fs::remove_file(part_path(&file, rank)).unwrap());
    assert!(fails().contains("there are no parts of"), "{}", fails());
}

#[test]
fn any_bytes_in_blocks_give_a_trace() {
    let recording = Recording::start(0, 1, 4096);
    let dir = recording.dir.path();
    sent(begin(), message(1));
    stop_all(dir, 0);
    let part = part_path(&dir.join("t"), 0);
    let mut bytes = fs::read(&part).unwrap();
    let mut state = 1_u64;
    for word in bytes[HEADER_BYTES..].chunks_exact_mut(8) {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        word.copy_from_slice(&(state >> 7).to_ne_bytes());
    }
    for first in bytes[HEADER_BYTES..].chunks_exact_mut(BLOCK_BYTES) {
        let state = State { claim: 5, count: BLOCK_EVENTS, open: false };
        first[8 * block::STATE..][..8].copy_from_slice(&state.word().to_ne_bytes());
        // All kinds, known or not.
        first[32..].chunks_exact_mut(32).zip(0..).for_each(|(event, kind)| event[8] = kind % 10);
    }
    fs::write(&part, bytes).unwrap();
    merge(&dir.join("t"), Parts::All).unwrap();
    let trace: Value = serde_json::from_str(&fs::read_to_string(dir.join("t")).unwrap()).unwrap();
    assert!(of(&trace, "X").count() > 1000 && trace["otherData"]["events_lost"].as_u64().unwrap() > 0);
}

#[test]
fn a_directory_that_does_not_exist_and_a_full_disc_are_errors() {
    let _turn = TURN.lock().unwrap_or_else(|e| e.into_inner());
    let job = |file| Job { file, events: 4096, job: 1, rank: 0, ranks: 1, host: 0, tagged: 0, calls: Calls::All };
    let text = start(&job(Path::new("/nonexistent/t"))).unwrap_err().to_string();
    assert!(text.contains("/nonexistent/t") && text.contains("No such file or directory"), "{text}");
    // Later parts of a process are of files with numbers.
    let dir = tempfile::tempdir().unwrap();
    (0..40).for_each(|n| fs::create_dir(dir.path().join(if n == 0 { "t".into() } else { format!("t.{n}") })).unwrap());
    let text = start(&job(&dir.path().join("t"))).unwrap_err().to_string();
    assert!(text.contains("is not a regular file") && !is_on() && stop().is_none(), "{text}");
    let full = fs::File::options().write(true).open("/dev/full").unwrap();
    let error = merge::write(vec![], std::io::BufWriter::new(full), &mut Merged::default(), Path::new("t"));
    let text = error.unwrap_err().to_string();
    assert!(text.contains("the timeline t cannot be written: No space left on device"), "{text}");
}

#[test]
fn conversions_are_continuous_and_exact_at_their_pairs() {
    use super::clock::Conversion;
    let far = 1_000_000_000;
    let conversion =
        Conversion::new(vec![(2 * far, far), (0, 0), (5 * far, 2 * far), (100, 55), (5 * far - 9, 2 * far)]);
    assert_eq!([0, 2 * far, 5 * far].map(|stamp| conversion.nanoseconds(stamp)), [0, far as i64, 2 * far as i64]);
    assert_eq!(conversion.nanoseconds(far), far as i64 / 2);
    let times: Vec<i64> = (0..6000).map(|i| conversion.nanoseconds(i * 1_000_000)).collect();
    assert!(times.is_sorted());
    // With a single pair stamps count as ns.
    assert_eq!(Conversion::new(vec![(10, 100)]).nanoseconds(15), 105);
}
