//! Memory that somebody else may write, too, and what keeps it mapped.

use super::bytes::ForeignBytes;
#[cfg(not(loom))]
use super::bytes::{copy, ForeignRoom};
use std::sync::Arc;

#[cfg(loom)]
use loom::sync::atomic::{AtomicU64, Ordering};
#[cfg(not(loom))]
use std::sync::atomic::{AtomicU32, AtomicU64};

/// A stretch of shared memory together with what keeps it mapped.
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

// SAFETY: a region hands out no references; every access goes through volatile or atomic
// operations on memory that `_owner` keeps mapped, from whichever thread.
unsafe impl Send for Region {}
// SAFETY: as above.
unsafe impl Sync for Region {}

#[cfg(not(loom))]
impl Region {
    /// The `len` bytes at `base`.
    ///
    /// # Safety
    /// The memory must stay mapped, readable and writable, for as long as `owner` lives, and
    /// nobody in this process may hold a reference to it. `base` must be aligned to 8 bytes.
    pub unsafe fn new(base: *mut u8, len: usize, owner: Arc<dyn std::any::Any + Send + Sync>) -> Self {
        assert_eq!(base as usize % 8, 0, "a region starts at a multiple of 8");
        Region { base, _owner: owner, len }
    }

    /// Zeroed memory of this process alone, for tests and single-process use.
    pub fn anonymous(len: usize) -> Self {
        let mut words = vec![0u64; len.div_ceil(8)].into_boxed_slice();
        let base = words.as_mut_ptr().cast::<u8>();
        struct Owner(#[allow(dead_code)] std::cell::UnsafeCell<Box<[u64]>>);
        // SAFETY: the box is never touched again except to free it.
        unsafe impl Send for Owner {}
        // SAFETY: as above.
        unsafe impl Sync for Owner {}
        // SAFETY: the owner keeps the box, whose heap block does not move.
        unsafe { Region::new(base, len, Arc::new(Owner(std::cell::UnsafeCell::new(words)))) }
    }

    /// Room in memory of this process alone, such as [`Region::anonymous`] gives, as if it were the
    /// application's. Whoever uses it keeps the region. Panics if it reaches beyond the end.
    pub fn room(&self, from: usize, len: usize) -> ForeignRoom {
        self.check(from, len);
        ForeignRoom { at: self.base.wrapping_add(from), len }
    }

    /// The part `[from, from + len)`. Panics if it reaches beyond the end or is misaligned.
    pub fn part(&self, from: usize, len: usize) -> Region {
        self.check(from, len);
        assert_eq!(from % 8, 0, "a region starts at a multiple of 8");
        Region { base: self.base.wrapping_add(from), _owner: self._owner.clone(), len }
    }

    /// Enters all of its pages into this process's page table, so that no access costs a page fault later. It is no error if
    /// the kernel cannot (Linux before 5.14): then each page is entered when it is first used.
    pub fn populate(&self) {
        // SAFETY: takes no pointers.
        let page = usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4096);
        let before = self.base as usize % page;
        let len = (before + self.len).next_multiple_of(page);
        // SAFETY: whole pages of a mapping that `_owner` keeps, none of whose bytes is changed.
        unsafe { libc::madvise(self.base.wrapping_sub(before).cast(), len, libc::MADV_POPULATE_WRITE) };
    }

    /// The word at `offset`, as an atomic that other processes may use, too. Panics beyond the end, or if misaligned.
    #[inline(always)]
    pub fn word(&self, offset: usize) -> &AtomicU64 {
        self.check(offset, 8);
        assert!(offset % 8 == 0, "a word lies at a multiple of 8");
        // SAFETY: inside the mapping (checked), aligned (checked), alive through `_owner`; an
        // atomic may be shared with other processes.
        unsafe { AtomicU64::from_ptr(self.base.add(offset).cast()) }
    }

    /// The 32-bit register at `offset`, for register files of emulated devices. Panics beyond the end, or if misaligned.
    pub fn register(&self, offset: usize) -> &AtomicU32 {
        self.check(offset, 4);
        assert_eq!(offset % 4, 0, "a register lies at a multiple of 4");
        // SAFETY: inside the mapping (checked), aligned (checked), alive through `_owner`.
        unsafe { AtomicU32::from_ptr(self.base.add(offset).cast()) }
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
    /// Zeroed memory that loom watches.
    pub fn anonymous(len: usize) -> Self {
        let words = (0..len.div_ceil(8)).map(|_| AtomicU64::new(0)).collect();
        Region { words: Arc::new(words), first: 0, len }
    }

    /// The part `[from, from + len)`. Panics if it reaches beyond the end or is misaligned.
    pub fn part(&self, from: usize, len: usize) -> Region {
        self.check(from, len);
        assert_eq!(from % 8, 0, "a region starts at a multiple of 8");
        Region { words: self.words.clone(), first: self.first + from / 8, len }
    }

    /// Nothing to enter.
    pub fn populate(&self) {}

    /// The word at `offset`. Panics beyond the end, or if misaligned.
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
            // SAFETY: inside the source by ForeignBytes' contract.
            unsafe { std::ptr::copy_nonoverlapping(from.at.add(i), word.as_mut_ptr(), n) }
            self.word(offset + i).store(u64::from_le_bytes(word), Ordering::Relaxed);
        }
    }
}

impl Region {
    /// Size in bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether it holds no byte.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Whether the `len` bytes at `offset` are in it.
    #[cfg(not(loom))]
    #[inline(always)]
    pub(super) fn has(&self, offset: usize, len: usize) -> bool {
        offset <= self.len && len <= self.len - offset
    }

    /// Where an offset is; nothing is checked before it is used.
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
