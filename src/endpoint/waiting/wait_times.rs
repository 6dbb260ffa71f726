//! The durations of waits. They are measured with the looks at the clock that belong to yields and sleeps, so polls that
//! spin, and the arrival that ends a wait, cost nothing more; what a rank waits before its first yield is not measured,
//! nor is the last poll.

use crate::observation::{Histogram, CLASSES};
use std::array::from_fn;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicU8, Ordering};
use std::time::{Duration, Instant};

/// The durations of a rank's waits. Several threads may wait at once; then single waits may be lost or joined.
pub struct WaitTimes {
    start: Instant,
    /// True from the beginning of a wait until the first look at the clock in it.
    fresh: AtomicBool,
    /// The first and the latest look at the clock in the latest wait, in ns since the start.
    first: AtomicU64,
    latest: AtomicU64,
    /// The waits before it.
    ended: [AtomicU64; CLASSES],
    /// Index of the endpoint, for the timeline.
    pub vci: AtomicU8,
    /// True if the latest wait is in the timeline.
    recorded: AtomicBool,
}

impl WaitTimes {
    pub fn new(start: Instant) -> WaitTimes {
        let [first, latest] = from_fn(|_| AtomicU64::new(0));
        let (fresh, recorded) = (AtomicBool::new(true), AtomicBool::new(false));
        let ended = from_fn(|_| AtomicU64::new(0));
        WaitTimes { start, fresh, first, latest, ended, vci: AtomicU8::new(0), recorded }
    }

    /// Records that a wait begins.
    #[inline(always)]
    pub fn begin(&self) {
        self.fresh.store(true, Ordering::Relaxed);
    }

    /// Records a look at the clock in a wait, before a yield or sleep and after it.
    pub fn look(&self, before: Instant, after: Instant) {
        if self.fresh.load(Ordering::Relaxed) {
            let (class, count) = self.latest_wait();
            self.ended[class].fetch_add(count, Ordering::Relaxed);
            self.record_latest();
            self.recorded.store(false, Ordering::Relaxed);
            self.fresh.store(false, Ordering::Relaxed);
            self.first.store(self.ns(before), Ordering::Relaxed);
        }
        self.latest.store(self.ns(after), Ordering::Relaxed);
    }

    /// As [`WaitTimes::look`], after a sleep.
    pub fn has_slept(&self, before: Instant, after: Instant) {
        self.look(before, after);
        if ntbring_timeline::is_on() {
            ntbring_timeline::slept(self.vci.load(Ordering::Relaxed), after - before);
        }
    }

    /// Records the latest wait in the timeline, once.
    pub fn record_latest(&self) {
        let [first, latest] = [&self.first, &self.latest].map(|time| time.load(Ordering::Relaxed));
        if ntbring_timeline::is_on() && latest > 0 && !self.recorded.swap(true, Ordering::Relaxed) {
            let lasted = Duration::from_nanos(latest.saturating_sub(first));
            let vci = self.vci.load(Ordering::Relaxed);
            ntbring_timeline::waited(vci, lasted, self.start + Duration::from_nanos(latest));
        }
    }

    fn ns(&self, time: Instant) -> u64 {
        time.saturating_duration_since(self.start).as_nanos() as u64
    }

    /// Returns the class of the latest wait's duration, and 1; or 0 if there was none yet.
    fn latest_wait(&self) -> (usize, u64) {
        let [first, latest] = [&self.first, &self.latest].map(|time| time.load(Ordering::Relaxed));
        (Histogram::time_class(Duration::from_nanos(latest.saturating_sub(first))), u64::from(latest > 0))
    }

    /// Returns the time since the first look at the clock in a wait that has not ended; 0 if there was none.
    pub fn lasting(&self, now: Instant) -> Duration {
        match self.fresh.load(Ordering::Relaxed) {
            true => Duration::ZERO,
            false => Duration::from_nanos(self.ns(now).saturating_sub(self.first.load(Ordering::Relaxed))),
        }
    }

    /// Returns the durations of all waits that have ended, in microseconds; `waits`: the latest one has not.
    pub fn ended(&self, waits: bool) -> Histogram {
        let mut histogram = Histogram(from_fn(|class| self.ended[class].load(Ordering::Relaxed)));
        if !waits || self.fresh.load(Ordering::Relaxed) {
            let (class, count) = self.latest_wait();
            histogram.0[class] += count;
        }
        histogram
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_lasts_from_its_first_look_at_the_clock_to_its_last() {
        let start = Instant::now();
        let at = |us| start + Duration::from_micros(us);
        let times = WaitTimes::new(start);
        assert_eq!((times.ended(false), times.lasting(at(9))), (Histogram::default(), Duration::ZERO));
        times.begin();
        times.look(at(10), at(12));
        times.look(at(15), at(110));
        assert_eq!((times.ended(true).total(), times.lasting(at(120))), (0, Duration::from_micros(110)));
        let class = Histogram::time_class(Duration::from_micros(100));
        assert_eq!(times.ended(false).0[class], 1);
        times.begin();
        assert_eq!((times.ended(true).0[class], times.lasting(at(130))), (1, Duration::ZERO));
        times.look(at(200), at(201));
        assert_eq!((times.ended(true).total(), times.ended(false).total()), (1, 2));
        assert_eq!(times.ended(false).0[Histogram::time_class(Duration::from_micros(1))], 1);
    }
}
