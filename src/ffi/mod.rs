//! The C ABI: it checks arguments, catches panics, and turns errors into codes and texts.
//!
//! The types are generated from `include/ntbring.h` by bindgen, and so are declarations of the functions; a test
//! compares them with the definitions here, so that the two sides cannot diverge.

#[allow(non_camel_case_types, non_upper_case_globals, missing_docs, dead_code)]
#[allow(clippy::all, clippy::undocumented_unsafe_blocks)]
mod abi {
    include!(concat!(env!("OUT_DIR"), "/abi.rs"));
}
mod error;
mod groups;
mod handle;
mod messages;
mod offers;
mod peers;
mod pmi;
mod progress_thread;
mod queues;
mod schedules;
mod segments;
mod shared;
mod timeline;
mod variables;
mod writers;

use ::ntbring_endpoint::wire::Head;
use ::ntbring_endpoint::{Endpoint, Look, Message};
use abi::*;
use error::{argument, guard, Failure};
use handle::{Handle, Shared};
use ntbring_memory::ForeignBytes;
use ntbring_ring::join::Card;
use ntbring_zerocopy::Payload;
use std::ffi::c_void;
use std::os::raw::c_char;
use std::time::Duration;

/// Returns the version of this ABI. See `include/ntbring.h`.
#[no_mangle]
pub extern "C" fn ntbring_abi_version() -> u32 {
    NTBRING_ABI_VERSION
}

/// Returns the text of the calling thread's last error. See `include/ntbring.h`.
#[no_mangle]
pub extern "C" fn ntbring_error_text() -> *const c_char {
    error::text()
}

/// Creates an endpoint of a rank, which has not joined the ring. See `include/ntbring.h`.
///
/// # Safety
/// `job` must be valid, its array `size` long; `endpoint` must be writable.
#[no_mangle]
pub unsafe extern "C" fn ntbring_open(job: *const ntbring_job_t, endpoint: *mut *mut ntbring_endpoint_t) -> i32 {
    guard(|| {
        if job.is_null() || endpoint.is_null() {
            return Err(argument("job and endpoint must not be NULL"));
        }
        // SAFETY: not null, and the caller guarantees a valid object.
        let job = unsafe { &*job };
        if job.size < 1 || job.rank < 0 || job.rank >= job.size || job.vci < 0 || job.host_of.is_null() {
            return Err(argument("rank, size, vci or host_of have invalid values"));
        }
        // SAFETY: not null, and the caller guarantees `size` entries.
        let host_of = unsafe { std::slice::from_raw_parts(job.host_of, job.size as usize) };
        let handle = Handle::open(job, host_of, queues::reader(job))?;
        // SAFETY: the caller guarantees writable memory.
        unsafe { *endpoint = handle.into_raw() };
        Ok(NTBRING_OK as i32)
    })
}

/// Checks that the memory that MPICH will share between the ranks of a host is available. See `include/ntbring.h`.
///
/// # Safety
/// `endpoint` must come from `ntbring_open`.
#[no_mangle]
pub unsafe extern "C" fn ntbring_check_space(endpoint: *mut ntbring_endpoint_t) -> i32 {
    guard(|| {
        // SAFETY: `endpoint` is NULL or from `ntbring_open`, and no other call uses it (contract of this function).
        unsafe { Handle::from_raw(endpoint) }?.check_space()?;
        Ok(NTBRING_OK as i32)
    })
}

/// Writes the address that other processes need to connect to this endpoint. See `include/ntbring.h`.
///
/// # Safety
/// `endpoint` must come from `ntbring_open`; `address` must have room for NTBRING_ADDRESS_MAX bytes.
#[no_mangle]
pub unsafe extern "C" fn ntbring_address(
    endpoint: *mut ntbring_endpoint_t,
    address: *mut c_void,
    size: *mut u64,
) -> i32 {
    guard(|| {
        // SAFETY: `endpoint` is NULL or from `ntbring_open`, and no other call uses it (contract of this function).
        let handle = unsafe { Handle::from_raw(endpoint) }?;
        if address.is_null() || size.is_null() {
            return Err(argument("address and size must not be NULL"));
        }
        let bytes = handle.address()?;
        assert!(bytes.len() <= NTBRING_ADDRESS_MAX as usize);
        // SAFETY: the caller guarantees room for NTBRING_ADDRESS_MAX bytes, and an address has at most that many.
        unsafe {
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), address.cast(), bytes.len());
            *size = bytes.len() as u64;
        }
        Ok(NTBRING_OK as i32)
    })
}

