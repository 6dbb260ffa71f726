//! Buffers outside the windows: sources of writes, destinations of copies, and space that a packer may fill.

use std::marker::PhantomData;

/// A buffer that is only read, as the source of copies: an address and a length. It may lie in the application's memory
/// or in a window.
///
/// `'a` is the time for which the bytes stay readable. A buffer in a window borrows the window, which keeps the memory
/// mapped:
///
/// ```compile_fail,E0505
/// # use ntbring_memory::{InWindow, OutWindow, Region};
/// let window = InWindow::new(Region::anonymous(64));
/// let bytes = window.foreign(0, 8);
/// drop(window);
/// OutWindow::new(Region::anonymous(64)).write(0, bytes);
/// ```
///
/// A part lives no longer than the whole:
///
/// ```compile_fail,E0597
/// # use ntbring_memory::{ForeignBytes, OutWindow, Region};
/// let part = {
///     let whole = vec![1; 64];
///     ForeignBytes::from(&whole[..]).part(8, 8)
/// };
/// OutWindow::new(Region::anonymous(64)).write(0, part);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct ForeignBytes<'a> {
    pub(super) at: *const u8,
    pub(super) len: usize,
    memory: PhantomData<&'a u8>,
}

// SAFETY: the type holds an address and no reference; the bytes stay readable for `'a`, from any thread.
unsafe impl Send for ForeignBytes<'_> {}

/// An address in this process. Dereferencing it is unsafe: the holder must know for how long the memory there is valid.
#[derive(Clone, Copy)]
pub struct Address(pub *mut u8);

// SAFETY: the type is an address; dereferencing it is unsafe, and the code that does so upholds validity and exclusion.
unsafe impl Send for Address {}

impl<'a> ForeignBytes<'a> {
    /// The empty buffer.
    pub const EMPTY: ForeignBytes<'static> = ForeignBytes { at: std::ptr::null(), len: 0, memory: PhantomData };

    /// Returns the buffer of `len` bytes at `at`.
    ///
    /// # Safety
    /// The bytes must stay readable for `'a`. A caller that hands the buffer to an operation which ends after the call
    /// chooses `'static` and keeps the bytes until that operation reports its end; the operation keeps no copy of
    /// the buffer beyond that.
    #[inline(always)]
    pub unsafe fn new(at: *const u8, len: usize) -> Self {
        ForeignBytes { at, len, memory: PhantomData }
    }

    /// Returns the address of the first byte, as [`slice::as_ptr`] does.
    #[inline(always)]
    pub fn address(&self) -> *const u8 {
        self.at
    }

    /// Returns the number of bytes.
    #[inline(always)]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns true if the length is 0.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the bytes `[from, from + len)`. Panics if the range reaches beyond the end.
    pub fn part(&self, from: usize, len: usize) -> ForeignBytes<'a> {
        assert!(from <= self.len && len <= self.len - from, "part beyond the bytes");
        ForeignBytes { at: self.at.wrapping_add(from), len, memory: PhantomData }
    }
}

impl<'a> From<&'a [u8]> for ForeignBytes<'a> {
    #[inline(always)]
    fn from(bytes: &'a [u8]) -> Self {
        ForeignBytes { at: bytes.as_ptr(), len: bytes.len(), memory: PhantomData }
    }
}

/// A buffer that is only written, as the destination of copies: an address and a length. It may lie in the
/// application's memory or in a region.
///
/// `'a` is the time for which the bytes stay writable. A buffer in a region borrows the region, which keeps the memory
/// mapped:
///
/// ```compile_fail,E0505
/// # use ntbring_memory::{InWindow, Region};
/// let region = Region::anonymous(64);
/// let room = region.room(0, 8);
/// drop(region);
/// InWindow::new(Region::anonymous(64)).copy_out(0, room);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct ForeignRoom<'a> {
    pub(super) at: *mut u8,
    pub(super) len: usize,
    memory: PhantomData<&'a u8>,
}

