//! A range of shared memory that other processes or hosts may write, with the owner of its mapping.

use super::bytes::ForeignBytes;
#[cfg(not(loom))]
use super::bytes::{copy, copy_elements, copy_to_device, ForeignRoom};
use std::sync::Arc;

#[cfg(loom)]
use loom::sync::atomic::{AtomicU64, Ordering};
#[cfg(not(loom))]
use std::sync::atomic::{AtomicU32, AtomicU64};

/// A range of shared memory together with the owner of its mapping; the memory stays mapped while a clone or part
/// exists.
#[derive(Clone)]
pub struct Region {
    #[cfg(not(loom))]
    pub(super) base: *mut u8,
    #[cfg(not(loom))]
    _owner: Arc<dyn std::any::Any + Send + Sync>,
    #[cfg(loom)]
    words: Arc<Vec<AtomicU64>>,
    #[cfg(loom)]
    first: usize,
    pub(super) len: usize,
}

// SAFETY: a region hands out no references to plain memory; every access is an atomic operation or a copy through a raw
// pointer, on memory that `_owner` keeps mapped, which is valid from any thread.
unsafe impl Send for Region {}
// SAFETY: as above.
unsafe impl Sync for Region {}

#[cfg(not(loom))]
impl Region {
    /// Returns the region of `len` bytes at `base`. Panics if `base` is not aligned to 8 bytes.
    ///
    /// # Safety
    /// The memory must stay mapped, readable and writable, for as long as `owner` lives, and
    /// no Rust reference to it may exist in this process. `base` must be aligned to 8 bytes.
    pub unsafe fn new(base: *mut u8, len: usize, owner: Arc<dyn std::any::Any + Send + Sync>) -> Self {
        assert_eq!(base as usize % 8, 0, "a region starts at a multiple of 8");
        Region { base, _owner: owner, len }
    }

    /// Returns `len` bytes of zeroed private memory of this process, for tests and rings within one process.
    pub fn anonymous(len: usize) -> Self {
        let mut words = vec![0u64; len.div_ceil(8)].into_boxed_slice();
        let base = words.as_mut_ptr().cast::<u8>();
        struct Owner(#[allow(dead_code)] std::cell::UnsafeCell<Box<[u64]>>);
        // SAFETY: the box is only kept alive and freed; its contents are accessed only through the region's raw
        // pointer.
        unsafe impl Send for Owner {}
        // SAFETY: as above.
        unsafe impl Sync for Owner {}
        // SAFETY: the owner keeps the box alive, and its heap block does not move while it lives.
        unsafe { Region::new(base, len, Arc::new(Owner(std::cell::UnsafeCell::new(words)))) }
    }

    /// Returns `len` bytes at `from` as a destination of copies. Panics if the range reaches beyond the end.
    pub fn room(&self, from: usize, len: usize) -> ForeignRoom<'_> {
        self.check(from, len);
        // SAFETY: the bytes are inside the mapping (checked), which `_owner` keeps for the lifetime of `&self`; the
        // contract of `Region::new` excludes references to them.
        unsafe { ForeignRoom::new(self.base.add(from), len) }
    }

    /// Returns the region of the bytes `[from, from + len)`. Panics if the range reaches beyond the end or `from` is
    /// not a multiple of 8.
    pub fn part(&self, from: usize, len: usize) -> Region {
        self.check(from, len);
        assert_eq!(from % 8, 0, "a region starts at a multiple of 8");
        Region { base: self.base.wrapping_add(from), _owner: self._owner.clone(), len }
    }

