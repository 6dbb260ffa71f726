//! What the ports of one process share: what to inject, since when, and how often it was done.

use super::description::{Begin, Faults};
use super::links::Place;
use crate::Side;
use ntbring_host::clock;
use ntbring_memory::Region;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::Arc;
use std::time::Duration;

/// Faults that a process has injected into what it sent.
#[derive(Debug, Default)]
pub struct Injected {
    /// Bits inverted, each in a write of its own.
    pub flips: AtomicU64,
    /// Writes lost.
    pub drops: AtomicU64,
    /// Writes that arrived twice.
    pub doubles: AtomicU64,
    /// Writes and rings that arrived late.
    pub delays: AtomicU64,
    /// Rings lost.
    pub bells: AtomicU64,
    /// Writes and rings lost because the link was down.
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

/// The faults of one process.
pub struct Injector {
    faults: Faults,
    place: Place,
    /// For the link on each side a word that both its ends see: when faults have begun on it, ns of
    /// the clock that all processes share.
    starts: [Region; 2],
    began: AtomicBool,
    injected: Injected,
}

impl Injector {
    /// For the ports of a process at `place`. `starts` are 8 bytes for the link on each side, zero at
    /// first, that the processes at both its ends should share: so its outages are the same for all.
    pub fn new(faults: Faults, place: Place, starts: [Region; 2]) -> Arc<Injector> {
        let at_once = faults.begin == Begin::Start;
        let (began, injected) = (AtomicBool::new(false), Injected::default());
        let injector = Injector { faults, place, starts, began, injected };
        if at_once {
            injector.begin();
        }
        Arc::new(injector)
    }

    /// What is to be injected.
    pub fn faults(&self) -> &Faults {
        &self.faults
    }

    /// Whose faults they are.
    pub fn place(&self) -> &Place {
        &self.place
    }

    /// What was injected so far.
    pub fn injected(&self) -> &Injected {
        &self.injected
    }

    /// The process has joined the ring: from now on there are faults, unless they are to come later.
    pub fn begin(&self) {
        let now = clock::now().max(1);
        for start in &self.starts {
            // Whoever comes first at either end decides.
            let _ = start.word(0).compare_exchange(0, now, Ordering::AcqRel, Ordering::Relaxed);
        }
        self.began.store(true, Ordering::Release);
    }

    /// How long there have been faults on the link on that side; None if there are none yet.
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
