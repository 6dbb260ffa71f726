//! Processes outside the job, and the connection messages that are exchanged with them before there is a communicator.

use super::abi::*;
use super::error::{argument, guard};
use super::handle::Handle;
use ::ntbring_endpoint::DPM_MAX;
use ntbring_ring::external_peer::ExternalAddress;
use std::ffi::c_void;

const _: () = assert!(NTBRING_DPM_MAX as usize == DPM_MAX);

/// Writes the address of a peer outside the job. See `include/ntbring.h`.
///
/// # Safety
/// `endpoint` must be connected; `address` must have room for `NTBRING_ADDRESS_MAX` bytes, `size` be writable.
#[no_mangle]
pub unsafe extern "C" fn ntbring_peer_address(
    endpoint: *mut ntbring_endpoint_t,
    peer: i32,
    address: *mut c_void,
    size: *mut u64,
) -> i32 {
    guard(|| {
        // SAFETY: `endpoint` is NULL or from `ntbring_open`, and no other call uses it (contract of this function).
        let endpoint = unsafe { Handle::from_raw(endpoint) }?.endpoint()?;
        if address.is_null() || size.is_null() {
            return Err(argument("address and size must not be NULL"));
        }
        let external_peer = u32::try_from(peer).ok().and_then(|peer| endpoint.peer_address(peer));
        let bytes = external_peer.ok_or_else(|| argument("there is no such peer"))?.bytes();
        assert!(bytes.len() <= NTBRING_ADDRESS_MAX as usize);
        // SAFETY: the caller guarantees room for NTBRING_ADDRESS_MAX bytes, and an address has at most that many.
        unsafe {
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), address.cast(), bytes.len());
            *size = bytes.len() as u64;
        }
        Ok(NTBRING_OK as i32)
    })
}

/// Adds a process outside the job as a peer. See `include/ntbring.h`.
///
/// # Safety
/// `endpoint` must be connected; `address` must hold `size` bytes; `peer` must be writable.
#[no_mangle]
pub unsafe extern "C" fn ntbring_peer_add(
    endpoint: *mut ntbring_endpoint_t,
    address: *const c_void,
    size: u64,
    peer: *mut i32,
) -> i32 {
    guard(|| {
        // SAFETY: `endpoint` is NULL or from `ntbring_open`, and no other call uses it (contract of this function).
        let mut endpoint = unsafe { Handle::from_raw(endpoint) }?.endpoint()?;
        if address.is_null() || peer.is_null() || size > u64::from(NTBRING_ADDRESS_MAX) {
            return Err(argument("address or peer is NULL, or size is not that of an address"));
        }
        // SAFETY: not null, and the caller guarantees `size` readable bytes.
        let bytes = unsafe { std::slice::from_raw_parts(address.cast::<u8>(), size as usize) };
        let external_peer = ExternalAddress::parse(bytes)
            .ok_or_else(|| argument("the bytes are not the address of a connected endpoint"))?;
        let Some(number) = endpoint.add_peer(&external_peer)? else { return Ok(NTBRING_PENDING as i32) };
        // SAFETY: not null, and the caller guarantees writable memory.
        unsafe { *peer = number as i32 };
        Ok(NTBRING_OK as i32)
    })
}

/// Drops a peer outside the job. See `include/ntbring.h`.
///
/// # Safety
/// `endpoint` must be connected.
#[no_mangle]
pub unsafe extern "C" fn ntbring_peer_drop(endpoint: *mut ntbring_endpoint_t, peer: i32) -> i32 {
    guard(|| {
        // SAFETY: `endpoint` is NULL or from `ntbring_open`, and no other call uses it (contract of this function).
        let mut endpoint = unsafe { Handle::from_raw(endpoint) }?.endpoint()?;
        let peer = u32::try_from(peer).map_err(|_| argument("there is no such peer"))?;
        endpoint.drop_peer(peer);
        Ok(NTBRING_OK as i32)
    })
}

/// Sends a connection message to a peer outside the job. See `include/ntbring.h`.
///
/// # Safety
/// `endpoint` must be connected; `bytes` must have `size` of them.
#[no_mangle]
pub unsafe extern "C" fn ntbring_dpm_send(
    endpoint: *mut ntbring_endpoint_t,
    peer: i32,
    tag: u32,
    bytes: *const c_void,
    size: u64,
) -> i32 {
    guard(|| {
        // SAFETY: `endpoint` is NULL or from `ntbring_open`, and no other call uses it (contract of this function).
        let mut endpoint = unsafe { Handle::from_raw(endpoint) }?.endpoint()?;
        let known = u32::try_from(peer).ok().filter(|&peer| endpoint.peer_address(peer).is_some());
        let (Some(peer), false, true) = (known, bytes.is_null(), size <= DPM_MAX as u64) else {
            return Err(argument("the peer is unknown, or the connection message is empty or too long"));
        };
        // SAFETY: not null, and the caller guarantees `size` readable bytes.
        let bytes = unsafe { std::slice::from_raw_parts(bytes.cast::<u8>(), size as usize) };
        endpoint.dpm_send(peer, tag, bytes)?;
        Ok(NTBRING_OK as i32)
    })
}

/// Receives a connection message with a given tag, if one has arrived. See `include/ntbring.h`.
///
/// # Safety
/// `endpoint` must be connected; `bytes` must have room for `size`.
#[no_mangle]
pub unsafe extern "C" fn ntbring_dpm_receive(
    endpoint: *mut ntbring_endpoint_t,
    tag: u32,
    bytes: *mut c_void,
    size: u64,
) -> i32 {
    guard(|| {
        // SAFETY: `endpoint` is NULL or from `ntbring_open`, and no other call uses it (contract of this function).
        let mut endpoint = unsafe { Handle::from_raw(endpoint) }?.endpoint()?;
        if bytes.is_null() {
            return Err(argument("bytes must not be NULL"));
        }
        let Some(said) = endpoint.dpm_receive(tag)? else { return Ok(NTBRING_PENDING as i32) };
        if said.len() as u64 > size {
            return Err(argument("the connection message does not fit the buffer"));
        }
        // SAFETY: not null; the caller guarantees room for `size` bytes, and the length was checked against it.
        unsafe { std::ptr::copy_nonoverlapping(said.as_ptr(), bytes.cast(), said.len()) };
        Ok(NTBRING_OK as i32)
    })
}

/// Withdraws the connection message with a given tag. See `include/ntbring.h`.
///
/// # Safety
/// `endpoint` must be connected.
#[no_mangle]
pub unsafe extern "C" fn ntbring_dpm_withdraw(endpoint: *mut ntbring_endpoint_t, tag: u32) -> i32 {
    guard(|| {
        // SAFETY: `endpoint` is NULL or from `ntbring_open`, and no other call uses it (contract of this function).
        unsafe { Handle::from_raw(endpoint) }?.endpoint()?.withdraw(tag)?;
        Ok(NTBRING_OK as i32)
    })
}
