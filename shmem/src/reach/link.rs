//! This PE's endpoint in the ring.

use super::messages::{Messages, REPLY, REQUEST};
use super::operation::Operation;
use super::transfers::{has_arrived, has_left, DATA};
use crate::abi::*;
use crate::fail;
use crate::symmetric::OwnMemory;
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::thread::JoinHandle;

/// Longest sleep of a PE that waits for an answer, microseconds.
const SLEEP_US: u32 = 1000;

/// Most events that one poll handles.
const EVENTS: usize = 64;

/// Transport of operations on far PEs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Far {
    /// No PE is far.
    Nowhere,
    /// The PEs' hosts carry out requests.
    ByHosts,
    /// The PEs carry out messages, where links may lose what is sent: only messages are carried end to end.
    ByMessages,
}

/// The endpoint. Its functions may be called by any thread.
pub struct Link {
    endpoint: *mut ntbring_endpoint_t,
    /// State of messages; the endpoint belongs to the thread that has locked it.
    messages: Mutex<Messages>,
    far: Far,
    /// Largest block for mailboxes, bytes; 0 if there are none.
    pub(super) block_max: usize,
    /// True if the memory of a PE is not mapped.
    pub has_far: bool,
    /// True if libntbring knows that this PE does not poll.
    rests: AtomicBool,
    /// Tells the thread that polls for this PE to end.
    ends: AtomicBool,
    poller: Mutex<Option<JoinHandle<()>>>,
}

/// A link for another thread.
struct Shared(*const Link);

// SAFETY: all functions of a link may be called by any thread; the link outlives the thread, which `Link::end` joins.
unsafe impl Send for Shared {}

impl Shared {
    fn link(&self) -> &Link {
        // SAFETY: as above.
        unsafe { &*self.0 }
    }
}

impl Link {
    /// Takes over a connected endpoint. `block_max` is the largest block for mailboxes, 0 if there are none. `memory` is this PE's own, on which it carries out messages.
    pub fn new(endpoint: *mut ntbring_endpoint_t, far: Far, block_max: usize, memory: OwnMemory) -> Link {
        let mut limits = ntbring_limits_t::default();
        // SAFETY: the endpoint is connected, and the pointer is to a local.
        if unsafe { ntbring_limits(endpoint, &mut limits) } < 0 {
            fail::ring("the ring has failed");
        }
        Link {
            endpoint,
            messages: Mutex::new(Messages::new(endpoint, limits.packed_max as usize, memory)),
            far,
            block_max,
            has_far: far != Far::Nowhere,
            rests: AtomicBool::new(false),
            ends: AtomicBool::new(false),
            poller: Mutex::new(None),
        }
    }

    /// Starts the thread that polls while this PE computes, if it has to carry out messages. The link must not move any
    /// more.
    pub fn begin_polling(&self) {
        if self.far != Far::ByMessages {
            return;
        }
        let shared = Shared(self);
        let run = move || {
            let link = shared.link();
            while !link.ends.load(Ordering::Acquire) {
                if !link.poll() {
                    link.idle(SLEEP_US);
                }
            }
        };
        match std::thread::Builder::new().name("ntbshmem-poll".to_string()).spawn(run) {
            Ok(thread) => *self.poller.lock().unwrap_or_else(PoisonError::into_inner) = Some(thread),
            Err(error) => fail::fatal(format_args!("a thread that polls the ring cannot be started: {error}")),
        }
    }

    /// Ends that thread.
    pub fn end_polling(&self) {
        self.ends.store(true, Ordering::Release);
        if let Some(thread) = self.poller.lock().unwrap_or_else(PoisonError::into_inner).take() {
            if thread.join().is_err() {
                fail::fatal("the thread that polls the ring has failed");
            }
        }
    }

