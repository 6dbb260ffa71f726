//! The producer of a lane.

use super::checked::{GaveUp, RetransmitBuffer, CHECK};
use super::copies::Copies;
use super::reliability::Reliability;
use super::{entry_max, lines_for, Tag, LINE, LINES_MAX, LINES_MIN, PAD, TAG};
#[cfg(not(loom))]
use ntbring_memory::Room;
use ntbring_memory::{CopyTicket, ForeignBytes, InWindow, OutWindow};
use std::mem::ManuallyDrop;
use std::time::Instant;

/// The only producer of a lane, whose memory is on the other side of the link.
pub struct Producer {
    pub(super) lane: OutWindow,
    /// Local memory. The consumer writes its head into the first word.
    credit: InWindow,
    pub(super) lines: usize,
    entry_max: usize,
    /// Number of lines produced so far. The next entry begins at line `tail % lines`.
    pub(super) tail: u64,
    /// `tail % lines`, maintained without a division.
    pub(super) at: usize,
    /// Cached copy of the consumer's head.
    pub(super) head: u64,
    sequence: u16,
    /// Line up to which [`Producer::put`] may produce entries: the end of the lane, or 0 if it may not at all.
    pub(super) plain_end: u16,
    /// Bytes at the end of every entry that do not belong to the caller (the checksum).
    trailer: u16,
    /// Bitmap of the lines whose first word is neither a tag nor zero, but bytes of an entry.
    stale: Vec<u64>,
    /// State for retransmission and error detection on links that are not trusted.
    retransmit: Option<Box<RetransmitBuffer>>,
    /// State of copies by an engine; None if the processor makes all copies.
    pub(super) copies: Option<Box<Copies>>,
}

impl Producer {
    /// Returns the producer of the lane that `lane` covers. The consumer writes its head into the first word of
    /// `credit`. Both must be zero at the start. Panics if the size of the lane is not allowed.
    pub fn new(lane: OutWindow, credit: InWindow) -> Self {
        let lines = lane.len() / LINE;
        assert!((LINES_MIN..=LINES_MAX).contains(&lines), "a lane of {lines} lines");
        let stale = vec![0; lines.div_ceil(64)];
        Producer {
            lane,
            credit,
            lines,
            entry_max: entry_max(lines),
            tail: 0,
            at: 0,
            head: 0,
            sequence: 0,
            stale,
            trailer: 0,
            retransmit: None,
            copies: None,
            plain_end: lines as u16,
        }
    }

    /// Returns this producer with error detection for untrusted links. `credit` must have two words, and the consumer
    /// must be [checked](super::Consumer::checked) in the same mode. `tail` is a word in the consumer's memory.
    pub fn checked(mut self, mode: Reliability, tail: OutWindow) -> Self {
        if mode != Reliability::Off {
            self.retransmit = Some(Box::new(RetransmitBuffer::new(mode, self.lines, tail)));
            (self.trailer, self.entry_max) = (CHECK as u16, self.entry_max - CHECK);
            self.plain_end = 0;
        }
        self
    }

    /// Bytes at the end of every entry that do not belong to the caller.
    #[inline(always)]
    pub(super) fn trailer(&self) -> usize {
        usize::from(self.trailer)
    }

    /// Returns true if the lane is checked.
    pub(super) fn is_checked(&self) -> bool {
        self.retransmit.is_some()
    }

    /// Returns true if the consumer has acknowledged all entries, and always true if the lane is not checked.
    pub fn is_settled(&self) -> bool {
        self.retransmit.as_ref().is_none_or(|retransmit| retransmit.is_empty())
    }

    /// Number of reminders sent to the consumer since it last consumed an entry.
    pub fn reminders(&self) -> u32 {
        self.retransmit.as_ref().map_or(0, |retransmit| retransmit.reminders)
    }

    /// Number of retransmitted entries.
    pub fn resent(&self) -> u64 {
        self.retransmit.as_ref().map_or(0, |retransmit| retransmit.resent)
    }

    /// Retransmits a damaged entry or reminds the consumer. The caller calls this periodically while the lane is
    /// checked and not settled. Returns true if the consumer should be woken; fails if an entry was retransmitted too
    /// often.
    pub fn look_after(&mut self, now: Instant) -> Result<bool, GaveUp> {
        if self.is_settled() {
            return Ok(false);
        }
        self.look();
        match &mut self.retransmit {
            Some(retransmit) => retransmit.look_after(&self.lane, &self.credit, (self.head, self.tail), now),
            None => Ok(false),
        }
    }

    /// Largest number of bytes in an entry.
    pub fn entry_max(&self) -> usize {
        self.entry_max
    }

    /// Number of lines in the lane.
    pub fn lines(&self) -> usize {
        self.lines
    }

