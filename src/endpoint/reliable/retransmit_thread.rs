//! The progress thread of the reliable connections: it steps them while the rank computes or waits without polling.

use super::connections::ReliableConnections;
use crate::progress_thread::ProgressThread;
use ntbring_ring::{rank_doorbell, Membership};
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Interval between two steps while the connections have work pending.
const PAUSE: Duration = Duration::from_millis(1);
/// Interval between two steps otherwise.
const REST: Duration = Duration::from_millis(10);

/// The reliable connections of a rank, with the thread that steps them whenever the rank does not.
pub struct RetransmitThread(ProgressThread<ReliableConnections>);

impl RetransmitThread {
    /// Starts the thread of a rank. It wakes the rank if that sleeps and has to look at its lanes.
    pub fn start(reliable: ReliableConnections, members: &Arc<Membership>) -> std::io::Result<RetransmitThread> {
        let (members, bell) = (members.clone(), rank_doorbell(members.topology().local_of(members.rank())));
        let mut seen = 0;
        let step = move |reliable: &mut ReliableConnections| {
            // If the rank polls, its own steps have lower latency.
            let rank_is_at_it = std::mem::replace(&mut seen, reliable.steps()) != reliable.steps();
            if !rank_is_at_it && !reliable.has_failed() {
                // The rank must see the new entries, or the error.
                if reliable.step(Instant::now()).unwrap_or(true) {
                    members.ring(bell);
                }
                seen = reliable.steps();
            }
            Some(if reliable.is_waiting() { PAUSE } else { REST })
        };
        ProgressThread::start("ntbring-resend", reliable, REST, step).map(RetransmitThread)
    }

    /// Locks and returns the reliable connections.
    pub fn reliable(&self) -> MutexGuard<'_, ReliableConnections> {
        self.0.lock().unwrap_or_else(broken)
    }

    /// Stops and joins the thread.
    pub fn stop(&mut self) {
        self.0.stop();
    }
}

/// Recovers a poisoned lock. A thread has panicked in the middle of a step, so the connections are marked as failed.
fn broken(guard: PoisonError<MutexGuard<'_, ReliableConnections>>) -> MutexGuard<'_, ReliableConnections> {
    let mut reliable = guard.into_inner();
    reliable.fail("a fault in libntbring: the reliable connection has panicked");
    reliable
}
