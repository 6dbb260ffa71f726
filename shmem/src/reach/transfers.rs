//! Transfers of data between two PEs that both take part: one sends under a tag, the other receives. Small data are sent
//! at once (eager); large ones are offered, and the receiver fetches them (rendezvous).

use super::copy;
use super::operation::Operation;
use crate::abi::*;
use crate::fail;
use std::collections::{HashMap, VecDeque};
use std::ffi::c_void;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Handler of the messages.
pub const DATA: u16 = 3;

/// Sender, and tag that the sender has chosen.
type Key = (i32, u64);

/// Destination of data, and the operation that is complete when they are there.
struct Receive {
    to: *mut u8,
    len: usize,
    operation: Arc<Operation>,
}

/// Data that arrive: in their place, or in a buffer until they are received.
struct Incoming {
    to: *mut u8,
    len: usize,
    /// Bytes that have arrived in chunks.
    filled: AtomicUsize,
    /// Holds the data that are not received yet.
    buffer: Vec<u8>,
    operation: Arc<Operation>,
    /// The receive that waits for the end of data in a buffer.
    waiting: Mutex<Option<Receive>>,
}

// SAFETY: addresses in it are those of buffers that are kept until the operation is complete; they are used under the lock
// of the messages.
unsafe impl Send for Incoming {}
// SAFETY: as above.
unsafe impl Sync for Incoming {}

/// Data that have come before their receive.
enum Early {
    Offer(ntbring_offer_t),
    Incoming(Arc<Incoming>),
}

/// The transfers of a PE that are not complete.
pub struct Transfers {
    endpoint: *mut ntbring_endpoint_t,
    receives: HashMap<Key, VecDeque<Receive>>,
    early: HashMap<Key, VecDeque<Early>>,
}

/// Returns the words of a message's head; None if it has another size.
pub fn head<const N: usize>(event: &ntbring_event_t) -> Option<[u64; N]> {
    // SAFETY: the event has that many aligned bytes.
    (event.hdr_size as usize == 8 * N).then(|| unsafe { event.hdr.cast::<[u64; N]>().read_unaligned() })
}

/// Removes the first element of a queue in a map, and the queue if it was the last.
fn take<T>(map: &mut HashMap<Key, VecDeque<T>>, key: Key) -> Option<T> {
    let queue = map.get_mut(&key)?;
    let first = queue.pop_front();
    if queue.is_empty() {
        map.remove(&key);
    }
    first
}

impl Receive {
    /// Ends the program if a PE sends another number of bytes than this one receives.
    fn check(&self, src: i32, len: u64) {
        if len != self.len as u64 {
            let own = self.len;
            fail::fatal(format_args!("PE {src} takes part in a collective with {len} bytes, and this PE with {own}"));
        }
    }
}

impl Incoming {
    fn new(to: *mut u8, len: usize, buffer: Vec<u8>, operation: Arc<Operation>) -> Arc<Incoming> {
        let (filled, waiting) = (AtomicUsize::new(0), Mutex::new(None));
        Arc::new(Incoming { to, len, filled, buffer, operation, waiting })
    }

    /// Makes a buffer of `len` bytes for data that no receive waits for yet.
    fn buffered(len: usize) -> Arc<Incoming> {
        let mut buffer = vec![0u8; len];
        let operation = Operation::awaited([0; 3]);
        operation.begin(1);
        Self::new(buffer.as_mut_ptr(), len, buffer, operation)
    }

    /// All data are there.
    fn has_ended(&self) {
        self.operation.has_ended();
        let waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(receive) = waiting {
            self.deliver(&receive);
        }
    }

    /// Copies the data, which are in the buffer, to a receive.
    fn deliver(&self, receive: &Receive) {
        debug_assert_eq!(self.buffer.len(), self.len);
        // SAFETY: both have that many bytes; the receive's place is kept until its operation is complete.
        unsafe { copy(self.to.cast_const(), receive.to, self.len) };
        receive.operation.has_ended();
    }
}

impl Transfers {
    /// Creates the state of an endpoint.
    pub fn new(endpoint: *mut ntbring_endpoint_t) -> Transfers {
        Transfers { endpoint, receives: HashMap::new(), early: HashMap::new() }
    }

    /// Sends data, of at least 1 byte, to a PE.
    ///
    /// # Safety
    /// They must stay valid until the operation that is returned is complete.
    pub unsafe fn send(&mut self, to: usize, tag: u64, data: *const u8, len: usize) -> Arc<Operation> {
        let operation = Operation::awaited([0; 3]);
        operation.begin(1);
        let head = [tag];
        let cookie: *mut c_void = Arc::into_raw(operation.clone()).cast_mut().cast();
        let message = ntbring_message_t {
            dest: to as i32,
            handler: DATA,
            hdr: head.as_ptr().cast(),
            hdr_size: size_of_val(&head) as u64,
            data: data.cast(),
            data_size: len as u64,
            pack: None,
            cookie,
        };
        // SAFETY: the endpoint is connected, and its lock is held; the caller guarantees the data.
        let rc = unsafe {
            let eager = (size_of_val(&head) + len) as u64 <= ntbring_eager_max(self.endpoint, to as i32);
            if eager {
                ntbring_send(self.endpoint, &message)
            } else {
                ntbring_offer(self.endpoint, &message)
            }
        };
        match rc {
            rc if rc < 0 => fail::ring("data cannot be sent to another PE"),
            rc if rc == NTBRING_OK as i32 => has_left(cookie),
            _ => {}
        }
        operation
    }