    /// Bytes of the lane that entries have taken so far, over all laps.
    pub fn produced(&self) -> u64 {
        self.tail * LINE as u64
    }

    /// Number of lines in use, according to the cached head.
    pub fn taken(&self) -> usize {
        (self.tail - self.head) as usize
    }

    /// Reserves space for an entry of up to `len` bytes; returns None if the lane is full. Nothing is visible to the
    /// consumer before [`Slot::commit`]. Panics if `len` exceeds [`Producer::entry_max`].
    #[inline]
    pub fn reserve(&mut self, len: usize) -> Option<Slot<'_>> {
        assert!(len <= self.entry_max(), "an entry of {len} bytes in a lane for {}", self.entry_max());
        let lines = lines_for(len + self.trailer());
        let rest = self.lines - self.at;
        // One more line than the entry takes, because the producer clears the word after it.
        let need = if lines <= rest { lines } else { rest + lines } + 1;
        if self.taken() + need > self.lines && !self.frees(need) {
            return None;
        }
        let at = if lines <= rest { self.at } else { 0 };
        Some(Slot { room: len, at, lane: self })
    }

    /// Returns true if entries that take `lines` lines in all, and `largest` lines at most each, can be produced now;
    /// always false if the lane is checked.
    #[inline]
    pub fn has_room(&mut self, lines: usize, largest: usize) -> bool {
        // Padding before a wrap, and the line after the last entry, take no more lines than the largest entry.
        let need = lines + largest;
        self.trailer == 0 && (self.taken() + need <= self.lines || self.frees(need))
    }

    /// Returns true if the known head is so old that the consumer is likely to have entries to take. A consumer that
    /// keeps up may be reported as behind until it returns the head for the half lane that it has just taken.
    #[inline]
    pub fn is_behind(&mut self) -> bool {
        let half = self.lines / 2;
        self.taken() > half && !self.frees(half)
    }

    /// Refreshes the cached head; returns true if `lines` lines are then free.
    #[inline]
    pub(super) fn frees(&mut self, lines: usize) -> bool {
        self.look();
        self.taken() + lines <= self.lines
    }

    /// Produces an entry that consists of `first` followed by `then`: a fast path for [`Producer::reserve`] and
    /// [`Slot::commit`]. Returns false if the entry does not qualify; the caller then uses those two.
    #[cfg(not(loom))]
    #[inline(always)]
    pub fn put(&mut self, kind: u8, meta: u16, first: &[u8], then: ForeignBytes) -> bool {
        let len = first.len() + then.len();
        let lines = lines_for(len);
        let end = self.at + lines;
        if len > self.entry_max || end > usize::from(self.plain_end) || self.taken() + lines + 1 > self.lines {
            return false;
        }
        let next = if end == self.lines { 0 } else { end };
        let clear = self.is_stale(next).then_some(next * LINE);
        let tag = Tag { sequence: self.sequence, kind, len: len as u32, meta };
        // The first word of an entry is never stale: it was cleared before the previous entry was published.
        if !self.lane.deposit(clear, self.at * LINE, tag.word(), first, then) {
            return false;
        }
        if clear.is_some() {
            self.set_stale(next, false);
        }
        if lines > 1 {
            self.spoil(self.at, 1..lines);
        }
        self.advance(lines, next);
        true
    }

    /// Refreshes the cached head from the word that the consumer writes. An impossible value is ignored, so that the
    /// lane stays full.
    pub(super) fn look(&mut self) {
        if let Some(retransmit) = &mut self.retransmit {
            if let Some(head) = retransmit.head(&self.credit, self.head, self.tail) {
                self.head = head;
                retransmit.forget(head);
            }
            return;
        }
        let head = self.credit.load(0);
        let published = self.copies.as_ref().and_then(|copies| copies.published()).unwrap_or(self.tail);
        if head > self.head && head <= published {
            self.head = head;
        }
    }

    /// Publishes the `lines` lines at `at` as an entry, after its bytes have been written, or when `copy` is complete.
    #[inline]
    fn publish(&mut self, lines: usize, (kind, len, meta): (u8, usize, u16), copy: Option<CopyTicket>) {
        let next = if self.at + lines == self.lines { 0 } else { self.at + lines };
        let tag = Tag { sequence: self.sequence, kind, len: len as u32, meta };
        if let Some(retransmit) = &mut self.retransmit {
            retransmit.send(&self.lane, self.at, (self.tail, lines, len), tag.word(), next);
        } else {
            if self.is_stale(next) {
                self.lane.store(next * LINE, 0);
                self.set_stale(next, false);
            }
            self.spoil(self.at, 1..lines);
            match &mut self.copies {
                Some(copies) if copies.must_wait(copy) => {
                    copies.wait(self.tail, self.at, tag.word(), copy);
                    self.plain_end = 0;
                }
                _ => {
                    self.lane.fence();
                    self.lane.store(self.at * LINE, tag.word());
                    self.lane.fence();
                }
            }
            self.set_stale(self.at, false);
        }
        self.advance(lines, next);
    }

    /// Advances the tail past an entry of `lines` lines, to line `next`.
    #[inline(always)]
    fn advance(&mut self, lines: usize, next: usize) {
        self.sequence = self.sequence.wrapping_add(1);
        self.tail += lines as u64;
        self.at = next;
    }

    /// Marks lines, counted from the start of the next entry, as stale: they may hold bytes, or the tag of an old
    /// lap.
    #[inline]
    fn spoil(&mut self, at: usize, lines: std::ops::Range<usize>) {
        let (mut line, end) = (at + lines.start, at + lines.end);
        while line < end {
            let until = end.min((line / 64 + 1) * 64);
            self.stale[line / 64] |= u64::MAX >> (64 - (until - line)) << (line % 64);
            line = until;
        }
    }

    #[inline]
    fn is_stale(&self, line: usize) -> bool {
        self.stale[line / 64] >> (line % 64) & 1 != 0
    }

    #[inline]
    fn set_stale(&mut self, line: usize, stale: bool) {
        let bit = 1 << (line % 64);
        match stale {
            true => self.stale[line / 64] |= bit,
            false => self.stale[line / 64] &= !bit,
        }
    }
}

