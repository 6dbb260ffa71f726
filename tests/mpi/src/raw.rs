//! Small helpers for the calls that rsmpi does not offer and that programs make through `mpi::ffi`.

use std::mem::MaybeUninit;
use std::os::raw::c_int;

use mpi::ffi;
use mpi::traits::*;

/// Fails the job unless `code` is MPI_SUCCESS.
#[track_caller]
pub fn ok(code: c_int, call: &str) {
    assert_eq!(code, ffi::MPI_SUCCESS as c_int, "{call} returned an error of class {}: {}", class(code), text(code));
}

/// What MPI says of an error code.
pub fn text(code: c_int) -> String {
    let (mut text, mut len) = ([0u8; ffi::MPI_MAX_ERROR_STRING as usize], 0);
    // SAFETY: room for the longest text; the call has no other effect.
    unsafe { ffi::MPI_Error_string(code, text.as_mut_ptr().cast(), &mut len) };
    String::from_utf8_lossy(&text[..len.max(0) as usize]).into_owned()
}

/// The class of an error code.
pub fn class(code: c_int) -> c_int {
    let mut class = 0;
    // SAFETY: `class` is a valid place for one int; the call has no other effect.
    unsafe { ffi::MPI_Error_class(code, &mut class) };
    class
}

/// The datatype of one byte.
pub fn byte() -> ffi::MPI_Datatype {
    u8::equivalent_datatype().as_raw()
}

/// What stands for the send buffer of a collective in place: a macro in MPICH's mpi.h that rsmpi does not pass on.
pub fn in_place() -> *const std::os::raw::c_void {
    std::ptr::without_provenance(usize::MAX)
}

/// A request handle that stands for nothing.
pub fn no_request() -> ffi::MPI_Request {
    // SAFETY: the constant is initialized by the C side at load time and never written.
    unsafe { ffi::RSMPI_REQUEST_NULL }
}

/// A status to be written by MPI.
pub fn status() -> ffi::MPI_Status {
    // SAFETY: a plain C struct of integers, for which all zeros is a valid value.
    unsafe { MaybeUninit::zeroed().assume_init() }
}

/// The number of bytes a status reports.
pub fn bytes(status: &ffi::MPI_Status) -> usize {
    let mut count = 0;
    // SAFETY: both pointers are valid for the call, the datatype is a predefined one.
    ok(unsafe { ffi::MPI_Get_count(status, byte(), &mut count) }, "MPI_Get_count");
    count as usize
}

/// Waits for a request, and returns the error code and the status.
///
/// # Safety
/// `request` is a request of this process, and the buffer it uses is still there and not borrowed.
pub unsafe fn wait(request: &mut ffi::MPI_Request) -> (c_int, ffi::MPI_Status) {
    let mut status = status();
    // SAFETY: the caller answers for the request; the status is ours.
    let code = unsafe { ffi::MPI_Wait(request, &mut status) };
    (code, status)
}

/// Whether the operation a status belongs to was cancelled.
pub fn cancelled(status: &ffi::MPI_Status) -> bool {
    let mut flag = 0;
    // SAFETY: both pointers are valid for the call.
    ok(unsafe { ffi::MPI_Test_cancelled(status, &mut flag) }, "MPI_Test_cancelled");
    flag != 0
}

/// Makes errors on `comm` come back as codes instead of ending the job.
pub fn errors_return(comm: &impl AsRaw<Raw = ffi::MPI_Comm>) {
    // SAFETY: a valid communicator and a predefined error handler.
    ok(unsafe { ffi::MPI_Comm_set_errhandler(comm.as_raw(), ffi::RSMPI_ERRORS_RETURN) }, "MPI_Comm_set_errhandler");
}
