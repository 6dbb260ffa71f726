//! A segment: memory of one process that other processes map, too, with a lock for atomic operations on its bytes.

use crate::memory_file::{FileAddress, MemoryFile, HEADER, PAGE};
use crate::window_lock;
use crate::{barrier, futex, resident, HostError};
use ntbring_memory::{ForeignBytes, InWindow, OutWindow, Region};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// Offset of the lock of the segment's bytes in the file's first page: a 32-bit word on a cache line of its own.
const LOCK: usize = HEADER;
/// Offset of the shared/exclusive lock of the RMA window that the segment is part of: likewise a word on its own line.
const HOLDERS: usize = 2 * HEADER;
/// Offsets of the bell's words, 32 bits each, on a line of their own: the number of threads that sleep until bytes of
/// the segment change, and the number of rings, on which they sleep.
const SLEEPERS: usize = 3 * HEADER;
const RINGS: usize = SLEEPERS + 4;

/// Alignment of growing segments in the process that creates them, bytes.
pub const ALIGN: usize = 2 << 20;

/// The address of a segment, with which another process of the host opens it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentAddress {
    /// Address of the segment's memory file.
    pub file: FileAddress,
    /// Requested size, bytes; the mapping is rounded up to whole pages.
    pub size: u64,
}

/// A process's mapping of a segment.
pub struct Segment {
    /// The file: present only in the owner, and only until the segment is sealed.
    memory: Option<MemoryFile>,
    first_page: Region,
    bytes: Region,
    size: u64,
    token: u64,
}

impl Segment {
    /// Creates a segment of `size` bytes in `dir`, all of them zero, and allocates every page of it.
    pub fn create(dir: &Path, size: u64) -> Result<(Segment, SegmentAddress), HostError> {
        let no_space = |cause| HostError::NoSpace { bytes: size, dir: dir.display().to_string(), cause };
        let pages = pages(size).ok_or_else(|| no_space(io::ErrorKind::OutOfMemory.into()))?;
        let (memory, file) = MemoryFile::create(dir, PAGE as u64 + pages).map_err(|error| match error {
            HostError::NoSpace { cause, .. } => no_space(cause),
            other => other,
        })?;
        let mut segment = Self::with(&memory, pages, size, file.token)?;
        segment.memory = Some(memory);
        Ok((segment, SegmentAddress { file, size }))
    }

    /// Creates a segment of `size` bytes in `dir` of which only the first `backed` are allocated. The other bytes must
    /// not be accessed before [`Segment::grow`] has allocated them. It must not be sealed. It begins at a multiple of
    /// [`ALIGN`] bytes in this process.
    pub fn create_growing(dir: &Path, size: u64, backed: u64) -> Result<(Segment, SegmentAddress), HostError> {
        let no_space = |cause| HostError::NoSpace { bytes: backed, dir: dir.display().to_string(), cause };
        let pages = pages(size).ok_or_else(|| no_space(io::ErrorKind::OutOfMemory.into()))?;
        let backed = backed.min(size);
        let (memory, file) = MemoryFile::create_sparse(dir, PAGE as u64 + pages, PAGE as u64 + backed)?;
        let bytes = memory.map_aligned(PAGE as u64, pages, ALIGN)?;
        let (first_page, token) = (memory.first_page()?, file.token);
        let segment = Segment { memory: Some(memory), first_page, bytes, size, token };
        Ok((segment, SegmentAddress { file, size }))
    }

    /// Allocates `len` bytes at `from` of a segment that this process has created and not sealed.
    pub fn grow(&self, from: u64, len: u64) -> io::Result<()> {
        let inside = from <= self.size && len <= self.size - from;
        match &self.memory {
            Some(memory) if inside => memory.back(PAGE as u64 + from, len),
            _ => Err(io::ErrorKind::InvalidInput.into()),
        }
    }

