//! The forwarder threads of a host, in the process of its first rank: one, or several that have different transit
//! channels ([`super::thread_split`]). Each sleeps on its own doorbell, and forwards or serves arriving packets while
//! the ranks compute.
//!
//! While the first rank polls, it forwards as well, on behalf of all threads; waking a thread for every packet would
//! cost more than the packet. A thread then leaves its doorbell disarmed and only checks periodically whether the rank
//! still polls ([`Lease`]). If it finds work at such a check, it works beside the rank until there is nothing more to
//! do.

use super::relay::Forwarder;
use super::relay_counters::RelayCounters;
use super::route::RelayError;
use ntbring_host::backoff;
use ntbring_host::cores::{self, Cores};
use ntbring_host::thread;
use ntbring_ntb::Vector;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, OnceLock, TryLockError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Number of steps without work, each followed by a yield, before the thread sleeps.
const ROUNDS: u32 = 4;
/// Longest sleep. Doorbells end it early; the limit bounds the delay if a doorbell is lost.
const SLEEP: Duration = Duration::from_millis(500);

/// Number of steps of a busy thread between two checks of the links.
const LOOK_EVERY: u32 = 64;

/// Sleep of a thread while packets may have been damaged or lost on their way.
const CARE: Duration = Duration::from_millis(1);

/// Sleep of a thread while a copy engine works, since no doorbell rings when a copy is complete.
const COPYING: Duration = Duration::from_micros(20);

/// First sleep of a thread with requests that wait for a lock, since no doorbell rings when the lock is released.
/// Further sleeps back off.
const NAP: Duration = Duration::from_micros(50);

/// Longest time that a rank which stops polling without handing over delays packets in transit.
const LEASE: Duration = Duration::from_millis(1);

/// The same where nothing has been in transit for some time: each end of such a sleep interrupts a rank.
const QUIET_LEASE: Duration = Duration::from_millis(5);

/// Number of sleeps of [`LEASE`] after which that is so.
const QUIET_AFTER: u32 = 200;

/// Lease: agreement between the forwarder threads and the rank that does their work while it polls.
pub struct Lease {
    /// One entry for each thread.
    leased: Vec<LeasedThread>,
    /// Number of the rank's polls, modulo 2^32.
    polls: AtomicU32,
}

/// A thread's doorbell vector and its state.
struct LeasedThread {
    vector: Arc<dyn Vector>,
    /// Set if the rank has armed the vector on the thread's behalf.
    handed: AtomicBool,
}

impl LeasedThread {
    fn hand_over(&self) {
        self.vector.arm();
        if self.handed.swap(true, Ordering::AcqRel) {
            self.vector.disarm();
        }
    }

    fn take_back(&self) {
        if self.handed.swap(false, Ordering::AcqRel) {
            self.vector.disarm();
        }
    }
}

impl Lease {
    fn poll(&self) {
        // The rank is the only writer, so no atomic addition is needed.
        self.polls.store(self.polls.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
    }

    /// Lets doorbells wake the threads from here on. The rank must call this before it looks for work for the last time
    /// and goes to sleep.
    pub fn hand_over(&self) {
        self.leased.iter().for_each(LeasedThread::hand_over);
    }

    /// Ends the effect of [`Lease::hand_over`]. The rank must call this when it polls again.
    pub fn take_back(&self) {
        self.leased.iter().for_each(LeasedThread::take_back);
    }
}

/// Running forwarder threads, and the forwarder that they share with the rank that polls beside them. The threads are
/// stopped when this is dropped.
pub struct ForwarderThreads {
    shared: Arc<Shared>,
    lease: Arc<Lease>,
    wake: Box<dyn Fn(usize) + Send + Sync>,
    threads: Vec<JoinHandle<()>>,
}

struct Shared {
    /// Each thread's part of the forwarder.
    forwarders: Vec<Mutex<Forwarder>>,
    /// Set if links may damage packets (`detect` or `retry`).
    checked: bool,
    fault: OnceLock<RelayError>,
    stop: AtomicBool,
}

/// Result of a thread's step.
struct Step {
    /// Number of packets forwarded and requests served.
    moved: usize,
    /// Result of [`Forwarder::lock_queue_version`].
    lock_queue: Option<u32>,
    /// Longest time until the next step, apart from that for lock requests.
    pause: Duration,
}

impl Shared {
    /// Makes a step. Returns the number of packets passed on, or 0 once an error has occurred.
    fn step(&self, forwarder: &mut Forwarder) -> usize {
        if self.fault.get().is_some() {
            return 0;
        }
        let retransmitted = if self.checked { forwarder.look_after(Instant::now()) } else { Ok(()) };
        retransmitted.and_then(|()| forwarder.step()).unwrap_or_else(|error| {
            log::error!("{error}; nothing is forwarded any more");
            let _ = self.fault.set(error);
            0
        })
    }

