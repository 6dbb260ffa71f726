//! Segments across the ABI. A segment is given out as the address of its box.

use super::abi::*;
use super::error::{argument, guard, Failure};
use super::handle::Handle;
use crate::ntb::emu::{HostAddress, Segment, SegmentAddress};
use std::ffi::c_void;

fn words(a: &SegmentAddress) -> [u64; 4] {
    [u64::from(a.file.pid) << 32 | u64::from(a.file.fd), a.file.inode, a.file.token, a.size]
}

fn address(words: &[u64; 4]) -> SegmentAddress {
    let [process, inode, token, size] = *words;
    SegmentAddress { file: HostAddress { pid: (process >> 32) as u32, fd: process as u32, inode, token }, size }
}

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
        let endpoint = unsafe { Handle::from_raw(endpoint) }?.endpoint()?;
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
        let endpoint = unsafe { Handle::from_raw(endpoint) }?.endpoint()?;
        if opened.is_null() || base.is_null() || at.is_null() || rank < 0 {
            return Err(argument("a segment of no rank, without address, or without a place for it"));
        }
        // SAFETY: not null, valid by contract.
        let segment = endpoint.open_segment(rank as u32, &address(unsafe { &(*at).words }))?;
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
/// `freed` must be a segment, which is gone after this with all its bytes; NULL is allowed.
#[no_mangle]
pub unsafe extern "C" fn ntbring_segment_free(freed: *mut ntbring_segment_t) -> i32 {
    guard(|| {
        if !freed.is_null() {
            // SAFETY: made by Box::into_raw, given up by the caller.
            drop(unsafe { Box::from_raw(freed.cast::<Segment>()) });
        }
        Ok(NTBRING_OK as i32)
    })
}
