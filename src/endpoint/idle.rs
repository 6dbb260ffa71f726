//! Waiting: spin, then yield, then sleep until the rank's doorbell rings; and noticing, while at
//! it, that a process of the job is gone, or a link.

use crate::Settings;
use ntbring_host::backoff;
use ntbring_host::Bulletin;
use ntbring_ntb::Vector;
use ntbring_ring::transfer::Lease;
use ntbring_ring::{rank_doorbell, Damage, Herald, Membership};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Time between two looks at whether everybody is alive.
const WATCH_EVERY: Duration = Duration::from_millis(100);
/// How old what others can read of a rank's counters, and what it knows of guests, may become, if it looks at the clock at all.
const STOCK_EVERY: Duration = Duration::from_secs(1);
/// The longest sleep of a rank whose messages may have been damaged on their way.
const HURRY: Duration = Duration::from_millis(1);
/// Fruitless polls between two looks at the clock, by ranks that do not sleep.
const CLOCK_EVERY: u32 = 1024;

/// Polls that one call of [`Idle::wait`] allows beside the one before it, of a rank with many to go.
const FREE: u32 = 7;

/// Polls between two yields, of a rank that has a core while nobody else wants it.
const SPINS_ALONE: u32 = 2000;
/// Of a rank that shares its core with others that want it, be they of the job or not.
const SPINS_CROWDED: u32 = 2;
/// Of a rank of a job with more ranks than cores, while nobody else wants the core. Few: who is woken meanwhile, say to
/// forward something, waits for the next yield.
const SPINS_QUIET: u32 = 16;
/// From so many polls between two yields on a rank may do without looking at the clock, or whether it should yield.
const SPINS_FREE: u32 = 128;
/// A yield that takes less gave the core to nobody: it takes about 0.2 us then, else over 1 us.
const NOBODY: Duration = Duration::from_nanos(600);
/// The same where nobody of the job can want the core: other programs keep it for longer, and a yield that is slow
/// for other reasons must not make a rank slow.
const NO_STRANGER: Duration = Duration::from_micros(20);

/// The waiting of one rank. Any thread may use it at any time.
pub struct Idle {
    members: Arc<Membership>,
    vector: Arc<dyn Vector>,
    /// What this rank owes the transfer thread, if it polls beside one.
    lease: Option<Arc<Lease>>,
    spins: AtomicU32,
    /// The most that `spins` grows to while yields tell that nobody else wants the core, and how long those take at
    /// most; None: it never changes.
    quiet: Option<(u32, Duration)>,
    yields: u32,
    /// The longest sleep, whatever is asked for: who has only so much patience must wake to lose it.
    longest: Duration,
    /// Calls since the latest event, and what they were at the latest [`Idle::tested`].
    calls: AtomicU32,
    calls_when_tested: AtomicU32,
    armed: AtomicBool,
    /// It sleeps at this moment.
    asleep: AtomicBool,
    /// Sleeps in vain since the latest event.
    vain: AtomicU32,
    /// Whether something may have to be done soon though nobody rings.
    hurried: AtomicBool,
    waiter: Mutex<Waiter>,
    /// Who has died, and which links have gone down, as far as was seen, and the extent of that: it only grows.
    damage: Mutex<Damage>,
    extent: AtomicUsize,
    sleeps: AtomicU64,
    /// Where others read what the rank counts.
    bulletin: Bulletin,
    /// It is old.
    stock: AtomicBool,
}

struct Waiter {
    ticket: Option<u32>,
    watched: Instant,
    stocked: Instant,
    /// Who passes on which links have gone down, if nobody else of the host does.
    herald: Option<Herald>,
}

impl Idle {
    /// For a rank that has joined.
    pub fn new(members: Arc<Membership>, settings: &Settings, lease: Option<Arc<Lease>>, bulletin: Bulletin) -> Idle {
        let topology = members.topology();
        let vector = members.vector(rank_doorbell(topology.local_of(members.rank())));
        // The emulated hosts share one machine.
        let crowded = members.is_crowded();
        let spins = settings.endpoint.spin.unwrap_or(if crowded { SPINS_CROWDED } else { SPINS_ALONE });
        let quiet = if crowded { (SPINS_QUIET, NOBODY) } else { (SPINS_ALONE, NO_STRANGER) };
        let quiet = settings.endpoint.spin.is_none().then_some(quiet);
        let range = if quiet.is_some() { " (more or less as others want the core)" } else { "" };
        log::debug!("{spins} polls{range}, {} yields, then sleep", settings.endpoint.yields);
        let herald = (!members.is_served() && topology.local_of(members.rank()) == 0).then(|| Herald::new(&members));
        let patience = settings.links.faults.as_ref().and_then(|faults| faults.patience);
        Idle {
            vector,
            lease,
            spins: AtomicU32::new(spins),
            quiet,
            yields: settings.endpoint.yields,
            longest: patience.map_or(Duration::MAX, |patience| patience / 4),
            calls: AtomicU32::new(0),
            calls_when_tested: AtomicU32::new(0),
            armed: AtomicBool::new(false),
            asleep: AtomicBool::new(false),
            vain: AtomicU32::new(0),
            hurried: AtomicBool::new(false),
            waiter: Mutex::new(Waiter { ticket: None, watched: Instant::now(), stocked: Instant::now(), herald }),
            damage: Mutex::default(),
            extent: AtomicUsize::new(0),
            sleeps: AtomicU64::new(0),
            bulletin,
            stock: AtomicBool::new(false),
            members,
        }
    }

