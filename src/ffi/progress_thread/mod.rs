//! The asynchronous-progress thread: progress of large payloads while their rank computes.
//!
//! A payload whose receive was found needs nothing more from MPICH until it is complete, but a thread must copy it,
//! or write its chunks into lanes and take them out. The rank does this whenever it calls MPI. If it has not called
//! MPI for a while, the progress thread enters the endpoint in its place ([`Endpoint::carry_on`]), and leaves as soon
//! as the rank returns. The progress thread has the lowest priority (nice 19), so that it does not delay computation.
//! It does not use the idle scheduling class: the rank may have to wait until the progress thread has finished a chunk,
//! and a preempted thread of that class may not run again for a long time.
//!
//! | file | holds |
//! |---|---|
//! | `biased_lock` | the biased lock: nearly free for the rank, expensive for the progress thread |
//! | `guarded` | the endpoint behind that lock |

mod biased_lock;
mod guarded;

pub use guarded::{Guarded, Owned};

use ::ntbring_endpoint::{Endpoint, Idle};
use std::sync::atomic::{fence, AtomicBool, Ordering};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

/// Smallest payload in bytes for which the progress thread is used.
pub const BULK: u64 = 256 << 10;

/// First and longest interval between two checks of a rank with large payloads. A rank that has not entered its
/// endpoint in between is computing.
const LOOKS: (Duration, Duration) = (Duration::from_millis(1), Duration::from_millis(4));
/// Checks of a rank without large payloads before the progress thread sleeps until it is called; a call costs the rank
/// time.
const IDLE_CHECKS: u32 = 250;
/// Longest sleep before a call. Calls end it; the limit bounds the effect of a lost one.
const REST: Duration = Duration::from_secs(1);
/// First and longest sleep while no payload makes progress. Doorbells end them.
const SLEEPS: (Duration, Duration) = (Duration::from_millis(10), Duration::from_millis(160));

/// The asynchronous-progress thread of a rank.
pub struct ProgressThread {
    post: Arc<Post>,
    thread: Option<JoinHandle<()>>,
}

/// The state shared by the thread and its rank.
struct Post {
    endpoint: Arc<Guarded<Endpoint>>,
    idle: Arc<Idle>,
    /// True while the progress thread sleeps until it is called, or is about to.
    rests: AtomicBool,
    stop: AtomicBool,
}

impl ProgressThread {
    /// Starts the thread for an endpoint, if the settings ask for it. `owned` is the endpoint as accessed by its
    /// owner.
    pub fn start(endpoint: Arc<Guarded<Endpoint>>, owned: &Endpoint) -> Option<ProgressThread> {
        let (rests, stop) = (AtomicBool::new(false), AtomicBool::new(false));
        let post = Arc::new(Post { endpoint, idle: owned.idle(), rests, stop });
        let at = post.clone();
        let thread = owned.start_progress_thread(move || {
            lower_priority();
            at.run()
        })?;
        Some(ProgressThread { post, thread: Some(thread) })
    }

    /// Wakes the progress thread. To be called by the rank, outside the endpoint, when a large payload begins.
    pub fn call(&self) {
        if self.post.endpoint.is_shared() {
            return;
        }
        self.post.endpoint.share();
        // Either this thread sees that the progress thread sleeps, or the progress thread sees that it is admitted.
        fence(Ordering::SeqCst);
        if self.post.rests.load(Ordering::Relaxed) && self.post.rests.swap(false, Ordering::Relaxed) {
            self.unpark();
        }
    }

    fn unpark(&self) {
        self.thread.iter().for_each(|thread| thread.thread().unpark());
    }
}

impl Drop for ProgressThread {
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
            if !self.endpoint.is_shared() {
                (pause, vain) = (last, vain + 1);
                if vain > IDLE_CHECKS && self.rest() {
                    (pause, vain) = (first, 0);
                }
                continue;
            }
            vain = 0;
            let entries = self.endpoint.entries();
            if std::mem::replace(&mut seen, entries) == entries && !self.idle.is_asleep() {
                self.make_progress(entries);
            }
            pause = (2 * pause).min(last);
        }
    }

    /// Sleeps until called, unless a call has just come. Returns true if it has slept.
    fn rest(&self) -> bool {
        self.rests.store(true, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        let quiet = !self.endpoint.is_shared();
        while quiet && self.rests.load(Ordering::Relaxed) && !self.stop.load(Ordering::Acquire) {
            std::thread::park_timeout(REST);
            if self.endpoint.is_shared() {
                break;
            }
        }
        self.rests.store(false, Ordering::Relaxed);
        quiet
    }

    /// Makes progress in the rank's place until the rank returns or no work is left.
    fn make_progress(&self, entries: u32) {
        let (mut pause, longest) = SLEEPS;
        while !self.stop.load(Ordering::Acquire) {
            // Armed before the last check, so that no doorbell is missed.
            let doze = self.idle.doze();
            let Some(mut endpoint) = self.endpoint.enter_other(entries).filter(|endpoint| endpoint.has_bulk()) else {
                return;
            };
            let mut moved = false;
            while endpoint.carry_on() {
                moved = true;
                if endpoint.is_wanted() || self.stop.load(Ordering::Acquire) {
                    break;
                }
            }
            drop(endpoint);
            if moved {
                // The rank may have gone to sleep before it could see the progress.
                self.idle.ring();
                pause = SLEEPS.0;
            } else {
                doze.sleep(pause);
                pause = (2 * pause).min(longest);
            }
        }
    }
}

/// Gives this thread the lowest priority.
fn lower_priority() {
    // SAFETY: the call takes only integers; on Linux, 0 means the calling thread.
    if unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, 19) } != 0 {
        log::debug!("large payloads are moved at normal priority: {}", std::io::Error::last_os_error());
    }
}
