//! Small allgathers of groups.

use super::abi::*;
use super::error::{argument, guard};
use super::handle::{Handle, Shared};
use ::ntbring_endpoint::BLOCK_MAX;
use ntbring_ring::layout::BLOCKS_MAX;
use ntbring_ring::topology::HOSTS_MAX;
use std::ffi::c_void;
use std::mem::MaybeUninit;

const _: () = assert!(NTBRING_BLOCK_MAX as usize == BLOCK_MAX && NTBRING_HOSTS_MAX as usize == HOSTS_MAX);
const _: () = assert!(NTBRING_BLOCKS_MAX as usize == BLOCKS_MAX);

/// Returns the mailboxes that this rank offers for a new group. See `include/ntbring.h`.
///
/// # Safety
/// `endpoint` must be connected.
#[no_mangle]
pub unsafe extern "C" fn ntbring_group_offer(endpoint: *mut ntbring_endpoint_t, offer: *mut u32) -> i32 {
    guard(|| {
        // SAFETY: `endpoint` is NULL or from `ntbring_open`, and no other call uses it (contract of this function).
        let handle = unsafe { Handle::from_raw(endpoint) }?;
        if offer.is_null() {
            return Err(argument("offer must not be NULL"));
        }
        handle.close_ended_groups()?;
        let mut endpoint = handle.endpoint()?;
        // SAFETY: not null, and the caller guarantees writable memory.
        unsafe { offer.write(endpoint.offer_boards()) };
        Ok(NTBRING_OK as i32)
    })
}

/// Opens a group. See `include/ntbring.h`.
///
/// # Safety
/// `endpoint` must be connected; `ranks` must have an entry for each host.
#[no_mangle]
pub unsafe extern "C" fn ntbring_group_open(
    endpoint: *mut ntbring_endpoint_t,
    id: u32,
    ranks: *const i32,
    mine: u32,
    all: u32,
) -> i32 {
    guard(|| {
        // SAFETY: `endpoint` is NULL or from `ntbring_open`, and no other call uses it (contract of this function).
        let mut endpoint = unsafe { Handle::from_raw(endpoint) }?.endpoint()?;
        if ranks.is_null() {
            return Err(argument("ranks must not be NULL"));
        }
        // SAFETY: not null, and the caller guarantees an entry for each host.
        let ranks = unsafe { std::slice::from_raw_parts(ranks, endpoint.hosts()) };
        // A negative number becomes one that no rank has.
        let ranks: Vec<u32> = ranks.iter().map(|&rank| rank as u32).collect();
        match endpoint.open_group(id, &ranks, mine, all)? {
            true => Ok(NTBRING_OK as i32),
            false => Ok(NTBRING_NO_GROUP as i32),
        }
    })
}

/// Closes a group. See `include/ntbring.h`.
///
/// # Safety
/// `endpoint` must come from `ntbring_open`. Any thread may call it.
#[no_mangle]
pub unsafe extern "C" fn ntbring_group_close(endpoint: *mut ntbring_endpoint_t, id: u32) -> i32 {
    guard(|| {
        // SAFETY: `endpoint` is NULL or from `ntbring_open`, as the contract of this function requires.
        unsafe { Shared::from_raw(endpoint) }?.end_group(id);
        Ok(NTBRING_OK as i32)
    })
}

/// Begins a small allgather. See `include/ntbring.h`.
///
/// # Safety
/// `endpoint` must be connected; `block` must have `size` bytes, or be NULL.
#[no_mangle]
pub unsafe extern "C" fn ntbring_allgather(
    endpoint: *mut ntbring_endpoint_t,
    id: u32,
    block: *const c_void,
    size: u64,
) -> i32 {
    guard(|| {
        // SAFETY: `endpoint` is NULL or from `ntbring_open`, and no other call uses it (contract of this function).
        let mut endpoint = unsafe { Handle::from_raw(endpoint) }?.endpoint()?;
        let mut bytes = MaybeUninit::<[u8; BLOCK_MAX]>::uninit();
        let block = match (size as usize, block.cast::<u8>()) {
            (n, at) if n > 0 && at.is_null() => None,
            (n, _) if n > BLOCK_MAX => return Err(argument("the block exceeds the largest block size")),
            (n, at) => {
                // SAFETY: the caller guarantees `n` readable bytes (or none). They are application memory, which
                // other processes may share, so they are copied and never borrowed. `n` bytes of `bytes` are
                // initialised, the length of the slice, and `bytes` is not accessed otherwise while the slice lives.
                Some(unsafe {
                    at.copy_to_nonoverlapping(bytes.as_mut_ptr().cast(), n);
                    std::slice::from_raw_parts(bytes.as_ptr().cast(), n)
                })
            }
        };
        endpoint.begin_allgather(id, block)?;
        Ok(NTBRING_OK as i32)
    })
}

/// Completes a small allgather, if all blocks have arrived. See `include/ntbring.h`.
///
/// # Safety
/// `endpoint` must be connected; `blocks` must have room for `size` bytes.
#[no_mangle]
pub unsafe extern "C" fn ntbring_allgather_wait(
    endpoint: *mut ntbring_endpoint_t,
    id: u32,
    blocks: *mut c_void,
    size: u64,
    looks: u32,
) -> i32 {
    guard(|| {
        // SAFETY: `endpoint` is NULL or from `ntbring_open`, and no other call uses it (contract of this function).
        let mut endpoint = unsafe { Handle::from_raw(endpoint) }?.endpoint()?;
        if !endpoint.await_allgather(id, looks)? {
            return Ok(NTBRING_PENDING as i32);
        }
        let blocks: &mut [u8] = match size {
            0 => &mut [],
            n if blocks.is_null() || n > i32::MAX as u64 => {
                return Err(argument("blocks must not be NULL, and their size must be valid"))
            }
            // SAFETY: not null, and the caller guarantees exclusive, writable memory until the return.
            n => unsafe { std::slice::from_raw_parts_mut(blocks.cast(), n as usize) },
        };
        endpoint.end_allgather(id, blocks)?;
        Ok(NTBRING_OK as i32)
    })
}
