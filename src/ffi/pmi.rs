//! The process manager at the C ABI.

use super::abi::*;
use super::error::{argument, guard, Failure};
use ntbring_pmi::{call_record, session, CALL_RECORD_BYTES};
use std::ffi::CStr;
use std::os::raw::c_char;

/// Returns a string of the caller as text.
///
/// # Safety
/// `text` must be NULL or a string that ends with a zero byte.
unsafe fn string<'a>(text: *const c_char) -> Result<&'a str, Failure> {
    if text.is_null() {
        return Err(argument("key and value must not be NULL"));
    }
    // SAFETY: not null, and the caller guarantees a string.
    unsafe { CStr::from_ptr(text) }.to_str().map_err(|_| argument("key or value is not text"))
}

/// Opens the session with the process manager. See `include/ntbring.h`.
///
/// # Safety
/// `job` must be writable.
#[no_mangle]
pub unsafe extern "C" fn ntbring_pmi_open(job: *mut ntbring_pmi_job_t) -> i32 {
    guard(|| {
        if job.is_null() {
            return Err(argument("job must not be NULL"));
        }
        let found = session().open()?;
        let facts = ntbring_pmi_job_t {
            rank: found.rank as i32,
            size: found.size as i32,
            spawned: found.spawned.into(),
            fd: found.fd.unwrap_or(-1),
            kvsname_max: found.limits.kvsname as i32,
            keylen_max: found.limits.key as i32,
            vallen_max: found.limits.value as i32,
        };
        // SAFETY: not null, and the caller guarantees writable memory.
        unsafe { *job = facts };
        Ok(NTBRING_OK as i32)
    })
}

/// Closes the session once. See `include/ntbring.h`.
#[no_mangle]
pub extern "C" fn ntbring_pmi_close() -> i32 {
    guard(|| {
        session().close()?;
        Ok(NTBRING_OK as i32)
    })
}

/// Puts off the end of the session to the end of the process. See `include/ntbring.h`.
#[no_mangle]
pub extern "C" fn ntbring_pmi_keep() {
    guard(|| {
        session().keep();
        Ok(NTBRING_OK as i32)
    });
}

/// Publishes a value. See `include/ntbring.h`.
///
/// # Safety
/// `key` and `value` must be strings.
#[no_mangle]
pub unsafe extern "C" fn ntbring_pmi_put(key: *const c_char, value: *const c_char) -> i32 {
    guard(|| {
        // SAFETY: the caller guarantees strings.
        let (key, value) = unsafe { (string(key)?, string(value)?) };
        session().put(key, value)?;
        Ok(NTBRING_OK as i32)
    })
}

/// Writes a value that was published. See `include/ntbring.h`.
///
/// # Safety
/// `key` must be a string; `value` must have room for `size` bytes.
#[no_mangle]
pub unsafe extern "C" fn ntbring_pmi_get(key: *const c_char, value: *mut c_char, size: u64) -> i32 {
    guard(|| {
        // SAFETY: the caller guarantees a string.
        let key = unsafe { string(key) }?;
        if value.is_null() {
            return Err(argument("value must not be NULL"));
        }
        let found = session().get(key)?;
        if found.len() as u64 >= size {
            return Err(argument(&format!("the value of {key} needs {} bytes of room", found.len() + 1)));
        }
        // SAFETY: not null, and the caller guarantees room for the value and its end.
        unsafe {
            std::ptr::copy_nonoverlapping(found.as_ptr().cast(), value, found.len());
            *value.add(found.len()) = 0;
        }
        Ok(NTBRING_OK as i32)
    })
}

/// Waits for all processes of the job. See `include/ntbring.h`.
#[no_mangle]
pub extern "C" fn ntbring_pmi_barrier() -> i32 {
    guard(|| {
        session().barrier()?;
        Ok(NTBRING_OK as i32)
    })
}

/// Asks the process manager to end the job. See `include/ntbring.h`.
#[no_mangle]
pub extern "C" fn ntbring_pmi_abort(code: i32) -> i32 {
    guard(|| {
        session().abort(code)?;
        Ok(NTBRING_OK as i32)
    })
}

/// Writes the host of each rank. See `include/ntbring.h`.
///
/// # Safety
/// `host_of` must have room for an entry a rank; `hosts` must be writable.
#[no_mangle]
pub unsafe extern "C" fn ntbring_pmi_hosts(host_of: *mut i32, hosts: *mut i32) -> i32 {
    guard(|| {
        if host_of.is_null() || hosts.is_null() {
            return Err(argument("host_of and hosts must not be NULL"));
        }
        let (found, number) = session().hosts()?;
        for (rank, host) in found.into_iter().enumerate() {
            // SAFETY: not null, and the caller guarantees an entry for each rank.
            unsafe { *host_of.add(rank) = host as i32 };
        }
        // SAFETY: not null, and the caller guarantees writable memory.
        unsafe { *hosts = number as i32 };
        Ok(NTBRING_OK as i32)
    })
}

/// Takes the turn to ask on the connection. See `include/ntbring.h`.
#[no_mangle]
pub extern "C" fn ntbring_pmi_lock() {
    session().turn().take();
}

/// Gives the turn back. See `include/ntbring.h`.
#[no_mangle]
pub extern "C" fn ntbring_pmi_unlock() {
    session().turn().give();
}

const _: () = assert!(CALL_RECORD_BYTES == NTBRING_PMI_CALL_SIZE as usize);

/// Returns the record of the latest MPI call. See `include/ntbring.h`.
#[no_mangle]
pub extern "C" fn ntbring_pmi_call_record() -> *mut c_char {
    let mut record = std::ptr::null_mut();
    guard(|| {
        record = call_record().map_or(record, |found| found.cast());
        Ok(NTBRING_OK as i32)
    });
    record
}