// SAFETY: the type holds an address and no reference; the bytes stay writable for `'a`, from any thread.
unsafe impl Send for ForeignRoom<'_> {}

impl<'a> ForeignRoom<'a> {
    /// Returns the buffer of `len` bytes at `at`.
    ///
    /// # Safety
    /// The bytes must stay writable for `'a`, and no reference to them may be used while a copy into the buffer, or
    /// into a part of it, is running. A caller that hands the buffer to an operation which ends after the call chooses
    /// `'static` and leaves the bytes alone until that operation reports its end; the operation keeps no copy of the
    /// buffer beyond that.
    #[inline(always)]
    pub unsafe fn new(at: *mut u8, len: usize) -> Self {
        ForeignRoom { at, len, memory: PhantomData }
    }

    /// Returns the address of the first byte, as [`slice::as_mut_ptr`] does.
    pub fn address(&self) -> *mut u8 {
        self.at
    }

    /// Returns the number of bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns true if the length is 0.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the bytes `[from, from + len)`. Panics if the range reaches beyond the end.
    pub fn part(&self, from: usize, len: usize) -> ForeignRoom<'a> {
        assert!(from <= self.len && len <= self.len - from, "part beyond the room");
        ForeignRoom { at: self.at.wrapping_add(from), len, memory: PhantomData }
    }
}

/// Space to be filled by code that packs a payload in place, such as the payload of a slot. It cannot be kept beyond
/// the call that received it:
///
/// ```compile_fail,E0521
/// # use ntbring_memory::{OutWindow, Region, Room};
/// let window = OutWindow::new(Region::anonymous(64));
/// let mut kept = None;
/// window.fill(0, 8, |room: Room| {
///     kept = Some(room);
///     0
/// });
/// ```
#[derive(Debug)]
pub struct Room<'a> {
    at: *mut u8,
    len: usize,
    memory: PhantomData<&'a mut u8>,
}

impl Room<'_> {
    /// Returns the room of `len` bytes at `at`.
    ///
    /// # Safety
    /// The bytes must stay writable for the lifetime, and no reference to them may be used for as long.
    #[cfg(not(loom))]
    pub(super) unsafe fn new(at: *mut u8, len: usize) -> Self {
        Room { at, len, memory: PhantomData }
    }

    /// Returns the address of the first byte. All `len` bytes may be written, and none may be read, until the
    /// function that was given the `Room` returns.
    pub fn address(&self) -> *mut u8 {
        self.at
    }

    /// Number of bytes that may be written.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns true if no byte may be written.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

/// Copies `len` bytes out of memory that others may be writing. Up to 64 bytes are read by volatile loads of whole
/// words: each byte is loaded once, and the compiler cannot reload a value after it was checked. More are copied by one
/// call of `memmove` ([the crate's documentation](crate) says why).
///
/// # Safety
/// `from` must be readable and `to` be writable for `len` bytes.
#[cfg(not(loom))]
#[inline]
pub(super) unsafe fn copy_shared(from: *const u8, to: *mut u8, len: usize) {
    /// Copies the `N` bytes at `at`.
    #[inline(always)]
    unsafe fn word<const N: usize>(from: *const u8, to: *mut u8, at: usize) {
        // SAFETY: the caller guarantees that `at + N` bytes are readable at `from` and writable at `to`; arrays of
        // bytes need no alignment.
        unsafe { to.add(at).cast::<[u8; N]>().write(from.add(at).cast::<[u8; N]>().read_volatile()) }
    }
    // SAFETY: every access lies within `len` bytes, which the caller guarantees to be valid.
    unsafe {
        match len {
            0..=3 => (0..len).for_each(|at| word::<1>(from, to, at)),
            4..=7 => [0, len - 4].into_iter().for_each(|at| word::<4>(from, to, at)),
            8..=64 => {
                (0..len - 8).step_by(8).for_each(|at| word::<8>(from, to, at));
                word::<8>(from, to, len - 8);
            }
            _ => std::ptr::copy(from, to, len),
        }
    }
}