    /// Makes a step, before which the thread checks the links if `look` is set.
    fn step_locked(&self, thread: usize, look: bool) -> Step {
        let mut forwarder = self.forwarders[thread].lock().unwrap_or_else(|e| e.into_inner());
        // Links are checked before the step, so that packets for a link that has gone down do not wait for the next
        // step.
        let again = look.then(|| forwarder.look_at_links(Instant::now())).flatten();
        let moved = self.step(&mut forwarder);
        let pause = match self.checked && forwarder.is_unsettled() {
            _ if forwarder.is_copying() => COPYING,
            true => CARE,
            false => forwarder.rest().map_or(SLEEP, |rest| rest.min(SLEEP)),
        };
        Step { moved, lock_queue: forwarder.lock_queue_version(), pause: again.map_or(pause, |again| pause.min(again)) }
    }
}

impl ForwarderThreads {
    /// Starts a thread for each part of a host's forwarder. `vectors` are the threads' doorbell vectors. `wake` rings
    /// one of these doorbells, given its number, from inside the host. `cores` are the cores to which the threads are
    /// bound; None leaves the threads on the cores of this process.
    pub fn start(
        forwarders: Vec<Forwarder>,
        counters: Arc<RelayCounters>,
        vectors: Vec<Arc<dyn Vector>>,
        wake: impl Fn(usize) + Send + Sync + 'static,
        cores: Option<Cores>,
    ) -> std::io::Result<ForwarderThreads> {
        let checked = forwarders.iter().any(Forwarder::is_checked);
        let forwarders = forwarders.into_iter().map(Mutex::new).collect();
        let shared = Arc::new(Shared { forwarders, checked, fault: OnceLock::new(), stop: AtomicBool::new(false) });
        let leased =
            vectors.into_iter().map(|vector| LeasedThread { vector, handed: AtomicBool::new(false) }).collect();
        let lease = Arc::new(Lease { leased, polls: AtomicU32::new(0) });
        // If a thread cannot be started, this value is dropped, which ends the threads already started.
        let mut forwarder_threads = ForwarderThreads { shared, lease, wake: Box::new(wake), threads: Vec::new() };
        for number in 0..forwarder_threads.shared.forwarders.len() {
            let (shared, lease) = (forwarder_threads.shared.clone(), forwarder_threads.lease.clone());
            let (counters, cores) = (counters.clone(), cores.clone());
            forwarder_threads.threads.push(thread::spawn("ntbring-forward", move || {
                cores.iter().for_each(cores::bind);
                run(&shared, number, &counters, &lease)
            })?);
        }
        Ok(forwarder_threads)
    }

    /// Returns the lease. A rank that calls [`ForwarderThreads::assist`] has to hand it over before it sleeps.
    pub fn lease(&self) -> Arc<Lease> {
        self.lease.clone()
    }

