//! This PE's endpoint in the ring.

use crate::abi::*;
use crate::fail;
use std::cell::UnsafeCell;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Longest sleep of a PE that waits for an answer, microseconds.
const SLEEP_US: u32 = 1000;

/// Most events that one poll handles.
const EVENTS: usize = 64;

/// An operation on memory of a far PE.
pub struct Operation {
    /// True once the source may be reused.
    sent: AtomicBool,
    /// True once the operation is complete.
    done: AtomicBool,
    /// Number of operations of the context that are not complete; null if the caller waits for this one.
    pending: *const AtomicU64,
    /// Operands that the operation keeps, and what it fetches.
    bytes: UnsafeCell<[u64; 3]>,
}

impl Operation {
    /// Creates an operation. `pending` counts it until it is complete; null if the caller waits for it.
    pub fn new(pending: *const AtomicU64, bytes: [u64; 3]) -> Arc<Operation> {
        let (sent, done) = (AtomicBool::new(false), AtomicBool::new(false));
        Arc::new(Operation { sent, done, pending, bytes: UnsafeCell::new(bytes) })
    }

    /// Returns the address of the operands.
    pub fn operands(&self) -> *const u64 {
        self.bytes.get().cast_const().cast()
    }

    /// Returns the address of the word for what is fetched.
    pub fn result(&self) -> *mut u64 {
        // SAFETY: the third of three words.
        unsafe { self.bytes.get().cast::<u64>().add(2) }
    }
}

/// The endpoint. Its functions may be called by any thread.
pub struct Link {
    endpoint: *mut ntbring_endpoint_t,
    lock: Mutex<()>,
    /// True if the memory of a PE is not mapped.
    pub has_far: bool,
    /// True if libntbring knows that this PE does not poll.
    rests: AtomicBool,
}

impl Link {
    /// Takes over a connected endpoint.
    pub fn new(endpoint: *mut ntbring_endpoint_t, has_far: bool) -> Link {
        Link { endpoint, lock: Mutex::new(()), has_far, rests: AtomicBool::new(false) }
    }

    /// Returns the endpoint for a call that no other thread may disturb.
    pub fn endpoint(&self) -> (*mut ntbring_endpoint_t, MutexGuard<'_, ()>) {
        (self.endpoint, self.lock.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Begins an operation. Returns true if its source may be reused.
    ///
    /// # Safety
    /// `data` and `result` of the request must be valid as `ntbring_remote` requires.
    pub unsafe fn begin(&self, mut request: ntbring_remote_t, operation: &Arc<Operation>) -> bool {
        if !operation.pending.is_null() {
            // SAFETY: the counter belongs to a context, which is not destroyed before its operations are complete.
            unsafe { (*operation.pending).fetch_add(1, Ordering::Relaxed) };
        }
        request.cookie = Arc::into_raw(operation.clone()).cast_mut().cast();
        let (endpoint, _guard) = self.endpoint();
        // SAFETY: the endpoint is connected and not in use; the caller guarantees the rest.
        match unsafe { ntbring_remote(endpoint, &request) } {
            rc if rc < 0 => fail::ring("a request to another host has failed"),
            rc => rc == NTBRING_OK as i32,
        }
    }

    /// To be called when this PE stops polling: the threads of its host handle requests at once then.
    pub fn rest(&self) {
        if self.has_far && !self.rests.swap(true, Ordering::Relaxed) {
            // SAFETY: any thread may call it while the endpoint is connected.
            unsafe { ntbring_rest(self.endpoint, 1) };
        }
    }

    /// Handles what has arrived. Returns true if there was anything. Does nothing if another thread is doing it.
    pub fn poll(&self) -> bool {
        if self.rests.load(Ordering::Relaxed) && self.rests.swap(false, Ordering::Relaxed) {
            // SAFETY: as above.
            unsafe { ntbring_rest(self.endpoint, 0) };
        }
        let Ok(_guard) = self.lock.try_lock() else { return false };
        let mut any = false;
        for _ in 0..EVENTS {
            let mut event = ntbring_event_t::default();
            // SAFETY: the endpoint is connected, and the lock is held.
            match unsafe { ntbring_poll(self.endpoint, &mut event) } {
                rc if rc < 0 => fail::ring("the ring has failed"),
                rc if rc == NTBRING_NONE as i32 => break,
                _ => any = true,
            }
            handle(&event);
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
        unsafe { ntbring_idle(self.endpoint, max_us) };
    }

    /// Polls until a condition holds that arrivals bring about.
    pub fn wait(&self, mut is_over: impl FnMut() -> bool) {
        while !is_over() {
            if !self.poll() && !is_over() {
                self.idle(SLEEP_US);
            }
        }
    }

    /// Waits until the source of an operation may be reused.
    pub fn wait_sent(&self, operation: &Operation) {
        self.wait(|| operation.sent.load(Ordering::Acquire));
    }

    /// Waits until an operation is complete.
    pub fn wait_done(&self, operation: &Operation) {
        self.wait(|| operation.done.load(Ordering::Acquire));
    }
}

fn handle(event: &ntbring_event_t) {
    match event.kind {
        NTBRING_EVENT_REMOTE => {
            // SAFETY: the cookie of an operation that `begin` has made, whose one such event this is.
            let operation = unsafe { Arc::from_raw(event.cookie.cast_const().cast::<Operation>()) };
            operation.sent.store(true, Ordering::Release);
            operation.done.store(true, Ordering::Release);
            if !operation.pending.is_null() {
                // SAFETY: as in `begin`.
                unsafe { (*operation.pending).fetch_sub(1, Ordering::Release) };
            }
        }
        NTBRING_EVENT_SENT => {
            // SAFETY: the operation lives until the event above, which follows this one.
            let operation = unsafe { &*event.cookie.cast_const().cast::<Operation>() };
            operation.sent.store(true, Ordering::Release);
        }
        NTBRING_EVENT_LOST => fail::fatal(fail::ring_error()),
        kind => fail::fatal(format_args!("an unexpected event {kind} of the ring")),
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