    /// Returns the endpoint for a call that no other thread may disturb.
    pub fn endpoint(&self) -> (*mut ntbring_endpoint_t, MutexGuard<'_, Messages>) {
        (self.endpoint, self.messages.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Begins an operation.
    ///
    /// # Safety
    /// `data` and `result` of the request must be valid as `ntbring_remote` requires.
    pub unsafe fn begin(&self, mut request: ntbring_remote_t, operation: &Arc<Operation>) {
        let (endpoint, mut messages) = self.endpoint();
        if self.far == Far::ByMessages {
            // SAFETY: the caller's guarantee.
            return unsafe { messages.begin(&request, operation) };
        }
        operation.begin(1);
        if request.reports_sent != 0 {
            operation.keeps_source();
        }
        request.cookie = Arc::into_raw(operation.clone()).cast_mut().cast();
        // SAFETY: the endpoint is connected and not in use; the caller guarantees the rest.
        match unsafe { ntbring_remote(endpoint, &request) } {
            rc if rc < 0 => fail::ring("a request to another host has failed"),
            rc if rc == NTBRING_OK as i32 && request.reports_sent != 0 => operation.has_sent(),
            _ => {}
        }
    }

    /// Sends `len` bytes, at least 1, to a PE that receives them under this tag.
    ///
    /// # Safety
    /// They must stay valid until the operation is complete.
    pub unsafe fn send(&self, to: usize, tag: u64, data: *const u8, len: usize) -> Arc<Operation> {
        // SAFETY: the caller's guarantee.
        unsafe { self.endpoint().1.transfers.send(to, tag, data, len) }
    }

    /// Receives `len` bytes, at least 1, that a PE sends under a tag.
    ///
    /// # Safety
    /// The place must stay valid until the operation is complete.
    pub unsafe fn receive(&self, from: usize, tag: u64, to: *mut u8, len: usize) -> Arc<Operation> {
        // SAFETY: the caller's guarantee.
        unsafe { self.endpoint().1.transfers.receive(from, tag, to, len) }
    }

    /// To be called when this PE stops polling: the threads of its host handle requests at once then.
    pub fn rest(&self) {
        if self.has_far && !self.rests.swap(true, Ordering::Relaxed) {
            // SAFETY: any thread may call it while the endpoint is connected.
            unsafe { ntbring_rest(self.endpoint, 1) };
        }
    }

    /// Handles what has arrived. Returns true if there was anything, or if another thread is doing it.
    pub fn poll(&self) -> bool {
        if self.rests.load(Ordering::Relaxed) && self.rests.swap(false, Ordering::Relaxed) {
            // SAFETY: as above.
            unsafe { ntbring_rest(self.endpoint, 0) };
        }
        let mut messages = match self.messages.try_lock() {
            Ok(messages) => messages,
            Err(TryLockError::WouldBlock) => {
                // The other thread may handle what this one waits for.
                std::thread::yield_now();
                return true;
            }
            Err(TryLockError::Poisoned(_)) => fail::fatal("a thread has failed while it used the ring"),
        };
        let mut any = false;
        for _ in 0..EVENTS {
            let mut event = ntbring_event_t::default();
            // SAFETY: the endpoint is connected, and the lock is held.
            match unsafe { ntbring_poll(self.endpoint, &mut event) } {
                rc if rc < 0 => fail::ring("the ring has failed"),
                rc if rc == NTBRING_NONE as i32 => break,
                _ => any = true,
            }
            handle(&mut event, &mut messages);
            // SAFETY: as above; the event was filled in.
            if unsafe { ntbring_release(self.endpoint, &mut event) } < 0 {
                fail::ring("the ring has failed");
            }
        }
        any
    }

    /// Waits a little: spins, yields or sleeps until something arrives, at most for `max_us` microseconds.
    pub fn idle(&self, max_us: u32) {
        // SAFETY: any thread may call it while the endpoint is connected.
        unsafe { ntbring_idle(self.endpoint, max_us, 0) };
    }

    /// Waits as [`Link::idle`] does, for as long as a PE may sleep that waits for an answer.
    pub(super) fn idle_long(&self) {
        self.idle(SLEEP_US);
    }

    /// Polls until a condition holds that arrivals bring about.
    pub fn wait(&self, mut is_over: impl FnMut() -> bool) {
        while !is_over() {
            if !self.poll() && !is_over() {
                self.idle(SLEEP_US);
            }
        }
    }
}

fn handle(event: &mut ntbring_event_t, messages: &mut Messages) {
    match (event.kind, event.handler) {
        (NTBRING_EVENT_REMOTE, _) => {
            // SAFETY: the cookie of an operation that `begin` has made, whose one such event this is.
            unsafe { Arc::from_raw(event.cookie.cast_const().cast::<Operation>()) }.has_ended();
        }
        (NTBRING_EVENT_SENT, DATA) | (NTBRING_EVENT_TAKEN, _) => has_left(event.cookie),
        (NTBRING_EVENT_SENT, REPLY) => messages.reply_sent(event.cookie),
        (NTBRING_EVENT_SENT, REQUEST) => {
            // SAFETY: the cookie of a part of an operation, whose one such event this is.
            unsafe { Arc::from_raw(event.cookie.cast_const().cast::<Operation>()) }.has_sent();
        }
        (NTBRING_EVENT_SENT, _) => {
            // SAFETY: the operation lives until the event NTBRING_EVENT_REMOTE, which follows this one.
            unsafe { &*event.cookie.cast_const().cast::<Operation>() }.has_sent();
        }
        (NTBRING_EVENT_MESSAGE, REQUEST) => messages.carry_out(event),
        (NTBRING_EVENT_MESSAGE, REPLY) => messages.has_answered(event),
        (NTBRING_EVENT_MESSAGE | NTBRING_EVENT_BEGIN | NTBRING_EVENT_OFFER, DATA) => messages.transfers.arrival(event),
        (NTBRING_EVENT_CHUNK, _) => messages.transfers.chunk(event),
        (NTBRING_EVENT_FETCHED, _) => has_arrived(event.cookie),
        (NTBRING_EVENT_LOST, _) => fail::fatal(fail::ring_error()),
        (kind, handler) => fail::fatal(format_args!("an unexpected event {kind} of the ring (handler {handler})")),
    }
}

/// Returns an empty request to a segment of a PE.
pub fn request(pe: usize, address: &ntbring_segment_address_t, offset: usize, size: usize) -> ntbring_remote_t {
    ntbring_remote_t {
        dest: pe as i32,
        segment: *address,
        offset: offset as u64,
        size: size as u64,
        data: ptr::null(),
        result: ptr::null_mut(),
        ..Default::default()
    }
}
