//! The state of one modelled link, which all processes of a host share: the time until which the link is occupied, and
//! the rings that have not arrived yet.

use super::model::{Model, Prices, TICKS_PER_NS};
use crate::{Ticket, Vector, DOORBELLS};
use ntbring_host::clock;
use ntbring_memory::Region;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;
use std::time::Duration;

/// Size of a meter, bytes: a line for the link, then four words per doorbell.
pub const METER: usize = 64 + DOORBELLS * 32;

const FREE_AT: usize = 0;
const BELLS: usize = 64;

/// Upper bound, ns, of a wait for the next ring when only the time of the latest ring is known.
const GLANCE: u64 = 5_000;

/// The sending end of one direction of a link.
#[derive(Clone)]
pub struct Direction {
    prices: Prices,
    meter: Region,
}

impl Direction {
    /// Returns the direction away from the host that `meter` belongs to.
    pub fn new(model: &Model, meter: Region) -> Self {
        Direction { prices: model.prices(), meter }
    }

    /// Puts a write of `bytes` on the link at the time `now`, ns; returns its arrival time, ns.
    #[inline]
    pub fn send(&self, now: u64, bytes: usize) -> u64 {
        let free_at = self.meter.word(FREE_AT);
        let now = now * TICKS_PER_NS;
        let mut old = free_at.load(Ordering::Relaxed);
        loop {
            let end = self.prices.reserve(old, now, bytes);
            match free_at.compare_exchange_weak(old, end, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return self.prices.arrival(end),
                Err(other) => old = other,
            }
        }
    }
}

/// The doorbells of one port of a host: the times at which rings take effect, ns.
///
/// Not every ring is stored. `last` is the time of the latest ring; `next` was the first ring on its way when it was
/// set; `arrived` is a ring that took effect before `next` was set. A ring between `next` and `last` may be noticed
/// later than it takes effect, but no ring is lost.
#[derive(Clone)]
pub struct Bells {
    meter: Region,
}

impl Bells {
    /// Returns the doorbells of the port that `meter` belongs to.
    pub fn new(meter: Region) -> Self {
        Bells { meter }
    }

    fn word(&self, bell: usize, i: usize) -> &AtomicU64 {
        assert!(bell < DOORBELLS, "no doorbell {bell}");
        self.meter.word(BELLS + 32 * bell + 8 * i)
    }
    fn last(&self, bell: usize) -> &AtomicU64 {
        self.word(bell, 0)
    }
    fn next(&self, bell: usize) -> &AtomicU64 {
        self.word(bell, 1)
    }
    fn arrived(&self, bell: usize) -> &AtomicU64 {
        self.word(bell, 2)
    }
    fn cleared(&self, bell: usize) -> &AtomicU64 {
        self.word(bell, 3)
    }

    /// Records a ring that was sent at `now` and takes effect at `moment`, ns.
    pub fn announce(&self, bell: usize, moment: u64, now: u64) {
        let next = self.next(bell).load(Ordering::Relaxed);
        let last = self.last(bell).fetch_max(moment, Ordering::SeqCst);
        if next <= now {
            let known = if last <= now { last } else { next };
            self.arrived(bell).fetch_max(known, Ordering::SeqCst);
            let first = if last <= now { moment } else { last.min(moment) };
            let _ = self.next(bell).compare_exchange(next, first, Ordering::SeqCst, Ordering::Relaxed);
        }
    }

    /// Returns true if a ring has taken effect, as of `now`, since the doorbell was cleared.
    pub fn is_pending(&self, bell: usize, now: u64) -> bool {
        self.took_effect(bell, self.cleared(bell).load(Ordering::SeqCst), now)
    }

    /// Returns true if a stored ring has taken effect after `since` and not after `now`.
    pub fn took_effect(&self, bell: usize, since: u64, now: u64) -> bool {
        let moments = [self.arrived(bell), self.next(bell), self.last(bell)].map(|w| w.load(Ordering::SeqCst));
        moments.into_iter().any(|m| m > since && m <= now)
    }

    /// Clears a doorbell as of `now`: a ring that takes effect later makes it pending again.
    pub fn clear(&self, bell: usize, now: u64) {
        self.cleared(bell).fetch_max(now, Ordering::SeqCst);
    }

