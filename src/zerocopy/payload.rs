//! Payloads of messages in application memory.

use ntbring_memory::{ForeignBytes, OutWindow, Room};
use ntbring_queue::Slot;
use std::ffi::c_void;

/// C function that packs bytes of a non-contiguous payload, from byte `offset` on, into the `len` bytes at `room`.
/// Returns the number of bytes, or a negative number on failure. It packs fewer than `len` if an element would be
/// split. `cookie` is the value stored in the payload.
pub type PackFn = unsafe extern "C" fn(cookie: *mut c_void, offset: u64, room: *mut c_void, len: u64) -> i64;

/// A payload that a function packs.
#[derive(Clone, Copy)]
pub struct Packed {
    len: u64,
    pack: PackFn,
    cookie: *mut c_void,
}

// SAFETY: the cookie is only passed to the function, which may be called from any thread (contract of `Packed::new`).
unsafe impl Send for Packed {}

impl Packed {
    /// Returns the payload of `len` bytes that `pack` packs.
    ///
    /// # Safety
    /// Until the operation that received the payload reports its end, `pack(cookie, offset, room, n)` must be sound for
    /// every `offset + n <= len` and `n` writable bytes at `room`, from the thread that runs the operation; `pack`
    /// writes only those bytes.
    pub unsafe fn new(len: u64, pack: PackFn, cookie: *mut c_void) -> Packed {
        Packed { len, pack, cookie }
    }

    /// Packs bytes from `offset` on into the room; returns None on failure.
    fn pack(&self, offset: u64, room: Room) -> Option<usize> {
        // SAFETY: the room's bytes are writable during the call, and `offset` and the room's length are within the
        // payload; the rest is the contract of `Packed::new`.
        let packed = unsafe { (self.pack)(self.cookie, offset, room.address().cast(), room.len() as u64) };
        usize::try_from(packed).ok()
    }
}

/// The payload of a message: application memory that is read when there is room in the lane.
#[derive(Clone, Copy)]
pub enum Payload {
    /// Contiguous bytes; may be empty.
    Contiguous(ForeignBytes<'static>),
    /// Bytes that a function packs.
    Packed(Packed),
}

/// Destination of payload bytes.
pub trait Target {
    /// Writes bytes at byte offset `at`.
    fn write(&mut self, at: usize, bytes: ForeignBytes);
    /// Lets `pack` write up to `max` bytes at byte offset `at`; returns the number of bytes written.
    fn fill(&mut self, at: usize, max: usize, pack: impl FnOnce(Room) -> usize) -> usize;
}

impl Target for Slot<'_> {
    #[inline]
    fn write(&mut self, at: usize, bytes: ForeignBytes) {
        Slot::write(self, at, bytes);
    }

    fn fill(&mut self, at: usize, max: usize, pack: impl FnOnce(Room) -> usize) -> usize {
        Slot::fill(self, at, max, pack)
    }
}

impl Target for OutWindow {
    fn write(&mut self, at: usize, bytes: ForeignBytes) {
        OutWindow::write(self, at, bytes);
    }

    fn fill(&mut self, at: usize, max: usize, pack: impl FnOnce(Room) -> usize) -> usize {
        OutWindow::fill(self, at, max, pack)
    }
}

/// Error: packing has failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the payload could not be packed at byte {offset} of {len}")]
pub struct PackFailed {
    /// Offset in the payload at which packing failed, in bytes.
    pub offset: u64,
    /// Size of the payload in bytes.
    pub len: u64,
}

impl Payload {
    /// The empty payload.
    pub const NONE: Payload = Payload::Contiguous(ForeignBytes::EMPTY);

    /// Size in bytes.
    #[inline]
    pub fn len(&self) -> u64 {
        match self {
            Payload::Contiguous(bytes) => bytes.len() as u64,
            Payload::Packed(packed) => packed.len,
        }
    }

    /// Returns true if the payload is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Writes bytes from `offset` on to byte offset `at` of the target, at most `max`. Returns the number of bytes:
    /// at least one unless `max` is 0, and all that remain if they fit.
    #[inline]
    pub fn put(&self, offset: u64, target: &mut impl Target, at: usize, max: usize) -> Result<usize, PackFailed> {
        let left = self.len() - offset;
        let n = left.min(max as u64) as usize;
        match self {
            Payload::Contiguous(bytes) => {
                target.write(at, bytes.part(offset as usize, n));
                Ok(n)
            }
            Payload::Packed(payload) => {
                let failed = PackFailed { offset, len: payload.len };
                let mut packed = None;
                target.fill(at, n, |room| {
                    packed = payload.pack(offset, room);
                    packed.unwrap_or(0)
                });
                match packed {
                    Some(p) if p > n || (p == 0 && n > 0) || (p < n && n as u64 == left) => Err(failed),
                    Some(p) => Ok(p),
                    None => Err(failed),
                }
            }
        }
    }
}
