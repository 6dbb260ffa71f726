//! The progress thread of the carrier: it steps the carrier while the rank computes or waits without polling.

use super::connections::Carrier;
use crate::progress_thread::ProgressThread;
use ntbring_ring::{rank_doorbell, Membership};
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Interval between two steps while the carrier has work pending.
const PAUSE: Duration = Duration::from_millis(1);
/// Interval between two steps otherwise.
const REST: Duration = Duration::from_millis(10);

/// A carrier with the thread that steps it whenever the rank does not.
pub struct Caretaker(ProgressThread<Carrier>);

impl Caretaker {
    /// Starts the thread of a rank. It wakes the rank if that sleeps and has to look at its lanes.
    pub fn start(carrier: Carrier, members: &Arc<Membership>) -> std::io::Result<Caretaker> {
        let (members, bell) = (members.clone(), rank_doorbell(members.topology().local_of(members.rank())));
        let mut seen = 0;
        let step = move |carrier: &mut Carrier| {
            // If the rank polls, its own steps have lower latency.
            let rank_is_at_it = std::mem::replace(&mut seen, carrier.steps()) != carrier.steps();
            if !rank_is_at_it && !carrier.has_failed() {
                // The rank must see the new entries, or the error.
                if carrier.step(Instant::now()).unwrap_or(true) {
                    members.ring(bell);
                }
                seen = carrier.steps();
            }
            Some(if carrier.is_waiting() { PAUSE } else { REST })
        };
        ProgressThread::start("ntbring-carrier", carrier, REST, step).map(Caretaker)
    }

    /// Locks and returns the carrier.
    pub fn carrier(&self) -> MutexGuard<'_, Carrier> {
        self.0.lock().unwrap_or_else(broken)
    }

    /// Stops and joins the thread.
    pub fn stop(&mut self) {
        self.0.stop();
    }
}

/// Recovers a poisoned lock. A thread has panicked in the middle of a step, so the carrier is marked as failed.
fn broken(guard: PoisonError<MutexGuard<'_, Carrier>>) -> MutexGuard<'_, Carrier> {
    let mut carrier = guard.into_inner();
    carrier.fail("a fault in libntbring: the carrier has panicked");
    carrier
}