/// Joins the ring, with the addresses of all ranks. See `include/ntbring.h`.
///
/// # Safety
/// `endpoint` must come from `ntbring_open`; `addresses` must hold one address a rank.
#[no_mangle]
pub unsafe extern "C" fn ntbring_connect(
    endpoint: *mut ntbring_endpoint_t,
    addresses: *const c_void,
    stride: u64,
) -> i32 {
    guard(|| {
        // SAFETY: `endpoint` is NULL or from `ntbring_open`, and no other call uses it (contract of this function).
        let handle = unsafe { Handle::from_raw(endpoint) }?;
        let stride = stride as usize;
        if addresses.is_null() || !(Card::LEN..=1 << 20).contains(&stride) {
            return Err(argument("addresses is NULL, or stride is not that of addresses"));
        }
        // SAFETY: not null; the caller guarantees one address for each rank, `stride` bytes apart. The last one is
        // read without padding.
        let bytes =
            unsafe { std::slice::from_raw_parts(addresses.cast::<u8>(), stride * (handle.size() - 1) + Card::LEN) };
        handle.connect(bytes.chunks(stride))?;
        Ok(NTBRING_OK as i32)
    })
}

/// Writes the size limits of messages and blocks. See `include/ntbring.h`.
///
/// # Safety
/// `endpoint` must be connected; `limits` must be writable.
#[no_mangle]
pub unsafe extern "C" fn ntbring_limits(endpoint: *mut ntbring_endpoint_t, limits: *mut ntbring_limits_t) -> i32 {
    guard(|| {
        // SAFETY: `endpoint` is NULL or from `ntbring_open`, and no other call uses it (contract of this function).
        let endpoint = unsafe { Handle::from_raw(endpoint) }?.endpoint()?;
        if limits.is_null() {
            return Err(argument("limits must not be NULL"));
        }
        let (header_max, thresholds) = (endpoint.header_max() as u64, endpoint.thresholds());
        let packed_max = thresholds.packed_max as u64;
        let (eager_max, block_max) = (thresholds.eager_max as u64, endpoint.block_max() as u64);
        // SAFETY: not null, and the caller guarantees writable memory.
        unsafe { *limits = ntbring_limits_t { header_max, packed_max, eager_max, block_max } };
        Ok(NTBRING_OK as i32)
    })
}

/// Sends a message. See `include/ntbring.h`.
///
/// # Safety
/// `endpoint` must be connected; `message` and what it points to must be valid as the header says.
#[no_mangle]
pub unsafe extern "C" fn ntbring_send(endpoint: *mut ntbring_endpoint_t, message: *const ntbring_message_t) -> i32 {
    guard(|| {
        // SAFETY: `endpoint` is NULL or from `ntbring_open`, and no other call uses it (contract of this function).
        let mut endpoint = unsafe { Handle::from_raw(endpoint) }?.endpoint()?;
        if message.is_null() {
            return Err(argument("message must not be NULL"));
        }
        // SAFETY: not null, and the caller guarantees a valid object.
        let sent = endpoint.send(unsafe { messages::outgoing(&*message) }?)?;
        Ok(match sent {
            ::ntbring_endpoint::Sent::Done => NTBRING_OK as i32,
            ::ntbring_endpoint::Sent::Pending => NTBRING_PENDING as i32,
        })
    })
}

/// Sends a message as a whole, or not at all. See `include/ntbring.h`.
///
/// # Safety
/// `endpoint` must be connected; `data` must have the size given.
#[no_mangle]
pub unsafe extern "C" fn ntbring_send_now(
    endpoint: *mut ntbring_endpoint_t,
    dest: i32,
    handler: u16,
    hdr: u64,
    hdr_more: u64,
    data: *const c_void,
    data_size: u64,
) -> i32 {
    guard(|| {
        // SAFETY: `endpoint` is NULL or from `ntbring_open`, and no other call uses it (contract of this function).
        let mut endpoint = unsafe { Handle::from_raw(endpoint) }?.endpoint()?;
        // SAFETY: the caller guarantees `data_size` readable bytes; the payload is not used after the call.
        let payload = unsafe { messages::small(dest, data, data_size) }?;
        let (dest, head, header) = (dest as u32, Head { handler }, [hdr, hdr_more]);
        if endpoint.send_plain(dest, head, &messages::bytes(header), payload) {
            return Ok(NTBRING_OK as i32);
        }
        send_now(&mut endpoint, dest, head, header, payload)
    })
}

