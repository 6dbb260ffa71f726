//! What goes on with large payloads while their rank computes.
//!
//! A payload that a receive has been found for needs nothing more from MPICH before all of it is there, but somebody has to
//! copy it, or write its pieces into lanes and take them out. The rank does, whenever it calls MPI. When it has not done so for
//! a while, its deputy enters the endpoint in its place ([`Endpoint::carry_on`]), and leaves as soon as the rank comes back.
//! The deputy has the lowest priority: it uses cores that nobody else wants.
//!
//! | file | holds |
//! |---|---|
//! | `gate` | who is inside: the rank, at next to no cost, or its deputy |
//! | `guarded` | the endpoint behind it |

mod gate;
mod guarded;

pub use guarded::{Guarded, Owned};

use crate::endpoint::{Endpoint, Idle};
use crate::ntb::barrier;
use crate::ring::cores::{self, Cores};
use crate::thread;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

/// Smaller payloads are no matter for a deputy.
pub const BULK: u64 = 256 << 10;

/// A rank that has not looked for so long computes.
const AWAY: Duration = Duration::from_millis(1);
/// Between two looks at a rank that always was there, at last.
const SELDOM: Duration = Duration::from_millis(64);
/// The longest sleep in which nothing moves. Doorbells end it.
const SLEEP: Duration = Duration::from_millis(10);

/// The deputy of a rank.
pub struct Deputy {
    post: Arc<Post>,
    thread: Option<JoinHandle<()>>,
}

/// What the two share.
struct Post {
    endpoint: Arc<Guarded<Endpoint>>,
    idle: Arc<Idle>,
    stop: AtomicBool,
}

impl Deputy {
    /// Starts the thread. None, and nothing goes on while ranks compute, if the kernel does not offer what that takes.
    pub fn start(endpoint: Arc<Guarded<Endpoint>>, idle: Arc<Idle>, cores: Option<Cores>) -> Option<Deputy> {
        if !barrier::available() {
            log::info!("the kernel has no membarrier: large payloads wait while ranks compute");
            return None;
        }
        let post = Arc::new(Post { endpoint, idle, stop: AtomicBool::new(false) });
        let at = post.clone();
        let run = move || {
            cores.iter().for_each(cores::bind);
            give_way();
            at.run()
        };
        match thread::spawn("ntbring-deputy", run) {
            Ok(thread) => Some(Deputy { post, thread: Some(thread) }),
            Err(error) => {
                log::info!("no thread for large payloads while this rank computes: {error}");
                None
            }
        }
    }

    /// To be called when a large payload gets under way, by the rank when it is not at the endpoint.
    #[inline]
    pub fn call(&self) {
        if self.post.endpoint.invite() {
            self.thread.iter().for_each(|thread| thread.thread().unpark());
        }
    }
}

impl Drop for Deputy {
    fn drop(&mut self) {
        self.post.stop.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            let _ = thread.join();
        }
    }
}

impl Post {
    fn run(&self) {
        let (mut seen, mut pause) = (0, AWAY);
        while !self.stop.load(Ordering::Acquire) {
            if !self.endpoint.is_inviting() {
                std::thread::park();
                pause = AWAY;
                continue;
            }
            std::thread::park_timeout(pause);
            let steps = self.endpoint.steps();
            if std::mem::replace(&mut seen, steps) == steps && !self.idle.is_asleep() {
                pause = AWAY;
                self.stand_in(steps);
                continue;
            }
            // The rank is at it itself.
            pause = (2 * pause).min(SELDOM);
            if let Some(endpoint) = self.endpoint.visit(steps).filter(|endpoint| !endpoint.has_bulk()) {
                endpoint.end();
            }
        }
    }

    /// Goes on in the place of the rank until it comes back, or nothing is left to do.
    fn stand_in(&self, steps: u32) {
        while !self.stop.load(Ordering::Acquire) {
            let Some(mut endpoint) = self.endpoint.visit(steps) else { return };
            if !endpoint.has_bulk() {
                return endpoint.end();
            }
            let doze = self.idle.doze();
            let mut moved = false;
            while endpoint.carry_on() {
                moved = true;
                if endpoint.is_wanted() {
                    return;
                }
            }
            drop(endpoint);
            if !moved {
                doze.sleep(SLEEP);
            }
        }
    }
}

/// Leaves the core that this thread runs on to whoever else wants it.
fn give_way() {
    let parameters = libc::sched_param { sched_priority: 0 };
    // SAFETY: it only reads what it is given; 0 is the calling thread.
    if unsafe { libc::sched_setscheduler(0, libc::SCHED_IDLE, &parameters) } != 0 {
        log::debug!("large payloads go on at full priority: {}", std::io::Error::last_os_error());
    }
}