    /// Receives data from a PE: `len` bytes, at least 1. Data of one PE under one tag are received in their order.
    ///
    /// # Safety
    /// The place must stay valid until the operation that is returned is complete.
    pub unsafe fn receive(&mut self, from: usize, tag: u64, to: *mut u8, len: usize) -> Arc<Operation> {
        let operation = Operation::awaited([0; 3]);
        operation.begin(1);
        let (key, receive) = ((from as i32, tag), Receive { to, len, operation: operation.clone() });
        match take(&mut self.early, key) {
            None => self.receives.entry(key).or_default().push_back(receive),
            Some(Early::Offer(offer)) => self.fetch(&offer, receive),
            Some(Early::Incoming(incoming)) => {
                receive.check(key.0, incoming.len as u64);
                match incoming.operation.is_done() {
                    true => incoming.deliver(&receive),
                    false => *incoming.waiting.lock().unwrap_or_else(PoisonError::into_inner) = Some(receive),
                }
            }
        }
        operation
    }

    fn fetch(&self, offer: &ntbring_offer_t, receive: Receive) {
        receive.check(offer.src, offer.total);
        let (to, len) = (receive.to, receive.len);
        let cookie: *mut c_void =
            Arc::into_raw(Incoming::new(to, len, Vec::new(), receive.operation)).cast_mut().cast();
        // SAFETY: the endpoint is connected, and its lock is held; the place is kept until the operation is complete.
        match unsafe { ntbring_accept(self.endpoint, offer, to.cast(), len as u64, cookie) } {
            rc if rc < 0 => fail::ring("data of another PE cannot be fetched"),
            rc if rc == NTBRING_OK as i32 => has_arrived(cookie),
            _ => {}
        }
    }

    /// Handles the arrival of data, of their beginning, or of an offer.
    pub fn arrival(&mut self, event: &mut ntbring_event_t) {
        let Some([tag]) = head::<1>(event) else {
            fail::fatal(format_args!("PE {} has sent data without a tag", event.src));
        };
        let key = (event.src, tag);
        let receive = take(&mut self.receives, key);
        if event.kind == NTBRING_EVENT_OFFER {
            return match receive {
                Some(receive) => self.fetch(&event.offer, receive),
                None => self.early.entry(key).or_default().push_back(Early::Offer(event.offer)),
            };
        }
        let len = event.total as usize;
        let incoming = match receive {
            Some(receive) => {
                receive.check(event.src, event.total);
                Incoming::new(receive.to, receive.len, Vec::new(), receive.operation)
            }
            None => {
                let incoming = Incoming::buffered(len);
                self.early.entry(key).or_default().push_back(Early::Incoming(incoming.clone()));
                incoming
            }
        };
        if event.kind == NTBRING_EVENT_BEGIN {
            (event.data, event.data_size) = (incoming.to.cast(), incoming.len as u64);
            event.cookie = Arc::into_raw(incoming).cast_mut().cast();
            return;
        }
        // SAFETY: the event has that many bytes, and so has the place.
        unsafe { copy(event.data.cast::<u8>().cast_const(), incoming.to, incoming.len) };
        incoming.has_ended();
    }

    /// Handles a chunk of data that have begun to arrive.
    pub fn chunk(&mut self, event: &ntbring_event_t) {
        // SAFETY: the cookie of data that have begun and not ended.
        let incoming = unsafe { &*event.cookie.cast_const().cast::<Incoming>() };
        let (from, len) = (incoming.filled.load(Ordering::Relaxed), event.data_size as usize);
        if len > incoming.len - from {
            fail::fatal(format_args!("PE {} has sent more data than it has announced", event.src));
        }
        // SAFETY: the event has that many bytes, and so has the rest of the place (checked).
        unsafe { copy(event.data.cast::<u8>().cast_const(), incoming.to.add(from), len) };
        incoming.filled.store(from + len, Ordering::Relaxed);
        if event.last != 0 {
            has_arrived(event.cookie);
        }
    }
}

/// Ends the sending of data whose source is not needed any more.
pub fn has_left(cookie: *mut c_void) {
    // SAFETY: the cookie of data that were sent, which is passed here once.
    unsafe { Arc::from_raw(cookie.cast_const().cast::<Operation>()) }.has_ended();
}

/// Ends the arrival of data.
pub fn has_arrived(cookie: *mut c_void) {
    // SAFETY: the cookie of data that have begun to arrive, which is passed here once.
    unsafe { Arc::from_raw(cookie.cast_const().cast::<Incoming>()) }.has_ended();
}
