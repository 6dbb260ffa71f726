//! Bytes outside the windows: where a write comes from, and where a packer may put some.

/// Bytes that belong to the application: memory of this process that is only ever copied from.
#[derive(Clone, Copy, Debug)]
pub struct ForeignBytes {
    pub(super) at: *const u8,
    pub(super) len: usize,
}

// SAFETY: it is an address; the constructor's contract covers every later access.
unsafe impl Send for ForeignBytes {}

impl ForeignBytes {
    /// No bytes at all.
    pub const EMPTY: ForeignBytes = ForeignBytes { at: std::ptr::null(), len: 0 };

    /// `len` bytes at `at`.
    ///
    /// # Safety
    /// The bytes must stay readable for as long as the value or a part of it is used.
    pub unsafe fn new(at: *const u8, len: usize) -> Self {
        ForeignBytes { at, len }
    }

    /// Number of bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The part `[from, from + len)`. Panics if it reaches beyond the end.
    pub fn part(&self, from: usize, len: usize) -> ForeignBytes {
        assert!(from <= self.len && len <= self.len - from, "part beyond the bytes");
        ForeignBytes { at: self.at.wrapping_add(from), len }
    }
}

/// Where something may be written: handed to code that packs a payload in place.
#[derive(Debug)]
pub struct Room {
    pub(super) at: *mut u8,
    pub(super) len: usize,
}

impl Room {
    /// The address of the first byte. All of `len` bytes may be written, none be read, until the
    /// call that was handed the room returns.
    pub fn address(&self) -> *mut u8 {
        self.at
    }

    /// Bytes that may be written.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether nothing may be written.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}
