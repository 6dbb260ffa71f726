//! Windows: checked access to memory that is shared with the other side of a link.
//!
//! Under `--cfg loom` the memory is an array of loom's atomics, so that the queue's code can be
//! model-checked as it stands; otherwise it is a mapping.

use super::bytes::ForeignBytes;
#[cfg(not(loom))]
use super::bytes::{copy, ForeignRoom, Room};
use super::mapping::Mapping;
use super::region::Region;
use std::sync::Arc;

#[cfg(loom)]
use loom::sync::atomic::Ordering;
#[cfg(not(loom))]
use std::sync::atomic::Ordering;

/// Takes the writes of an [`OutWindow`] on their way to the neighbour's memory.
///
/// A decorator implements it; offsets are bytes from the start of the port's whole outgoing
/// window.
pub trait WriteSink: Send + Sync {
    /// Bytes to be written at `offset`, in any order and any pieces until the next fence.
    fn write(&self, offset: usize, bytes: &[u8]);
    /// One aligned 8-byte write that is never torn.
    fn store(&self, offset: usize, value: u64);
    /// All writes before it become visible before any write after it.
    fn fence(&self);
    /// Whether the window may itself write the `len` bytes at `offset` to where they are to lie, as
    /// it does without a sink. For sinks that only need to know of them.
    fn let_through(&self, _offset: usize, _len: usize) -> bool {
        false
    }
}

/// Answers the loads of an [`InWindow`], for decorators to which a word may be on its way.
///
/// Offsets are bytes from the start of the port's whole incoming window.
pub trait ReadGate: Send + Sync {
    /// The word at `offset`, as far as it has arrived.
    fn load(&self, offset: usize) -> u64;
}

/// An incoming window or a part of one: memory of this host that the neighbour writes. (Or of a neighbour whose memory is as good
/// as this host's, and that its own neighbours write.)
#[derive(Clone)]
pub struct InWindow {
    region: Region,
    /// Where this part starts in the port's whole window, bytes: what a gate counts from.
    start: usize,
    gate: Option<Arc<dyn ReadGate>>,
}

impl InWindow {
    /// The window over `region`.
    pub fn new(region: Region) -> Self {
        InWindow { region, start: 0, gate: None }
    }

    /// The same window with all loads going through `gate`, which is handed the plain window.
    /// What is read after a word that was loaded needs no gate.
    pub fn with_gate(self, wrap: impl FnOnce(InWindow) -> Arc<dyn ReadGate>) -> Self {
        assert!(self.start == 0 && self.gate.is_none(), "a gate is put before a whole window, once");
        let region = self.region.clone();
        InWindow { region, start: 0, gate: Some(wrap(self)) }
    }

    /// Size in bytes.
    pub fn len(&self) -> usize {
        self.region.len()
    }

    /// Whether it holds no byte.
    pub fn is_empty(&self) -> bool {
        self.region.is_empty()
    }

    /// The part `[from, from + len)`. Panics if it reaches beyond the end.
    pub fn part(&self, from: usize, len: usize) -> InWindow {
        InWindow { region: self.region.part(from, len), start: self.start + from, gate: self.gate.clone() }
    }

    /// Enters all of its pages into this process's page table ([`Region::populate`]).
    pub fn populate(&self) {
        self.region.populate();
    }

    /// The word at `offset`; reads after it see what was written before the word was stored.
    #[inline(always)]
    pub fn load(&self, offset: usize) -> u64 {
        let word = self.region.word(offset);
        match &self.gate {
            None => word.load(Ordering::Acquire),
            Some(gate) => gate.load(self.start + offset),
        }
    }

    /// Asks for the line at `offset` to be brought near; one beyond the window is ignored.
    #[cfg(not(loom))]
    #[inline]
    pub fn prefetch(&self, offset: usize) {
        #[cfg(target_arch = "x86_64")]
        if offset < self.region.len {
            use std::arch::x86_64::{_mm_prefetch, _MM_HINT_T0};
            // SAFETY: a hint, which never faults; the address is inside the mapping besides.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(self.region.base.add(offset).cast()) }
        }
        #[cfg(not(target_arch = "x86_64"))]
        let _ = offset;
    }

