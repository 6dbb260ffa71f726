//! Waiting: a rank spins, then yields, then sleeps until its doorbell rings. While it waits, it also notices that a
//! process of the job has died or that a link has gone down.

use super::spins::{
    spins_after, NO_SWITCH, NO_SWITCH_OWN_CORE, SPINS_ALONE, SPINS_FREE, SPINS_OVERSUBSCRIBED, SPINS_QUIET,
};
use super::wait_times::WaitTimes;
use crate::observation::Histogram;
use crate::settings::Settings;
use ntbring_host::backoff;
use ntbring_host::StatsPage;
use ntbring_ntb::{Ticket, Vector};
use ntbring_ring::forwarder_threads::Lease;
use ntbring_ring::liveness::Listener;
use ntbring_ring::{rank_doorbell, Failures, Membership, OutageFlood};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Interval between two checks for dead processes and failed links.
const WATCH_EVERY: Duration = Duration::from_millis(100);
/// Maximum age of the published counters, and of the knowledge about external peers, while the rank looks at the clock
/// at all.
const STOCK_EVERY: Duration = Duration::from_secs(1);
/// Longest sleep of a rank that may have to retransmit messages.
const HURRY: Duration = Duration::from_millis(1);
/// Fruitless polls between two looks at the clock, on ranks that do not sleep.
const CLOCK_EVERY: u32 = 1024;

/// A number of calls that no rank reaches.
const NEVER: u32 = u32::MAX;

/// Further polls that one call of [`Idle::wait`] permits before the next call, while the rank spins with many polls
/// to go.
const FREE: u32 = 7;

/// The waiting strategy of one rank. Any thread may use it at any time.
pub struct Idle {
    members: Arc<Membership>,
    vector: Arc<dyn Vector>,
    /// The rank's duty to do the forwarder thread's work while it polls, if there is such a thread.
    lease: Option<Arc<Lease>>,
    spins: AtomicU32,
    /// Upper limit of `spins` while yields show that no other process wants the core, and the longest such yield;
    /// None: `spins` is fixed.
    quiet: Option<(u32, Duration)>,
    yields: u32,
    /// Longest sleep, regardless of the caller's limit: bounded so that receive timeouts are checked.
    longest: Duration,
    /// Calls since the last event, and their number at the last [`Idle::tested`].
    calls: AtomicU32,
    calls_when_tested: AtomicU32,
    armed: AtomicBool,
    /// True while polls may be rare, because the rank sleeps in between or only tests: each should look at everything.
    rare: AtomicBool,
    /// True while the rank sleeps.
    asleep: AtomicBool,
    /// Sleeps since the last event, for the back-off.
    vain: AtomicU32,
    /// True if work may be due soon even though no doorbell rings.
    hurried: AtomicBool,
    waiter: Mutex<Waiter>,
    /// Failures observed so far (dead processes and links that are down), and their number; both only grow.
    failures: Mutex<Failures>,
    extent: AtomicUsize,
    sleeps: AtomicU64,
    /// The page on which the rank publishes its counters.
    stats_page: StatsPage,
    /// True if the published counters are out of date.
    stock: AtomicBool,
    times: WaitTimes,
}

struct Waiter {
    ticket: Option<Ticket>,
    watched: Instant,
    stocked: Instant,
    /// Passes the states of links on to other hosts, if no other process of the host does.
    outage_flood: Option<OutageFlood>,
    listener: Listener,
}

