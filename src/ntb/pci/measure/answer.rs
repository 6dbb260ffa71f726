//! Answers to the neighbour's measurements. The thread that serves the adapter sends pings back; what takes longer is
//! done by a thread of its own, of which there is at most one.

use super::area::{Area, REQUEST_SPIN, REQUEST_STREAM};
use super::error::{ANSWER, STREAM};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Longest time for which a thread answers without sleeping, and the longest time between two pings meanwhile.
const SPIN: Duration = Duration::from_secs(2);
const PAUSE: Duration = Duration::from_millis(100);

/// Requests of the neighbour on one link that this host has answered.
#[derive(Default)]
pub(crate) struct Answering {
    /// The latest request of the neighbour that was taken.
    taken: u64,
    is_busy: Arc<AtomicBool>,
}

impl Answering {
    /// Answers what the neighbour has written into `area`. Never blocks.
    pub fn look(&mut self, area: &Area) {
        area.answer();
        let (request, kind) = area.requested();
        if request == self.taken || self.is_busy.load(Ordering::Acquire) {
            return;
        }
        self.taken = request;
        let work: fn(&Area, u64) = match kind {
            REQUEST_SPIN => |area, _| spin(area),
            REQUEST_STREAM => stream,
            _ => return,
        };
        self.is_busy.store(true, Ordering::Release);
        let (area, is_busy) = (area.clone(), self.is_busy.clone());
        let started = ntbring_host::thread::spawn("ntb-measure", move || {
            work(&area, request);
            is_busy.store(false, Ordering::Release);
        });
        if let Err(error) = started {
            log::warn!("the neighbour's measurement of the link is not answered: {error}");
            self.is_busy.store(false, Ordering::Release);
        }
    }

    /// Takes notice of a new bring-up: an earlier neighbour's request is not answered.
    pub fn begin(&mut self, area: &Area) {
        self.taken = area.requested().0;
    }
}

/// Sends pings back without sleeping, until there is none for some time.
fn spin(area: &Area) {
    let (start, mut latest) = (Instant::now(), Instant::now());
    while start.elapsed() < SPIN && latest.elapsed() < PAUSE && !area.is_over() {
        if area.answer() {
            latest = Instant::now();
        }
        std::hint::spin_loop();
    }
}

/// Measures the rate of this host's writes for the neighbour.
fn stream(area: &Area, request: u64) {
    match area.stream(STREAM, ANSWER) {
        Ok(rate) => area.answer_rate(request, rate),
        Err(error) => log::info!("a measurement that the neighbour has requested: {error}"),
    }
}
