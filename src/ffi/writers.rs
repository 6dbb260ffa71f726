//! Writers to segments at the C ABI. The pointer given to C is that of the writer's box.

use super::abi::*;
use super::error::{argument, guard, Failure};
use super::handle::Handle;
use ntbring_memory::ForeignBytes;
use ntbring_ring::Writer;
use ntbring_rma::address;
use std::ffi::c_void;

/// Returns the writer behind a pointer.
///
/// # Safety
/// It must be NULL, or come from `ntbring_writer_open` and not be freed yet.
#[inline]
unsafe fn writer<'a>(writer: *const ntbring_writer_t) -> Result<&'a Writer, Failure> {
    // SAFETY: allocated by `Box::into_raw`, and never borrowed mutably.
    unsafe { writer.cast::<Writer>().as_ref() }.ok_or_else(|| argument("writer must not be NULL"))
}

/// Returns 1 if this rank may open writers to segments of `rank`, else 0. See `include/ntbring.h`.
///
/// # Safety
/// `endpoint` must be connected.
#[no_mangle]
pub unsafe extern "C" fn ntbring_is_writable(endpoint: *mut ntbring_endpoint_t, rank: i32) -> i32 {
    guard(|| {
        // SAFETY: `endpoint` is NULL or from `ntbring_open`, and no other call uses it (contract of this function).
        let endpoint = unsafe { Handle::from_raw(endpoint) }?.endpoint()?;
        Ok(u32::try_from(rank).is_ok_and(|rank| endpoint.is_writable(rank)).into())
    })
}

/// Opens a writer to a segment of another rank. See `include/ntbring.h`.
///
/// # Safety
/// `endpoint` must be connected; `at` must be valid; `opened` must be writable.
#[no_mangle]
pub unsafe extern "C" fn ntbring_writer_open(
    endpoint: *mut ntbring_endpoint_t,
    rank: i32,
    at: *const ntbring_segment_address_t,
    opened: *mut *mut ntbring_writer_t,
) -> i32 {
    guard(|| {
        // SAFETY: `endpoint` is NULL or from `ntbring_open`, and no other call uses it (contract of this function).
        let endpoint = unsafe { Handle::from_raw(endpoint) }?.endpoint()?;
        if opened.is_null() || at.is_null() || rank < 0 {
            return Err(argument("rank must not be negative, and at and opened must not be NULL"));
        }
        // SAFETY: not null, and the caller guarantees a valid object.
        let Some(writer) = endpoint.writer(rank as u32, &address(unsafe { (*at).words }))? else {
            return Ok(NTBRING_NONE as i32);
        };
        // SAFETY: not null, and the caller guarantees writable memory.
        unsafe { *opened = Box::into_raw(Box::new(writer)).cast() };
        Ok(NTBRING_SOME as i32)
    })
}

/// Returns the number of bytes that a writer can write; 0 if it is NULL. See `include/ntbring.h`.
///
/// # Safety
/// `of` must be a writer that is not freed yet.
#[no_mangle]
pub unsafe extern "C" fn ntbring_writer_reach(of: *const ntbring_writer_t) -> u64 {
    // SAFETY: the writer is NULL or has not been freed (contract of this function).
    unsafe { writer(of) }.map_or(0, Writer::reach)
}

/// Writes into a segment. See `include/ntbring.h`.
///
/// # Safety
/// `to` must be a writer that is not freed yet; `data` must have `size` bytes.
#[no_mangle]
pub unsafe extern "C" fn ntbring_writer_write(
    to: *mut ntbring_writer_t,
    offset: u64,
    data: *const c_void,
    size: u64,
) -> i32 {
    guard(|| {
        // SAFETY: the writer is NULL or has not been freed (contract of this function).
        let writer = unsafe { writer(to) }?;
        if data.is_null() || !writer.has(offset, size) {
            return Err(argument("data must not be NULL, and the bytes must lie in the segment"));
        }
        // SAFETY: the caller guarantees readable bytes for the call.
        writer.write(offset, unsafe { ForeignBytes::new(data.cast(), size as usize) });
        Ok(NTBRING_OK as i32)
    })
}

/// Returns 1 if nothing that was written can be lost, else 0. See `include/ntbring.h`.
///
/// # Safety
/// `of` must be a writer that is not freed yet.
#[no_mangle]
pub unsafe extern "C" fn ntbring_writer_is_intact(of: *const ntbring_writer_t) -> i32 {
    guard(|| {
        // SAFETY: the writer is NULL or has not been freed (contract of this function).
        Ok(unsafe { writer(of) }?.is_intact().into())
    })
}

/// Closes a writer. See `include/ntbring.h`.
///
/// # Safety
/// `freed` must be NULL, or a writer that nothing uses any more.
#[no_mangle]
pub unsafe extern "C" fn ntbring_writer_free(freed: *mut ntbring_writer_t) -> i32 {
    guard(|| {
        if !freed.is_null() {
            // SAFETY: allocated by `Box::into_raw`; the caller gives up the pointer.
            drop(unsafe { Box::from_raw(freed.cast::<Writer>()) });
        }
        Ok(NTBRING_OK as i32)
    })
}
