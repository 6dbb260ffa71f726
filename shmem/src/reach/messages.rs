//! Operations on far PEs by messages, which each PE carries out on its own memory: where links may lose what is sent,
//! only messages are carried end to end. A thread polls for the PE while it computes.
//!
//! Messages from one PE to another arrive in order, and are carried out as they arrive, so operations stay in order.

use super::operation::Operation;
use super::transfers::{head, Transfers};
use super::{copy, near, AtomicOp};
use crate::abi::*;
use crate::fail;
use crate::symmetric::OwnMemory;
use std::collections::HashMap;
use std::ffi::c_void;
use std::ptr;
use std::sync::Arc;

/// Handlers of messages; 0 stands for operations without messages.
pub const REQUEST: u16 = 1;
/// The answer to a request.
pub const REPLY: u16 = 2;

/// Head of a request: number, segment, offset, length, action.
const WORDS: usize = 5;
const HEAD: usize = 8 * WORDS;

/// Parts are multiples of this, so that no element is torn, bytes.
const GRAIN: usize = 64;

/// A part of an operation that is not answered.
struct Part {
    operation: Arc<Operation>,
    result: *mut u8,
    len: usize,
}

/// State of the messages of a PE.
pub struct Messages {
    endpoint: *mut ntbring_endpoint_t,
    /// Largest payload of a message, bytes.
    part_max: usize,
    memory: OwnMemory,
    parts: HashMap<u64, Part>,
    /// Number of parts that have begun.
    begun: u64,
    /// Transfers in which this PE takes part.
    pub transfers: Transfers,
}

// SAFETY: addresses in it are those of the endpoint, of this PE's memory, and of buffers that the program keeps until
// their operations are complete; they are used under the lock that the value lies in.
unsafe impl Send for Messages {}

impl Messages {
    /// Creates the state. Head and payload of a message have at most `packed_max` bytes.
    pub fn new(endpoint: *mut ntbring_endpoint_t, packed_max: usize, memory: OwnMemory) -> Messages {
        let part_max = (packed_max.saturating_sub(HEAD) / GRAIN * GRAIN).max(GRAIN);
        Messages { endpoint, part_max, memory, parts: HashMap::new(), begun: 0, transfers: Transfers::new(endpoint) }
    }

    /// Begins an operation: sends a message for each part.
    ///
    /// # Safety
    /// As for [`super::Link::begin`].
    pub unsafe fn begin(&mut self, request: &ntbring_remote_t, operation: &Arc<Operation>) {
        let size = request.size as usize;
        let puts = u32::from(request.action) == NTBRING_REMOTE_PUT;
        let parts = size.div_ceil(self.part_max).max(1);
        operation.begin(parts as u32);
        for part in 0..parts {
            let from = part * self.part_max;
            let len = (size - from).min(self.part_max);
            self.begun += 1;
            let result = request.result.cast::<u8>().wrapping_add(from);
            self.parts.insert(self.begun, Part { operation: operation.clone(), result, len });
            let action = u32::from_le_bytes([request.action, request.op, request.type_, 0]);
            // The token is the third word of an address.
            let token = request.segment.words[2];
            let head = [self.begun, token, request.offset + from as u64, len as u64, action.into()];
            let operands = match u32::from(request.action) {
                NTBRING_REMOTE_PUT => len,
                NTBRING_REMOTE_ATOMIC if u32::from(request.op) == NTBRING_OP_NO_OP => 0,
                NTBRING_REMOTE_ATOMIC => len,
                NTBRING_REMOTE_ATOMIC_SWAP => 2 * len,
                _ => 0,
            };
            let data = request.data.cast::<u8>().wrapping_add(if puts { from } else { 0 });
            operation.keeps_source();
            let cookie = Arc::into_raw(operation.clone()).cast_mut().cast();
            // SAFETY: the caller guarantees the operands.
            if unsafe { self.send(request.dest, REQUEST, &head, (data, operands), cookie) } {
                // SAFETY: made above; there will be no event with it.
                unsafe { Arc::from_raw(cookie.cast_const().cast::<Operation>()) }.has_sent();
            }
        }
    }

    /// Sends a message. Returns true if its payload may be reused.
    ///
    /// # Safety
    /// The payload must be valid until then.
    unsafe fn send(
        &self,
        dest: i32,
        handler: u16,
        head: &[u64],
        (data, data_size): (*const u8, usize),
        cookie: *mut c_void,
    ) -> bool {
        let message = ntbring_message_t {
            dest,
            handler,
            hdr: head.as_ptr().cast(),
            hdr_size: size_of_val(head) as u64,
            data: if data_size > 0 { data.cast() } else { ptr::null() },
            data_size: data_size as u64,
            pack: None,
            cookie: if data_size > 0 { cookie } else { ptr::null_mut() },
        };
        // SAFETY: the endpoint is connected, and this value's lock is held; the caller guarantees the payload.
        match unsafe { ntbring_send(self.endpoint, &message) } {
            rc if rc < 0 => fail::ring("a message to another PE has failed"),
            rc => rc == NTBRING_OK as i32,
        }
    }