    /// Nothing to bring nearer.
    #[cfg(loom)]
    pub fn prefetch(&self, _offset: usize) {}

    /// Copies out the bytes at `offset`. They may change under the copy if the neighbour breaks
    /// the protocol, so the caller checks what it copied, not what is in the window.
    #[cfg(not(loom))]
    pub fn read(&self, offset: usize, to: &mut [u8]) {
        self.region.check(offset, to.len());
        // SAFETY: the source is inside the mapping (checked); the destination is a slice of ours.
        unsafe { std::ptr::copy_nonoverlapping(self.region.base.add(offset), to.as_mut_ptr(), to.len()) }
    }

    /// Copies out the bytes at `offset`.
    #[cfg(loom)]
    pub fn read(&self, offset: usize, to: &mut [u8]) {
        for (i, piece) in to.chunks_mut(8).enumerate() {
            let word = self.region.word(offset + 8 * i).load(Ordering::Relaxed).to_le_bytes();
            piece.copy_from_slice(&word[..piece.len()]);
        }
    }

    /// The address of `len` bytes at `offset`, for handing to code outside Rust.
    #[cfg(not(loom))]
    #[inline(always)]
    pub fn address(&self, offset: usize, len: usize) -> *mut u8 {
        self.region.check(offset, len);
        self.region.base.wrapping_add(offset)
    }

    /// Copies the bytes at `offset` to the application, as many as there is room for.
    #[cfg(not(loom))]
    #[inline]
    pub fn copy_out(&self, offset: usize, to: ForeignRoom) {
        self.region.check(offset, to.len);
        // SAFETY: the source is inside the mapping (checked); the room is writable by its contract.
        unsafe { copy(self.region.base.add(offset), to.at, to.len) }
    }

    /// The bytes at `offset`, to be copied on from where they lie.
    #[cfg(not(loom))]
    pub fn foreign(&self, offset: usize, len: usize) -> ForeignBytes {
        ForeignBytes { at: self.address(offset, len), len }
    }
}

/// An outgoing window or a part of one: the neighbour's memory, seen through the bridge.
///
/// There is no way to read it: a load would stall for microseconds on hardware. Writes are
/// posted: between two fences they may arrive in any order and in pieces.
#[derive(Clone)]
pub struct OutWindow {
    pub(super) region: Region,
    /// Where this part starts in the port's whole window, bytes: what a sink counts from.
    start: usize,
    sink: Option<Arc<dyn WriteSink>>,
    mapping: Mapping,
    /// Whether writes are ordinary stores to coherent memory: nothing stands between, and publishing needs no instruction.
    plain: bool,
}

impl OutWindow {
    /// The window over `region`, coherent memory that is written to directly.
    pub fn new(region: Region) -> Self {
        OutWindow::mapped(region, Mapping::Coherent)
    }

    /// The window over `region`, which is mapped in that way.
    pub fn mapped(region: Region, mapping: Mapping) -> Self {
        OutWindow { region, start: 0, sink: None, mapping, plain: mapping == Mapping::Coherent }
    }

    /// The kind of its mapping.
    pub fn mapping(&self) -> Mapping {
        self.mapping
    }

    /// The same window with all writes going through `sink`, which is handed the plain window.
    pub fn with_sink(self, wrap: impl FnOnce(OutWindow) -> Arc<dyn WriteSink>) -> Self {
        assert_eq!(self.start, 0, "a sink wraps a whole window, not a part");
        let (region, mapping) = (self.region.clone(), self.mapping);
        OutWindow { region, start: 0, sink: Some(wrap(self)), mapping, plain: false }
    }

