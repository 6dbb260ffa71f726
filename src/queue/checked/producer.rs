//! Retransmission in a checked lane: the entries that its producer keeps, and its timers.

use super::word::{checksum, seal, unseal, Word, CHECK};
use crate::{Damage, Reliability};
use crate::{LINE, TAG};
use ntbring_memory::{InWindow, OutWindow, Region};
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Initial time without consumption after which the tail is announced.
const REMIND_AFTER: Duration = Duration::from_millis(1);
/// Largest such time, reached by doubling: the consumer may be computing.
const REMIND_AFTER_MAX: Duration = Duration::from_millis(64);

/// Number of retransmissions of one entry after which the link is considered broken.
const TRIES: u32 = 1000;

/// Error: an entry was damaged each time that it was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the entry at line {line} {damage} after {tries} transmissions ({resent} retransmissions on this lane)")]
pub struct GaveUp {
    /// Line at which the entry begins.
    pub line: usize,
    /// Damage that was reported last.
    pub damage: Damage,
    /// Number of times that the entry was sent.
    pub tries: u32,
    /// Number of entries of this lane that were retransmitted.
    pub resent: u64,
}

/// An entry that may have to be retransmitted.
struct Kept {
    place: u64,
    lines: usize,
    /// Number of bytes, without the checksum.
    len: usize,
}

/// Additional state of a checked producer.
pub(crate) struct RetransmitBuffer {
    mode: Reliability,
    /// Local copy of the lane as it should be; free lines are undefined.
    copy: InWindow,
    pub copy_out: OutWindow,
    /// Word in the consumer's memory in which the tail is announced.
    tail: OutWindow,
    announced: u32,
    kept: VecDeque<Kept>,
    buffer: Vec<u8>,
    /// The latest complaint that was read.
    complaint: u64,
    /// Number of retransmissions of the oldest entry that is kept.
    tries: u32,
    /// Time at which the tail is announced if nothing is consumed until then.
    due: Option<Instant>,
    remind_after: Duration,
    /// Number of times the tail was announced since an entry was last consumed.
    pub reminders: u32,
    /// Place of the oldest entry that was kept at the latest call of `look_after`.
    oldest: u64,
    /// Number of retransmitted entries.
    pub resent: u64,
}

impl RetransmitBuffer {
    pub fn new(mode: Reliability, lines: usize, tail: OutWindow) -> RetransmitBuffer {
        let region = Region::anonymous(lines * LINE);
        RetransmitBuffer {
            mode,
            copy: InWindow::new(region.clone()),
            copy_out: OutWindow::new(region),
            tail,
            announced: 0,
            kept: VecDeque::new(),
            buffer: Vec::new(),
            complaint: 0,
            tries: 0,
            due: None,
            remind_after: REMIND_AFTER,
            reminders: 0,
            oldest: 0,
            resent: 0,
        }
    }

    /// Sends the entry whose bytes have been written to the copy. The tuple holds its place, lines and bytes. `next`
    /// is the line after the entry; its first word is cleared.
    pub fn send(
        &mut self,
        lane: &OutWindow,
        at: usize,
        (place, lines, len): (u64, usize, usize),
        tag: u64,
        next: usize,
    ) {
        self.copy_out.store(at * LINE, tag);
        let kept = Kept { place, lines, len };
        self.write(lane, at, &kept, Some(next));
        self.kept.push_back(kept);
    }

    fn write(&mut self, lane: &OutWindow, at: usize, kept: &Kept, clear: Option<usize>) {
        let tag = self.copy.load(at * LINE);
        self.buffer.resize(kept.len + CHECK, 0);
        let (bytes, check) = self.buffer.split_at_mut(kept.len);
        self.copy.read(at * LINE + TAG, bytes);
        check.copy_from_slice(&checksum(kept.place, tag, bytes).to_le_bytes());
        lane.write_bytes(at * LINE + TAG, &self.buffer);
        if let Some(next) = clear {
            lane.store(next * LINE, 0);
        }
        lane.fence();
        lane.store(at * LINE, tag);
        lane.fence();
    }

    /// Returns the head from the credit word if it is valid and possible.
    pub fn head(&self, credit: &InWindow, head: u64, tail: u64) -> Option<u64> {
        unseal(Word::Head, credit.load(0), head, tail - head).map(|(head, _)| head)
    }

    /// Drops the entries before `head`, which have been consumed.
    pub fn forget(&mut self, head: u64) {
        while self.kept.front().is_some_and(|kept| kept.place < head) {
            self.kept.pop_front();
        }
    }

    /// Returns true if no entry is kept, so that all have been consumed.
    pub fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }

    /// Answers a complaint, or announces the tail if that is due. Returns true if something was written, so that the
    /// consumer must be woken; fails if an entry was retransmitted too often.
    pub fn look_after(
        &mut self,
        lane: &OutWindow,
        credit: &InWindow,
        (head, tail): (u64, u64),
        now: Instant,
    ) -> Result<bool, GaveUp> {
        let Some(oldest) = self.kept.front().map(|kept| kept.place) else {
            self.due = None;
            return Ok(false);
        };
        if self.due.is_none() || oldest != self.oldest {
            (self.oldest, self.tries, self.remind_after, self.reminders) = (oldest, 0, REMIND_AFTER, 0);
            self.due = Some(now + REMIND_AFTER);
        }
        let complaint = credit.load(8);
        let news = complaint != std::mem::replace(&mut self.complaint, complaint);
        if let Some((place, more)) = unseal(Word::Complaint, complaint, head, tail - head).filter(|_| news) {
            let damage = if more & 1 == 1 { Damage::Missing } else { Damage::Checksum };
            if self.answer(lane, place, tail, damage)? {
                self.announce(tail);
                return Ok(true);
            }
        }
        if self.due.is_some_and(|due| now >= due) {
            self.remind_after = (2 * self.remind_after).min(REMIND_AFTER_MAX);
            self.due = Some(now + self.remind_after);
            self.reminders += 1;
            self.announce(tail);
            return Ok(true);
        }
        Ok(false)
    }

    /// Announces the tail to the consumer.
    fn announce(&mut self, tail: u64) {
        self.announced = (self.announced + 1) & 0xfff;
        self.tail.store(0, seal(Word::Tail, tail, self.announced));
        self.tail.fence();
    }

    /// Retransmits the entry at `place`; returns false if there is none or the mode does not retransmit.
    fn answer(&mut self, lane: &OutWindow, place: u64, tail: u64, damage: Damage) -> Result<bool, GaveUp> {
        let lines = lane.len() / LINE;
        let line = |place: u64| (place % lines as u64) as usize;
        if self.mode != Reliability::Retry {
            return Ok(false);
        }
        let Ok(i) = self.kept.binary_search_by_key(&place, |kept| kept.place) else { return Ok(false) };
        self.tries += 1;
        if self.tries > TRIES {
            return Err(GaveUp { line: line(place), damage, tries: self.tries, resent: self.resent });
        }
        let kept = self.kept.remove(i).expect("it was found there");
        let next = place + kept.lines as u64;
        // The word after the last entry must not look like a tag.
        let clear = (next == tail).then(|| line(next));
        self.write(lane, line(place), &kept, clear);
        self.kept.insert(i, kept);
        self.resent += 1;
        Ok(true)
    }
}
