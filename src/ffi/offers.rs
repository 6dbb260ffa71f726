//! Rendezvous offers, and cancellation of sends.

use super::abi::*;
use super::error::{argument, guard};
use super::handle::Handle;
use super::messages;
use ::ntbring_endpoint::Accepted;
use ntbring_memory::ForeignRoom;
use std::ffi::c_void;

/// Sends a message's header and offers its payload for the receiver to fetch (RTS). See `include/ntbring.h`.
///
/// # Safety
/// `endpoint` must be connected; `message` and what it points to must be valid as the header says.
#[no_mangle]
pub unsafe extern "C" fn ntbring_offer(endpoint: *mut ntbring_endpoint_t, message: *const ntbring_message_t) -> i32 {
    guard(|| {
        // SAFETY: `endpoint` is NULL or from `ntbring_open`, and no other call uses it (contract of this function).
        let handle = unsafe { Handle::from_raw(endpoint) }?;
        if message.is_null() {
            return Err(argument("message must not be NULL"));
        }
        // SAFETY: not null, and the caller guarantees a valid object.
        let message = unsafe { messages::outgoing(&*message) }?;
        let bytes = message.payload.len();
        handle.endpoint()?.offer(message)?;
        handle.overlap(bytes);
        Ok(NTBRING_PENDING as i32)
    })
}

/// Fetches the payload of an offer (CTS). See `include/ntbring.h`.
///
/// # Safety
/// `endpoint` must be connected; `offer` must come from an event; `buffer` must have room for
/// `size` bytes until they are there, or be NULL.
#[no_mangle]
pub unsafe extern "C" fn ntbring_accept(
    endpoint: *mut ntbring_endpoint_t,
    offer: *const ntbring_offer_t,
    buffer: *mut c_void,
    size: u64,
    cookie: *mut c_void,
) -> i32 {
    guard(|| {
        // SAFETY: `endpoint` is NULL or from `ntbring_open`, and no other call uses it (contract of this function).
        let handle = unsafe { Handle::from_raw(endpoint) }?;
        if offer.is_null() {
            return Err(argument("offer must not be NULL"));
        }
        // SAFETY: not null, and the caller guarantees a valid object.
        let (src, offer) = messages::offer(unsafe { &*offer })?;
        // SAFETY: the caller guarantees writable memory until the payload is complete.
        let room = (!buffer.is_null()).then(|| unsafe { ForeignRoom::new(buffer.cast(), size as usize) });
        let accepted = handle.endpoint()?.accept(src, offer, room, size, cookie as usize)?;
        Ok(match accepted {
            Accepted::Done => NTBRING_OK as i32,
            Accepted::Pending => {
                handle.overlap(size);
                NTBRING_PENDING as i32
            }
        })
    })
}

/// Cancels a send or drops an offer. See `include/ntbring.h`.
///
/// # Safety
/// `endpoint` must be connected.
#[no_mangle]
pub unsafe extern "C" fn ntbring_withdraw(
    endpoint: *mut ntbring_endpoint_t,
    dest: i32,
    cookie: *mut c_void,
    dropped: i32,
) -> i32 {
    guard(|| {
        // SAFETY: `endpoint` is NULL or from `ntbring_open`, and no other call uses it (contract of this function).
        let mut endpoint = unsafe { Handle::from_raw(endpoint) }?.endpoint()?;
        let (Ok(dest), false) = (u32::try_from(dest), cookie.is_null()) else {
            return Err(argument("dest must not be negative, and cookie must not be NULL"));
        };
        let done = match dropped {
            0 => endpoint.retract(dest, cookie as usize)?,
            _ => endpoint.forget_offer(cookie as usize),
        };
        Ok(if done { NTBRING_SOME } else { NTBRING_NONE } as i32)
    })
}
