//! The sending end of a lane.

use super::checked::{GaveUp, Keeper, Reliability, CHECK};
use super::pieces::Laps;
use super::{entry_max, lines_for, Tag, LINE, LINES_MAX, LINES_MIN, PAD, TAG};
#[cfg(not(loom))]
use ntbring_memory::Room;
use ntbring_memory::{ForeignBytes, InWindow, OutWindow};
use std::mem::ManuallyDrop;
use std::time::Instant;

/// The only producer of a lane. It lives on the other side of the link than the lane itself.
pub struct Producer {
    lane: OutWindow,
    /// Own memory, into whose first word the consumer writes its head.
    credit: InWindow,
    pub(super) lines: usize,
    entry_max: usize,
    /// Lines produced so far; `tail % lines` is where the next entry begins.
    pub(super) tail: u64,
    /// The same, kept without a division.
    pub(super) at: usize,
    /// The head as last looked at.
    pub(super) head: u64,
    sequence: u16,
    /// Which lines' first word is not a tag or zero, but some entry's bytes.
    stale: Vec<u64>,
    /// How pieces go round, if not like everything else.
    pub(super) laps: Option<Box<Laps>>,
    /// Bytes of every entry that are not the caller's.
    pub(super) trailer: usize,
    /// What is needed where links are not trusted.
    keeper: Option<Box<Keeper>>,
}

impl Producer {
    /// The producer of the lane that `lane` covers, whose consumer writes its head to the first
    /// word of `credit`. Both must be zero at the start. Panics if the size is not allowed.
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
            laps: None,
            trailer: 0,
            keeper: None,
        }
    }

    /// The same producer, which does not trust the link. `credit` must have two words, and the consumer must be
    /// [checked](super::Consumer::checked) as well, in the same way; `tail` is a word in its memory.
    pub fn checked(mut self, mode: Reliability, tail: OutWindow) -> Self {
        if mode != Reliability::Off {
            self.keeper = Some(Box::new(Keeper::new(mode, self.lines, tail)));
            (self.trailer, self.entry_max) = (CHECK, self.entry_max - CHECK);
        }
        self
    }

    /// Whether the consumer has told that it has taken everything; so it is, too, if it is not to be asked.
    pub fn is_settled(&self) -> bool {
        self.keeper.as_ref().is_none_or(|keeper| keeper.is_empty())
    }

    /// How often the consumer was reminded since it has taken anything.
    pub fn reminders(&self) -> u32 {
        self.keeper.as_ref().map_or(0, |keeper| keeper.reminders)
    }

    /// Entries that were sent again.
    pub fn resent(&self) -> u64 {
        self.keeper.as_ref().map_or(0, |keeper| keeper.resent)
    }

    /// To be called now and then, if the lane is checked and not settled: sends again what was damaged, or reminds the
    /// consumer. True if the consumer should be woken.
    pub fn look_after(&mut self, now: Instant) -> Result<bool, GaveUp> {
        if self.is_settled() {
            return Ok(false);
        }
        self.look();
        match &mut self.keeper {
            Some(keeper) => keeper.look_after(&self.lane, &self.credit, (self.head, self.tail), now),
            None => Ok(false),
        }
    }

    /// The most bytes that an entry may have.
    pub fn entry_max(&self) -> usize {
        self.entry_max
    }

    /// Lines in the lane.
    pub fn lines(&self) -> usize {
        self.lines
    }

    /// Whether anything was ever put into it.
    pub fn is_used(&self) -> bool {
        self.tail > 0
    }

    /// Bytes of the lane that entries have taken so far, all laps together.
    pub fn produced(&self) -> u64 {
        self.tail * LINE as u64
    }

    /// Lines that are taken, by the head as last looked at.
    pub fn taken(&self) -> usize {
        (self.tail - self.head) as usize
    }

    /// Room for an entry of up to `len` bytes, at most [`Producer::entry_max`]; None if the lane
    /// is full for now. Nothing is visible to the consumer before [`Slot::commit`].
    #[inline]
    pub fn reserve(&mut self, len: usize) -> Option<Slot<'_>> {
        assert!(len <= self.entry_max(), "an entry of {len} bytes in a lane for {}", self.entry_max());
        let lines = lines_for(len + self.trailer);
        let rest = self.lines - self.at;
        // One line more than the entry: the word after it must be ours to clear.
        let need = if lines <= rest { lines } else { rest + lines } + 1;
        if self.taken() + need > self.lines && !self.frees(need) {
            return None;
        }
        let at = if lines <= rest { self.at } else { 0 };
        Some(Slot { room: len, at, asks: false, lane: self })
    }

    /// Whether the head that the consumer has returned leaves so many lines free.
    #[inline]
    pub(super) fn frees(&mut self, lines: usize) -> bool {
        self.look();
        self.taken() + lines <= self.lines
    }

    /// Deposits an entry whose bytes are those of `first` and of `then`: [`Producer::reserve`] and [`Slot::commit`] in one, with
    /// little to decide. False if that cannot be, of which they then take care.
    #[cfg(not(loom))]
    #[inline(always)]
    pub fn put(&mut self, kind: u8, meta: u16, first: &[u8], then: ForeignBytes) -> bool {
        let len = first.len() + then.len();
        let lines = lines_for(len);
        let end = self.at + lines;
        if len > self.entry_max || end > self.lines || self.taken() + lines + 1 > self.lines || self.keeper.is_some() {
            return false;
        }
        let next = if end == self.lines { 0 } else { end };
        let clear = self.is_stale(next).then_some(next * LINE);
        let tag = Tag { sequence: self.sequence, kind, len: len as u32, meta, asks: false };
        // What begins an entry is never stale: it was cleared before the entry before it.
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

    /// Looks at the head that the consumer has returned. A head that cannot be is ignored: the
    /// lane then stays full.
    pub(super) fn look(&mut self) {
        if let Some(keeper) = &mut self.keeper {
            if let Some(head) = keeper.head(&self.credit, self.head, self.tail) {
                self.head = head;
                keeper.forget(head);
            }
            return;
        }
        let head = self.credit.load(0);
        if head > self.head && head <= self.tail {
            self.head = head;
        }
    }

    /// Makes the `lines` lines at `at` an entry, after its bytes have been written.
    #[inline]
    fn publish(&mut self, lines: usize, (kind, len, meta): (u8, usize, u16), asks: bool) {
        let next = if self.at + lines == self.lines { 0 } else { self.at + lines };
        let tag = Tag { sequence: self.sequence, kind, len: len as u32, meta, asks };
        if let Some(keeper) = &mut self.keeper {
            keeper.send(&self.lane, self.at, (self.tail, lines, len), tag.word(), next);
        } else {
            if self.is_stale(next) {
                self.lane.store(next * LINE, 0);
                self.set_stale(next, false);
            }
            self.spoil(self.at, 1..lines);
            self.lane.fence();
            self.lane.store(self.at * LINE, tag.word());
            self.lane.fence();
            self.set_stale(self.at, false);
        }
        self.advance(lines, next);
    }

    /// Goes on to the line where the next entry begins.
    #[inline(always)]
    fn advance(&mut self, lines: usize, next: usize) {
        self.sequence = self.sequence.wrapping_add(1);
        self.tail += lines as u64;
        self.at = next;
    }

    /// Remembers that lines, counted from where an entry begins, may hold bytes, or the tag of a lap long ago.
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

/// Room for one entry. Dropping it without a commit leaves the lane as it was.
pub struct Slot<'a> {
    pub(super) lane: &'a mut Producer,
    pub(super) room: usize,
    /// The line where it begins: the next one, or the first of a new lap.
    pub(super) at: usize,
    /// Whether its entry asks for the head.
    pub(super) asks: bool,
}

