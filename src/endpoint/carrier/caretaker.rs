//! The thread that carries on while the rank computes, or waits where nobody polls.

use super::Carrier;
use crate::EndpointError;
use ntbring_host::thread;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Between two looks, if something is under way.
const PAUSE: Duration = Duration::from_millis(1);
/// Otherwise.
const REST: Duration = Duration::from_millis(10);

/// A carrier, and a thread that looks after it whenever the rank does not.
pub struct Caretaker {
    carrier: Arc<Mutex<Carrier>>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Caretaker {
    /// Starts the thread. `wake` wakes the rank, if it sleeps.
    pub fn start(carrier: Carrier, wake: impl Fn() + Send + 'static) -> std::io::Result<Caretaker> {
        let (carrier, stop) = (Arc::new(Mutex::new(carrier)), Arc::new(AtomicBool::new(false)));
        let (with, stopped) = (carrier.clone(), stop.clone());
        let thread = thread::spawn("ntbring-carrier", move || run(&with, &stopped, wake))?;
        Ok(Caretaker { carrier, stop, thread: Some(thread) })
    }

    /// The carrier.
    pub fn carrier(&self) -> MutexGuard<'_, Carrier> {
        self.carrier.lock().unwrap_or_else(broken)
    }

    /// Ends the thread.
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

/// Somebody has panicked in the middle of something: it must not go on.
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
        // Whoever polls does it better.
        let rank_is_at_it = std::mem::replace(&mut seen, carrier.steps) != carrier.steps;
        if !rank_is_at_it && carrier.fault.is_none() {
            // The rank sees what has come, or the error.
            if carrier.step(Instant::now()).unwrap_or(true) {
                wake();
            }
            seen = carrier.steps;
        }
        pause = if carrier.is_waiting() { PAUSE } else { REST };
    }
}