/// Sends messages that do not fit the fast path. A separate function, so that the fast path needs few registers.
#[inline(never)]
fn send_now(
    endpoint: &mut Endpoint,
    dest: u32,
    head: Head,
    header: [u64; 2],
    payload: ForeignBytes<'static>,
) -> Result<i32, Failure> {
    let payload = Payload::Contiguous(payload);
    let message = Message { dest, head, header: &messages::bytes(header), payload, cookie: 0 };
    Ok(if endpoint.send_now(&message)? { NTBRING_OK as i32 } else { NTBRING_PENDING as i32 })
}

/// Returns the size in bytes of the largest message that is sent to `dest` without rendezvous. See `include/ntbring.h`.
///
/// # Safety
/// `endpoint` must be connected.
#[no_mangle]
pub unsafe extern "C" fn ntbring_eager_max(endpoint: *mut ntbring_endpoint_t, dest: i32) -> u64 {
    let mut max = 0;
    guard(|| {
        // SAFETY: `endpoint` is NULL or from `ntbring_open`, and no other call uses it (contract of this function).
        let endpoint = unsafe { Handle::from_raw(endpoint) }?.endpoint()?;
        max = endpoint.eager_max(dest.max(0) as u32) as u64;
        Ok(0)
    });
    max
}

/// Makes progress and returns an event, if there is one. See `include/ntbring.h`.
///
/// # Safety
/// `endpoint` must be connected; `event` must be writable.
#[no_mangle]
pub unsafe extern "C" fn ntbring_poll(endpoint: *mut ntbring_endpoint_t, event: *mut ntbring_event_t) -> i32 {
    guard(|| {
        // SAFETY: `endpoint` is NULL or from `ntbring_open`, and no other call uses it (contract of this function).
        let mut endpoint = unsafe { Handle::from_raw(endpoint) }?.endpoint()?;
        if event.is_null() {
            return Err(argument("event must not be NULL"));
        }
        endpoint.unshare(|endpoint| !endpoint.has_bulk());
        // SAFETY: not null; the caller guarantees a writable event, whose fields are plain numbers and addresses.
        let event = unsafe { &mut *event };
        match endpoint.look() {
            Look::Plain(plain) => {
                let charge = endpoint.cost(plain.head.handler, plain.payload as u64);
                messages::fill_plain(event, &plain, charge);
                Ok(NTBRING_SOME as i32)
            }
            Look::Nothing => Ok(NTBRING_NONE as i32),
            other => follow(&mut endpoint, other, event),
        }
    })
}

/// Completes a poll that has found no single-entry message. A separate function, so that the fast path needs few
/// registers.
#[inline(never)]
fn follow(endpoint: &mut Endpoint, look: Look, event: &mut ntbring_event_t) -> Result<i32, Failure> {
    let Some(found) = endpoint.follow(look)? else { return Ok(NTBRING_NONE as i32) };
    messages::fill(event, found, |handler, payload| endpoint.cost(handler, payload));
    Ok(NTBRING_SOME as i32)
}

/// Returns the resources of an event. See `include/ntbring.h`.
///
/// # Safety
/// `endpoint` must be connected; `event` must have been filled in by `ntbring_poll`, and changed as the header says.
#[no_mangle]
pub unsafe extern "C" fn ntbring_release(endpoint: *mut ntbring_endpoint_t, event: *mut ntbring_event_t) -> i32 {
    guard(|| {
        // SAFETY: `endpoint` is NULL or from `ntbring_open`, and no other call uses it (contract of this function).
        let mut endpoint = unsafe { Handle::from_raw(endpoint) }?.endpoint()?;
        if event.is_null() {
            return Err(argument("event must not be NULL"));
        }
        // SAFETY: not null, and the caller guarantees a valid object.
        let event = unsafe { &*event };
        match messages::entry(event) {
            Some(lane) => endpoint.release_entry(lane)?,
            // SAFETY: the caller upholds the same contract for this function.
            None => unsafe { release_other(&mut endpoint, event) }?,
        }
        if event.charge > 0 {
            endpoint.discharge(event.src as u32, event.charge)?;
        }
        Ok(NTBRING_OK as i32)
    })
}

/// Releases an event that is not of a single-entry message.
///
/// # Safety
/// As [`ntbring_release`].
#[inline(never)]
unsafe fn release_other(endpoint: &mut Endpoint, event: &ntbring_event_t) -> Result<(), Failure> {
    if let Some(token) = messages::token(event)? {
        // SAFETY: the caller upholds the contract of this function.
        if let Some(room) = unsafe { messages::place(event, token) } {
            endpoint.place_at(token, room);
        }
        endpoint.release(token, event.cookie as usize)?;
    }
    Ok(())
}