/// Copies `len` bytes to memory behind a bridge, with one store for each aligned word. `memmove` may store single bytes
/// (`rep movsb`), each of which is a packet of its own on the link if the memory is uncached.
///
/// # Safety
/// As for [`copy`]. The ranges must not overlap.
#[cfg(not(loom))]
pub(super) unsafe fn copy_to_device(from: *const u8, to: *mut u8, len: usize) {
    let head = to.align_offset(8).min(len);
    let words = (len - head) / 8;
    let tail = head + 8 * words;
    // SAFETY: every access lies within `len` bytes, and the stores of words are aligned.
    unsafe {
        (0..head).chain(tail..len).for_each(|at| to.add(at).write_volatile(from.add(at).read()));
        for at in (head..tail).step_by(8) {
            to.add(at).cast::<u64>().write_volatile(from.add(at).cast::<u64>().read_unaligned());
        }
    }
}

/// Copies `len` bytes with one store for each aligned word, and for each aligned half word and so on at the ends: no
/// aligned element of 1, 2, 4 or 8 bytes is stored in parts or twice.
///
/// # Safety
/// As for [`copy_to_device`].
#[cfg(not(loom))]
pub(super) unsafe fn copy_elements(from: *const u8, to: *mut u8, len: usize) {
    /// Copies the `T` at `at` of both.
    #[inline(always)]
    unsafe fn one<T>(from: *const u8, to: *mut u8, at: usize) {
        // SAFETY: the caller guarantees both, and that the destination is aligned.
        unsafe { to.add(at).cast::<T>().write_volatile(from.add(at).cast::<T>().read_unaligned()) }
    }
    let mut at = 0;
    while at < len {
        let unit = (1usize << (to as usize + at).trailing_zeros().min(3)).min(1 << (len - at).ilog2().min(3));
        // SAFETY: `unit` divides the address, and at most `len - at` bytes are left.
        unsafe {
            match unit {
                8 => one::<u64>(from, to, at),
                4 => one::<u32>(from, to, at),
                2 => one::<u16>(from, to, at),
                _ => one::<u8>(from, to, at),
            }
        }
        at += unit;
    }
}

/// Copies `len` bytes, up to 64 of them with a few fixed-size loads and stores. The ranges may overlap; the contents of
/// the overlapping bytes are then unspecified.
///
/// # Safety
/// `from` must be readable and `to` be writable for `len` bytes.
#[cfg(not(loom))]
#[inline(always)]
pub(super) unsafe fn copy(from: *const u8, to: *mut u8, len: usize) {
    /// Copies the first `N` and the last `N` of `len` bytes, which together are all of them if `N <= len <= 2 N`.
    #[inline(always)]
    unsafe fn ends<const N: usize>(from: *const u8, to: *mut u8, len: usize) {
        // SAFETY: `len >= N`, and the caller guarantees that `len` bytes are readable at `from` and writable at `to`.
        unsafe {
            let first = from.cast::<[u8; N]>().read();
            let last = from.add(len - N).cast::<[u8; N]>().read();
            to.cast::<[u8; N]>().write(first);
            to.add(len - N).cast::<[u8; N]>().write(last);
        }
    }
    // SAFETY: the match arm guarantees `len >= N` for each call of `ends`; the caller guarantees that both ranges are
    // valid.
    unsafe {
        match len {
            0 => {}
            1..=3 => {
                ends::<1>(from, to, len);
                if len == 3 {
                    *to.add(1) = *from.add(1);
                }
            }
            4..=7 => ends::<4>(from, to, len),
            8..=16 => ends::<8>(from, to, len),
            17..=32 => ends::<16>(from, to, len),
            33..=64 => {
                ends::<16>(from, to, 32);
                ends::<16>(from.add(len - 32), to.add(len - 32), 32);
            }
            _ => std::ptr::copy(from, to, len),
        }
    }
}
