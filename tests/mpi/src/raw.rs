//! Helpers for MPI calls that rsmpi does not offer and that programs make through `mpi::ffi`.

use std::mem::MaybeUninit;
use std::os::raw::c_int;

use mpi::ffi;
use mpi::traits::*;

/// Fails the job unless `code` is MPI_SUCCESS.
#[track_caller]
pub fn ok(code: c_int, call: &str) {
    assert_eq!(code, ffi::MPI_SUCCESS as c_int, "{call} returned an error of class {}: {}", class(code), text(code));
}

/// Returns MPI's text of an error code.
pub fn text(code: c_int) -> String {
    let (mut text, mut len) = ([0u8; ffi::MPI_MAX_ERROR_STRING as usize], 0);
    // SAFETY: the buffer has room for the longest text; the call has no other effect.
    unsafe { ffi::MPI_Error_string(code, text.as_mut_ptr().cast(), &mut len) };
    String::from_utf8_lossy(&text[..len.max(0) as usize]).into_owned()
}

/// Returns the class of an error code.
pub fn class(code: c_int) -> c_int {
    let mut class = 0;
    // SAFETY: `class` is valid for writes; the call has no other effect.
    unsafe { ffi::MPI_Error_class(code, &mut class) };
    class
}

/// Returns the datatype of one byte.
pub fn byte() -> ffi::MPI_Datatype {
    u8::equivalent_datatype().as_raw()
}

/// Returns MPI_IN_PLACE, the send buffer of a collective in place: a macro in MPICH's mpi.h that rsmpi does not export.
pub fn in_place() -> *const std::os::raw::c_void {
    std::ptr::without_provenance(usize::MAX)
}

/// Returns MPI_REQUEST_NULL.
pub fn no_request() -> ffi::MPI_Request {
    // SAFETY: the constant is initialized by the C side at load time and never written.
    unsafe { ffi::RSMPI_REQUEST_NULL }
}

/// Returns a status to be written by MPI.
pub fn status() -> ffi::MPI_Status {
    // SAFETY: the type is a plain C struct of integers, for which all zeros is a valid value.
    unsafe { MaybeUninit::zeroed().assume_init() }
}

/// Returns the number of bytes that a status reports.
pub fn bytes(status: &ffi::MPI_Status) -> usize {
    let mut count = 0;
    // SAFETY: both pointers are valid for the call, and the datatype is predefined.
    ok(unsafe { ffi::MPI_Get_count(status, byte(), &mut count) }, "MPI_Get_count");
    count as usize
}

/// Waits for a request, and returns the error code and the status.
///
/// # Safety
/// `request` must be a request of this process whose buffer is still allocated and not borrowed.
pub unsafe fn wait(request: &mut ffi::MPI_Request) -> (c_int, ffi::MPI_Status) {
    let mut status = status();
    // SAFETY: the caller guarantees a valid request; the status is valid for writes.
    let code = unsafe { ffi::MPI_Wait(request, &mut status) };
    (code, status)
}

/// Returns true if the operation of a status was cancelled.
pub fn cancelled(status: &ffi::MPI_Status) -> bool {
    let mut flag = 0;
    // SAFETY: both pointers are valid for the call.
    ok(unsafe { ffi::MPI_Test_cancelled(status, &mut flag) }, "MPI_Test_cancelled");
    flag != 0
}

/// Makes errors on `comm` return as codes instead of ending the job.
pub fn errors_return(comm: &impl AsRaw<Raw = ffi::MPI_Comm>) {
    // SAFETY: the communicator is valid, and the error handler is predefined.
    ok(unsafe { ffi::MPI_Comm_set_errhandler(comm.as_raw(), ffi::RSMPI_ERRORS_RETURN) }, "MPI_Comm_set_errhandler");
}