impl Idle {
    /// Creates the strategy of a rank that has joined the ring.
    pub fn new(
        members: Arc<Membership>,
        settings: &Settings,
        lease: Option<Arc<Lease>>,
        stats_page: StatsPage,
    ) -> Idle {
        let topology = members.topology();
        let vector = members.vector(rank_doorbell(topology.local_of(members.rank())));
        // The emulated hosts share one machine.
        let oversubscribed = members.is_oversubscribed();
        let spins = settings.endpoint.spin.unwrap_or(if oversubscribed { SPINS_OVERSUBSCRIBED } else { SPINS_ALONE });
        let quiet = if oversubscribed { (SPINS_QUIET, NO_SWITCH) } else { (SPINS_ALONE, NO_SWITCH_OWN_CORE) };
        let quiet = settings.endpoint.spin.is_none().then_some(quiet);
        let range = if quiet.is_some() { " (adapted to other users of the core)" } else { "" };
        log::debug!("{spins} polls{range}, {} yields, then sleep", settings.endpoint.yields);
        let outage_flood =
            (!members.is_served() && topology.local_of(members.rank()) == 0).then(|| OutageFlood::new(&members));
        let listener = Listener::default();
        let receive_timeout = settings.links.faults.as_ref().and_then(|faults| faults.receive_timeout);
        Idle {
            vector,
            lease,
            spins: AtomicU32::new(spins),
            quiet,
            yields: settings.endpoint.yields,
            longest: receive_timeout.map_or(Duration::MAX, |receive_timeout| receive_timeout / 4),
            calls: AtomicU32::new(0),
            calls_when_tested: AtomicU32::new(0),
            armed: AtomicBool::new(false),
            rare: AtomicBool::new(false),
            asleep: AtomicBool::new(false),
            vain: AtomicU32::new(0),
            hurried: AtomicBool::new(false),
            waiter: Mutex::new(Waiter {
                ticket: None,
                watched: Instant::now(),
                stocked: Instant::now(),
                outage_flood,
                listener,
            }),
            failures: Mutex::default(),
            extent: AtomicUsize::new(0),
            sleeps: AtomicU64::new(0),
            stats_page,
            stock: AtomicBool::new(false),
            times: WaitTimes::new(Instant::now()),
            members,
        }
    }

    /// Restarts with spinning. To be called whenever something was found.
    #[inline]
    pub fn busy(&self) {
        self.calls.store(0, Ordering::Relaxed);
        if self.armed.load(Ordering::Relaxed) {
            self.disarm();
        }
    }

    /// True if the next [`Idle::wait`] would return at once.
    #[inline]
    pub fn is_spinning(&self) -> bool {
        self.calls.load(Ordering::Relaxed) < self.spins.load(Ordering::Relaxed)
    }

    /// True if polls may be rare: the rank may sleep after the next one, has just slept, or polls without waiting.
    #[inline]
    pub fn polls_are_rare(&self) -> bool {
        self.rare.load(Ordering::Relaxed)
    }

    /// To be called when nothing was found. Sleeps for at most about `max`, or longer after many sleeps without an
    /// event, and only if nothing was found since the previous call either. Returns the number of polls that may
    /// follow before the next call; that call then stands for them, too. `progress`: the caller has found something
    /// else meanwhile, so another wait begins.
    pub fn wait(&self, max: Duration, progress: bool) -> u32 {
        // Two threads may count the same call; it is sufficient that the count grows.
        let calls = self.calls.load(Ordering::Relaxed);
        let spins = self.spins.load(Ordering::Relaxed);
        if calls == 0 {
            self.vain.store(0, Ordering::Relaxed);
        }
        if calls == 0 || progress {
            self.times.begin();
        }
        if calls < spins {
            // No pause instruction: the caller's work between two polls takes longer than one.
            let free = if spins < SPINS_FREE { 0 } else { FREE };
            self.calls.store(calls + 1 + free, Ordering::Relaxed);
            self.rare.store(false, Ordering::Relaxed);
            return free;
        }
        self.calls.store(calls.wrapping_add(1), Ordering::Relaxed);
        if calls - spins < self.yields || max.is_zero() {
            self.vain.store(0, Ordering::Relaxed);
            self.rare.store(false, Ordering::Relaxed);
            let (before, after) = self.give_way(spins);
            self.times.look(before, after);
            if calls % CLOCK_EVERY == CLOCK_EVERY - 1 {
                self.watch();
            }
            return 0;
        }
        let Ok(mut waiter) = self.waiter.try_lock() else {
            std::thread::yield_now();
            return 0;
        };
        // Prevents the counter from wrapping back to the spinning range.
        self.calls.store(spins + self.yields, Ordering::Relaxed);
        self.rare.store(true, Ordering::Relaxed);
        match waiter.ticket.take() {
            // Any ring after arming ends the sleep; the caller polls once more before it sleeps.
            None => {
                waiter.ticket = Some(self.vector.arm());
                if let Some(lease) = &self.lease {
                    lease.hand_over();
                }
                self.armed.store(true, Ordering::Relaxed);
            }
            Some(ticket) => {
                self.sleeps.fetch_add(1, Ordering::Relaxed);
                // Tells `tested` that the rank sleeps between polls, which the constant number of calls does not show.
                self.calls_when_tested.store(NEVER, Ordering::Relaxed);
                let hurried = self.hurried.load(Ordering::Relaxed);
                let vain = self.vain.fetch_add(1, Ordering::Relaxed);
                let max = backoff(max, vain).min(self.longest);
                let before = Instant::now();
                self.asleep.store(true, Ordering::Relaxed);
                self.vector.sleep(ticket, if hurried { max.min(HURRY) } else { max });
                self.asleep.store(false, Ordering::Relaxed);
                self.times.has_slept(before, Instant::now());
                self.awake();
                drop(waiter);
                self.watch();
            }
        }
        0
    }