    /// Enters all pages of the region into this process's page table (`MADV_POPULATE_WRITE`), so that later accesses
    /// cause no page faults. Failure (Linux before 5.14) is ignored: then each page is entered at its first access.
    pub fn populate(&self) {
        // SAFETY: `sysconf` takes no pointers.
        let page = usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4096);
        let before = self.base as usize % page;
        let len = (before + self.len).next_multiple_of(page);
        // SAFETY: the range is whole pages of a mapping that `_owner` keeps alive, and the call changes no byte of
        // them.
        unsafe { libc::madvise(self.base.wrapping_sub(before).cast(), len, libc::MADV_POPULATE_WRITE) };
    }

    /// Returns the 64-bit word at `offset` as an atomic, which other processes may access, too. Panics if the word lies
    /// beyond the end or is misaligned.
    #[inline(always)]
    pub fn word(&self, offset: usize) -> &AtomicU64 {
        self.check(offset, 8);
        assert!(offset.is_multiple_of(8), "a word lies at a multiple of 8");
        // SAFETY: the word is inside the mapping (checked), aligned (checked) and kept mapped by `_owner` for the
        // lifetime of `&self`; other processes access it only atomically.
        unsafe { AtomicU64::from_ptr(self.base.add(offset).cast()) }
    }

    /// Returns the 32-bit register at `offset` as an atomic, for register files of emulated devices. Panics if the
    /// register lies beyond the end or is misaligned.
    pub fn register(&self, offset: usize) -> &AtomicU32 {
        self.check(offset, 4);
        assert_eq!(offset % 4, 0, "a register lies at a multiple of 4");
        // SAFETY: the register is inside the mapping (checked), aligned (checked) and kept mapped by `_owner`.
        unsafe { AtomicU32::from_ptr(self.base.add(offset).cast()) }
    }

    /// Copies into memory behind a bridge.
    pub(super) fn copy_in_words(&self, offset: usize, from: ForeignBytes) {
        self.check(offset, from.len);
        // SAFETY: the destination is inside the mapping (checked); the source is readable by ForeignBytes' contract.
        unsafe { copy_to_device(from.at, self.base.add(offset), from.len) }
    }

    /// Copies with one store for each aligned element.
    #[inline]
    pub(super) fn copy_in_elements(&self, offset: usize, from: ForeignBytes) {
        self.check(offset, from.len);
        // SAFETY: the destination is inside the mapping (checked); the source is readable by ForeignBytes' contract.
        unsafe { copy_elements(from.at, self.base.add(offset), from.len) }
    }

    #[inline]
    pub(super) fn copy_in(&self, offset: usize, from: ForeignBytes) {
        self.check(offset, from.len);
        // SAFETY: the destination is inside the mapping (checked); the source is readable by
        // ForeignBytes' contract.
        unsafe { copy(from.at, self.base.add(offset), from.len) }
    }
}

#[cfg(loom)]
impl Region {
    /// Returns `len` bytes of zeroed memory whose accesses loom tracks.
    pub fn anonymous(len: usize) -> Self {
        let words = (0..len.div_ceil(8)).map(|_| AtomicU64::new(0)).collect();
        Region { words: Arc::new(words), first: 0, len }
    }

    /// Returns the region of the bytes `[from, from + len)`. Panics if the range reaches beyond the end or `from` is
    /// not a multiple of 8.
    pub fn part(&self, from: usize, len: usize) -> Region {
        self.check(from, len);
        assert_eq!(from % 8, 0, "a region starts at a multiple of 8");
        Region { words: self.words.clone(), first: self.first + from / 8, len }
    }

    /// Does nothing: loom's memory has no page table.
    pub fn populate(&self) {}

    /// Returns the 64-bit word at `offset`. Panics if it lies beyond the end or is misaligned.
    pub fn word(&self, offset: usize) -> &AtomicU64 {
        self.check(offset, 8);
        assert_eq!(offset % 8, 0, "a word lies at a multiple of 8");
        &self.words[self.first + offset / 8]
    }

    pub(super) fn copy_in(&self, offset: usize, from: ForeignBytes) {
        self.check(offset, from.len);
        for i in (0..from.len).step_by(8) {
            let mut word = [0u8; 8];
            let n = (from.len - i).min(8);
            // SAFETY: `i + n <= from.len`, which is readable by ForeignBytes' contract; `word` has 8 bytes and `n <=
            // 8`.
            unsafe { std::ptr::copy_nonoverlapping(from.at.add(i), word.as_mut_ptr(), n) }
            self.word(offset + i).store(u64::from_le_bytes(word), Ordering::Relaxed);
        }
    }
}

impl Region {
    /// Returns the size, bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns true if the length is 0.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns true if the `len` bytes at `offset` lie inside the region.
    #[cfg(not(loom))]
    #[inline(always)]
    pub(super) fn has(&self, offset: usize, len: usize) -> bool {
        offset <= self.len && len <= self.len - offset
    }

    /// Returns the address of `offset` without a bounds check; the caller checks before it dereferences the address.
    #[cfg(not(loom))]
    #[inline(always)]
    pub(super) fn address(&self, offset: usize) -> *mut u8 {
        self.base.wrapping_add(offset)
    }

    #[inline(always)]
    pub(super) fn check(&self, offset: usize, len: usize) {
        if offset > self.len || len > self.len - offset {
            beyond(offset, len, self.len);
        }
    }
}

#[cold]
#[inline(never)]
fn beyond(offset: usize, len: usize, window: usize) -> ! {
    panic!("access of {len} bytes at {offset} in a window of {window}")
}