/// Returns the flow-control credit of a message that is no longer kept. See `include/ntbring.h`.
///
/// # Safety
/// `endpoint` must be connected.
#[no_mangle]
pub unsafe extern "C" fn ntbring_discharge(endpoint: *mut ntbring_endpoint_t, src: i32, charge: u64) -> i32 {
    guard(|| {
        // SAFETY: `endpoint` is NULL or from `ntbring_open`, and no other call uses it (contract of this function).
        let mut endpoint = unsafe { Handle::from_raw(endpoint) }?.endpoint()?;
        endpoint.discharge(src as u32, charge)?;
        Ok(NTBRING_OK as i32)
    })
}

/// Grants stalled senders more credit. See `include/ntbring.h`.
///
/// # Safety
/// `endpoint` must be connected.
#[no_mangle]
pub unsafe extern "C" fn ntbring_allow_more(endpoint: *mut ntbring_endpoint_t, src: i32, delayed: i32) -> i32 {
    guard(|| {
        // SAFETY: `endpoint` is NULL or from `ntbring_open`, and no other call uses it (contract of this function).
        let mut endpoint = unsafe { Handle::from_raw(endpoint) }?.endpoint()?;
        endpoint.allow_more(u32::try_from(src).ok(), delayed != 0)?;
        Ok(NTBRING_OK as i32)
    })
}

/// Tells whether this process polls. See `include/ntbring.h`.
///
/// # Safety
/// `endpoint` must be connected. Any thread may call it.
#[no_mangle]
pub unsafe extern "C" fn ntbring_rest(endpoint: *mut ntbring_endpoint_t, rests: i32) -> i32 {
    guard(|| {
        // SAFETY: `endpoint` is NULL or from `ntbring_open`, as the contract of this function requires.
        if let Some(idle) = unsafe { Shared::from_raw(endpoint) }?.idle() {
            idle.rest(rests != 0);
        }
        Ok(NTBRING_OK as i32)
    })
}

/// Waits after fruitless polls; returns the number of polls that may follow before the next call. See
/// `include/ntbring.h`.
///
/// # Safety
/// `endpoint` must be connected. Any thread may call it.
#[no_mangle]
pub unsafe extern "C" fn ntbring_idle(endpoint: *mut ntbring_endpoint_t, max_us: u32, progress: i32) -> u32 {
    let mut looks = 0;
    guard(|| {
        // SAFETY: `endpoint` is NULL or from `ntbring_open`, as the contract of this function requires.
        if let Some(idle) = unsafe { Shared::from_raw(endpoint) }?.idle() {
            looks = idle.wait(Duration::from_micros(max_us.into()), progress != 0);
        }
        Ok(0)
    });
    looks
}

/// Checks if everything that was sent outlives this process. See `include/ntbring.h`.
///
/// # Safety
/// `endpoint` must come from `ntbring_open`.
#[no_mangle]
pub unsafe extern "C" fn ntbring_flush(endpoint: *mut ntbring_endpoint_t) -> i32 {
    guard(|| {
        // SAFETY: `endpoint` is NULL or from `ntbring_open`, and no other call uses it (contract of this function).
        let done = unsafe { Handle::from_raw(endpoint) }?.flush()?;
        Ok(if done { NTBRING_OK } else { NTBRING_PENDING } as i32)
    })
}

/// Keeps retransmitting in the background until the endpoint is closed. See `include/ntbring.h`.
///
/// # Safety
/// `endpoint` must come from `ntbring_open`.
#[no_mangle]
pub unsafe extern "C" fn ntbring_linger(endpoint: *mut ntbring_endpoint_t) -> i32 {
    guard(|| {
        // SAFETY: `endpoint` is NULL or from `ntbring_open`, and no other call uses it (contract of this function).
        unsafe { Handle::from_raw(endpoint) }?.linger()?;
        Ok(NTBRING_OK as i32)
    })
}

/// Destroys an endpoint. See `include/ntbring.h`.
///
/// # Safety
/// `endpoint` must come from `ntbring_open` and is gone after this; NULL is allowed.
#[no_mangle]
pub unsafe extern "C" fn ntbring_close(endpoint: *mut ntbring_endpoint_t) -> i32 {
    guard(|| {
        if !endpoint.is_null() {
            // SAFETY: the pointer is from `ntbring_open`, and the caller gives it up.
            let mut handle = unsafe { Handle::take_back(endpoint) };
            variables::remember(&mut handle);
            let timeline = handle.take_timeline();
            drop(handle);
            timeline.into_iter().for_each(timeline::Timeline::end);
        }
        Ok(NTBRING_OK as i32)
    })
}

#[cfg(test)]
mod tests;
