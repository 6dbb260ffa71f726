//! Waiting for what a running job does, as it can be seen from outside.

use crate::harness::{tool, Running};
use serde_json::Value;
use std::io::Read;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Time limit for all ranks to do what a test waits for, on a machine that has other work too.
const LIMIT: Duration = Duration::from_secs(60);
/// Time after which ranks that are not there have ended.
const GONE: Duration = Duration::from_secs(3);
/// Number of messages from other hosts that show that a rank is in the middle of its traffic.
const MANY: u64 = 100;

/// The output of a job, which is read while it runs.
pub struct Output {
    bytes: Arc<Mutex<Vec<u8>>>,
    reader: Option<JoinHandle<()>>,
}

impl Output {
    /// Starts to read from a pipe.
    pub fn of(mut pipe: impl Read + Send + 'static) -> Output {
        let bytes = Arc::new(Mutex::new(Vec::new()));
        let into = bytes.clone();
        let read = move || {
            let mut some = [0; 65536];
            // An error ends the output, too.
            while let Ok(count @ 1..) = pipe.read(&mut some) {
                into.lock().unwrap().extend_from_slice(&some[..count]);
            }
        };
        Output { bytes, reader: Some(std::thread::spawn(read)) }
    }

    /// Returns what was printed so far.
    pub fn so_far(&self) -> String {
        String::from_utf8_lossy(&self.bytes.lock().unwrap()).into_owned()
    }

    /// Waits for the end of the output, and returns all of it.
    pub fn whole(&mut self) -> String {
        if let Some(reader) = self.reader.take() {
            reader.join().unwrap();
        }
        self.so_far()
    }
}

impl Running {
    /// Waits until all `count` ranks, which send each other messages across hosts without end, have joined and are in
    /// the middle of it: each receives 100 more messages from other hosts. Returns the ranks as [`Running::ranks`] does.
    pub fn joined(&self, count: usize) -> Vec<(u32, i32)> {
        let job = self.ranks(count)[0].1.to_string();
        let mut first: Option<Vec<u64>> = None;
        self.until(count, || {
            let (_, text) = tool(&["stats", "--json", "--job", &job]);
            let lines = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
            let received = lines.filter(|line| line["rank"].is_u64()).filter_map(|line| line["msgs_received"].as_u64());
            let received: Vec<u64> = received.collect();
            let enough = received.len() == count && {
                let first = first.get_or_insert_with(|| received.clone());
                first.iter().zip(&received).all(|(first, now)| *now >= first + MANY)
            };
            (enough, text)
        });
        self.ranks(count)
    }

    /// Waits until the `count` ranks have printed so many lines that begin with `word`. Returns the ranks as
    /// [`Running::ranks`] does.
    pub fn said(&self, count: usize, word: &str) -> Vec<(u32, i32)> {
        self.ranks(count);
        self.until(count, || {
            let text = self.stdout.so_far();
            // The last line may not be complete.
            let whole = text.split_inclusive('\n').filter(|line| line.ends_with('\n'));
            (whole.filter(|line| line.starts_with(word)).count() == count, String::new())
        });
        self.ranks(count)
    }

    /// Waits until a condition holds; fails the test if a rank ends before, or if it takes too long, with what the
    /// condition has found.
    fn until(&self, count: usize, mut condition: impl FnMut() -> (bool, String)) {
        let (start, mut complete) = (Instant::now(), Instant::now());
        loop {
            let (holds, found) = condition();
            if holds {
                return;
            }
            // For a moment a new monitor looks like a rank, so the ranks may have seemed to be complete too early.
            let (here, waited) = (self.processes().len(), start.elapsed());
            complete = if here >= count { Instant::now() } else { complete };
            let said = || format!("{found}\n{}\n{}", self.stdout.so_far(), self.stderr.so_far());
            assert!(complete.elapsed() < GONE, "{here} of {count} ranks are still there after {waited:?}\n{}", said());
            assert!(waited < LIMIT, "the ranks are not at it after {waited:?}\n{}", said());
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}
