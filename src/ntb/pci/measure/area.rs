//! The words through which two agents measure their link.
//!
//! | offset in the area | holds |
//! |---|---|
//! | 0 | request of the neighbour: its number, and in the lowest byte its kind |
//! | 64 | ping: a number that this host has to send back |
//! | 128 | pong: the ping of this host that the neighbour has received last |
//! | 192, 200 | rate that this host has requested, bytes per second, and the number of the request |
//! | 4096 | 4 KiB of data that nobody reads |

use super::error::MeasureError;
use crate::chip::Chip;
use crate::control::{AREA, CONTROL};
use ntbring_memory::{OutWindow, Region};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};

const REQUEST: usize = 0;
const PING: usize = 64;
const PONG: usize = 128;
const RATE: usize = 192;
const RATE_OF: usize = 200;
const DATA: usize = 4096;
const DATA_LEN: usize = 4096;

const _: () = assert!(AREA as usize + DATA + DATA_LEN <= CONTROL as usize);

/// Kinds of requests: to answer without sleeping, and to measure the rate of writes.
pub(crate) const REQUEST_SPIN: u64 = 1;
pub(crate) const REQUEST_STREAM: u64 = 2;

/// Number of pieces of data between two fences, as in a message of 16 KiB.
const PIECES: usize = 4;

/// The areas of both ends of a link, from its bring-up until it goes down.
#[derive(Clone)]
pub(crate) struct Area {
    own: Region,
    theirs: OutWindow,
    chip: Arc<dyn Chip>,
    shared: Arc<Shared>,
}

struct Shared {
    is_over: AtomicBool,
    /// The number of the latest ping or request of this host.
    number: AtomicU64,
    /// The latest ping of the neighbour that was sent back.
    answered: AtomicU64,
}

impl Area {
    /// Returns the areas in the starts of both windows. Numbers of pings continue from `seed`, a random number.
    pub fn new(page: &Region, window: &OutWindow, chip: Arc<dyn Chip>, seed: u64) -> Area {
        let (at, len) = (AREA as usize, (CONTROL - AREA) as usize);
        let own = page.part(at, len);
        // What an earlier neighbour has written is not answered.
        let answered = AtomicU64::new(own.word(PING).load(Ordering::Acquire));
        let shared = Shared { is_over: AtomicBool::new(false), number: AtomicU64::new(seed >> 9), answered };
        Area { own, theirs: window.part(at, len), chip, shared: Arc::new(shared) }
    }

    /// Ends all measurements: the link has gone down.
    pub fn end(&self) {
        self.shared.is_over.store(true, Ordering::Release);
    }

    pub(super) fn is_over(&self) -> bool {
        self.shared.is_over.load(Ordering::Acquire)
    }

    fn read(&self, word: usize) -> u64 {
        self.own.word(word).load(Ordering::Acquire)
    }

    fn write(&self, word: usize, value: u64) {
        self.theirs.store(word, value);
        self.theirs.fence();
    }

    fn next(&self) -> u64 {
        self.shared.number.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Waits until the neighbour has written `value`.
    fn wait(&self, word: usize, value: u64, limit: Duration) -> Result<(), MeasureError> {
        let start = Instant::now();
        for round in 0u64.. {
            if self.read(word) == value {
                break;
            }
            if self.is_over() {
                return Err(MeasureError::Down("it has gone down meanwhile".into()));
            }
            if start.elapsed() > limit {
                return Err(MeasureError::Silent);
            }
            if round > 2000 {
                std::thread::yield_now();
            }
        }
        Ok(())
    }

    /// Sends a ping, with a doorbell if `rings`, and returns the time until it is back.
    pub fn round_trip(&self, rings: bool, limit: Duration) -> Result<Duration, MeasureError> {
        let (number, start) = (self.next(), Instant::now());
        self.write(PING, number);
        if rings {
            self.chip.ring(0);
        }
        self.wait(PONG, number, limit)?;
        Ok(start.elapsed())
    }

    /// Sends the neighbour's ping back if it is new. Returns true if it was.
    pub fn answer(&self) -> bool {
        let ping = self.read(PING);
        let is_new = self.shared.answered.swap(ping, Ordering::AcqRel) != ping;
        if is_new {
            self.write(PONG, ping);
        }
        is_new
    }

    /// Asks the neighbour for something. Returns the request.
    pub fn request(&self, kind: u64) -> u64 {
        let request = self.next() << 8 | kind;
        self.write(REQUEST, request);
        self.chip.ring(0);
        request
    }

    /// Returns the latest request of the neighbour: the whole word, and its kind.
    pub fn requested(&self) -> (u64, u64) {
        let request = self.read(REQUEST);
        (request, request & 0xff)
    }

    /// Writes for some time. Returns the number of bytes.
    fn pour(&self, time: Duration) -> u64 {
        let (start, data, mut bytes) = (Instant::now(), [0x5a; DATA_LEN], 0);
        while start.elapsed() < time && !self.is_over() {
            for _ in 0..PIECES {
                self.theirs.write_bytes(DATA, &data);
            }
            self.theirs.fence();
            bytes += (PIECES * DATA_LEN) as u64;
        }
        bytes
    }

    /// Writes for some time. Returns the rate at which the processor gets rid of the data, bytes per second.
    pub fn write_rate(&self, time: Duration) -> u64 {
        let start = Instant::now();
        per_second(self.pour(time), start.elapsed())
    }

    /// Writes for some time, and waits until the neighbour has got everything. Returns bytes per second.
    pub fn stream(&self, time: Duration, limit: Duration) -> Result<u64, MeasureError> {
        let start = Instant::now();
        let bytes = self.pour(time);
        self.round_trip(true, limit)?;
        Ok(per_second(bytes, start.elapsed()))
    }

    /// Sends the neighbour the rate that it has requested.
    pub fn answer_rate(&self, request: u64, rate: u64) {
        self.write(RATE, rate);
        self.write(RATE_OF, request);
    }

    /// Waits for the rate that this host has requested, bytes per second.
    pub fn requested_rate(&self, request: u64, limit: Duration) -> Result<u64, MeasureError> {
        self.wait(RATE_OF, request, limit)?;
        Ok(self.read(RATE))
    }
}

fn per_second(bytes: u64, time: Duration) -> u64 {
    (bytes as f64 / time.as_secs_f64().max(1e-9)) as u64
}
