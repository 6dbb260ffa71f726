//! The counters of ntbring, read as performance variables of MPI_T.

use std::ffi::CString;
use std::mem::MaybeUninit;
use std::os::raw::c_int;
use std::ptr::null_mut;

use mpi::ffi::*;

use crate::raw::ok;

/// A counter of this rank.
pub type Counter = MPI_T_pvar_handle;

/// A session of a tool that reads counters; it can be used before MPI_Init and after MPI_Finalize, too.
pub struct Session(MPI_T_pvar_session);

impl Session {
    /// Opens a session.
    #[expect(clippy::new_without_default, reason = "it may fail")]
    pub fn new() -> Session {
        let (mut provided, mut session) = (0, MaybeUninit::zeroed());
        // SAFETY: both pointers are valid for writes, and the second value is written before it is read.
        unsafe {
            ok(MPI_T_init_thread(MPI_THREAD_MULTIPLE as c_int, &mut provided), "MPI_T_init_thread");
            ok(MPI_T_pvar_session_create(session.as_mut_ptr()), "MPI_T_pvar_session_create");
            Session(session.assume_init())
        }
    }

    /// Returns the counter `ntbring_NAME`.
    pub fn counter(&self, name: &str) -> Counter {
        let class = MPIR_T_pvar_class_t_MPI_T_PVAR_CLASS_COUNTER as c_int;
        let (name, mut index, mut count) = (CString::new(format!("ntbring_{name}")).unwrap(), 0, 0);
        let mut handle = MaybeUninit::zeroed();
        // SAFETY: all pointers are valid for writes; the handle is written before it is read.
        let handle = unsafe {
            ok(MPI_T_pvar_get_index(name.as_ptr(), class, &mut index), "MPI_T_pvar_get_index");
            let call = MPI_T_pvar_handle_alloc(self.0, index, null_mut(), handle.as_mut_ptr(), &mut count);
            ok(call, "MPI_T_pvar_handle_alloc");
            handle.assume_init()
        };
        assert_eq!(count, 1, "{name:?}");
        handle
    }

    /// Returns the sum of some counters.
    pub fn read(&self, counters: &[Counter]) -> u64 {
        let read = |counter: &Counter| {
            let mut value = 0_u64;
            // SAFETY: each counter has one element of 64 bits, for which `value` has room.
            ok(unsafe { MPI_T_pvar_read(self.0, *counter, (&raw mut value).cast()) }, "MPI_T_pvar_read");
            value
        };
        counters.iter().map(read).sum()
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // SAFETY: `new` has created and initialized it once, and it is not used afterwards.
        unsafe {
            ok(MPI_T_pvar_session_free(&mut self.0), "MPI_T_pvar_session_free");
            ok(MPI_T_finalize(), "MPI_T_finalize");
        }
    }
}
