//! Windows: checked access to memory that is shared with the other side of a link.
//!
//! Under `--cfg loom` the memory is an array of loom's atomics, so that the queue's unchanged code can be
//! model-checked; otherwise it is a mapping.

use super::bytes::ForeignBytes;
#[cfg(not(loom))]
use super::bytes::{copy, copy_shared, ForeignRoom, Room};
use super::mapping::Mapping;
use super::region::Region;
use std::sync::Arc;

#[cfg(loom)]
use loom::sync::atomic::Ordering;
#[cfg(not(loom))]
use std::sync::atomic::Ordering;

/// Interceptor of the writes of an [`OutWindow`] on their way to the neighbour's memory.
///
/// Decorators of ports implement it. Offsets are bytes from the start of the port's whole outgoing
/// window.
pub trait WriteSink: Send + Sync {
    /// Writes `bytes` at `offset`. Until the next fence they may arrive in any order and split into any chunks.
    fn write(&self, offset: usize, bytes: &[u8]);
    /// Stores one aligned 8-byte word at `offset`; the store is never torn.
    fn store(&self, offset: usize, value: u64);
    /// Orders writes: all writes before the fence become visible before any write after it.
    fn fence(&self);
    /// Returns true if the window itself may write the `len` bytes at `offset` in place, as it does without a sink.
    /// This is for sinks that only have to know of a write and need not handle its bytes.
    fn let_through(&self, _offset: usize, _len: usize) -> bool {
        false
    }
}

/// Interceptor of the loads of an [`InWindow`], for decorators that model words which have been sent but not yet
/// arrived.
///
/// Offsets are bytes from the start of the port's whole incoming window.
pub trait ReadGate: Send + Sync {
    /// Returns the word at `offset` as it has arrived so far.
    fn load(&self, offset: usize) -> u64;
}

/// An incoming window or a part of one: memory of this host that the neighbour writes. It may also be memory of a
/// neighbour that this process can map and read like its own host's, and that the neighbour's own neighbours write.
#[derive(Clone)]
pub struct InWindow {
    region: Region,
    /// Offset of this part in the port's whole window, bytes; a gate's offsets count from the start of the whole
    /// window.
    start: usize,
    gate: Option<Arc<dyn ReadGate>>,
}

impl InWindow {
    /// Returns the window over `region`, without a gate.
    pub fn new(region: Region) -> Self {
        InWindow { region, start: 0, gate: None }
    }

    /// Returns the same window with all loads going through the gate that `wrap` makes of the plain window. Bytes need
    /// no gate: they are read only after the word that announces them was loaded. Panics if the window is a part or has
    /// a gate.
    pub fn with_gate(self, wrap: impl FnOnce(InWindow) -> Arc<dyn ReadGate>) -> Self {
        assert!(self.start == 0 && self.gate.is_none(), "a gate is put before a whole window, once");
        let region = self.region.clone();
        InWindow { region, start: 0, gate: Some(wrap(self)) }
    }

    /// Returns the size, bytes.
    pub fn len(&self) -> usize {
        self.region.len()
    }

    /// Returns true if the length is 0.
    pub fn is_empty(&self) -> bool {
        self.region.is_empty()
    }

    /// Returns the window of the bytes `[from, from + len)`. Panics if the range reaches beyond the end.
    pub fn part(&self, from: usize, len: usize) -> InWindow {
        InWindow { region: self.region.part(from, len), start: self.start + from, gate: self.gate.clone() }
    }

    /// Enters all pages of the window into this process's page table ([`Region::populate`]).
    pub fn populate(&self) {
        self.region.populate();
    }

    /// Loads the word at `offset` with acquire ordering: reads after it see all that was written before the word was
    /// stored.
    #[inline(always)]
    pub fn load(&self, offset: usize) -> u64 {
        let word = self.region.word(offset);
        match &self.gate {
            None => word.load(Ordering::Acquire),
            Some(gate) => gate.load(self.start + offset),
        }
    }

    /// Prefetches the cache line at `offset` (x86-64 only). An offset beyond the window is ignored.
    #[cfg(not(loom))]
    #[inline]
    pub fn prefetch(&self, offset: usize) {
        #[cfg(target_arch = "x86_64")]
        if offset < self.region.len {
            use std::arch::x86_64::{_mm_prefetch, _MM_HINT_T0};
            // SAFETY: a prefetch is a hint and never faults; the address is also inside the mapping (checked).
            unsafe { _mm_prefetch::<_MM_HINT_T0>(self.region.base.add(offset).cast()) }
        }
        #[cfg(not(target_arch = "x86_64"))]
        let _ = offset;
    }

    /// Does nothing under loom.
    #[cfg(loom)]
    pub fn prefetch(&self, _offset: usize) {}

    /// Copies the bytes at `offset` into `to`. They may change during the copy if the neighbour breaks
    /// the protocol, so the caller validates the copy, not the contents of the window.
    #[cfg(not(loom))]
    pub fn read(&self, offset: usize, to: &mut [u8]) {
        self.region.check(offset, to.len());
        // SAFETY: the source is inside the mapping (checked); the destination is an exclusive slice outside of it.
        unsafe { copy_shared(self.region.base.add(offset), to.as_mut_ptr(), to.len()) }
    }

