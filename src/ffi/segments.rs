//! Segments at the C ABI. The pointer given to C is that of the segment's box.

use super::abi::*;
use super::error::{argument, guard, Failure};
use super::handle::Handle;
use ::ntbring_endpoint::{EndpointError, Operation};
use ntbring_host::barrier;
use ntbring_memory::{ForeignBytes, ForeignRoom};
use ntbring_ring::HeldSegment;
use ntbring_rma::Action;
use ntbring_rma::{address, words};
use std::ffi::c_void;
use std::time::Duration;

/// Returns the segment behind a pointer.
///
/// # Safety
/// It must come from `ntbring_segment_create` or `_open` and not be freed yet, and no mutable
/// reference to it may exist.
unsafe fn segment<'a>(segment: *mut ntbring_segment_t) -> Result<&'a HeldSegment, Failure> {
    // SAFETY: allocated by `Box::into_raw`; the caller guarantees that there is no mutable reference.
    unsafe { segment.cast::<HeldSegment>().as_ref() }.ok_or_else(|| argument("segment must not be NULL"))
}

/// Returns 1 if this rank can map the segments of `rank`, else 0. See `include/ntbring.h`.
///
/// # Safety
/// `endpoint` must be connected.
#[no_mangle]
pub unsafe extern "C" fn ntbring_is_mappable(endpoint: *mut ntbring_endpoint_t, rank: i32) -> i32 {
    guard(|| {
        // SAFETY: `endpoint` is NULL or from `ntbring_open`, and no other call uses it (contract of this function).
        let endpoint = unsafe { Handle::from_raw(endpoint) }?.endpoint()?;
        Ok(u32::try_from(rank).is_ok_and(|rank| endpoint.is_mappable(rank)).into())
    })
}

/// Creates a segment of this rank. See `include/ntbring.h`.
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
        // SAFETY: `endpoint` is NULL or from `ntbring_open`, and no other call uses it (contract of this function).
        let mut endpoint = unsafe { Handle::from_raw(endpoint) }?.endpoint()?;
        if created.is_null() || base.is_null() || address.is_null() || size == 0 {
            return Err(argument("size must not be 0, and created, base and address must not be NULL"));
        }
        let (segment, at) = endpoint.create_segment(size)?;
        let segment = HeldSegment::from(segment);
        // SAFETY: not null, and the caller guarantees writable memory.
        unsafe {
            *base = segment.base().cast();
            *address = ntbring_segment_address { words: words(&at) };
            *created = Box::into_raw(Box::new(segment)).cast();
        }
        Ok(NTBRING_OK as i32)
    })
}

/// Maps a segment of another rank. See `include/ntbring.h`.
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
        // SAFETY: `endpoint` is NULL or from `ntbring_open`, and no other call uses it (contract of this function).
        let mut endpoint = unsafe { Handle::from_raw(endpoint) }?.endpoint()?;
        if opened.is_null() || base.is_null() || at.is_null() || rank < 0 {
            return Err(argument("rank must not be negative, and at, opened and base must not be NULL"));
        }
        // SAFETY: not null, and the caller guarantees a valid object.
        let segment = HeldSegment::from(endpoint.open_segment(rank as u32, &address(unsafe { (*at).words }))?);
        // SAFETY: not null, and the caller guarantees writable memory.
        unsafe {
            *base = segment.base().cast();
            *opened = Box::into_raw(Box::new(segment)).cast();
        }
        Ok(NTBRING_OK as i32)
    })
}

/// Creates a segment that grows. See `include/ntbring.h`.
///
/// # Safety
/// `endpoint` must be connected; `created`, `base` and `address` must be writable.
#[no_mangle]
pub unsafe extern "C" fn ntbring_segment_create_growing(
    endpoint: *mut ntbring_endpoint_t,
    size: u64,
    backed: u64,
    created: *mut *mut ntbring_segment_t,
    base: *mut *mut c_void,
    address: *mut ntbring_segment_address_t,
) -> i32 {
    guard(|| {
        // SAFETY: `endpoint` is NULL or from `ntbring_open`, and no other call uses it (contract of this function).
        let mut endpoint = unsafe { Handle::from_raw(endpoint) }?.endpoint()?;
        if created.is_null() || base.is_null() || address.is_null() || size == 0 {
            return Err(argument("size must not be 0, and created, base and address must not be NULL"));
        }
        let (segment, at) = endpoint.create_growing_segment(size, backed)?;
        // SAFETY: not null, and the caller guarantees writable memory.
        unsafe {
            *base = segment.base().cast();
            *address = ntbring_segment_address { words: words(&at) };
            *created = Box::into_raw(Box::new(segment)).cast();
        }
        Ok(NTBRING_OK as i32)
    })
}

/// Reserves further bytes of a segment. See `include/ntbring.h`.
///
/// # Safety
/// `grown` must be a segment that is not freed yet.
#[no_mangle]
pub unsafe extern "C" fn ntbring_segment_grow(grown: *mut ntbring_segment_t, from: u64, len: u64) -> i32 {
    guard(|| {
        // SAFETY: the segment is NULL or has not been freed (contract of this function).
        unsafe { segment(grown) }?.grow(from, len).map_err(resource)?;
        Ok(NTBRING_OK as i32)
    })
}

