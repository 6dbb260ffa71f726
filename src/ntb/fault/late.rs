//! The queue of delayed writes and rings, and of those that must not overtake them.
//!
//! Posted writes stay in order across fences, however long they take. So writes after a fence wait for the delayed
//! writes before it, while writes before the next fence may overtake a delayed one. A background thread delivers the
//! queue, so a delay does not block the sender, as on a real link.

use super::cable::{Cable, Posted};
use ntbring_host::clock;
use ntbring_host::thread;
use ntbring_memory::OutWindow;
use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::Duration;

/// The queued writes and rings between two fences, with their due times (ns of CLOCK_MONOTONIC).
#[derive(Default)]
struct Group {
    posts: Vec<(u64, Posted)>,
    /// True if a fence follows the group: nothing more is added to it.
    closed: bool,
    /// The window whose fence follows the group, if it is the fence of a window.
    fence: Option<OutWindow>,
}

struct Queue {
    /// Never empty; only the last group is open.
    groups: VecDeque<Group>,
    /// True when the port is dropped: everything is delivered at once.
    over: bool,
}

impl Queue {
    fn is_empty(&self) -> bool {
        self.groups.len() == 1 && self.groups[0].posts.is_empty()
    }

    fn last(&mut self) -> &mut Group {
        self.groups.back_mut().expect("there is always one")
    }

    /// Delivers all queued items that are due at `now` and not blocked by an earlier group. Returns the next due time;
    /// None if the queue is empty.
    fn advance(&mut self, cable: &Cable, now: u64) -> Option<u64> {
        loop {
            let group = &mut self.groups[0];
            let (due, waiting): (Vec<_>, Vec<_>) = group.posts.drain(..).partition(|(moment, _)| *moment <= now);
            group.posts = waiting;
            due.into_iter().for_each(|(_, posted)| cable.deliver(posted));
            if let Some(next) = group.posts.iter().map(|(moment, _)| *moment).min() {
                return Some(next);
            }
            if !group.closed {
                return None;
            }
            group.fence.iter().for_each(OutWindow::fence);
            self.groups.pop_front();
        }
    }
}

struct Shared {
    cable: Arc<Cable>,
    queue: Mutex<Queue>,
    news: Condvar,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(|e| e.into_inner())
    }
}

/// The queue of one cable and the thread that delivers it.
pub(super) struct Late {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl Late {
    pub fn start(cable: Arc<Cable>) -> io::Result<Late> {
        let queue = Mutex::new(Queue { groups: VecDeque::from([Group::default()]), over: false });
        let shared = Arc::new(Shared { cable, queue, news: Condvar::new() });
        let for_thread = shared.clone();
        let thread = thread::spawn("ntbring-late", move || run(&for_thread))?;
        Ok(Late { shared, thread: Some(thread) })
    }

    /// Returns true if the queue is empty, so that a write may be delivered directly.
    pub fn is_empty(&self) -> bool {
        self.shared.lock().is_empty()
    }

    /// Queues a write or ring with the delay `by`.
    pub fn hold(&self, posted: Posted, by: Duration) {
        let moment = clock::now() + by.as_nanos() as u64;
        self.shared.lock().last().posts.push((moment, posted));
        self.shared.news.notify_one();
    }

    /// Delivers a write or ring as soon as no fence with undelivered writes is before it; directly if there is none.
    pub fn follow(&self, posted: Posted) {
        let mut queue = self.shared.lock();
        match queue.groups.len() {
            1 => self.shared.cable.deliver(posted),
            _ => queue.last().posts.push((0, posted)),
        }
    }

    /// Adds a fence after all writes and rings that were sent so far: the fence of a window, or, with None, one that
    /// only orders the queue.
    pub fn fence(&self, window: Option<&OutWindow>) {
        let mut queue = self.shared.lock();
        if queue.is_empty() {
            return window.into_iter().for_each(OutWindow::fence);
        }
        let last = queue.last();
        if !last.posts.is_empty() {
            (last.closed, last.fence) = (true, window.cloned());
            queue.groups.push_back(Group::default());
        } else if let Some(window) = window {
            // Nothing was added since the previous group was closed: the fence belongs to that group.
            let before = queue.groups.len() - 2;
            queue.groups[before].fence.get_or_insert_with(|| window.clone());
        }
    }
}

impl Drop for Late {
    fn drop(&mut self) {
        self.shared.lock().over = true;
        self.shared.news.notify_one();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn run(shared: &Shared) {
    let mut queue = shared.lock();
    loop {
        let now = if queue.over { u64::MAX } else { clock::now() };
        let next = queue.advance(&shared.cable, now);
        if queue.over {
            return;
        }
        queue = match next {
            None => shared.news.wait(queue).unwrap_or_else(|e| e.into_inner()),
            Some(moment) => {
                let left = Duration::from_nanos(moment.saturating_sub(clock::now()));
                shared.news.wait_timeout(queue, left).unwrap_or_else(|e| e.into_inner()).0
            }
        };
    }
}