    /// Size in bytes.
    pub fn len(&self) -> usize {
        self.region.len()
    }

    /// Whether it holds no byte.
    pub fn is_empty(&self) -> bool {
        self.region.is_empty()
    }

    /// The part `[from, from + len)`. Panics if it reaches beyond the end.
    pub fn part(&self, from: usize, len: usize) -> OutWindow {
        let OutWindow { start, mapping, plain, .. } = *self;
        OutWindow { region: self.region.part(from, len), start: start + from, sink: self.sink.clone(), mapping, plain }
    }

    /// Enters all of its pages into this process's page table ([`Region::populate`]).
    pub fn populate(&self) {
        self.region.populate();
    }

    /// Whether writes are ordinary stores to coherent memory.
    #[cfg(not(loom))]
    #[inline(always)]
    pub(crate) fn is_plain(&self) -> bool {
        self.plain
    }

    /// Whether `len` bytes for `offset` may be written where they are to lie, whatever is around the window.
    #[cfg(not(loom))]
    pub fn lets_through(&self, offset: usize, len: usize) -> bool {
        self.sink.as_ref().is_none_or(|sink| sink.let_through(self.start + offset, len))
    }

    /// Writes `bytes` at `offset`.
    #[inline]
    pub fn write(&self, offset: usize, bytes: ForeignBytes) {
        match &self.sink {
            None => self.region.copy_in(offset, bytes),
            Some(sink) => {
                self.region.check(offset, bytes.len);
                if sink.let_through(self.start + offset, bytes.len) {
                    return self.region.copy_in(offset, bytes);
                }
                let mut copy = vec![0u8; bytes.len];
                // SAFETY: readable by ForeignBytes' contract; the copy has room for all of it.
                unsafe { std::ptr::copy_nonoverlapping(bytes.at, copy.as_mut_ptr(), bytes.len) }
                sink.write(self.start + offset, &copy);
            }
        }
    }

    /// Lets `pack` write up to `max` bytes at `offset` where they are to lie; it returns how many
    /// it wrote, which is returned.
    #[cfg(not(loom))]
    pub fn fill(&self, offset: usize, max: usize, pack: impl FnOnce(Room) -> usize) -> usize {
        self.region.check(offset, max);
        let in_place = || Room { at: self.region.base.wrapping_add(offset), len: max };
        match &self.sink {
            None => pack(in_place()).min(max),
            Some(sink) if sink.let_through(self.start + offset, max) => pack(in_place()).min(max),
            Some(sink) => {
                let mut copy = vec![0u8; max];
                let n = pack(Room { at: copy.as_mut_ptr(), len: max }).min(max);
                sink.write(self.start + offset, &copy[..n]);
                n
            }
        }
    }

    /// Writes `bytes` at `offset`.
    pub fn write_bytes(&self, offset: usize, bytes: &[u8]) {
        self.write(offset, ForeignBytes { at: bytes.as_ptr(), len: bytes.len() });
    }

    /// Stores one word at `offset`, never torn, after everything before the latest fence.
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

    /// The word that a store to `offset` will replace. Only for decorators that model a device:
    /// on hardware nothing can be read here.
    #[cfg(not(loom))]
    pub fn replaced(&self, offset: usize) -> u64 {
        self.region.word(offset).load(Ordering::Relaxed)
    }

    /// Adds 1 to the word at `offset`, after everything before. Only for memory of the own host, which
    /// needs no sink: nothing can be added to across a bridge.
    #[cfg(not(loom))]
    pub fn add(&self, offset: usize) {
        assert!(self.sink.is_none(), "an addition across a bridge");
        self.region.word(offset).fetch_add(1, Ordering::AcqRel);
    }

    /// All writes before it become visible before any write after it; also pushes out what a
    /// write-combining buffer may hold.
    #[inline]
    pub fn fence(&self) {
        match &self.sink {
            None => self.mapping.fence(),
            Some(sink) => sink.fence(),
        }
    }
}