    /// Spins or yields between two polls of one location, for a caller that regularly polls everything and then calls
    /// [`Idle::wait`]. It is not counted, and it does not measure the yield, because that takes as long as a poll.
    #[inline]
    pub fn pause(&self) {
        if self.gives_way() {
            std::thread::yield_now();
        }
    }

    /// True if [`Idle::pause`] would yield.
    #[inline]
    pub fn gives_way(&self) -> bool {
        self.spins.load(Ordering::Relaxed) < SPINS_FREE || !self.is_spinning()
    }

    /// Yields, and adapts `spins` to the duration of the yield, which shows if other processes want the core. Returns
    /// the times before and after it.
    fn give_way(&self, spins: u32) -> (Instant, Instant) {
        let before = Instant::now();
        std::thread::yield_now();
        let after = Instant::now();
        if let Some(quiet) = self.quiet {
            self.spins.store(spins_after(spins, after - before, quiet), Ordering::Relaxed);
        }
        (before, after)
    }

    /// To be called when the rank will not poll for a while (`rests`), and when it polls again.
    pub fn rest(&self, rests: bool) {
        match (&self.lease, rests) {
            (Some(lease), true) => lease.hand_over(),
            (Some(lease), false) => lease.take_back(),
            (None, _) => {}
        }
    }

    fn disarm(&self) {
        if let Ok(mut waiter) = self.waiter.try_lock() {
            if waiter.ticket.take().is_some() {
                self.vain.store(0, Ordering::Relaxed);
                self.awake();
            }
        }
    }

    /// Undoes the arming of the doorbell.
    fn awake(&self) {
        self.vector.disarm();
        if let Some(lease) = &self.lease {
            lease.take_back();
        }
        self.armed.store(false, Ordering::Relaxed);
    }

    /// Checks for dead processes and failed links, if the last check is long enough ago.
    fn watch(&self) {
        let Ok(mut waiter) = self.waiter.try_lock() else { return };
        if waiter.watched.elapsed() < WATCH_EVERY {
            return;
        }
        waiter.watched = Instant::now();
        if let Some(outage_flood) = &mut waiter.outage_flood {
            outage_flood.attend(Instant::now());
        }
        for said in waiter.listener.listen(&self.members) {
            log::warn!("{said}");
        }
        let failures = self.members.failures();
        let extent = failures.extent();
        if extent > self.extent() {
            *self.failures.lock().unwrap_or_else(PoisonError::into_inner) = failures;
            self.extent.store(extent, Ordering::Release);
        }
        if waiter.stocked.elapsed() >= STOCK_EVERY {
            waiter.stocked = Instant::now();
            // The rank learns that when it next looks into its mailbox.
            self.stock.store(true, Ordering::Relaxed);
            self.stats_page.nudge();
        }
    }