    /// Replaces this process's memory at `at` by the segment: copies its contents there first. The segment must be this
    /// process's own, not sealed, and a multiple of the page size. The first `whole` bytes are copied as a whole. The rest
    /// must be private memory without a file, of which only pages that were written are copied.
    ///
    /// # Safety
    /// The bytes from `at` to the segment's size behind it must be mapped, readable and writable memory that starts at
    /// a page, and no other thread may access them during the call. They are never unmapped again.
    pub unsafe fn take_place_of(&self, at: *mut u8, whole: usize) -> io::Result<()> {
        let memory = self.memory.as_ref().filter(|_| self.size == self.bytes.len() as u64);
        let memory = memory.ok_or(io::ErrorKind::InvalidInput)?;
        let copy = |from: usize, len: usize| {
            memory.back((PAGE + from) as u64, len as u64)?;
            // SAFETY: the caller guarantees readable bytes; the copy ends before they are replaced.
            self.sink().write(from, unsafe { ForeignBytes::new(at.wrapping_add(from), len) });
            Ok::<(), io::Error>(())
        };
        let whole = whole.next_multiple_of(PAGE).min(self.bytes.len());
        if whole > 0 {
            copy(0, whole)?;
        }
        // Pages without contents stay holes if they are not backed, as they use no memory elsewhere.
        let rest = at as usize + whole;
        resident::each_run(rest, (self.bytes.len() - whole) / PAGE, |first, pages| {
            copy(whole + first * PAGE, pages * PAGE)
        })?;
        // SAFETY: the caller's guarantee.
        unsafe { memory.map_over(PAGE as u64, self.bytes.len(), at) }
    }

    /// Opens a segment that another process has created and not sealed.
    pub fn open(address: &SegmentAddress) -> Result<Segment, HostError> {
        let (memory, pages) = Self::find(address)?;
        Self::with(&memory, pages, address.size, address.file.token)
    }

    /// Opens a segment that another process has created and not sealed, only for writing.
    pub fn open_sink(address: &SegmentAddress) -> Result<OutWindow, HostError> {
        let (memory, pages) = Self::find(address)?;
        Ok(OutWindow::new(memory.map(PAGE as u64, pages)?))
    }

    /// Opens the file at an address. Returns it with the size of the mapping of its bytes.
    fn find(address: &SegmentAddress) -> Result<(MemoryFile, u64), HostError> {
        let memory = MemoryFile::open(&address.file)?;
        match pages(address.size) {
            Some(pages) if PAGE as u64 + pages == memory.size() => Ok((memory, pages)),
            _ => Err(HostError::Foreign { pid: address.file.pid, what: "its size differs" }),
        }
    }

    fn with(memory: &MemoryFile, pages: u64, size: u64, token: u64) -> Result<Segment, HostError> {
        let bytes = memory.map(PAGE as u64, pages)?;
        Ok(Segment { memory: None, first_page: memory.first_page()?, bytes, size, token })
    }

    /// Returns the requested size, bytes.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Returns the segment's token, a random number that identifies it.
    pub fn token(&self) -> u64 {
        self.token
    }

    /// Returns the segment's bytes as a readable window.
    pub fn source(&self) -> InWindow {
        InWindow::new(self.bytes.clone())
    }

    /// Returns the segment's bytes as a writable window.
    pub fn sink(&self) -> OutWindow {
        OutWindow::new(self.bytes.clone())
    }

    /// Returns the segment's bytes, for atomic access.
    pub fn bytes(&self) -> &Region {
        &self.bytes
    }

    /// Returns the number of threads that sleep until bytes of the segment change. A process that changes them looks at
    /// it after the change and a [`barrier::light`], and calls [`Segment::ring`] if it is not 0.
    pub fn sleepers(&self) -> &AtomicU32 {
        self.first_page.register(SLEEPERS)
    }

    /// Wakes all threads that sleep until bytes of the segment change.
    pub fn ring(&self) {
        let rings = self.first_page.register(RINGS);
        rings.fetch_add(1, Ordering::Release);
        futex::wake(rings);
    }

    /// Wakes the threads that sleep until bytes of the segment change, if there are any. `paired`: as for
    /// [`barrier::light`].
    #[inline]
    pub fn ring_sleepers(&self, paired: bool) {
        barrier::light(paired);
        if self.sleepers().load(Ordering::Relaxed) != 0 {
            self.ring();
        }
    }