    /// Copies the bytes at `offset` into `to`.
    #[cfg(loom)]
    pub fn read(&self, offset: usize, to: &mut [u8]) {
        for (i, piece) in to.chunks_mut(8).enumerate() {
            let word = self.region.word(offset + 8 * i).load(Ordering::Relaxed).to_le_bytes();
            piece.copy_from_slice(&word[..piece.len()]);
        }
    }

    /// Returns the address of the `len` bytes at `offset`, to be passed to code outside Rust. As with
    /// [`slice::as_ptr`], dereferencing it is unsafe: the memory stays mapped only while this window, a part or a clone
    /// of it exists. Panics if the bytes reach beyond the end.
    #[cfg(not(loom))]
    #[inline(always)]
    pub fn address(&self, offset: usize, len: usize) -> *mut u8 {
        self.region.check(offset, len);
        self.region.base.wrapping_add(offset)
    }

    /// Copies `to.len()` bytes at `offset` into the application's buffer `to`. Panics if they reach beyond the end.
    #[cfg(not(loom))]
    #[inline]
    pub fn copy_out(&self, offset: usize, to: ForeignRoom) {
        self.region.check(offset, to.len);
        // SAFETY: the source is inside the mapping (checked); the destination is writable by ForeignRoom's contract.
        unsafe { copy(self.region.base.add(offset), to.at, to.len) }
    }

    /// Returns the `len` bytes at `offset` as a source, so that they can be forwarded without an intermediate copy.
    /// Panics if they reach beyond the end.
    #[cfg(not(loom))]
    pub fn foreign(&self, offset: usize, len: usize) -> ForeignBytes<'_> {
        // SAFETY: the bytes are inside the mapping (`address` checks that), which the region keeps for the lifetime of
        // `&self`.
        unsafe { ForeignBytes::new(self.address(offset, len), len) }
    }
}

/// The memory behind an outgoing window, as the device at its other end sees it. Only the sink of a window receives it
/// ([`OutWindow::with_device_sink`]): on hardware an outgoing window cannot be read.
#[cfg(not(loom))]
pub struct DeviceMemory(Region);

#[cfg(not(loom))]
impl DeviceMemory {
    /// Returns the word at `offset`, which a store is about to replace.
    pub fn word(&self, offset: usize) -> u64 {
        self.0.word(offset).load(Ordering::Relaxed)
    }
}

/// An outgoing window or a part of one: memory of the neighbour, mapped through the bridge.
///
/// It has no read method: a load would stall for microseconds on hardware. Writes are posted: between two fences they
/// may arrive in any order and split into chunks.
#[derive(Clone)]
pub struct OutWindow {
    pub(super) region: Region,
    /// Offset of this part in the port's whole window, bytes; a sink's offsets count from the start of the whole
    /// window.
    start: usize,
    sink: Option<Arc<dyn WriteSink>>,
    mapping: Mapping,
    /// True if writes are ordinary stores to coherent memory: there is no sink, and publishing needs no fence
    /// instruction.
    plain: bool,
}

impl OutWindow {
    /// Returns the window over `region`, which is coherent memory, without a sink.
    pub fn new(region: Region) -> Self {
        OutWindow::mapped(region, Mapping::Coherent)
    }

    /// Returns the window over `region`, whose mapping is of the given kind, without a sink.
    pub fn mapped(region: Region, mapping: Mapping) -> Self {
        OutWindow { region, start: 0, sink: None, mapping, plain: mapping == Mapping::Coherent }
    }

    /// Returns the same window with all writes going through the sink that `wrap` makes of the plain window. Panics if
    /// the window is a part.
    pub fn with_sink(self, wrap: impl FnOnce(OutWindow) -> Arc<dyn WriteSink>) -> Self {
        assert_eq!(self.start, 0, "a sink wraps a whole window, not a part");
        let (region, mapping) = (self.region.clone(), self.mapping);
        OutWindow { region, start: 0, sink: Some(wrap(self)), mapping, plain: false }
    }

    /// Like [`OutWindow::with_sink`], for a sink that models the device: it is also given the memory behind the window.
    #[cfg(not(loom))]
    pub fn with_device_sink(self, wrap: impl FnOnce(OutWindow, DeviceMemory) -> Arc<dyn WriteSink>) -> Self {
        let memory = DeviceMemory(self.region.clone());
        self.with_sink(|plain| wrap(plain, memory))
    }

    /// Returns the size, bytes.
    pub fn len(&self) -> usize {
        self.region.len()
    }

    /// Returns true if the length is 0.
    pub fn is_empty(&self) -> bool {
        self.region.is_empty()
    }

    /// Returns the window of the bytes `[from, from + len)`. Panics if the range reaches beyond the end.
    pub fn part(&self, from: usize, len: usize) -> OutWindow {
        let OutWindow { start, mapping, plain, .. } = *self;
        OutWindow { region: self.region.part(from, len), start: start + from, sink: self.sink.clone(), mapping, plain }
    }