    /// Carries out the request in a message, and answers it.
    pub fn carry_out(&mut self, event: &ntbring_event_t) {
        let wrong = |what: &str| -> ! { fail::fatal(format_args!("PE {} has sent {what}", event.src)) };
        let Some([number, token, offset, len, action]) = head::<WORDS>(event) else {
            wrong("a request of another size")
        };
        let [action, op, kind, 0, 0, 0, 0, 0] = action.to_le_bytes() else { wrong("an unknown request") };
        let (offset, len) = (offset as usize, len as usize);
        let Some((memory, base)) = self.memory.find(token, offset, len) else {
            wrong("a request beyond this PE's memory")
        };
        let (at, data) = (base + offset, event.data.cast::<u8>().cast_const());
        let has = |operands: usize| event.data_size as usize == operands;
        let number32 = u32::from(kind) == NTBRING_TYPE_UINT32;
        let fits = len == if number32 { 4 } else { 8 } && at % len == 0;
        let mut result = Vec::new();
        match u32::from(action) {
            NTBRING_REMOTE_PUT if has(len) => {
                // SAFETY: both ranges are checked.
                unsafe { copy(data, at as *mut u8, len) };
                self.memory.wake(memory);
            }
            NTBRING_REMOTE_GET if has(0) && len <= self.part_max => {
                result.reserve(len);
                // SAFETY: the place has the bytes (checked), and the vector has room.
                unsafe {
                    copy(at as *const u8, result.as_mut_ptr(), len);
                    result.set_len(len);
                }
            }
            NTBRING_REMOTE_ATOMIC if fits => {
                let Some(op) = atomic_op(op.into()) else { wrong("an unknown atomic operation") };
                if !has(if op == AtomicOp::Fetch { 0 } else { len }) {
                    wrong("an atomic operation without operand");
                }
                // SAFETY: the operand is there (checked) unless it is not needed.
                let operand = |i| if op == AtomicOp::Fetch { 0 } else { unsafe { word(data, i, len) } };
                let before = match len {
                    4 => near::operate(at, op, operand(0) as u32).into(),
                    _ => near::operate(at, op, operand(0)),
                };
                result.extend_from_slice(&before.to_ne_bytes()[..len]);
                self.memory.wake(memory);
            }
            NTBRING_REMOTE_ATOMIC_SWAP if matches!(len, 4 | 8) && at % len == 0 && has(2 * len) => {
                // SAFETY: both operands are there (checked).
                let (expected, new) = unsafe { (word(data, 0, len), word(data, 1, len)) };
                let before = match len {
                    4 => near::compare_swap(at, expected as u32, new as u32).into(),
                    _ => near::compare_swap(at, expected, new),
                };
                result.extend_from_slice(&before.to_ne_bytes()[..len]);
                self.memory.wake(memory);
            }
            _ => wrong("an unknown request"),
        }
        let payload = Box::new(result);
        let bytes = (payload.as_ptr(), payload.len());
        let cookie = Box::into_raw(payload).cast();
        // SAFETY: the payload lives until the event of the message, or until it is freed here.
        if unsafe { self.send(event.src, REPLY, &[number], bytes, cookie) } {
            self.reply_sent(cookie);
        }
    }

    /// Frees the payload of a reply.
    pub fn reply_sent(&mut self, cookie: *mut c_void) {
        // SAFETY: made by `carry_out`, and passed here once.
        drop(unsafe { Box::from_raw(cookie.cast::<Vec<u8>>()) });
    }

    /// Handles the reply to a part.
    pub fn has_answered(&mut self, event: &ntbring_event_t) {
        let part = head::<1>(event).and_then(|[number]| self.parts.remove(&number));
        match part {
            Some(part) if event.data_size == 0 || event.data_size as usize == part.len => {
                if event.data_size > 0 {
                    // SAFETY: the payload has as many bytes as the destination, which its operation keeps.
                    unsafe { copy(event.data.cast::<u8>().cast_const(), part.result, part.len) };
                }
                part.operation.has_ended();
            }
            _ => fail::fatal(format_args!("PE {} has sent a reply to no request", event.src)),
        }
    }
}

/// Returns operand number `i`, of `len` bytes.
///
/// # Safety
/// It must be readable.
unsafe fn word(data: *const u8, i: usize, len: usize) -> u64 {
    let mut bytes = [0; 8];
    // SAFETY: the caller's guarantee; a word has at least `len` bytes.
    unsafe { copy(data.add(i * len), bytes.as_mut_ptr(), len) };
    u64::from_ne_bytes(bytes)
}

fn atomic_op(op: u32) -> Option<AtomicOp> {
    Some(match op {
        NTBRING_OP_SUM => AtomicOp::Add,
        NTBRING_OP_BAND => AtomicOp::And,
        NTBRING_OP_BOR => AtomicOp::Or,
        NTBRING_OP_BXOR => AtomicOp::Xor,
        NTBRING_OP_REPLACE => AtomicOp::Swap,
        NTBRING_OP_NO_OP => AtomicOp::Fetch,
        _ => return None,
    })
}
