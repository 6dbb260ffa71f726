//! The thread that serves the adapters of a host: it handles their interrupts, rings doorbells for processes that may
//! not touch the registers, and brings circuits forward.

use crate::adapter::Adapter;
use crate::circuits::Circuits;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use nix::sys::eventfd::{EfdFlags, EventFd};
use ntbring_host::{clock, thread};
use std::collections::HashMap;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// Token of the descriptor that ends a sleep of the thread; adapters have the tokens before it, doorbells those after it.
const WAKE: u64 = 1 << 32;

/// Time between two looks at the circuits: the longest, and while one of them waits for another host.
const CIRCUITS: Duration = Duration::from_millis(100);
const CIRCUITS_WAITING: Duration = Duration::from_millis(3);

/// Maximum number of descriptors that one look returns.
const BATCH: usize = 64;

/// A thread that sleeps until an adapter has work; dropping it ends the thread.
pub struct Service {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    epoll: Epoll,
    is_over: AtomicBool,
    wake: EventFd,
    bells: Mutex<HashMap<u64, Bell>>,
    next: AtomicU64,
}

/// A doorbell of a neighbour that is rung when the event descriptor is signalled.
struct Bell {
    event: EventFd,
    adapter: Arc<Adapter>,
    doorbell: usize,
}

impl Service {
    /// Starts the thread.
    pub fn start(adapters: Vec<Arc<Adapter>>, circuits: Arc<Circuits>) -> io::Result<Service> {
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
        let wake = EventFd::from_flags(EfdFlags::EFD_NONBLOCK | EfdFlags::EFD_CLOEXEC)?;
        let is_readable = |token| EpollEvent::new(EpollFlags::EPOLLIN, token);
        epoll.add(&wake, is_readable(WAKE))?;
        for (token, adapter) in (0..).zip(&adapters) {
            epoll.add(adapter.event(), is_readable(token))?;
        }
        let (is_over, bells, next) = (AtomicBool::new(false), Mutex::default(), AtomicU64::new(WAKE + 1));
        let shared = Arc::new(Shared { epoll, is_over, wake, bells, next });
        let of_thread = shared.clone();
        let thread = thread::spawn("ntb-adapters", move || of_thread.run(&adapters, &circuits))?;
        Ok(Service { shared, thread: Some(thread) })
    }

    /// Returns an event descriptor that rings a doorbell of the neighbour at an adapter whenever it is signalled.
    pub fn bell(&self, adapter: &Arc<Adapter>, doorbell: usize) -> io::Result<BellEvent> {
        let event = EventFd::from_flags(EfdFlags::EFD_NONBLOCK | EfdFlags::EFD_CLOEXEC)?;
        let theirs = event.as_fd().try_clone_to_owned()?;
        let token = self.shared.next.fetch_add(1, Ordering::Relaxed);
        self.shared.epoll.add(&event, EpollEvent::new(EpollFlags::EPOLLIN, token))?;
        self.shared.bells().insert(token, Bell { event, adapter: adapter.clone(), doorbell });
        Ok(BellEvent { event: theirs, token, shared: self.shared.clone() })
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::Release);
        // It can fail only if the count is at its maximum, and then the descriptor is readable.
        let _ = self.shared.wake.arm();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// An event descriptor that rings a doorbell of a neighbour; it has no effect any more when this is dropped.
pub struct BellEvent {
    /// The descriptor, for another process.
    pub event: OwnedFd,
    token: u64,
    shared: Arc<Shared>,
}

impl Drop for BellEvent {
    fn drop(&mut self) {
        if let Some(bell) = self.shared.bells().remove(&self.token) {
            let _ = self.shared.epoll.delete(&bell.event);
        }
    }
}

impl Shared {
    fn bells(&self) -> MutexGuard<'_, HashMap<u64, Bell>> {
        self.bells.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run(&self, adapters: &[Arc<Adapter>], circuits: &Circuits) {
        let mut random = fastrand::Rng::new();
        let mut serve = |adapter: &Adapter| adapter.serve(Duration::from_nanos(clock::now()), random.u64(..));
        let mut due: Vec<Duration> = vec![Duration::ZERO; adapters.len()];
        let mut circuits_due = Duration::ZERO;
        let mut events = [EpollEvent::empty(); BATCH];
        let mut ready: Vec<u64> = Vec::new();
        while !self.is_over.load(Ordering::Acquire) {
            for (number, adapter) in adapters.iter().enumerate() {
                let now = Duration::from_nanos(clock::now());
                if ready.contains(&(number as u64)) || now >= due[number] {
                    due[number] = now.saturating_add(serve(adapter));
                }
            }
            let now = Duration::from_nanos(clock::now());
            // An event of an adapter may be news of a neighbour.
            if ready.iter().any(|&token| token < WAKE) {
                circuits_due = circuits_due.min(now + CIRCUITS_WAITING);
            }
            if now >= circuits_due {
                circuits_due = now + if circuits.tick() { CIRCUITS_WAITING } else { CIRCUITS };
            }
            let next = due.iter().copied().fold(circuits_due, Duration::min);
            let wait = next.saturating_sub(now);
            // Rounded up, so that the time has come when the sleep ends.
            let timeout =
                i32::try_from(wait.as_millis() + 1).ok().and_then(|millis| EpollTimeout::try_from(millis).ok());
            // An error can only be EINTR; the loop looks again.
            let count = self.epoll.wait(&mut events, timeout.unwrap_or(EpollTimeout::NONE)).unwrap_or(0);
            ready.clear();
            ready.extend(events[..count].iter().map(EpollEvent::data));
            let bells = self.bells();
            for bell in ready.iter().filter_map(|token| bells.get(token)) {
                // The count is of no interest: a doorbell that is rung twice is pending once.
                let _ = bell.event.read();
                bell.adapter.ring(bell.doorbell);
            }
        }
    }
}
