//! A mapped segment of libntbring.

use crate::abi::*;
use crate::fail;
use std::ffi::c_void;
use std::sync::atomic::AtomicU32;

/// A segment that this process has created or mapped. It is freed by [`Segment::free`].
pub struct Segment {
    raw: *mut ntbring_segment_t,
    base: *mut c_void,
}

impl Segment {
    /// Creates a segment of `size` bytes of which `backed` are backed by memory. Returns libntbring's error text if
    /// that fails.
    ///
    /// # Safety
    /// The endpoint must be connected and not in use.
    pub unsafe fn create(
        endpoint: *mut ntbring_endpoint_t,
        size: usize,
        backed: usize,
    ) -> Result<(Segment, ntbring_segment_address_t), String> {
        let mut new = Segment { raw: std::ptr::null_mut(), base: std::ptr::null_mut() };
        let mut address = ntbring_segment_address_t::default();
        let (size, backed) = (size as u64, backed as u64);
        // SAFETY: all pointers are to locals; the caller guarantees the endpoint.
        let rc = unsafe {
            ntbring_segment_create_growing(endpoint, size, backed, &mut new.raw, &mut new.base, &mut address)
        };
        if rc < 0 {
            return Err(fail::ring_error());
        }
        Ok((new, address))
    }

    /// Maps the segment of another PE. Ends the program if that fails.
    ///
    /// # Safety
    /// As for [`Segment::create`].
    pub unsafe fn open(endpoint: *mut ntbring_endpoint_t, pe: usize, address: &ntbring_segment_address_t) -> Segment {
        let mut new = Segment { raw: std::ptr::null_mut(), base: std::ptr::null_mut() };
        // SAFETY: as above.
        if unsafe { ntbring_segment_open(endpoint, pe as i32, address, &mut new.raw, &mut new.base) } < 0 {
            fail::ring(&format!("the memory of PE {pe} cannot be mapped"));
        }
        new
    }

    /// Returns the segment as libntbring knows it.
    pub fn raw(&self) -> *mut ntbring_segment_t {
        self.raw
    }

    /// Returns the address of its first byte.
    pub fn base(&self) -> usize {
        self.base as usize
    }

    /// Backs `len` bytes at `from` by memory. Returns libntbring's error text if that fails.
    pub fn grow(&self, from: usize, len: usize) -> Result<(), String> {
        // SAFETY: the segment is mapped.
        match unsafe { ntbring_segment_grow(self.raw, from as u64, len as u64) } {
            rc if rc < 0 => Err(fail::ring_error()),
            _ => Ok(()),
        }
    }

    /// Maps the segment over the memory at `address`, with its contents, of which the first `whole` bytes may lie in pages
    /// that were not written. Returns libntbring's error text if that fails.
    ///
    /// # Safety
    /// As the description of `ntbring_segment_take_place_of` says.
    pub unsafe fn take_place_of(&self, address: usize, whole: usize) -> Result<(), String> {
        // SAFETY: the caller's guarantee.
        match unsafe { ntbring_segment_take_place_of(self.raw, address as *mut c_void, whole as u64) } {
            rc if rc < 0 => Err(fail::ring_error()),
            _ => Ok(()),
        }
    }

    /// Returns the address of the number of sleepers, and true if a full fence is needed before it is looked at.
    pub fn sleepers(&self) -> (*const AtomicU32, bool) {
        let mut sleepers = std::ptr::null();
        // SAFETY: the segment is mapped, and the pointer is to a local.
        let rc = unsafe { ntbring_segment_sleepers(self.raw, &mut sleepers) };
        (sleepers.cast(), rc != 0)
    }

    /// Sleeps until bytes of the segment change, at most for `max_us` microseconds, unless `is_over` returns true.
    pub fn sleep<F: FnMut() -> bool>(&self, max_us: u32, is_over: &mut F) {
        unsafe extern "C" fn call<F: FnMut() -> bool>(cookie: *mut c_void) -> i32 {
            // SAFETY: `sleep` passes a pointer to its closure, which lives during the call.
            i32::from(unsafe { (*cookie.cast::<F>())() })
        }
        // SAFETY: the segment is mapped, and the closure outlives the call.
        unsafe { ntbring_segment_sleep(self.raw, max_us, Some(call::<F>), std::ptr::from_mut(is_over).cast()) };
    }

    /// Unmaps the segment.
    ///
    /// # Safety
    /// As for [`Segment::create`]; nothing may use the memory any more.
    pub unsafe fn free(self, endpoint: *mut ntbring_endpoint_t) {
        // SAFETY: the caller's guarantee.
        if unsafe { ntbring_segment_free(endpoint, self.raw) } < 0 {
            fail::ring("memory cannot be unmapped");
        }
    }
}
