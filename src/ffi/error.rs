//! Error codes and texts of the C ABI, and the boundary at which panics stop.

use super::abi::*;
use ::ntbring_endpoint::EndpointError;
use ::ntbring_shared::SharedError;
use ntbring_pmi::PmiError;
use ntbring_ring::JoinError;
use ntbring_settings::SettingError;
use std::any::Any;
use std::cell::RefCell;
use std::ffi::CString;
use std::os::raw::c_char;
use std::panic::{catch_unwind, AssertUnwindSafe};

/// The error of a call: a code and a text.
pub struct Failure {
    code: i32,
    text: String,
}

thread_local! {
    static TEXT: RefCell<CString> = RefCell::new(CString::default());
}

/// Returns the text of the calling thread's last error.
pub fn text() -> *const c_char {
    // A thread that is ending has lost its text.
    TEXT.try_with(|t| t.borrow().as_ptr()).unwrap_or(c"".as_ptr())
}

pub fn remember(text: &str) {
    let text = CString::new(text.replace('\0', " ")).unwrap_or_default();
    let _ = TEXT.try_with(|t| *t.borrow_mut() = text);
}

/// Creates the error of a violation of the ABI's contract by the caller.
#[cold]
#[inline(never)]
pub fn argument(text: &str) -> Failure {
    Failure { code: NTBRING_ERR_ARGUMENT, text: format!("libntbring was called wrongly: {text}") }
}

/// Runs the body of a call. Panics and errors are turned into a code, with a text for `ntbring_error_text`.
///
/// The closure passed to `catch_unwind` returns a plain number. A `Result` there was written as four bytes and read
/// as eight; the processor cannot forward such a store to the load, so each call waited until earlier stores, among
/// them those to a neighbour's lines, had left the store buffer.
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
            | JoinError::Monitor(_)
            | JoinError::MixedPorts
            | JoinError::Elsewhere { .. } => NTBRING_ERR_RESOURCE,
            JoinError::Handshake(_)
            | JoinError::Disagree { .. }
            | JoinError::NoLink { .. }
            | JoinError::Ports { .. }
            | JoinError::RealLinks { .. }
            | JoinError::Unfit { .. } => NTBRING_ERR_SETTING,
            JoinError::Timeout { .. } | JoinError::Died { .. } | JoinError::Leader(_) => NTBRING_ERR_PEER,
            JoinError::Address { .. } => NTBRING_ERR_PROTOCOL,
        };
        Failure { code, text: error.to_string() }
    }
}

impl From<SharedError> for Failure {
    fn from(error: SharedError) -> Failure {
        let code = match error {
            SharedError::Failed { .. } | SharedError::GivenUp => NTBRING_ERR_PEER,
            SharedError::OtherSize { .. } | SharedError::Left { .. } => NTBRING_ERR_ARGUMENT,
            SharedError::Unreadable { .. } => NTBRING_ERR_RESOURCE,
        };
        Failure { code, text: error.to_string() }
    }
}

impl From<PmiError> for Failure {
    fn from(error: PmiError) -> Failure {
        let code = match &error {
            PmiError::Word { .. } | PmiError::TooLong { .. } | PmiError::NoKey { .. } | PmiError::NotOpen => {
                NTBRING_ERR_ARGUMENT
            }
            PmiError::Variable { .. } => NTBRING_ERR_SETTING,
            PmiError::Descriptor { .. }
            | PmiError::Connect { .. }
            | PmiError::Finalized
            | PmiError::NoMapping { .. } => NTBRING_ERR_RESOURCE,
            PmiError::Io { .. } | PmiError::Closed { .. } | PmiError::Broken => NTBRING_ERR_PEER,
            PmiError::Malformed { .. } | PmiError::Refused { .. } | PmiError::Mapping { .. } => NTBRING_ERR_PROTOCOL,
        };
        Failure { code, text: error.to_string() }
    }
}

impl From<EndpointError> for Failure {
    fn from(error: EndpointError) -> Failure {
        let code = match innermost(&error) {
            EndpointError::Argument(_) | EndpointError::Pack(_) => NTBRING_ERR_ARGUMENT,
            EndpointError::Lost(_)
            | EndpointError::Device(_)
            | EndpointError::RingCut(_)
            | EndpointError::Orphaned { .. }
            | EndpointError::WindowLock { .. }
            | EndpointError::GaveUp { .. }
            | EndpointError::Stuck { .. } => NTBRING_ERR_PEER,
            EndpointError::ExternalPeer(_)
            | EndpointError::Segment(_)
            | EndpointError::Writer(_)
            | EndpointError::Memory(_)
            | EndpointError::Unserved(_)
            | EndpointError::Thread(_) => NTBRING_ERR_RESOURCE,
            EndpointError::Corrupt { .. } | EndpointError::Wire { .. } | EndpointError::Lock(_) => NTBRING_ERR_PROTOCOL,
            EndpointError::Stream { .. }
            | EndpointError::SecondLane { .. }
            | EndpointError::Datagram { .. }
            | EndpointError::Reliable(_)
            | EndpointError::Offer { .. }
            | EndpointError::Allgather { .. }
            | EndpointError::Refused { .. }
            | EndpointError::Relay(_) => NTBRING_ERR_PROTOCOL,
        };
        Failure { code, text: error.to_string() }
    }
}

/// Returns the cause behind an error of the reliable connection.
fn innermost(error: &EndpointError) -> &EndpointError {
    match error {
        EndpointError::Reliable(inner) => innermost(inner),
        other => other,
    }
}
