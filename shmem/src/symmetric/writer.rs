//! Memory of a PE on a neighbouring host that can only be written.

use crate::abi::*;
use crate::fail;
use std::ffi::c_void;

/// A writer of libntbring, which is closed when this is dropped.
pub struct Writer {
    raw: *mut ntbring_writer_t,
    reach: usize,
}

impl Writer {
    /// Opens the segment of another PE for writing; None if its adapter does not reach it. Ends the program if that fails.
    ///
    /// # Safety
    /// The endpoint must be connected and not in use.
    pub unsafe fn open(
        endpoint: *mut ntbring_endpoint_t,
        pe: usize,
        address: &ntbring_segment_address_t,
    ) -> Option<Writer> {
        let mut raw = std::ptr::null_mut();
        // SAFETY: all pointers are to locals; the caller guarantees the endpoint.
        match unsafe { ntbring_writer_open(endpoint, pe as i32, address, &mut raw) } {
            rc if rc < 0 => fail::ring(&format!("the memory of PE {pe} cannot be written")),
            rc if rc == NTBRING_NONE as i32 => None,
            // SAFETY: the writer is open.
            _ => Some(Writer { raw, reach: unsafe { ntbring_writer_reach(raw) } as usize }),
        }
    }

    /// Returns the number of bytes from the start of the segment that can be written.
    pub fn reach(&self) -> usize {
        self.reach
    }

    /// Returns true if the `len` bytes at `offset` can be written.
    #[inline]
    pub fn has(&self, offset: usize, len: usize) -> bool {
        offset <= self.reach && len <= self.reach - offset
    }

    /// Writes `len` bytes at `offset`, before everything that is sent to that host afterwards.
    ///
    /// # Safety
    /// `source` must be readable for `len` bytes.
    #[inline]
    pub unsafe fn write(&self, offset: usize, source: *const u8, len: usize) {
        // SAFETY: the writer is open; the caller guarantees the source.
        if unsafe { ntbring_writer_write(self.raw, offset as u64, source.cast::<c_void>(), len as u64) } < 0 {
            fail::ring("memory of another PE cannot be written");
        }
    }

    /// Returns true if nothing that was written can be lost: the link has been up all the time.
    pub fn is_intact(&self) -> bool {
        // SAFETY: the writer is open.
        unsafe { ntbring_writer_is_intact(self.raw) == 1 }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        // SAFETY: the writer is open, and nothing else uses it any more.
        unsafe { ntbring_writer_free(self.raw) };
    }
}