/// Maps a segment over memory of this process. See `include/ntbring.h`.
///
/// # Safety
/// `placed` must be a segment that is not freed yet; the memory at `at` must be as the header says.
#[no_mangle]
pub unsafe extern "C" fn ntbring_segment_take_place_of(
    placed: *mut ntbring_segment_t,
    at: *mut c_void,
    whole: u64,
) -> i32 {
    guard(|| {
        // SAFETY: the segment is NULL or has not been freed (contract of this function).
        let segment = unsafe { segment(placed) }?;
        // SAFETY: the caller guarantees mapped memory that no other thread accesses.
        unsafe { segment.take_place_of(at.cast(), whole as usize) }.map_err(resource)?;
        Ok(NTBRING_OK as i32)
    })
}

/// Returns the address of a segment's number of sleepers. See `include/ntbring.h`.
///
/// # Safety
/// `owner` must be a segment that is not freed yet; `sleepers` must be writable.
#[no_mangle]
pub unsafe extern "C" fn ntbring_segment_sleepers(owner: *mut ntbring_segment_t, sleepers: *mut *const u32) -> i32 {
    guard(|| {
        // SAFETY: the segment is NULL or has not been freed (contract of this function).
        let segment = unsafe { segment(owner) }?;
        if sleepers.is_null() {
            return Err(argument("sleepers must not be NULL"));
        }
        // SAFETY: not null, and the caller guarantees writable memory.
        unsafe { *sleepers = segment.sleepers().as_ptr() };
        Ok(i32::from(!barrier::available()))
    })
}

/// Wakes the sleepers of a segment. See `include/ntbring.h`.
///
/// # Safety
/// `rung` must be a segment that is not freed yet.
#[no_mangle]
pub unsafe extern "C" fn ntbring_segment_ring(rung: *mut ntbring_segment_t) -> i32 {
    guard(|| {
        // SAFETY: the segment is NULL or has not been freed (contract of this function).
        unsafe { segment(rung) }?.ring();
        Ok(NTBRING_OK as i32)
    })
}

/// Sleeps until the bell of a segment rings. See `include/ntbring.h`.
///
/// # Safety
/// `owner` must be a segment that is not freed yet; `is_over` must be valid with `cookie`.
#[no_mangle]
pub unsafe extern "C" fn ntbring_segment_sleep(
    owner: *mut ntbring_segment_t,
    max_us: u32,
    is_over: ntbring_is_over_fn,
    cookie: *mut c_void,
) -> i32 {
    guard(|| {
        // SAFETY: the segment is NULL or has not been freed (contract of this function).
        let segment = unsafe { segment(owner) }?;
        let is_over = is_over.ok_or_else(|| argument("is_over must not be NULL"))?;
        // SAFETY: the caller guarantees that the function may be called with this cookie.
        segment.sleep(Duration::from_micros(max_us.into()), || unsafe { is_over(cookie) } != 0);
        Ok(NTBRING_OK as i32)
    })
}

/// Converts the failure to reserve or map memory.
fn resource(cause: std::io::Error) -> Failure {
    EndpointError::Memory(cause).into()
}

/// Prevents other processes from opening a segment from now on. See `include/ntbring.h`.
///
/// # Safety
/// `sealed` must be a segment that is not freed yet and not in use by another thread.
#[no_mangle]
pub unsafe extern "C" fn ntbring_segment_seal(sealed: *mut ntbring_segment_t) -> i32 {
    guard(|| {
        // SAFETY: allocated by `Box::into_raw`; the caller guarantees exclusive access.
        let Some(segment) = (unsafe { sealed.cast::<HeldSegment>().as_mut() }) else {
            return Err(argument("segment must not be NULL"));
        };
        segment.seal();
        Ok(NTBRING_OK as i32)
    })
}

/// Acquires the lock of a segment's bytes. See `include/ntbring.h`.
///
/// # Safety
/// `endpoint` must be connected; `locked` must be a segment that is not freed yet.
#[no_mangle]
pub unsafe extern "C" fn ntbring_segment_lock(
    endpoint: *mut ntbring_endpoint_t,
    locked: *mut ntbring_segment_t,
) -> i32 {
    guard(|| {
        // SAFETY: `endpoint` is NULL or from `ntbring_open`, and no other call uses it (contract of this function).
        let endpoint = unsafe { Handle::from_raw(endpoint) }?.endpoint()?;
        // SAFETY: the segment is NULL or has not been freed (contract of this function).
        endpoint.lock(unsafe { segment(locked) }?)?;
        Ok(NTBRING_OK as i32)
    })
}

/// Releases the lock of a segment's bytes. See `include/ntbring.h`.
///
/// # Safety
/// `unlocked` must be a segment whose lock this process has.
#[no_mangle]
pub unsafe extern "C" fn ntbring_segment_unlock(unlocked: *mut ntbring_segment_t) -> i32 {
    guard(|| {
        // SAFETY: the segment is NULL or has not been freed (contract of this function).
        unsafe { segment(unlocked) }?.unlock();
        Ok(NTBRING_OK as i32)
    })
}

