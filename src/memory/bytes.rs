//! Bytes outside the windows: where a write comes from, and where a packer may put some.

/// Bytes that belong to the application: memory of this process that is only ever copied from.
#[derive(Clone, Copy, Debug)]
pub struct ForeignBytes {
    pub(super) at: *const u8,
    pub(super) len: usize,
}

// SAFETY: it is an address; the constructor's contract covers every later access.
unsafe impl Send for ForeignBytes {}

/// Where something lies, for whoever knows how long it does.
#[derive(Clone, Copy)]
pub struct Address(pub *mut u8);

// SAFETY: it is an address; whoever accesses what lies there has to know that it may.
unsafe impl Send for Address {}

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

    /// The address of the first byte.
    pub fn address(&self) -> *const u8 {
        self.at
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

/// Room that belongs to the application: memory of this process that is only ever copied to.
#[derive(Clone, Copy, Debug)]
pub struct ForeignRoom {
    pub(super) at: *mut u8,
    pub(super) len: usize,
}

// SAFETY: it is an address; the constructor's contract covers every later access.
unsafe impl Send for ForeignRoom {}

impl ForeignRoom {
    /// `len` bytes at `at`.
    ///
    /// # Safety
    /// The bytes must stay writable for as long as the value or a part of it is used.
    pub unsafe fn new(at: *mut u8, len: usize) -> Self {
        ForeignRoom { at, len }
    }

    /// The address of the first byte.
    pub fn address(&self) -> *mut u8 {
        self.at
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
    pub fn part(&self, from: usize, len: usize) -> ForeignRoom {
        assert!(from <= self.len && len <= self.len - from, "part beyond the room");
        ForeignRoom { at: self.at.wrapping_add(from), len }
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

/// Copies bytes, few of them in few instructions. The two may overlap, though what is in an overlap
/// is then not told.
///
/// # Safety
/// `from` must be readable and `to` be writable for `len` bytes.
#[cfg(not(loom))]
#[inline(always)]
pub(super) unsafe fn copy(from: *const u8, to: *mut u8, len: usize) {
    /// The first and the last bytes of a stretch of at least `N`; together all of up to 2 `N`.
    #[inline(always)]
    unsafe fn ends<const N: usize>(from: *const u8, to: *mut u8, len: usize) {
        // SAFETY: `len` is at least `N`, and the caller vouches for `len` bytes.
        unsafe {
            let first = from.cast::<[u8; N]>().read();
            let last = from.add(len - N).cast::<[u8; N]>().read();
            to.cast::<[u8; N]>().write(first);
            to.add(len - N).cast::<[u8; N]>().write(last);
        }
    }
    // SAFETY: each arm has at least the bytes it asks for; the rest is the caller's promise.
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