    /// Makes a forwarding step, from a rank that is polling anyway, for each part that no thread is working on. Returns
    /// the number of packets and requests.
    pub fn assist(&self) -> usize {
        self.lease.poll();
        let assist = |forwarder: &Mutex<Forwarder>| match forwarder.try_lock() {
            Ok(mut forwarder) => self.shared.step(&mut forwarder),
            Err(TryLockError::Poisoned(e)) => self.shared.step(&mut e.into_inner()),
            Err(TryLockError::WouldBlock) => 0,
        };
        self.shared.forwarders.iter().map(assist).sum()
    }

    /// Calls [`Forwarder::leave`] on each part: to be called when the host's ranks have nothing more to do, but other
    /// hosts' ranks may.
    pub fn leave(&self) {
        let leave = |forwarder: &Mutex<Forwarder>| forwarder.lock().unwrap_or_else(|e| e.into_inner()).leave();
        self.shared.forwarders.iter().for_each(leave);
    }

    /// Returns the error that has stopped forwarding, if there is one.
    pub fn fault(&self) -> Option<RelayError> {
        self.shared.fault.get().cloned()
    }

    /// Returns lines on the state of the forwarder.
    pub fn describe(&self) -> Vec<String> {
        let describe = |forwarder: &Mutex<Forwarder>| forwarder.lock().unwrap_or_else(|e| e.into_inner()).describe();
        self.shared.forwarders.iter().flat_map(describe).collect()
    }
}

impl Drop for ForwarderThreads {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Release);
        for (number, LeasedThread { vector, .. }) in self.lease.leased.iter().enumerate() {
            // The armed vector counts as a sleeper, so that the ring below is not omitted as unnecessary.
            vector.arm();
            (self.wake)(number);
            vector.disarm();
        }
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

fn run(shared: &Shared, number: usize, counters: &RelayCounters, lease: &Lease) {
    let thread = &lease.leased[number];
    let vector = thread.vector.as_ref();
    let (mut fruitless, mut polls, mut steps) = (0, 0, 0_u32);
    // Sleeps beside a rank that polls while nothing was in transit, and the packets and requests so far.
    let (mut leases, mut passed) = (0_u32, 0);
    // Number of sleeps without progress while the same requests wait for locks.
    let (mut vain, mut seen) = (0_u32, None);
    while !shared.stop.load(Ordering::Acquire) {
        steps = steps.wrapping_add(1);
        let quiet = leases >= QUIET_AFTER;
        if shared.step_locked(number, quiet || steps % LOOK_EVERY == 0).moved > 0 {
            (fruitless, vain) = (0, 0);
            continue;
        }
        let polled = lease.polls.load(Ordering::Relaxed);
        if polled != std::mem::replace(&mut polls, polled) {
            // If the rank hands over after this point, a ring changes the ticket.
            let ticket = vector.ticket();
            if !thread.handed.load(Ordering::Acquire) {
                let so_far = RelayCounters::sum(&counters.chunks) + counters.served.load(Ordering::Relaxed);
                let none = so_far == std::mem::replace(&mut passed, so_far);
                leases = if none { leases.saturating_add(1) } else { 0 };
                vector.sleep(ticket, if quiet { QUIET_LEASE } else { LEASE });
                continue;
            }
        }
        fruitless += 1;
        if fruitless < ROUNDS && vain == 0 {
            std::thread::yield_now();
            continue;
        }
        // The vector is armed anew, even if the rank has armed it: its doorbell may have been rung since.
        let ticket = vector.arm();
        thread.take_back();
        let Step { moved, lock_queue, pause } = shared.step_locked(number, true);
        if lock_queue != std::mem::replace(&mut seen, lock_queue) {
            vain = 0;
        }
        if moved == 0 && !shared.stop.load(Ordering::Acquire) {
            counters.sleeps.fetch_add(1, Ordering::Relaxed);
            vector.sleep(ticket, lock_queue.map_or(pause, |_| pause.min(backoff(NAP, vain))));
        }
        vain = if lock_queue.is_some() && moved == 0 { vain.saturating_add(1) } else { 0 };
        vector.disarm();
        fruitless = 0;
    }
}
