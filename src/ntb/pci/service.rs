//! The thread that serves the adapters of a host.

use crate::adapter::Adapter;
use nix::poll::{poll, PollFd, PollFlags, PollTimeout};
use nix::sys::eventfd::{EfdFlags, EventFd};
use ntbring_host::thread;
use std::io;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// A thread that sleeps until an adapter has work; dropping it ends the thread.
pub struct Service {
    stop: Arc<(AtomicBool, EventFd)>,
    thread: Option<JoinHandle<()>>,
}

impl Service {
    /// Starts the thread.
    pub fn start(adapters: Vec<Arc<Adapter>>) -> io::Result<Service> {
        let event = EventFd::from_flags(EfdFlags::EFD_NONBLOCK | EfdFlags::EFD_CLOEXEC)?;
        let stop = Arc::new((AtomicBool::new(false), event));
        let stopped = stop.clone();
        let thread = thread::spawn("ntb-adapters", move || run(&adapters, &stopped))?;
        Ok(Service { stop, thread: Some(thread) })
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.stop.0.store(true, Ordering::Release);
        // The count cannot overflow by one addition.
        let _ = self.stop.1.arm();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn run(adapters: &[Arc<Adapter>], stop: &(AtomicBool, EventFd)) {
    let start = Instant::now();
    let mut random = fastrand::Rng::new();
    while !stop.0.load(Ordering::Acquire) {
        let serve = |adapter: &Arc<Adapter>| adapter.serve(start.elapsed(), random.u64(..));
        let wait = adapters.iter().map(serve).min().unwrap_or(Duration::MAX);
        let timeout = i32::try_from(wait.as_millis()).ok().and_then(|millis| PollTimeout::try_from(millis).ok());
        let events = adapters.iter().map(|adapter| adapter.event()).chain([stop.1.as_fd()]);
        let mut events: Vec<PollFd> = events.map(|event| PollFd::new(event, PollFlags::POLLIN)).collect();
        // An error can only be EINTR or a lack of memory; the loop looks again in either case.
        let _ = poll(&mut events, timeout.unwrap_or(PollTimeout::NONE));
    }
}
