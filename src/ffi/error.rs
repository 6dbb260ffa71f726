//! Codes and texts of errors, and the wall that panics stop at.

use super::abi::*;
use ::ntbring_endpoint::EndpointError;
use ntbring_ring::JoinError;
use ntbring_settings::SettingError;
use std::any::Any;
use std::cell::RefCell;
use std::ffi::CString;
use std::os::raw::c_char;
use std::panic::{catch_unwind, AssertUnwindSafe};

/// What a call returns when it fails.
pub struct Failure {
    code: i32,
    text: String,
}

thread_local! {
    static TEXT: RefCell<CString> = RefCell::new(CString::default());
}

/// The calling thread's latest error.
pub fn text() -> *const c_char {
    TEXT.with(|t| t.borrow().as_ptr())
}

pub fn remember(text: &str) {
    let text = CString::new(text.replace('\0', " ")).unwrap_or_default();
    TEXT.with(|t| *t.borrow_mut() = text);
}

/// The caller broke the contract.
#[cold]
#[inline(never)]
pub fn argument(text: &str) -> Failure {
    Failure { code: NTBRING_ERR_ARGUMENT, text: format!("libntbring was called wrongly: {text}") }
}

/// Runs the body of a call: no panic leaves it, and an error leaves as a code with a text.
///
/// What passes `catch_unwind` is a bare number. A `Result` there was written as four bytes and
/// read as eight, which the processor does not forward: each call waited until the stores before
/// it, those to a neighbour's lines among them, had left the store buffer.
#[inline]
pub fn guard(body: impl FnOnce() -> Result<i32, Failure>) -> i32 {
    match catch_unwind(AssertUnwindSafe(|| body().unwrap_or_else(failed))) {
        Ok(code) => code,
        Err(panic) => panicked(panic),
    }
}

#[cold]
fn failed(failure: Failure) -> i32 {
    log::debug!("returns {}: {}", failure.code, failure.text);
    remember(&failure.text);
    failure.code
}

#[cold]
fn panicked(panic: Box<dyn Any + Send>) -> i32 {
    let said = panic.downcast_ref::<String>().map(String::as_str);
    let said = said.or(panic.downcast_ref::<&str>().copied()).unwrap_or("no text");
    remember(&format!("a fault in libntbring: {said}"));
    NTBRING_ERR_INTERNAL
}

impl From<SettingError> for Failure {
    fn from(error: SettingError) -> Failure {
        Failure { code: NTBRING_ERR_SETTING, text: error.to_string() }
    }
}

impl From<JoinError> for Failure {
    fn from(error: JoinError) -> Failure {
        let code = match &error {
            JoinError::Topology(_) => NTBRING_ERR_ARGUMENT,
            JoinError::TooSmall(_)
            | JoinError::Ntb(_)
            | JoinError::Host(_)
            | JoinError::NoRoom(_)
            | JoinError::Trace { .. }
            | JoinError::Late(_)
            | JoinError::MixedPorts
            | JoinError::Elsewhere { .. } => NTBRING_ERR_RESOURCE,
            JoinError::Handshake(_) | JoinError::NoLink { .. } | JoinError::RealLinks { .. } => NTBRING_ERR_SETTING,
            JoinError::Timeout { .. } | JoinError::Died { .. } | JoinError::Leader(_) => NTBRING_ERR_PEER,
            JoinError::Address { .. } => NTBRING_ERR_PROTOCOL,
        };
        Failure { code, text: error.to_string() }
    }
}

impl From<EndpointError> for Failure {
    fn from(error: EndpointError) -> Failure {
        let code = match innermost(&error) {
            EndpointError::Argument(_) | EndpointError::Pack(_) => NTBRING_ERR_ARGUMENT,
            EndpointError::Lost(_)
            | EndpointError::Gap(_)
            | EndpointError::Orphaned { .. }
            | EndpointError::GaveUp { .. }
            | EndpointError::Stuck { .. } => NTBRING_ERR_PEER,
            EndpointError::Guest(_)
            | EndpointError::Segment(_)
            | EndpointError::Unserved(_)
            | EndpointError::Thread(_) => NTBRING_ERR_RESOURCE,
            EndpointError::Corrupt { .. } | EndpointError::Wire { .. } | EndpointError::Lock(_) => NTBRING_ERR_PROTOCOL,
            EndpointError::Stream { .. }
            | EndpointError::Parcel { .. }
            | EndpointError::Carrier(_)
            | EndpointError::Offer { .. }
            | EndpointError::Sharing { .. }
            | EndpointError::Refused { .. }
            | EndpointError::Relay(_) => NTBRING_ERR_PROTOCOL,
        };
        Failure { code, text: error.to_string() }
    }
}

/// What is behind an error that is passed on.
fn innermost(error: &EndpointError) -> &EndpointError {
    match error {
        EndpointError::Carrier(inner) => innermost(inner),
        other => other,
    }
}
