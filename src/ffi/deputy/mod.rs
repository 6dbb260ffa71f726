//! What goes on with large payloads while their rank computes.
//!
//! A payload that a receive has been found for needs nothing more from MPICH before all of it is there, but somebody has to
//! copy it, or write its pieces into lanes and take them out. The rank does, whenever it calls MPI. When it has not done so for
//! a while, its deputy enters the endpoint in its place ([`Endpoint::carry_on`]), and leaves as soon as the rank comes back.
//! The deputy has the lowest priority, so that it is in the way of nobody who computes. Not the idle class: the rank may have to
//! wait until the deputy has finished a piece, and a thread of that class may not run for long once it was interrupted.
//!
//! | file | holds |
//! |---|---|
//! | `gate` | who is inside: the rank, at next to no cost, or its deputy |
//! | `guarded` | the endpoint behind it |

mod gate;
mod guarded;

pub use guarded::{Guarded, Owned};

use ::ntbring_endpoint::{Endpoint, Idle};
use std::sync::atomic::{fence, AtomicBool, Ordering};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

/// Smaller payloads are no matter for a deputy.
pub const BULK: u64 = 256 << 10;

/// Between two looks at a rank with large payloads, at first and at last. One that has not come in between computes.
const LOOKS: (Duration, Duration) = (Duration::from_millis(1), Duration::from_millis(4));
/// Looks at a rank without large payloads before the deputy sleeps until it is called: calling costs the rank.
const PATIENCE: u32 = 250;
/// The longest sleep until it is called. Calls end it; this bounds the harm of a lost one.
const REST: Duration = Duration::from_secs(1);
/// Sleeps in which nothing moves, at first and at last. Doorbells end them.
const SLEEPS: (Duration, Duration) = (Duration::from_millis(10), Duration::from_millis(160));

/// The deputy of a rank.
pub struct Deputy {
    post: Arc<Post>,
    thread: Option<JoinHandle<()>>,
}

/// What the two share.
struct Post {
    endpoint: Arc<Guarded<Endpoint>>,
    idle: Arc<Idle>,
    /// The deputy sleeps until it is called, or is about to.
    rests: AtomicBool,
    stop: AtomicBool,
}

impl Deputy {
    /// Appoints one for an endpoint, if there is to be one. `owned` is the endpoint in the hands of its owner.
    pub fn appoint(endpoint: Arc<Guarded<Endpoint>>, owned: &Endpoint) -> Option<Deputy> {
        let (rests, stop) = (AtomicBool::new(false), AtomicBool::new(false));
        let post = Arc::new(Post { endpoint, idle: owned.idle(), rests, stop });
        let at = post.clone();
        let thread = owned.start_deputy(move || {
            give_way();
            at.run()
        })?;
        Some(Deputy { post, thread: Some(thread) })
    }

    /// To be called when a large payload gets under way, by the rank when it is not at the endpoint.
    pub fn call(&self) {
        if self.post.endpoint.is_inviting() {
            return;
        }
        self.post.endpoint.invite();
        // Either this sees that the deputy rests, or the deputy that it is invited.
        fence(Ordering::SeqCst);
        if self.post.rests.load(Ordering::Relaxed) && self.post.rests.swap(false, Ordering::Relaxed) {
            self.unpark();
        }
    }

    fn unpark(&self) {
        self.thread.iter().for_each(|thread| thread.thread().unpark());
    }
}

impl Drop for Deputy {
    fn drop(&mut self) {
        self.post.stop.store(true, Ordering::Release);
        self.unpark();
        self.post.idle.ring();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Post {
    fn run(&self) {
        let (first, last) = LOOKS;
        let (mut seen, mut pause, mut vain) = (0, first, 0);
        while !self.stop.load(Ordering::Acquire) {
            std::thread::park_timeout(pause);
            if !self.endpoint.is_inviting() {
                (pause, vain) = (last, vain + 1);
                if vain > PATIENCE && self.rest() {
                    (pause, vain) = (first, 0);
                }
                continue;
            }
            vain = 0;
            let visits = self.endpoint.visits();
            if std::mem::replace(&mut seen, visits) == visits && !self.idle.is_asleep() {
                self.stand_in(visits);
            }
            pause = (2 * pause).min(last);
        }
    }

    /// Sleeps until called, unless that has just happened. Whether it has slept.
    fn rest(&self) -> bool {
        self.rests.store(true, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        let quiet = !self.endpoint.is_inviting();
        while quiet && self.rests.load(Ordering::Relaxed) && !self.stop.load(Ordering::Acquire) {
            std::thread::park_timeout(REST);
            if self.endpoint.is_inviting() {
                break;
            }
        }
        self.rests.store(false, Ordering::Relaxed);
        quiet
    }

    /// Goes on in the place of the rank until it comes back, or nothing is left to do.
    fn stand_in(&self, visits: u32) {
        let (mut pause, longest) = SLEEPS;
        while !self.stop.load(Ordering::Acquire) {
            // Before the last look, so that nothing is missed.
            let doze = self.idle.doze();
            let Some(mut endpoint) = self.endpoint.visit(visits).filter(|endpoint| endpoint.has_bulk()) else { return };
            let mut moved = false;
            while endpoint.carry_on() {
                moved = true;
                if endpoint.is_wanted() || self.stop.load(Ordering::Acquire) {
                    break;
                }
            }
            drop(endpoint);
            if moved {
                // The rank may have gone to sleep before it could see that.
                self.idle.ring();
                pause = SLEEPS.0;
            } else {
                doze.sleep(pause);
                pause = (2 * pause).min(longest);
            }
        }
    }
}

/// Leaves the core that this thread runs on to whoever else wants it.
fn give_way() {
    // SAFETY: takes numbers only; 0 is the calling thread, as Linux has it.
    if unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, 19) } != 0 {
        log::debug!("large payloads go on at full priority: {}", std::io::Error::last_os_error());
    }
}