    /// Returns true once when the rank's counters are due to be published.
    pub fn takes_stock(&self) -> bool {
        self.stock.swap(false, Ordering::Relaxed)
    }

    /// Sets or clears the flag that work may be due soon even though no doorbell rings.
    pub fn hurry(&self, hurried: bool) {
        self.hurried.store(hurried, Ordering::Relaxed);
    }

    /// Returns the number of failures observed so far ([`Failures::extent`]).
    #[inline]
    pub fn extent(&self) -> usize {
        self.extent.load(Ordering::Acquire)
    }

    /// Returns the failures observed so far.
    pub fn failures(&self) -> Failures {
        self.failures.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// True if the rank sleeps.
    pub fn is_asleep(&self) -> bool {
        self.asleep.load(Ordering::Relaxed)
    }

    /// Wakes the thread that sleeps on the rank's doorbell.
    pub fn ring(&self) {
        self.members.ring(rank_doorbell(self.members.topology().local_of(self.members.rank())));
    }

    /// Arms the doorbell for a thread that polls in the rank's place: any ring from now on ends its sleep. The caller
    /// must poll once more before it sleeps.
    pub fn doze(&self) -> Doze<'_> {
        Doze { ticket: self.vector.arm(), vector: self.vector.as_ref() }
    }

    /// Performs the periodic checks for callers whose polls are not followed by [`Idle::wait`].
    pub fn glance(&self) {
        self.watch();
    }

    /// To be called after `polls` fruitless polls. If none of them was followed by [`Idle::wait`], as when a program
    /// calls MPI_Test in a loop, they count as waits, except that the rank does not sleep: the peer that the program
    /// waits for may need the core.
    pub fn tested(&self, polls: u32) {
        let mut calls = self.calls.load(Ordering::Relaxed);
        if calls == self.calls_when_tested.load(Ordering::Relaxed) {
            self.times.begin();
            let spins = self.spins.load(Ordering::Relaxed);
            if calls < spins {
                calls = spins.min(calls + polls);
                self.calls.store(calls, Ordering::Relaxed);
            } else {
                self.rare.store(true, Ordering::Relaxed);
                self.give_way(spins);
                self.watch();
            }
        }
        self.calls_when_tested.store(calls, Ordering::Relaxed);
    }

    /// Returns for how long the rank has been waiting since its first yield; 0 if it does not wait.
    pub fn waiting(&self) -> Duration {
        match self.calls.load(Ordering::Relaxed) {
            0 => Duration::ZERO,
            _ => self.times.lasting(Instant::now()),
        }
    }

    /// Returns the durations of all waits that have ended, from their first yields.
    pub fn wait_times(&self) -> Histogram {
        self.times.ended(self.calls.load(Ordering::Relaxed) > 0)
    }

    /// Sets the index of the endpoint among those of its process, for the timeline.
    pub fn set_vci(&self, vci: u32) {
        self.times.vci.store(vci as u8, Ordering::Relaxed);
    }

    /// To be called when the rank will not wait any more.
    pub fn end(&self) {
        self.times.record_latest();
    }

    /// Returns the number of sleeps.
    pub fn sleeps(&self) -> u64 {
        self.sleeps.load(Ordering::Relaxed)
    }
}

/// An armed doorbell, before the sleep.
pub struct Doze<'a> {
    vector: &'a dyn Vector,
    ticket: Ticket,
}

impl Doze<'_> {
    /// Sleeps until the rank's doorbell rings, at most for `max`.
    pub fn sleep(self, max: Duration) {
        self.vector.sleep(self.ticket, max);
    }
}

impl Drop for Doze<'_> {
    fn drop(&mut self) {
        self.vector.disarm();
    }
}