impl Slot<'_> {
    /// Bytes that can be written.
    pub fn room(&self) -> usize {
        self.room
    }

    /// Where its bytes are written to: at once into the lane, if nothing has to be kept.
    #[inline]
    fn window(&self) -> &OutWindow {
        match &self.lane.keeper {
            None => &self.lane.lane,
            Some(keeper) => &keeper.copy_out,
        }
    }

    fn offset(&self, at: usize, len: usize) -> usize {
        assert!(at <= self.room && len <= self.room - at, "write beyond the reserved room");
        self.at * LINE + TAG + at
    }

    /// Writes bytes at `at`, counted from the entry's first byte.
    #[inline]
    pub fn write(&mut self, at: usize, bytes: ForeignBytes) {
        let offset = self.offset(at, bytes.len());
        self.window().write(offset, bytes);
    }

    /// Writes bytes at `at`.
    #[inline]
    pub fn write_bytes(&mut self, at: usize, bytes: &[u8]) {
        let offset = self.offset(at, bytes.len());
        self.window().write_bytes(offset, bytes);
    }

    /// Lets `pack` write up to `max` bytes at `at`, where they are to lie; returns how many it
    /// wrote.
    #[cfg(not(loom))]
    pub fn fill(&mut self, at: usize, max: usize, pack: impl FnOnce(Room) -> usize) -> usize {
        let offset = self.offset(at, max);
        self.window().fill(offset, max, pack)
    }

    /// Publishes the entry with the `len` bytes that were written.
    #[inline]
    pub fn commit(self, kind: u8, len: usize, meta: u16) {
        assert!(len <= self.room && kind != PAD);
        let mut slot = ManuallyDrop::new(self);
        if slot.at != slot.lane.at {
            // Not before there is an entry behind it: what was consumed is told when an entry is released.
            let rest = slot.lane.lines - slot.lane.at;
            let tail = slot.lane.tail;
            if let Some(laps) = &mut slot.lane.laps {
                laps.filled(tail, rest);
            }
            slot.lane.publish(rest, (PAD, 0, 0), false);
        }
        let trailer = slot.lane.trailer;
        let (lines, reserved) = (lines_for(len + trailer), lines_for(slot.room + trailer));
        if lines < reserved && slot.lane.keeper.is_none() {
            // What is not used may have been written to all the same, so it must arrive before
            // what clears it.
            let at = slot.at;
            slot.lane.spoil(at, lines..reserved);
            slot.lane.lane.fence();
        }
        let asks = slot.asks;
        slot.lane.publish(lines, (kind, len, meta), asks);
    }
}

impl Drop for Slot<'_> {
    fn drop(&mut self) {
        if self.lane.keeper.is_some() {
            return;
        }
        self.lane.spoil(self.at, 1..lines_for(self.room));
        // What was written must not arrive after what the next slot writes to the same place.
        self.lane.lane.fence();
    }
}
