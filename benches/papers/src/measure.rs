//! The two tests: a ping-pong and a stream.
//!
//! Both ends carry out the same [`Order`]. The first one measures the time, the second one answers. Receives are posted
//! ahead of their messages, as many as there is memory for, as in an application that expects the messages.

use crate::end::End;
use crate::Error;
use std::fmt;
use std::time::Instant;

/// Bytes of memory for receives at each end: at least two of the largest messages, since one arrives while the other is
/// read.
pub const MEMORY: usize = 2 << 20;
/// Largest message in bytes.
pub const LEN_MAX: usize = MEMORY / 2;
/// Number of messages that a stream sends before it waits for an answer.
pub const BURST: usize = 64;
/// Size of the lanes in bytes.
pub const LANE: usize = 256 << 10;
/// Number of batches of which a figure is the median.
const BATCHES: usize = 11;

/// The tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Test {
    /// Half the round trip of a message, in us.
    Latency,
    /// Bursts of messages in one direction, in MB/s.
    Bandwidth,
}

impl Test {
    /// Returns its name on the command line and in figures.
    pub fn name(self) -> &'static str {
        match self {
            Test::Latency => "latency",
            Test::Bandwidth => "bandwidth",
        }
    }

    /// Returns the test of that name.
    pub fn parse(name: &str) -> Option<Test> {
        [Test::Latency, Test::Bandwidth].into_iter().find(|test| test.name() == name)
    }

    /// Returns the unit of its figures.
    pub fn unit(self) -> &'static str {
        match self {
            Test::Latency => "us",
            Test::Bandwidth => "MB/s",
        }
    }

    fn value(self, seconds: f64, len: usize) -> f64 {
        match self {
            Test::Latency => seconds / 2.0 * 1e6,
            Test::Bandwidth => (BURST * len) as f64 / seconds / 1e6,
        }
    }
}

/// A batch: `n` round trips or bursts of messages of `len` bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Order {
    /// The test.
    pub test: Test,
    /// Bytes of a message.
    pub len: usize,
    /// Number of round trips or bursts.
    pub n: usize,
}

impl fmt::Display for Order {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.test.name(), self.len, self.n)
    }
}

impl Order {
    /// Parses a batch from its text.
    pub fn parse(text: &str) -> Option<Order> {
        let mut words = text.split_whitespace();
        let test = Test::parse(words.next()?)?;
        let (len, n) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
        (len <= LEN_MAX && words.next().is_none()).then_some(Order { test, len, n })
    }

    /// Returns the numbers of messages with a payload that the measuring end, and the other end, receive.
    fn messages(self) -> [usize; 2] {
        match self.test {
            Test::Latency => [self.n, self.n],
            Test::Bandwidth => [0, self.n * BURST],
        }
    }

    /// Carries out the batch at the measuring end. Returns the seconds of one round trip or burst.
    pub fn lead(self, end: &mut End) -> Result<f64, Error> {
        let payload = vec![0x5a; self.len];
        end.post(0, 0);
        let mut receives = Receives::post(end, self.len, self.messages()[0]);
        // The other end reports that it is ready.
        end.receive()?;
        let start = Instant::now();
        for _ in 0..self.n {
            match self.test {
                Test::Latency => {
                    end.send(&payload)?;
                    end.receive()?;
                    receives.post_next(end);
                }
                Test::Bandwidth => {
                    end.post(0, 0);
                    (0..BURST).try_for_each(|_| end.send(&payload))?;
                    end.receive()?;
                }
            }
        }
        Ok(start.elapsed().as_secs_f64() / self.n as f64)
    }

    /// Carries out the batch at the other end.
    pub fn follow(self, end: &mut End) -> Result<(), Error> {
        let payload = vec![0x5a; self.len];
        let mut receives = Receives::post(end, self.len, self.messages()[1]);
        end.send(&[])?;
        for _ in 0..self.n {
            match self.test {
                Test::Latency => {
                    end.receive()?;
                    receives.post_next(end);
                    end.send(&payload)?;
                }
                Test::Bandwidth => {
                    for _ in 0..BURST {
                        end.receive()?;
                        receives.post_next(end);
                    }
                    end.send(&[])?;
                }
            }
        }
        Ok(())
    }
}

/// Receives that are posted ahead, and whose memory is used in turn.
struct Receives {
    len: usize,
    places: usize,
    next: usize,
    left: usize,
}

impl Receives {
    /// Posts the first receives of `messages`.
    fn post(end: &mut End, len: usize, messages: usize) -> Receives {
        let places = (end.memory() / len.next_multiple_of(64).max(64)).clamp(1, BURST);
        let mut receives = Receives { len, places, next: 0, left: messages };
        for _ in 0..places {
            receives.post_next(end);
        }
        receives
    }

    /// Posts one more receive, if a message is expected that has none.
    fn post_next(&mut self, end: &mut End) {
        if self.left > 0 {
            end.post(self.next * self.len.next_multiple_of(64), self.len);
            (self.left, self.next) = (self.left - 1, (self.next + 1) % self.places);
        }
    }
}

/// Returns the median of several batches that take that many seconds together. `order` announces a batch to the other
/// end before it begins.
pub fn figure(
    end: &mut End,
    test: Test,
    len: usize,
    budget: f64,
    mut order: impl FnMut(Order) -> Result<(), Error>,
) -> Result<f64, Error> {
    let wanted = budget / BATCHES as f64;
    let mut batch = |n| {
        let next = Order { test, len, n };
        order(next)?;
        next.lead(end)
    };
    // The first messages warm up. The faster of two batches counts: another process may have used the core during one
    // of them.
    let mut n = 1;
    loop {
        let seconds = batch(n)?.min(batch(n)?);
        if seconds * n as f64 >= wanted / 2.0 || n >= 1 << 30 {
            break;
        }
        n = (wanted / seconds.max(1e-9)).ceil().clamp(2.0 * n as f64, 16.0 * n as f64) as usize;
    }
    let mut all = (0..BATCHES).map(|_| batch(n)).collect::<Result<Vec<f64>, Error>>()?;
    all.sort_by(f64::total_cmp);
    Ok(test.value(all[BATCHES / 2], len))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_are_read_back() {
        let order = Order { test: Test::Bandwidth, len: 8, n: 100 };
        assert_eq!(Order::parse(&order.to_string()), Some(order));
        for text in ["", "latency", "latency 8", "rate 8 1", "latency 8 1 1", "latency -8 1", "latency 99999999 1"] {
            assert_eq!(Order::parse(text), None, "{text}");
        }
    }

    #[test]
    fn values_are_per_message_and_direction() {
        assert_eq!(Test::Latency.value(2e-6, 8), 1.0);
        assert_eq!(Test::Bandwidth.value(1e-3, 1000), 64.0);
    }
}