    /// Returns the time, ns, at which the first known ring on its way takes effect, or a time before it at which to
    /// check again; None if no ring is on its way.
    pub fn coming(&self, bell: usize, now: u64) -> Option<u64> {
        let (next, last) = (self.next(bell).load(Ordering::SeqCst), self.last(bell).load(Ordering::SeqCst));
        match (next > now, last > now) {
            (true, _) => Some(next),
            (false, true) => Some(last.min(now + GLANCE)),
            (false, false) => None,
        }
    }
}

/// A vector of a modelled link, whose rings take effect with a delay.
pub struct TimedVector {
    /// The vector of the wrapped ports.
    pub inner: Arc<dyn Vector>,
    /// The doorbells of both ports of the host.
    pub bells: [Bells; 2],
    /// Number of the doorbell that raises the vector.
    pub doorbell: usize,
}

impl TimedVector {
    fn coming(&self, now: u64) -> Option<u64> {
        self.bells.iter().filter_map(|bells| bells.coming(self.doorbell, now)).min()
    }
}

impl Vector for TimedVector {
    fn arm(&self) -> Ticket {
        let ticket = self.inner.arm();
        // A ring from before the arming that takes effect after it must end the sleep, too: with an outdated ticket the
        // inner sleep returns at once, and `sleep` waits until the ring takes effect.
        match self.coming(clock::now()) {
            Some(_) => Ticket { rings: ticket.rings.wrapping_sub(1), ..ticket },
            None => ticket,
        }
    }

    fn ticket(&self) -> Ticket {
        let ticket = self.inner.ticket();
        match self.coming(clock::now()) {
            Some(_) => Ticket { rings: ticket.rings.wrapping_sub(1), ..ticket },
            None => ticket,
        }
    }

    fn sleep(&self, ticket: Ticket, timeout: Duration) -> bool {
        let begin = clock::now();
        let rung = self.inner.sleep(ticket, timeout);
        let now = clock::now();
        let over = self.bells.iter().any(|bells| bells.took_effect(self.doorbell, begin, now));
        if rung && !over {
            // The sleeper was woken when the doorbell was rung, which is before the ring takes effect.
            if let Some(moment) = self.coming(now) {
                let end = begin.saturating_add(timeout.as_nanos().min(u64::MAX.into()) as u64);
                clock::wait_until(moment.min(end));
            }
        }
        rung
    }

    fn disarm(&self) {
        self.inner.disarm()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn bells() -> Bells {
        Bells::new(Region::anonymous(METER))
    }

    #[test]
    fn a_ring_is_pending_from_its_moment_until_it_is_cleared() {
        let bells = bells();
        bells.announce(3, 200, 100);
        assert!(!bells.is_pending(3, 199) && bells.is_pending(3, 200) && !bells.is_pending(2, 300));
        assert_eq!((bells.coming(3, 150), bells.coming(3, 200)), (Some(200), None));
        bells.clear(3, 250);
        assert!(!bells.is_pending(3, 300));
        bells.announce(3, 400, 300);
        // Cleared while the ring is on its way: it comes nevertheless.
        bells.clear(3, 350);
        assert!(!bells.is_pending(3, 399) && bells.is_pending(3, 400));
    }

    #[test]
    fn rings_that_never_cease_are_noticed() {
        let bells = bells();
        let mut pending = 0;
        for now in (1000..9000).step_by(10) {
            bells.announce(0, now + 500, now);
            if bells.is_pending(0, now) {
                pending += 1;
                bells.clear(0, now);
            }
        }
        assert!(pending >= 8000 / 500 - 2, "{pending}");
    }

    proptest! {
        #[test]
        fn no_ring_is_lost_and_none_comes_early(steps in prop::collection::vec((0u64..300, 1u64..1000, any::<bool>()), 1..60)) {
            let bells = bells();
            let (mut now, mut moments, mut cleared) = (10_000, Vec::<u64>::new(), 0);
            for (pause, delay, clear) in steps {
                now += pause;
                // One link keeps the order.
                let moment = moments.last().map_or(0, |m| m + 1).max(now + delay);
                bells.announce(1, moment, now);
                moments.push(moment);
                let truth = |now| moments.iter().any(|m| *m > cleared && *m <= now);
                prop_assert!(!bells.is_pending(1, now) || truth(now));
                prop_assert!(bells.coming(1, now).is_some());
                prop_assert!(bells.coming(1, now).unwrap() > now);
                if clear {
                    bells.clear(1, now);
                    cleared = now;
                }
            }
            let last = *moments.last().unwrap();
            prop_assert!(bells.is_pending(1, last));
            prop_assert!(bells.coming(1, last).is_none());
        }
    }
}
