//! The transfer thread: one a host, in the process of its first rank. It sleeps on the forwarder's
//! doorbell and passes on what arrives, whatever the ranks are doing.

use super::relay::{Forwarder, RelayCounters, RelayError};
use crate::ntb::Vector;
use nix::sys::signal::{pthread_sigmask, SigSet, SigmaskHow};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, TryLockError};
use std::thread::JoinHandle;
use std::time::Duration;

/// Fruitless rounds, with a yield each, before the thread sleeps.
const ROUNDS: u32 = 4;
/// The longest sleep. Doorbells end it; this bounds the harm of a lost one.
const SLEEP: Duration = Duration::from_millis(500);

/// A running transfer thread and the forwarder it shares with the rank that polls beside it.
pub struct Transfer {
    shared: Arc<Shared>,
    vector: Arc<dyn Vector>,
    wake: Box<dyn Fn() + Send + Sync>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    forwarder: Mutex<Forwarder>,
    fault: OnceLock<RelayError>,
    stop: AtomicBool,
}

impl Shared {
    /// Packets passed on, or 0 once something is wrong.
    fn step(&self, forwarder: &mut Forwarder) -> usize {
        if self.fault.get().is_some() {
            return 0;
        }
        forwarder.step().unwrap_or_else(|error| {
            log::error!("{error}; nothing is forwarded any more");
            let _ = self.fault.set(error);
            0
        })
    }

    fn step_locked(&self) -> usize {
        self.step(&mut self.forwarder.lock().unwrap_or_else(|e| e.into_inner()))
    }
}

impl Transfer {
    /// Starts the thread. `vector` is the forwarder's; `wake` rings it from inside the host.
    pub fn start(
        forwarder: Forwarder,
        counters: Arc<RelayCounters>,
        vector: Arc<dyn Vector>,
        wake: impl Fn() + Send + Sync + 'static,
    ) -> std::io::Result<Transfer> {
        let shared =
            Arc::new(Shared { forwarder: Mutex::new(forwarder), fault: OnceLock::new(), stop: AtomicBool::new(false) });
        let (for_thread, bell) = (shared.clone(), vector.clone());
        // Signals belong to the application: the thread is born with all of them blocked.
        let mut before = SigSet::empty();
        pthread_sigmask(SigmaskHow::SIG_SETMASK, Some(&SigSet::all()), Some(&mut before))?;
        let thread = std::thread::Builder::new()
            .name("ntbring-transfer".into())
            .stack_size(256 << 10)
            .spawn(move || run(&for_thread, &counters, bell.as_ref()));
        pthread_sigmask(SigmaskHow::SIG_SETMASK, Some(&before), None)?;
        Ok(Transfer { shared, vector, wake: Box::new(wake), thread: Some(thread?) })
    }

    /// Forwards at once, from a rank that is polling anyway, unless the thread is at it.
    pub fn assist(&self) -> usize {
        match self.shared.forwarder.try_lock() {
            Ok(mut forwarder) => self.shared.step(&mut forwarder),
            Err(TryLockError::Poisoned(e)) => self.shared.step(&mut e.into_inner()),
            Err(TryLockError::WouldBlock) => 0,
        }
    }

    /// What has gone wrong, if anything has.
    pub fn fault(&self) -> Option<RelayError> {
        self.shared.fault.get().cloned()
    }

    /// Lines on the state of the forwarder.
    pub fn describe(&self) -> Vec<String> {
        self.shared.forwarder.lock().unwrap_or_else(|e| e.into_inner()).describe()
    }
}

impl Drop for Transfer {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Release);
        // Seen as a sleeper, so that the ring below is not taken for needless.
        self.vector.arm();
        (self.wake)();
        self.vector.disarm();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn run(shared: &Shared, counters: &RelayCounters, vector: &dyn Vector) {
    let mut fruitless = 0;
    while !shared.stop.load(Ordering::Acquire) {
        if shared.step_locked() > 0 {
            fruitless = 0;
            continue;
        }
        fruitless += 1;
        if fruitless < ROUNDS {
            std::thread::yield_now();
            continue;
        }
        let ticket = vector.arm();
        if shared.step_locked() == 0 && !shared.stop.load(Ordering::Acquire) {
            counters.sleeps.fetch_add(1, Ordering::Relaxed);
            vector.sleep(ticket, SLEEP);
        }
        vector.disarm();
        fruitless = 0;
    }
}