    /// To be called when something was found: waiting begins anew.
    #[inline]
    pub fn busy(&self) {
        self.calls.store(0, Ordering::Relaxed);
        if self.armed.load(Ordering::Relaxed) {
            self.disarm();
        }
    }

    /// Whether the next [`Idle::wait`] would return at once.
    #[inline]
    pub fn is_spinning(&self) -> bool {
        self.calls.load(Ordering::Relaxed) < self.spins.load(Ordering::Relaxed)
    }

    /// To be called when nothing was found. Sleeps for about `max` at most, longer after a long time in vain, and only
    /// if nothing was found since the call before this one either. Returns how many polls may follow before the next
    /// call, which then stands for them, too.
    pub fn wait(&self, max: Duration) -> u32 {
        // Two threads may count the same call: what matters is that the count goes up.
        let calls = self.calls.load(Ordering::Relaxed);
        let spins = self.spins.load(Ordering::Relaxed);
        if calls == 0 {
            self.vain.store(0, Ordering::Relaxed);
        }
        if calls < spins {
            // No pause: what the caller does between two looks takes longer than one.
            let free = if spins < SPINS_FREE { 0 } else { FREE };
            self.calls.store(calls + 1 + free, Ordering::Relaxed);
            return free;
        }
        self.calls.store(calls.wrapping_add(1), Ordering::Relaxed);
        if calls - spins < self.yields || max.is_zero() {
            self.vain.store(0, Ordering::Relaxed);
            self.give_way(spins);
            if calls % CLOCK_EVERY == CLOCK_EVERY - 1 {
                self.watch();
            }
            return 0;
        }
        let Ok(mut waiter) = self.waiter.try_lock() else {
            std::thread::yield_now();
            return 0;
        };
        // Kept from wrapping round to spinning.
        self.calls.store(spins + self.yields, Ordering::Relaxed);
        match waiter.ticket.take() {
            // What is rung from here on ends the sleep; the caller looks once more before that.
            None => {
                waiter.ticket = Some(self.vector.arm());
                if let Some(lease) = &self.lease {
                    lease.hand_over();
                }
                self.armed.store(true, Ordering::Relaxed);
            }
            Some(ticket) => {
                self.sleeps.fetch_add(1, Ordering::Relaxed);
                let hurried = self.hurried.load(Ordering::Relaxed);
                let vain = self.vain.fetch_add(1, Ordering::Relaxed);
                let max = backoff(max, vain).min(self.longest);
                self.asleep.store(true, Ordering::Relaxed);
                self.vector.sleep(ticket, if hurried { max.min(HURRY) } else { max });
                self.asleep.store(false, Ordering::Relaxed);
                self.awake();
                drop(waiter);
                self.watch();
            }
        }
        0
    }

    /// Between two looks at one thing, by a caller who now and then looks at everything and then calls
    /// [`Idle::wait`]: spins or yields, and is not counted. Learns nothing: that takes as long as a look.
    #[inline]
    pub fn pause(&self) {
        if self.spins.load(Ordering::Relaxed) < SPINS_FREE || !self.is_spinning() {
            std::thread::yield_now();
        }
    }

    /// Yields, and learns from how long that takes whether others want the core.
    fn give_way(&self, spins: u32) {
        let Some(quiet) = self.quiet else { return std::thread::yield_now() };
        let before = Instant::now();
        std::thread::yield_now();
        self.spins.store(spins_after(spins, before.elapsed(), quiet), Ordering::Relaxed);
    }

    fn disarm(&self) {
        if let Ok(mut waiter) = self.waiter.try_lock() {
            if waiter.ticket.take().is_some() {
                self.vain.store(0, Ordering::Relaxed);
                self.awake();
            }
        }
    }

    /// The end of what arming began.
    fn awake(&self) {
        self.vector.disarm();
        if let Some(lease) = &self.lease {
            lease.take_back();
        }
        self.armed.store(false, Ordering::Relaxed);
    }