    /// Returns the offset of this part in the port's whole window, bytes.
    pub(crate) fn start(&self) -> usize {
        self.start
    }

    /// Enters all pages of the window into this process's page table ([`Region::populate`]).
    pub fn populate(&self) {
        self.region.populate();
    }

    /// Returns true if writes are ordinary stores to coherent memory, without a sink.
    #[cfg(not(loom))]
    #[inline(always)]
    pub(crate) fn is_plain(&self) -> bool {
        self.plain
    }

    /// Returns true if the `len` bytes at `offset` may be written in place: there is no sink, or it lets them through.
    #[cfg(not(loom))]
    pub fn lets_through(&self, offset: usize, len: usize) -> bool {
        self.sink.as_ref().is_none_or(|sink| sink.let_through(self.start + offset, len))
    }

    /// Writes `bytes` at `offset`.
    #[inline]
    pub fn write(&self, offset: usize, bytes: ForeignBytes) {
        match &self.sink {
            #[cfg(not(loom))]
            None if !self.plain => self.region.copy_in_words(offset, bytes),
            None => self.region.copy_in(offset, bytes),
            Some(sink) => {
                self.region.check(offset, bytes.len);
                if sink.let_through(self.start + offset, bytes.len) {
                    return self.region.copy_in(offset, bytes);
                }
                let mut copy = vec![0u8; bytes.len];
                // SAFETY: `bytes` is readable by ForeignBytes' contract; `copy` has the same length and is a separate
                // allocation.
                unsafe { std::ptr::copy_nonoverlapping(bytes.at, copy.as_mut_ptr(), bytes.len) }
                sink.write(self.start + offset, &copy);
            }
        }
    }

    /// Lets `pack` write up to `max` bytes at `offset`: in place, unless a sink needs a copy or the window is not
    /// coherent, so that the widths of stores matter. `pack` returns the number of bytes that it wrote; that number, at
    /// most `max`, is returned.
    #[cfg(not(loom))]
    pub fn fill(&self, offset: usize, max: usize, pack: impl FnOnce(Room) -> usize) -> usize {
        self.region.check(offset, max);
        // SAFETY: the bytes are inside the mapping (checked), which the region keeps while `pack` runs.
        let in_place = || unsafe { Room::new(self.region.base.add(offset), max) };
        match &self.sink {
            None if self.plain => pack(in_place()).min(max),
            Some(sink) if sink.let_through(self.start + offset, max) => pack(in_place()).min(max),
            sink => {
                let mut copy = vec![0u8; max];
                // SAFETY: `copy` has `max` bytes and is used again only after `pack` has returned.
                let n = pack(unsafe { Room::new(copy.as_mut_ptr(), max) }).min(max);
                match sink {
                    Some(sink) => sink.write(self.start + offset, &copy[..n]),
                    None => self.region.copy_in_words(offset, (&copy[..n]).into()),
                }
                n
            }
        }
    }

    /// Writes `bytes` at `offset`, like [`OutWindow::write`], for receivers that look at them while they arrive: without a
    /// sink, an aligned element of 1, 2, 4 or 8 bytes is written by one store if it is all of `bytes`, or if there are at
    /// most 64 bytes, or if the mapping is not coherent.
    #[cfg(not(loom))]
    #[inline]
    pub fn write_elements(&self, offset: usize, bytes: ForeignBytes) {
        match &self.sink {
            None if !self.plain || bytes.len <= 64 => self.region.copy_in_elements(offset, bytes),
            _ => self.write(offset, bytes),
        }
    }

    /// Writes `bytes` at `offset`.
    pub fn write_bytes(&self, offset: usize, bytes: &[u8]) {
        self.write(offset, bytes.into());
    }

    /// Stores one word at `offset`. The store is never torn and becomes visible after all writes before the latest
    /// fence.
    #[inline]
    pub fn store(&self, offset: usize, value: u64) {
        match &self.sink {
            None => self.region.word(offset).store(value, Ordering::Release),
            Some(sink) => {
                self.region.check(offset, 8);
                assert_eq!(offset % 8, 0, "a word lies at a multiple of 8");
                sink.store(self.start + offset, value)
            }
        }
    }

    /// Adds 1 to the word at `offset` atomically, after all writes before it. Only for memory of the own host, which
    /// needs no sink: a bridge carries no atomic additions. Panics if there is a sink.
    #[cfg(not(loom))]
    pub fn add(&self, offset: usize) {
        assert!(self.sink.is_none(), "an addition across a bridge");
        self.region.word(offset).fetch_add(1, Ordering::AcqRel);
    }

    /// Orders writes: all writes before the fence become visible before any write after it. Also drains the
    /// write-combining buffers if the mapping needs it.
    #[inline]
    pub fn fence(&self) {
        match &self.sink {
            None => self.mapping.fence(),
            Some(sink) => sink.fence(),
        }
    }
}