    /// Sleeps until [`Segment::ring`] is called, for at most `max`, unless `is_over` returns true once the number of
    /// sleepers has been raised.
    pub fn sleep(&self, max: Duration, is_over: impl FnOnce() -> bool) {
        let rings = self.first_page.register(RINGS);
        self.sleepers().fetch_add(1, Ordering::SeqCst);
        let before = rings.load(Ordering::Acquire);
        barrier::heavy();
        if !is_over() {
            futex::wait(rings, before, max);
        }
        self.sleepers().fetch_sub(1, Ordering::SeqCst);
    }

    /// Returns the file of a segment that this process has created and not sealed, and the offset of the segment's bytes
    /// in it.
    pub fn file(&self) -> Option<(BorrowedFd<'_>, u64)> {
        Some((self.memory.as_ref()?.file().as_fd(), PAGE as u64))
    }

    /// Closes the file: no further process can open the segment. Existing mappings stay valid.
    pub fn seal(&mut self) {
        self.memory = None;
    }

    /// Returns the address of the first byte in this process.
    pub fn base(&self) -> *mut u8 {
        InWindow::new(self.bytes.clone()).address(0, self.bytes.len())
    }

    /// Takes the lock for `holder`. Returns false if it is taken.
    #[inline]
    pub fn try_lock(&self, holder: u32) -> bool {
        let lock = self.first_page.register(LOCK);
        lock.load(Ordering::Relaxed) == 0
            && lock.compare_exchange(0, holder + 1, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    /// Returns the holder of the lock; None if it is free.
    pub fn holder(&self) -> Option<u32> {
        self.first_page.register(LOCK).load(Ordering::Relaxed).checked_sub(1)
    }

    /// Releases the lock.
    #[inline]
    pub fn unlock(&self) {
        self.first_page.register(LOCK).store(0, Ordering::Release);
    }

    /// Locks the RMA window at this segment for `rank`: exclusively if `alone`, otherwise shared. Returns false if the
    /// lock is not available now.
    #[inline]
    pub fn try_acquire(&self, rank: u32, alone: bool) -> bool {
        match alone {
            true => window_lock::take_alone(self.first_page.register(HOLDERS), rank),
            false => window_lock::take(self.first_page.register(HOLDERS)),
        }
    }

    /// Returns the rank that holds the lock of the RMA window at this segment exclusively; None if there is none.
    pub fn exclusive_holder(&self) -> Option<u32> {
        window_lock::exclusive_holder(self.first_page.register(HOLDERS))
    }

    /// Returns the rank that has reserved the lock of the RMA window at this segment; None if there is none.
    pub fn reserver(&self) -> Option<u32> {
        window_lock::reserver(self.first_page.register(HOLDERS))
    }

    /// Cancels the reservation by `rank` of the lock of the RMA window at this segment, if it has one.
    pub fn cancel_reservation(&self, rank: u32) {
        window_lock::cancel_reservation(self.first_page.register(HOLDERS), rank)
    }

    /// Unlocks the RMA window at this segment. Returns false if it is not locked in that mode.
    #[inline]
    pub fn release(&self, alone: bool) -> bool {
        window_lock::give_back(self.first_page.register(HOLDERS), alone)
    }
}

/// Returns `size` rounded up to whole pages, bytes; None if no file can be that large.
fn pages(size: u64) -> Option<u64> {
    size.checked_next_multiple_of(PAGE as u64).filter(|&pages| pages < i64::MAX as u64 / 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn create(size: u64) -> (Segment, SegmentAddress) {
        Segment::create(Path::new("/dev/shm"), size).unwrap()
    }

    #[test]
    fn all_who_open_it_see_the_same_zeroed_bytes_even_when_it_is_sealed() {
        let (mut own, address) = create(5000);
        let others = [Segment::open(&address).unwrap(), Segment::open(&address).unwrap()];
        own.seal();
        assert!(Segment::open(&address).is_err(), "it is sealed");
        assert_eq!(own.base() as usize % PAGE, 0);
        assert_ne!(own.base(), others[0].base());
        let read = |s: &Segment, at| InWindow::new(s.bytes.clone()).load(at);
        assert!((0..5000 / 8).all(|word| read(&others[0], 8 * word) == 0));
        OutWindow::new(own.bytes.clone()).store(4992, 77);
        drop(own);
        assert!(others.iter().all(|s| read(s, 4992) == 77));
    }

    #[test]
    fn an_address_that_is_not_its_own_is_refused() {
        let (own, address) = create(100);
        for size in [0, 4097, u64::MAX] {
            let wrong = SegmentAddress { size, ..address };
            assert!(matches!(Segment::open(&wrong), Err(HostError::Foreign { .. })), "{size}");
        }
        let wrong = SegmentAddress { file: FileAddress { token: address.file.token ^ 1, ..address.file }, ..address };
        assert!(Segment::open(&wrong).is_err());
        drop(own);
    }

    #[test]
    fn a_segment_grows_and_what_was_written_stays() {
        let mut reserve = 1 << 30;
        let (own, address) = loop {
            match Segment::create_growing(Path::new("/dev/shm"), reserve, 4096) {
                Ok(created) => break created,
                Err(_) => reserve /= 2,
            }
        };
        assert_eq!(own.base() as usize % ALIGN, 0);
        let other = Segment::open(&address).unwrap();
        OutWindow::new(own.bytes.clone()).store(4088, 5);
        own.grow(4096, 8192).unwrap();
        own.grow(0, 8192).unwrap();
        OutWindow::new(other.bytes.clone()).store(12280, 6);
        let read = |at| InWindow::new(own.bytes.clone()).load(at);
        assert_eq!((read(4088), read(4096), read(12280)), (5, 0, 6));
        assert!(own.grow(reserve, 1).is_err() && other.grow(0, 1).is_err());
    }

    #[test]
    fn memory_that_a_segment_takes_the_place_of_keeps_its_contents_and_is_shared() {
        let (own, address) = create(2 * PAGE as u64);
        let other = Segment::open(&address).unwrap();
        let map = memmap2::MmapMut::map_anon(2 * PAGE).unwrap();
        let at = map.as_ptr().cast_mut();
        std::mem::forget(map);
        // SAFETY: the pages were just mapped, nothing else uses them, and they are never unmapped.
        unsafe {
            at.add(PAGE).write(77);
            own.take_place_of(at, 1).unwrap();
            assert_eq!(other.source().load(PAGE), 77);
            other.sink().store(8, 99);
            assert_eq!(at.cast::<u64>().add(1).read_volatile(), 99);
        }
    }

    #[test]
    fn a_sleeper_is_woken_by_a_ring_and_does_not_sleep_if_it_is_over() {
        let (own, address) = create(8);
        let other = Segment::open(&address).unwrap();
        let paired = barrier::available();
        own.sleep(Duration::from_secs(100), || true);
        let sleeper = std::thread::spawn(move || {
            while other.source().load(0) == 0 {
                other.sleep(Duration::from_secs(100), || other.source().load(0) != 0);
            }
        });
        while own.sleepers().load(Ordering::Relaxed) == 0 {
            std::thread::yield_now();
        }
        own.sink().store(0, 1);
        own.ring_sleepers(paired);
        sleeper.join().unwrap();
        assert_eq!(own.sleepers().load(Ordering::Relaxed), 0);
    }

    #[test]
    fn no_space_is_an_error_that_names_bytes_and_directory() {
        for size in [1 << 55, i64::MAX as u64, u64::MAX] {
            let Err(error) = Segment::create(Path::new("/dev/shm"), size) else { panic!("{size} bytes") };
            let text = error.to_string();
            assert!(text.contains(&size.to_string()) && text.contains("/dev/shm"), "{text}");
        }
    }

    #[test]
    fn one_at_a_time_has_the_lock_and_what_it_guards_adds_up() {
        let (own, address) = create(8);
        let adders: Vec<_> = (0..4)
            .map(|i| {
                let s = Segment::open(&address).unwrap();
                std::thread::spawn(move || {
                    for _ in 0..2000 {
                        while !s.try_lock(i) {
                            std::thread::yield_now();
                        }
                        assert_eq!(s.holder(), Some(i));
                        let value = InWindow::new(s.bytes.clone()).load(0);
                        OutWindow::new(s.bytes.clone()).store(0, value + 1);
                        s.unlock();
                    }
                })
            })
            .collect();
        adders.into_iter().for_each(|t| t.join().unwrap());
        assert_eq!((own.holder(), InWindow::new(own.bytes.clone()).load(0)), (None, 8000));
    }
}
