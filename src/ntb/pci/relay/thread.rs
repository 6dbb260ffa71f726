//! The thread that carries records on.

use super::outlet::Outlet;
use crate::adapter::Listener;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use nix::sys::eventfd::{EfdFlags, EventFd};
use ntbring_host::thread;
use ntbring_ntb::LinkState;
use std::io;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread::JoinHandle;

/// Number of looks without a record after which the thread sleeps; from half of them on it yields its core.
const LOOKS: u32 = 200;

/// Longest sleep while there are outlets, milliseconds. A doorbell may overtake the record that it announces.
const SLEEP_MILLIS: u8 = 20;

/// A thread that handles the records of all outlets; dropping it ends the thread.
pub struct RelayThread {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    epoll: Epoll,
    wake: EventFd,
    is_over: AtomicBool,
    has_outlets: AtomicBool,
    outlets: Mutex<Vec<Weak<Outlet>>>,
}

impl RelayThread {
    /// Starts the thread.
    pub fn start() -> io::Result<RelayThread> {
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
        let wake = EventFd::from_flags(EfdFlags::EFD_NONBLOCK | EfdFlags::EFD_CLOEXEC)?;
        epoll.add(&wake, EpollEvent::new(EpollFlags::EPOLLIN | EpollFlags::EPOLLET, 0))?;
        let shared = Arc::new(Shared {
            epoll,
            wake,
            is_over: false.into(),
            has_outlets: false.into(),
            outlets: Mutex::default(),
        });
        let of_thread = shared.clone();
        let thread = thread::spawn("ntb-relay", move || of_thread.run())?;
        Ok(RelayThread { shared, thread: Some(thread) })
    }

    /// Adds an outlet; it is removed when its last owner drops it.
    pub fn add(&self, outlet: &Arc<Outlet>) {
        self.shared.outlets().push(Arc::downgrade(outlet));
        self.shared.has_outlets.store(true, Ordering::Release);
        self.shared.wake();
    }

    /// Makes an event descriptor of a process wake the thread until the descriptor's last owner closes it.
    pub fn watch(&self, event: impl AsFd) -> io::Result<()> {
        Ok(self.shared.epoll.add(event, EpollEvent::new(EpollFlags::EPOLLIN | EpollFlags::EPOLLET, 1))?)
    }

    /// Returns a listener that wakes the thread at doorbells of an adapter.
    pub fn listener(&self) -> Arc<dyn Listener> {
        Arc::new(Wake(self.shared.clone()))
    }
}

impl Drop for RelayThread {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::Release);
        self.shared.wake();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Wakes the thread at doorbells.
struct Wake(Arc<Shared>);

impl Listener for Wake {
    fn doorbells(&self, _bits: u32) {
        if self.0.has_outlets.load(Ordering::Acquire) {
            self.0.wake();
        }
    }

    fn link(&self, _state: LinkState) {}
}

impl Shared {
    fn outlets(&self) -> MutexGuard<'_, Vec<Weak<Outlet>>> {
        self.outlets.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wake(&self) {
        // It fails only if the count is at its maximum, and then the thread wakes anyway.
        let _ = self.wake.arm();
    }

    fn run(&self) {
        let mut idle = 0;
        while !self.is_over.load(Ordering::Acquire) {
            let outlets: Vec<Arc<Outlet>> = {
                let mut all = self.outlets();
                all.retain(|outlet| outlet.strong_count() > 0);
                self.has_outlets.store(!all.is_empty(), Ordering::Release);
                all.iter().filter_map(Weak::upgrade).collect()
            };
            let has_worked = outlets.iter().fold(false, |worked, outlet| outlet.pump() | worked);
            idle = if has_worked { 0 } else { idle + 1 };
            match idle {
                0 => {}
                _ if outlets.is_empty() || idle >= LOOKS => {
                    self.sleep(&outlets);
                    idle = 0;
                }
                _ if idle >= LOOKS / 2 => std::thread::yield_now(),
                _ => std::hint::spin_loop(),
            }
        }
    }

    fn sleep(&self, outlets: &[Arc<Outlet>]) {
        if outlets.iter().fold(true, |may_sleep, outlet| outlet.prepare_sleep() & may_sleep) {
            let timeout =
                if outlets.is_empty() { EpollTimeout::NONE } else { EpollTimeout::from(u16::from(SLEEP_MILLIS)) };
            let mut events = [EpollEvent::empty(); 16];
            // Descriptors are edge-triggered, so their counts need not be read; an error can only be EINTR.
            let _ = self.epoll.wait(&mut events, timeout);
        }
        outlets.iter().for_each(|outlet| outlet.end_sleep());
    }
}
