//! The progress thread: it retransmits entries that peers have not taken, while the rank does not poll.

use ntbring_host::thread;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LockResult, Mutex, MutexGuard, TryLockError};
use std::thread::JoinHandle;
use std::time::Duration;

/// A thread that works on `W` in steps, and shares it with the rank.
pub struct ProgressThread<W> {
    work: Arc<Mutex<W>>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl<W: Send + 'static> ProgressThread<W> {
    /// Starts the thread. It calls `step` after `pause`, and then always after the time that `step` has returned; it
    /// ends when that is None. A step is left out while the rank holds the lock.
    pub fn start(
        name: &str,
        work: W,
        mut pause: Duration,
        mut step: impl FnMut(&mut W) -> Option<Duration> + Send + 'static,
    ) -> std::io::Result<ProgressThread<W>> {
        let (work, stop) = (Arc::new(Mutex::new(work)), Arc::new(AtomicBool::new(false)));
        let (shared, stopped) = (work.clone(), stop.clone());
        let thread = thread::spawn(name, move || {
            while !stopped.load(Ordering::Acquire) {
                std::thread::park_timeout(pause);
                let next = match shared.try_lock() {
                    Ok(mut work) => step(&mut work),
                    Err(TryLockError::WouldBlock) => continue,
                    // The rank has panicked.
                    Err(TryLockError::Poisoned(_)) => None,
                };
                let Some(next) = next else { break };
                pause = next;
            }
        })?;
        Ok(ProgressThread { work, stop, thread: Some(thread) })
    }
}

impl<W> ProgressThread<W> {
    /// Locks and returns the work. The lock is poisoned if a step has panicked.
    pub fn lock(&self) -> LockResult<MutexGuard<'_, W>> {
        self.work.lock()
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

impl<W> Drop for ProgressThread<W> {
    fn drop(&mut self) {
        self.stop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    #[test]
    fn steps_are_made_until_none_is_due_or_the_thread_is_stopped() {
        for last in [Some(3), None] {
            let (tell, told) = mpsc::channel();
            let step = move |count: &mut u32| {
                *count += 1;
                let _ = tell.send(*count);
                (Some(*count) != last).then_some(Duration::ZERO)
            };
            let mut thread = ProgressThread::start("test", 0, Duration::ZERO, step).unwrap();
            assert_eq!(told.iter().nth(2), Some(3));
            thread.stop();
            let made = *thread.lock().unwrap();
            assert!(if last.is_some() { made == 3 } else { made >= 3 });
            assert_eq!(told.iter().last().unwrap_or(3), made);
        }
    }

    #[test]
    fn a_step_that_panics_poisons_the_work_and_ends_the_thread() {
        let mut thread = ProgressThread::start("test", (), Duration::ZERO, |_| panic!("a panic of a test")).unwrap();
        while !thread.work.is_poisoned() {
            std::thread::yield_now();
        }
        thread.stop();
        assert!(thread.lock().is_err());
    }
}
