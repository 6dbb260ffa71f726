//! Segments across the ABI. A segment is given out as the address of its box.

use super::abi::*;
use super::error::{argument, guard, Failure};
use super::handle::Handle;
use ::ntbring_endpoint::Operation;
use ntbring_host::Segment;
use ntbring_memory::{ForeignBytes, ForeignRoom};
use ntbring_ring::served::registry::{address, words};
use ntbring_ring::served::Action;
use std::ffi::c_void;

/// The segment behind a pointer.
///
/// # Safety
/// It must come from `ntbring_segment_create` or `_open` and not be freed yet, and no mutable
/// reference to it may exist.
unsafe fn segment<'a>(segment: *mut ntbring_segment_t) -> Result<&'a Segment, Failure> {
    // SAFETY: made by Box::into_raw; shared by contract.
    unsafe { segment.cast::<Segment>().as_ref() }.ok_or_else(|| argument("segment must not be NULL"))
}

/// See `include/ntbring.h`.
///
/// # Safety
/// `endpoint` must be connected.
#[no_mangle]
pub unsafe extern "C" fn ntbring_is_near(endpoint: *mut ntbring_endpoint_t, rank: i32) -> i32 {
    guard(|| {
        // SAFETY: by contract.
        let endpoint = unsafe { Handle::from_raw(endpoint) }?.endpoint()?;
        Ok(u32::try_from(rank).is_ok_and(|rank| endpoint.is_near(rank)).into())
    })
}

/// See `include/ntbring.h`.
///
/// # Safety
/// `endpoint` must be connected; `created`, `base` and `address` must be writable.
#[no_mangle]
pub unsafe extern "C" fn ntbring_segment_create(
    endpoint: *mut ntbring_endpoint_t,
    size: u64,
    created: *mut *mut ntbring_segment_t,
    base: *mut *mut c_void,
    address: *mut ntbring_segment_address_t,
) -> i32 {
    guard(|| {
        // SAFETY: by contract.
        let mut endpoint = unsafe { Handle::from_raw(endpoint) }?.endpoint()?;
        if created.is_null() || base.is_null() || address.is_null() || size == 0 {
            return Err(argument("a segment without bytes or without a place for it"));
        }
        let (segment, at) = endpoint.create_segment(size)?;
        // SAFETY: not null, writable by contract.
        unsafe {
            *base = segment.base().cast();
            *address = ntbring_segment_address { words: words(&at) };
            *created = Box::into_raw(Box::new(segment)).cast();
        }
        Ok(NTBRING_OK as i32)
    })
}

/// See `include/ntbring.h`.
///
/// # Safety
/// `endpoint` must be connected; `at` must be valid; `opened` and `base` must be writable.
#[no_mangle]
pub unsafe extern "C" fn ntbring_segment_open(
    endpoint: *mut ntbring_endpoint_t,
    rank: i32,
    at: *const ntbring_segment_address_t,
    opened: *mut *mut ntbring_segment_t,
    base: *mut *mut c_void,
) -> i32 {
    guard(|| {
        // SAFETY: by contract.
        let mut endpoint = unsafe { Handle::from_raw(endpoint) }?.endpoint()?;
        if opened.is_null() || base.is_null() || at.is_null() || rank < 0 {
            return Err(argument("a segment of no rank, without address, or without a place for it"));
        }
        // SAFETY: not null, valid by contract.
        let segment = endpoint.open_segment(rank as u32, &address(unsafe { (*at).words }))?;
        // SAFETY: not null, writable by contract.
        unsafe {
            *base = segment.base().cast();
            *opened = Box::into_raw(Box::new(segment)).cast();
        }
        Ok(NTBRING_OK as i32)
    })
}

/// See `include/ntbring.h`.
///
/// # Safety
/// `sealed` must be a segment that is not freed yet and not in use by another thread.
#[no_mangle]
pub unsafe extern "C" fn ntbring_segment_seal(sealed: *mut ntbring_segment_t) -> i32 {
    guard(|| {
        // SAFETY: made by Box::into_raw; exclusive by contract.
        let Some(segment) = (unsafe { sealed.cast::<Segment>().as_mut() }) else {
            return Err(argument("segment must not be NULL"));
        };
        segment.seal();
        Ok(NTBRING_OK as i32)
    })
}

/// See `include/ntbring.h`.
///
/// # Safety
/// `endpoint` must be connected; `locked` must be a segment that is not freed yet.
#[no_mangle]
pub unsafe extern "C" fn ntbring_segment_lock(
    endpoint: *mut ntbring_endpoint_t,
    locked: *mut ntbring_segment_t,
) -> i32 {
    guard(|| {
        // SAFETY: by contract.
        let endpoint = unsafe { Handle::from_raw(endpoint) }?.endpoint()?;
        // SAFETY: by contract.
        endpoint.lock(unsafe { segment(locked) }?)?;
        Ok(NTBRING_OK as i32)
    })
}

