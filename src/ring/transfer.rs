//! The transfer thread: one a host, in the process of its first rank. It sleeps on the forwarder's
//! doorbell and passes on what arrives, or serves it, whatever the ranks are doing.
//!
//! While that rank polls, it forwards as well, and waking the thread for every packet would cost
//! more than the packet. So the thread then leaves the doorbell disarmed and only looks now and
//! then whether the rank still polls ([`Lease`]).

use super::cores::{self, Cores};
use super::relay::{Forwarder, RelayCounters, RelayError};
use crate::ntb::Vector;
use nix::sys::signal::{pthread_sigmask, SigSet, SigmaskHow};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, OnceLock, TryLockError};
use std::thread::JoinHandle;
use std::time::Duration;

/// Fruitless rounds, with a yield each, before the thread sleeps.
const ROUNDS: u32 = 4;
/// The longest sleep. Doorbells end it; this bounds the harm of a lost one.
const SLEEP: Duration = Duration::from_millis(500);

/// The sleep of a thread with requests that wait for a lock, since nobody rings when it is given back.
const NAP: Duration = Duration::from_micros(50);

/// The longest that a rank which stops polling without a word holds up what is in transit.
const LEASE: Duration = Duration::from_millis(1);

/// The agreement between a transfer thread and the rank that forwards beside it.
pub struct Lease {
    vector: Arc<dyn Vector>,
    /// Goes up with every poll of the rank.
    polls: AtomicU32,
    /// The rank has armed the vector in the thread's name.
    handed: AtomicBool,
}

impl Lease {
    fn poll(&self) {
        // The rank is the only writer.
        self.polls.store(self.polls.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
    }

    /// To be called by the rank before it looks for work for the last time and goes to sleep: from
    /// here on the doorbell wakes the thread.
    pub fn hand_over(&self) {
        self.vector.arm();
        if self.handed.swap(true, Ordering::AcqRel) {
            self.vector.disarm();
        }
    }

    /// To be called by the rank when it polls again, and by the thread when it has armed itself.
    pub fn take_back(&self) {
        if self.handed.swap(false, Ordering::AcqRel) {
            self.vector.disarm();
        }
    }
}

/// A running transfer thread and the forwarder it shares with the rank that polls beside it.
pub struct Transfer {
    shared: Arc<Shared>,
    lease: Arc<Lease>,
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

    /// A step, and how long there may be none after it if it has moved nothing.
    fn step_locked(&self) -> (usize, Duration) {
        let mut forwarder = self.forwarder.lock().unwrap_or_else(|e| e.into_inner());
        let moved = self.step(&mut forwarder);
        (moved, if forwarder.is_waiting() { NAP } else { SLEEP })
    }
}

impl Transfer {
    /// Starts the thread. `vector` is the forwarder's; `wake` rings it from inside the host; `cores` is where it is to
    /// run, if not where this process does.
    pub fn start(
        forwarder: Forwarder,
        counters: Arc<RelayCounters>,
        vector: Arc<dyn Vector>,
        wake: impl Fn() + Send + Sync + 'static,
        cores: Option<Cores>,
    ) -> std::io::Result<Transfer> {
        let shared =
            Arc::new(Shared { forwarder: Mutex::new(forwarder), fault: OnceLock::new(), stop: AtomicBool::new(false) });
        let lease = Arc::new(Lease { vector, polls: AtomicU32::new(0), handed: AtomicBool::new(false) });
        let (for_thread, with) = (shared.clone(), lease.clone());
        // Signals belong to the application: the thread is born with all of them blocked.
        let mut before = SigSet::empty();
        pthread_sigmask(SigmaskHow::SIG_SETMASK, Some(&SigSet::all()), Some(&mut before))?;
        let thread =
            std::thread::Builder::new().name("ntbring-transfer".into()).stack_size(256 << 10).spawn(move || {
                cores.iter().for_each(cores::bind);
                run(&for_thread, &counters, &with)
            });
        pthread_sigmask(SigmaskHow::SIG_SETMASK, Some(&before), None)?;
        Ok(Transfer { shared, lease, wake: Box::new(wake), thread: Some(thread?) })
    }

    /// What the rank that calls [`Transfer::assist`] has to respect when it sleeps.
    pub fn lease(&self) -> Arc<Lease> {
        self.lease.clone()
    }

    /// Forwards at once, from a rank that is polling anyway, unless the thread is at it.
    pub fn assist(&self) -> usize {
        self.lease.poll();
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
        self.lease.vector.arm();
        (self.wake)();
        self.lease.vector.disarm();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn run(shared: &Shared, counters: &RelayCounters, lease: &Lease) {
    let vector = lease.vector.as_ref();
    let (mut fruitless, mut polls) = (0, 0);
    while !shared.stop.load(Ordering::Acquire) {
        if shared.step_locked().0 > 0 {
            fruitless = 0;
            continue;
        }
        let polled = lease.polls.load(Ordering::Relaxed);
        if polled != std::mem::replace(&mut polls, polled) {
            // If the rank hands over after this, a ring changes the ticket.
            let ticket = vector.ticket();
            if !lease.handed.load(Ordering::Acquire) {
                vector.sleep(ticket, LEASE);
                continue;
            }
        }
        fruitless += 1;
        if fruitless < ROUNDS {
            std::thread::yield_now();
            continue;
        }
        // Anew, even if the rank has armed it: it may have been rung since.
        let ticket = vector.arm();
        lease.take_back();
        let (moved, pause) = shared.step_locked();
        if moved == 0 && !shared.stop.load(Ordering::Acquire) {
            counters.sleeps.fetch_add(1, Ordering::Relaxed);
            vector.sleep(ticket, pause);
        }
        vector.disarm();
        fruitless = 0;
    }
}