    /// Looks whether somebody has died, or a link has gone down, if the last look is long enough ago.
    fn watch(&self) {
        let Ok(mut waiter) = self.waiter.try_lock() else { return };
        if waiter.watched.elapsed() < WATCH_EVERY {
            return;
        }
        waiter.watched = Instant::now();
        if let Some(herald) = &mut waiter.herald {
            herald.attend(Instant::now());
        }
        let damage = self.members.damage();
        let extent = damage.extent();
        if extent > self.extent() {
            *self.damage.lock().unwrap_or_else(PoisonError::into_inner) = damage;
            self.extent.store(extent, Ordering::Release);
        }
        if waiter.stocked.elapsed() >= STOCK_EVERY {
            waiter.stocked = Instant::now();
            // The rank finds news when it next looks into its mailbox.
            self.stock.store(true, Ordering::Relaxed);
            self.bulletin.nudge();
        }
    }

    /// Whether it is time to write down what the rank counts. Once.
    pub fn takes_stock(&self) -> bool {
        self.stock.swap(false, Ordering::Relaxed)
    }

    /// Whether something may have to be done soon though nobody rings.
    pub fn hurry(&self, hurried: bool) {
        self.hurried.store(hurried, Ordering::Relaxed);
    }

    /// How much has become of the job, as far as was seen ([`Damage::extent`]).
    #[inline]
    pub fn extent(&self) -> usize {
        self.extent.load(Ordering::Acquire)
    }

    /// What.
    pub fn damage(&self) -> Damage {
        self.damage.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Whether the rank sleeps.
    pub fn is_asleep(&self) -> bool {
        self.asleep.load(Ordering::Relaxed)
    }

    /// Wakes whoever sleeps on the rank's doorbell.
    pub fn ring(&self) {
        self.members.ring(rank_doorbell(self.members.topology().local_of(self.members.rank())));
    }

    /// The sleep of somebody who polls in the rank's place: what is rung from here on ends it. Look once more before it begins.
    pub fn doze(&self) -> Doze<'_> {
        Doze { ticket: self.vector.arm(), vector: self.vector.as_ref() }
    }

    /// To be called now and then by polls that are not followed by [`Idle::wait`].
    pub fn glance(&self) {
        self.watch();
    }

    /// To be called after so many polls in vain. If none of them was followed by [`Idle::wait`], as when a program calls
    /// MPI_Test in a loop, what it tests for may need the core: they count as waits, but for sleeping.
    pub fn tested(&self, polls: u32) {
        let mut calls = self.calls.load(Ordering::Relaxed);
        if calls == self.calls_when_tested.load(Ordering::Relaxed) {
            let spins = self.spins.load(Ordering::Relaxed);
            if calls < spins {
                calls = spins.min(calls + polls);
                self.calls.store(calls, Ordering::Relaxed);
            } else {
                self.give_way(spins);
            }
        }
        self.calls_when_tested.store(calls, Ordering::Relaxed);
    }

    /// Times it has slept.
    pub fn sleeps(&self) -> u64 {
        self.sleeps.load(Ordering::Relaxed)
    }
}

/// A sleep that has not begun.
pub struct Doze<'a> {
    vector: &'a dyn Vector,
    ticket: u32,
}

impl Doze<'_> {
    /// Sleeps until the rank's doorbell rings.
    pub fn sleep(self, max: Duration) {
        self.vector.sleep(self.ticket, max);
    }
}

impl Drop for Doze<'_> {
    fn drop(&mut self) {
        self.vector.disarm();
    }
}

/// How often to poll before the next yield, if the latest one took `yielded`.
fn spins_after(spins: u32, yielded: Duration, (quiet, nobody): (u32, Duration)) -> u32 {
    if yielded < nobody {
        (2 * spins).min(quiet)
    } else {
        SPINS_CROWDED
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spins_grow_while_nobody_wants_the_core() {
        let quick = Duration::from_nanos(200);
        let crowded = (SPINS_QUIET, NOBODY);
        assert_eq!(spins_after(SPINS_CROWDED, quick, crowded), 2 * SPINS_CROWDED);
        let grown = (0..20).fold(SPINS_CROWDED, |spins, _| spins_after(spins, quick, crowded));
        assert_eq!(grown, SPINS_QUIET);
        // Somebody has had the core.
        assert_eq!(spins_after(grown, Duration::from_micros(3), crowded), SPINS_CROWDED);
        // A rank with a core of its own minds only those who keep it.
        let alone = (SPINS_ALONE, NO_STRANGER);
        assert_eq!(spins_after(SPINS_ALONE, Duration::from_micros(3), alone), SPINS_ALONE);
        assert_eq!(spins_after(SPINS_ALONE, Duration::from_micros(100), alone), SPINS_CROWDED);
    }
}