/// See `include/ntbring.h`.
///
/// # Safety
/// `unlocked` must be a segment whose lock this process has.
#[no_mangle]
pub unsafe extern "C" fn ntbring_segment_unlock(unlocked: *mut ntbring_segment_t) -> i32 {
    guard(|| {
        // SAFETY: by contract.
        unsafe { segment(unlocked) }?.unlock();
        Ok(NTBRING_OK as i32)
    })
}

/// See `include/ntbring.h`.
///
/// # Safety
/// `endpoint` must be connected; `held` must be a segment that is not freed yet.
#[no_mangle]
pub unsafe extern "C" fn ntbring_segment_hold(
    endpoint: *mut ntbring_endpoint_t,
    held: *mut ntbring_segment_t,
    alone: i32,
) -> i32 {
    guard(|| {
        // SAFETY: by contract.
        let endpoint = unsafe { Handle::from_raw(endpoint) }?.endpoint()?;
        // SAFETY: by contract.
        let taken = endpoint.hold(unsafe { segment(held) }?, alone != 0);
        Ok(if taken { NTBRING_OK as i32 } else { NTBRING_PENDING as i32 })
    })
}

/// See `include/ntbring.h`.
///
/// # Safety
/// `held` must be a segment that is not freed yet.
#[no_mangle]
pub unsafe extern "C" fn ntbring_segment_let_go(held: *mut ntbring_segment_t, alone: i32) -> i32 {
    guard(|| {
        // SAFETY: by contract.
        match unsafe { segment(held) }?.let_go(alone != 0) {
            true => Ok(NTBRING_OK as i32),
            false => Err(argument("a window was unlocked that was not locked so")),
        }
    })
}

/// See `include/ntbring.h`.
///
/// # Safety
/// `endpoint` must be connected.
#[no_mangle]
pub unsafe extern "C" fn ntbring_is_served(endpoint: *mut ntbring_endpoint_t, rank: i32) -> i32 {
    guard(|| {
        // SAFETY: by contract.
        let endpoint = unsafe { Handle::from_raw(endpoint) }?.endpoint()?;
        Ok(u32::try_from(rank).is_ok_and(|rank| endpoint.is_served(rank)).into())
    })
}

/// See `include/ntbring.h`.
///
/// # Safety
/// `endpoint` must be connected; `remote` and what it points to must be valid as the header says.
#[no_mangle]
pub unsafe extern "C" fn ntbring_remote(endpoint: *mut ntbring_endpoint_t, remote: *const ntbring_remote_t) -> i32 {
    guard(|| {
        // SAFETY: by contract.
        let mut endpoint = unsafe { Handle::from_raw(endpoint) }?.endpoint()?;
        // SAFETY: valid by contract.
        let Some(r) = (unsafe { remote.as_ref() }) else { return Err(argument("remote must not be NULL")) };
        let action = Action::parse(r.action, r.op, r.type_);
        let Some(action) = action.filter(|_| r.dest >= 0 && r.size <= isize::MAX as u64 / 2) else {
            return Err(argument("an operation that there is not, or of no rank, or of too many bytes"));
        };
        let (operands, result) = (action.operands(r.size) as usize, action.result(r.size) as usize);
        if operands > 0 && r.data.is_null() || result > 0 && r.result.is_null() {
            return Err(argument("an operation without operands, or without a place for its result"));
        }
        endpoint.begin(Operation {
            dest: r.dest as u32,
            action,
            segment: address(r.segment.words).file.token,
            offset: r.offset,
            len: r.size,
            // SAFETY: valid until the event, by contract.
            operands: unsafe { ForeignBytes::new(r.data.cast(), operands) },
            // SAFETY: as above.
            result: (result > 0).then(|| unsafe { ForeignRoom::new(r.result.cast(), result) }),
            cookie: r.cookie as usize,
        })?;
        Ok(NTBRING_PENDING as i32)
    })
}

/// See `include/ntbring.h`.
///
/// # Safety
/// `endpoint` must be connected; `freed` must be a segment, which is gone after this with all its
/// bytes; NULL is allowed.
#[no_mangle]
pub unsafe extern "C" fn ntbring_segment_free(endpoint: *mut ntbring_endpoint_t, freed: *mut ntbring_segment_t) -> i32 {
    guard(|| {
        if freed.is_null() {
            return Ok(NTBRING_OK as i32);
        }
        // SAFETY: made by Box::into_raw, given up by the caller.
        let segment = unsafe { Box::from_raw(freed.cast::<Segment>()) };
        // SAFETY: by contract.
        unsafe { Handle::from_raw(endpoint) }?.endpoint()?.withdraw_segment(&segment)?;
        Ok(NTBRING_OK as i32)
    })
}