/// Tries to acquire the window lock in a segment. See `include/ntbring.h`.
///
/// # Safety
/// `endpoint` must be connected; `held` must be a segment that is not freed yet.
#[no_mangle]
pub unsafe extern "C" fn ntbring_segment_acquire(
    endpoint: *mut ntbring_endpoint_t,
    held: *mut ntbring_segment_t,
    alone: i32,
) -> i32 {
    guard(|| {
        // SAFETY: `endpoint` is NULL or from `ntbring_open`, and no other call uses it (contract of this function).
        let endpoint = unsafe { Handle::from_raw(endpoint) }?.endpoint()?;
        // SAFETY: the segment is NULL or has not been freed (contract of this function).
        let taken = endpoint.hold(unsafe { segment(held) }?, alone != 0);
        Ok(if taken { NTBRING_OK as i32 } else { NTBRING_PENDING as i32 })
    })
}

/// Releases the window lock in a segment. See `include/ntbring.h`.
///
/// # Safety
/// `held` must be a segment that is not freed yet.
#[no_mangle]
pub unsafe extern "C" fn ntbring_segment_release(held: *mut ntbring_segment_t, alone: i32) -> i32 {
    guard(|| {
        // SAFETY: the segment is NULL or has not been freed (contract of this function).
        match unsafe { segment(held) }?.release(alone != 0) {
            true => Ok(NTBRING_OK as i32),
            false => Err(argument("the window was not locked in this mode")),
        }
    })
}

/// Returns 1 if the host of `rank` performs operations on its segments for this rank, else 0. See
/// `include/ntbring.h`.
///
/// # Safety
/// `endpoint` must be connected.
#[no_mangle]
pub unsafe extern "C" fn ntbring_is_served(endpoint: *mut ntbring_endpoint_t, rank: i32) -> i32 {
    guard(|| {
        // SAFETY: `endpoint` is NULL or from `ntbring_open`, and no other call uses it (contract of this function).
        let endpoint = unsafe { Handle::from_raw(endpoint) }?.endpoint()?;
        Ok(u32::try_from(rank).is_ok_and(|rank| endpoint.is_served(rank)).into())
    })
}

/// Returns 1 if hosts can perform an operation on numbers of a type. See `include/ntbring.h`.
#[no_mangle]
pub extern "C" fn ntbring_can_compute(op: u8, kind: u8) -> i32 {
    guard(|| Ok(Action::parse(NTBRING_REMOTE_ACCUMULATE as u8, op, kind).is_some().into()))
}

/// Begins a one-sided operation on a segment of a rank that is not near. See `include/ntbring.h`.
///
/// # Safety
/// `endpoint` must be connected; `remote` and what it points to must be valid as the header says.
#[no_mangle]
pub unsafe extern "C" fn ntbring_remote(endpoint: *mut ntbring_endpoint_t, remote: *const ntbring_remote_t) -> i32 {
    guard(|| {
        // SAFETY: `endpoint` is NULL or from `ntbring_open`, and no other call uses it (contract of this function).
        let mut endpoint = unsafe { Handle::from_raw(endpoint) }?.endpoint()?;
        // SAFETY: NULL, or valid as the caller guarantees.
        let Some(r) = (unsafe { remote.as_ref() }) else { return Err(argument("remote must not be NULL")) };
        let action = Action::parse(r.action, r.op, r.type_);
        let Some(action) = action.filter(|_| r.dest >= 0 && r.size <= isize::MAX as u64 / 2) else {
            return Err(argument("the operation is unknown, dest is negative, or size is too large"));
        };
        let (operands, result) = (action.operands(r.size) as usize, action.result(r.size) as usize);
        if operands > 0 && r.data.is_null() || result > 0 && r.result.is_null() {
            return Err(argument("data and result must not be NULL where the operation uses them"));
        }
        let sent = endpoint.begin(Operation {
            dest: r.dest as u32,
            action,
            segment: address(r.segment.words).file.token,
            offset: r.offset,
            len: r.size,
            // SAFETY: the caller guarantees valid memory until the event.
            operands: unsafe { ForeignBytes::new(r.data.cast(), operands) },
            // SAFETY: as above.
            result: (result > 0).then(|| unsafe { ForeignRoom::new(r.result.cast(), result) }),
            cookie: r.cookie as usize,
            reports_sent: r.reports_sent != 0,
        })?;
        Ok(if sent { NTBRING_OK as i32 } else { NTBRING_PENDING as i32 })
    })
}

/// Unmaps a segment, and destroys it if it is this rank's own. See `include/ntbring.h`.
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
        // SAFETY: allocated by `Box::into_raw`; the caller gives up the pointer.
        let segment = unsafe { Box::from_raw(freed.cast::<HeldSegment>()) };
        // SAFETY: `endpoint` is NULL or from `ntbring_open`, and no other call uses it (contract of this function).
        unsafe { Handle::from_raw(endpoint) }?.endpoint()?.withdraw_segment(&segment)?;
        Ok(NTBRING_OK as i32)
    })
}
