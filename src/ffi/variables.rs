//! Settings and counters, for tools.

use super::abi::*;
use super::error::{argument, guard};
use super::handle::Handle;
use ::ntbring_endpoint::settings::TABLE;
use ::ntbring_endpoint::COUNTERS;
use ntbring_settings::Setting;
use std::ffi::CString;
use std::sync::{Mutex, OnceLock};

/// Name and description of a variable.
type Described = (CString, CString);

/// Sums of the counters of all endpoints that have been closed.
static CLOSED: Mutex<Vec<u64>> = Mutex::new(Vec::new());

fn text(text: String) -> CString {
    CString::new(text).unwrap_or_default()
}

fn settings() -> &'static [Described] {
    static SETTINGS: OnceLock<Vec<Described>> = OnceLock::new();
    let describe = |s: &Setting| (text(s.name.into()), text(format!("{} ({}: {})", s.meaning, s.unit, s.allowed)));
    SETTINGS.get_or_init(|| TABLE.settings().map(describe).collect())
}

fn counters() -> &'static [Described] {
    static COUNTED: OnceLock<Vec<Described>> = OnceLock::new();
    COUNTED.get_or_init(|| {
        COUNTERS.iter().map(|c| (text(format!("ntbring_{}", c.name)), text(c.meaning.into()))).collect()
    })
}

/// Describes the setting number `index`, with its value in this endpoint. See `include/ntbring.h`.
///
/// # Safety
/// `endpoint` must come from `ntbring_open`; `variable` must be writable.
#[no_mangle]
pub unsafe extern "C" fn ntbring_setting(
    endpoint: *mut ntbring_endpoint_t,
    index: u32,
    variable: *mut ntbring_variable_t,
) -> i32 {
    guard(|| {
        // SAFETY: `endpoint` is NULL or from `ntbring_open`, and no other call uses it (contract of this function).
        let handle = unsafe { Handle::from_raw(endpoint) }?;
        // SAFETY: NULL, or writable as the caller guarantees; the fields are plain addresses.
        let variable = unsafe { variable.as_mut() }.ok_or_else(|| argument("variable must not be NULL"))?;
        let index = index as usize;
        let Some((name, meaning)) = settings().get(index) else { return Ok(NTBRING_NONE as i32) };
        *variable = ntbring_variable_t {
            name: name.as_ptr(),
            meaning: meaning.as_ptr(),
            value: handle.values()[index].as_ptr(),
        };
        Ok(NTBRING_SOME as i32)
    })
}

/// Describes the counter number `index`. See `include/ntbring.h`.
///
/// # Safety
/// `variable` must be writable.
#[no_mangle]
pub unsafe extern "C" fn ntbring_counter(index: u32, variable: *mut ntbring_variable_t) -> i32 {
    guard(|| {
        // SAFETY: NULL, or writable as the caller guarantees; the fields are plain addresses.
        let variable = unsafe { variable.as_mut() }.ok_or_else(|| argument("variable must not be NULL"))?;
        let Some((name, meaning)) = counters().get(index as usize) else { return Ok(NTBRING_NONE as i32) };
        *variable = ntbring_variable_t { name: name.as_ptr(), meaning: meaning.as_ptr(), value: std::ptr::null() };
        Ok(NTBRING_SOME as i32)
    })
}

/// Reads the counter number `index` of an endpoint, or, for NULL, the sum over all closed endpoints. See
/// `include/ntbring.h`.
///
/// # Safety
/// `endpoint` must be connected or NULL; `value` must be writable.
#[no_mangle]
pub unsafe extern "C" fn ntbring_count(endpoint: *mut ntbring_endpoint_t, index: u32, value: *mut u64) -> i32 {
    guard(|| {
        // SAFETY: NULL, or writable as the caller guarantees.
        let value = unsafe { value.as_mut() }.ok_or_else(|| argument("value must not be NULL"))?;
        let counter = COUNTERS.get(index as usize).ok_or_else(|| argument("there is no such counter"))?;
        *value = if endpoint.is_null() {
            let closed = CLOSED.lock().unwrap_or_else(|e| e.into_inner());
            closed.get(index as usize).copied().unwrap_or(0)
        } else {
            // SAFETY: `endpoint` is NULL or from `ntbring_open`, and no other call uses it (contract of this
            // function).
            unsafe { Handle::from_raw(endpoint) }?.endpoint()?.count(counter)
        };
        Ok(NTBRING_OK as i32)
    })
}

/// Adds the counters of an endpoint that is about to be closed to the sums.
pub fn remember(handle: &mut Handle) {
    let Ok(endpoint) = handle.endpoint() else { return };
    let mut closed = CLOSED.lock().unwrap_or_else(|e| e.into_inner());
    closed.resize(COUNTERS.len(), 0);
    for (sum, counter) in closed.iter_mut().zip(COUNTERS) {
        *sum += endpoint.count(counter);
    }
}
