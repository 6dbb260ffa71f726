//! Buffers outside the windows: sources of writes, destinations of copies, and space that a packer may fill.

/// A buffer of the application that is only read: memory of this process as a copy's source (address and length).
#[derive(Clone, Copy, Debug)]
pub struct ForeignBytes {
    pub(super) at: *const u8,
    pub(super) len: usize,
}

// SAFETY: the type holds an address and no reference; the constructor's contract (the bytes stay readable) covers every
// later access, from any thread.
unsafe impl Send for ForeignBytes {}

/// An address in this process. The holder must know for how long the memory there is valid.
#[derive(Clone, Copy)]
pub struct Address(pub *mut u8);

// SAFETY: the type is an address; dereferencing it is unsafe, and the code that does so upholds validity and exclusion.
unsafe impl Send for Address {}

impl ForeignBytes {
    /// The empty buffer.
    pub const EMPTY: ForeignBytes = ForeignBytes { at: std::ptr::null(), len: 0 };

    /// Returns the buffer of `len` bytes at `at`.
    ///
    /// # Safety
    /// The bytes must stay readable for as long as the value or a part of it is used.
    pub unsafe fn new(at: *const u8, len: usize) -> Self {
        ForeignBytes { at, len }
    }

    /// Returns the address of the first byte.
    pub fn address(&self) -> *const u8 {
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
    pub fn part(&self, from: usize, len: usize) -> ForeignBytes {
        assert!(from <= self.len && len <= self.len - from, "part beyond the bytes");
        ForeignBytes { at: self.at.wrapping_add(from), len }
    }
}

/// A buffer of the application that is only written: memory of this process as a copy's destination (address and
/// length).
#[derive(Clone, Copy, Debug)]
pub struct ForeignRoom {
    pub(super) at: *mut u8,
    pub(super) len: usize,
}

// SAFETY: the type holds an address and no reference; the constructor's contract (the bytes stay writable) covers every
// later access, from any thread.
unsafe impl Send for ForeignRoom {}

impl ForeignRoom {
    /// Returns the buffer of `len` bytes at `at`.
    ///
    /// # Safety
    /// The bytes must stay writable for as long as the value or a part of it is used.
    pub unsafe fn new(at: *mut u8, len: usize) -> Self {
        ForeignRoom { at, len }
    }

    /// Returns the address of the first byte.
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
    pub fn part(&self, from: usize, len: usize) -> ForeignRoom {
        assert!(from <= self.len && len <= self.len - from, "part beyond the room");
        ForeignRoom { at: self.at.wrapping_add(from), len }
    }
}

/// Space to be filled by code that packs a payload in place, such as the payload of a slot.
#[derive(Debug)]
pub struct Room {
    pub(super) at: *mut u8,
    pub(super) len: usize,
}

impl Room {
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