/// Reserved space for one entry. Dropping it without a commit leaves the lane unchanged.
pub struct Slot<'a> {
    pub(super) lane: &'a mut Producer,
    pub(super) room: usize,
    /// Line at which the entry begins: the next line, or line 0 of a new lap.
    pub(super) at: usize,
}

impl Slot<'_> {
    /// Number of bytes that can be written.
    pub fn room(&self) -> usize {
        self.room
    }

    /// Window to which the bytes are written: the lane itself, or the local copy of a checked lane.
    #[inline]
    fn window(&self) -> &OutWindow {
        match &self.lane.retransmit {
            None => &self.lane.lane,
            Some(retransmit) => &retransmit.copy_out,
        }
    }

    pub(super) fn offset(&self, at: usize, len: usize) -> usize {
        assert!(at <= self.room && len <= self.room - at, "write beyond the reserved room");
        self.at * LINE + TAG + at
    }

    /// Writes `bytes` at byte offset `at` of the entry.
    #[inline]
    pub fn write(&mut self, at: usize, bytes: ForeignBytes) {
        let offset = self.offset(at, bytes.len());
        self.window().write(offset, bytes);
    }

    /// Writes `bytes` at byte offset `at` of the entry.
    #[inline]
    pub fn write_bytes(&mut self, at: usize, bytes: &[u8]) {
        let offset = self.offset(at, bytes.len());
        self.window().write_bytes(offset, bytes);
    }

    /// Lets `pack` write up to `max` bytes in place, at byte offset `at` of the entry. Returns the number of bytes
    /// written.
    #[cfg(not(loom))]
    pub fn fill(&mut self, at: usize, max: usize, pack: impl FnOnce(Room) -> usize) -> usize {
        let offset = self.offset(at, max);
        self.window().fill(offset, max, pack)
    }

    /// Publishes the entry with its first `len` bytes. Panics if `len` exceeds the room, or if `kind` is `PAD`.
    #[inline]
    pub fn commit(self, kind: u8, len: usize, meta: u16) {
        assert!(len <= self.room && kind != PAD);
        self.finish(kind, len, meta, None);
    }

    /// Publishes the entry, when `copy` is complete if there is one.
    #[inline]
    pub(super) fn finish(self, kind: u8, len: usize, meta: u16, copy: Option<CopyTicket>) {
        let mut slot = ManuallyDrop::new(self);
        if slot.at != slot.lane.at {
            // The padding is published only when an entry follows it, because the consumer returns the head when it
            // releases an entry.
            let rest = slot.lane.lines - slot.lane.at;
            slot.lane.publish(rest, (PAD, 0, 0), None);
        }
        let trailer = slot.lane.trailer();
        let (lines, reserved) = (lines_for(len + trailer), lines_for(slot.room + trailer));
        if lines < reserved && slot.lane.retransmit.is_none() {
            // Unused lines of the reservation may have been written to. Those writes must arrive before the one that
            // clears them.
            let at = slot.at;
            slot.lane.spoil(at, lines..reserved);
            slot.lane.lane.fence();
        }
        slot.lane.publish(lines, (kind, len, meta), copy);
    }
}

impl Drop for Slot<'_> {
    fn drop(&mut self) {
        if self.lane.retransmit.is_some() {
            return;
        }
        self.lane.spoil(self.at, 1..lines_for(self.room));
        // Writes to this slot must not arrive after those of the next slot to the same lines.
        self.lane.lane.fence();
    }
}
