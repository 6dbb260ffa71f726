//! The retransmission thread: it steps the carrier while the rank computes or waits without polling.

use super::Carrier;
use crate::EndpointError;
use ntbring_host::thread;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Interval between two steps while the carrier has work pending.
const PAUSE: Duration = Duration::from_millis(1);
/// Interval between two steps otherwise.
const REST: Duration = Duration::from_millis(10);

/// A carrier with the thread that steps it whenever the rank does not.
pub struct Caretaker {
    carrier: Arc<Mutex<Carrier>>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Caretaker {
    /// Starts the thread. `wake` wakes the rank if it sleeps.
    pub fn start(carrier: Carrier, wake: impl Fn() + Send + 'static) -> std::io::Result<Caretaker> {
        let (carrier, stop) = (Arc::new(Mutex::new(carrier)), Arc::new(AtomicBool::new(false)));
        let (with, stopped) = (carrier.clone(), stop.clone());
        let thread = thread::spawn("ntbring-carrier", move || run(&with, &stopped, wake))?;
        Ok(Caretaker { carrier, stop, thread: Some(thread) })
    }

    /// Locks and returns the carrier.
    pub fn carrier(&self) -> MutexGuard<'_, Carrier> {
        self.carrier.lock().unwrap_or_else(broken)
    }

    /// Stops and joins the thread.
    pub fn stop(&mut self) {
        self.stop.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            let _ = thread.join();
        }
    }
}

impl Drop for Caretaker {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Recovers a poisoned lock. A thread has panicked in the middle of a step, so the carrier is marked as failed.
fn broken(guard: PoisonError<MutexGuard<'_, Carrier>>) -> MutexGuard<'_, Carrier> {
    let mut carrier = guard.into_inner();
    let text = "a fault in libntbring: the carrier has panicked".to_string();
    carrier.fault.get_or_insert_with(|| Arc::new(EndpointError::Argument(text)));
    carrier
}

fn run(carrier: &Mutex<Carrier>, stop: &AtomicBool, wake: impl Fn()) {
    let (mut seen, mut pause) = (0, REST);
    while !stop.load(Ordering::Acquire) {
        std::thread::park_timeout(pause);
        let mut carrier = match carrier.try_lock() {
            Ok(carrier) => carrier,
            Err(TryLockError::Poisoned(e)) => broken(e),
            Err(TryLockError::WouldBlock) => continue,
        };
        // If the rank polls, its own steps have lower latency.
        let rank_is_at_it = std::mem::replace(&mut seen, carrier.steps) != carrier.steps;
        if !rank_is_at_it && carrier.fault.is_none() {
            // The rank must see the new entries, or the error.
            if carrier.step(Instant::now()).unwrap_or(true) {
                wake();
            }
            seen = carrier.steps;
        }
        pause = if carrier.is_waiting() { PAUSE } else { REST };
    }
}
