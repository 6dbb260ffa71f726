//! State that the ports of one process share: the faults to inject, their start time, and counters of injected faults.

use super::description::{Begin, Faults};
use super::links::Place;
use crate::Side;
use ntbring_host::clock;
use ntbring_memory::Region;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::Arc;
use std::time::Duration;

/// Numbers of faults that a process has injected into its outgoing accesses.
#[derive(Debug, Default)]
pub struct Injected {
    /// Number of inverted bits, each in a separate write.
    pub flips: AtomicU64,
    /// Number of lost writes.
    pub drops: AtomicU64,
    /// Number of writes that arrived twice.
    pub doubles: AtomicU64,
    /// Number of writes and rings that arrived late.
    pub delays: AtomicU64,
    /// Number of lost rings.
    pub bells: AtomicU64,
    /// Number of writes and rings that were lost because the link was down.
    pub outages: AtomicU64,
}

impl fmt::Display for Injected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Injected { flips, drops, doubles, delays, bells, outages } = self;
        let [flips, drops, doubles, delays, bells, outages] =
            [flips, drops, doubles, delays, bells, outages].map(|count| count.load(Ordering::Relaxed));
        write!(
            f,
            "{flips} bits flipped, {drops} writes lost, {doubles} doubled, {delays} delayed, {bells} rings lost, \
             {outages} writes and rings lost on links that were down"
        )
    }
}

/// The fault injector of one process.
pub struct Injector {
    faults: Faults,
    place: Place,
    /// For the link on each side a word that both its ends share: the time at which faults began on it, ns of
    /// CLOCK_MONOTONIC; 0 before.
    starts: [Region; 2],
    began: AtomicBool,
    injected: Injected,
}

impl Injector {
    /// Creates the injector for the ports of a process at `place`. `starts` are 8 bytes for the link on each side,
    /// initially zero, which the processes at both ends should share so that the link's outages have the same times for
    /// all.
    pub fn new(faults: Faults, place: Place, starts: [Region; 2]) -> Arc<Injector> {
        let at_once = faults.begin == Begin::Start;
        let (began, injected) = (AtomicBool::new(false), Injected::default());
        let injector = Injector { faults, place, starts, began, injected };
        if at_once {
            injector.begin();
        }
        Arc::new(injector)
    }

    /// Returns the faults to inject.
    pub fn faults(&self) -> &Faults {
        &self.faults
    }

    /// Returns the position of the process whose faults these are.
    pub fn place(&self) -> &Place {
        &self.place
    }

    /// Returns the counters of faults injected so far.
    pub fn injected(&self) -> &Injected {
        &self.injected
    }

    /// Starts the faults, now or after the delay of [`Begin::Joined`]; called when the process has joined the ring.
    pub fn begin(&self) {
        let now = clock::now().max(1);
        for start in &self.starts {
            // The first process at either end sets the time.
            let _ = start.word(0).compare_exchange(0, now, Ordering::AcqRel, Ordering::Relaxed);
        }
        self.began.store(true, Ordering::Release);
    }

    /// Returns the time since faults began on the link on `side`; None if they have not begun.
    pub(super) fn since(&self, side: Side) -> Option<Duration> {
        if !self.began.load(Ordering::Acquire) {
            return None;
        }
        let start = self.starts[side as usize].word(0).load(Ordering::Relaxed);
        let since = Duration::from_nanos(clock::now().saturating_sub(start));
        match self.faults.begin {
            Begin::Start => Some(since),
            Begin::Joined(later) => since.checked_sub(later),
        }
    }
}

pub(super) fn count(counter: &AtomicU64, n: usize) {
    counter.fetch_add(n as u64, Ordering::Relaxed);
}
