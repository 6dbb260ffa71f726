//! What the producer of a checked lane keeps, and when it does something about it.

use super::{checksum, seal, unseal, Damage, Reliability, Word, CHECK};
use crate::{LINE, TAG};
use ntbring_memory::{InWindow, OutWindow, Region};
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// How long nothing may be consumed before the tail is announced, at first...
const PATIENCE: Duration = Duration::from_millis(1);
/// ...and at most: the consumer may be computing.
const PATIENCE_MAX: Duration = Duration::from_millis(64);

/// How often one entry is sent again before something must be wrong with the link.
const TRIES: u32 = 1000;

/// An entry was damaged each time it was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the entry at line {line} {damage}, though it was sent {tries} times; {resent} entries of this lane were sent again in all")]
pub struct GaveUp {
    /// Where.
    pub line: usize,
    /// What was wrong with it the last time.
    pub damage: Damage,
    /// How often it was sent.
    pub tries: u32,
    /// How many entries were.
    pub resent: u64,
}

/// An entry that may have to be sent again.
struct Kept {
    place: u64,
    lines: usize,
    /// Bytes, the checksum not among them.
    len: usize,
}

/// What a checked producer has beside an ordinary one.
pub(crate) struct Keeper {
    mode: Reliability,
    /// The lane as it should be, but for what is free.
    copy: InWindow,
    pub copy_out: OutWindow,
    /// In the consumer's memory, where the tail is announced.
    tail: OutWindow,
    announced: u32,
    kept: VecDeque<Kept>,
    buffer: Vec<u8>,
    /// The latest complaint that was looked at.
    complaint: u64,
    /// Of the oldest entry that is kept.
    tries: u32,
    /// When to announce the tail, if nothing is consumed until then.
    due: Option<Instant>,
    patience: Duration,
    /// How often the tail was announced since anything was consumed.
    pub reminders: u32,
    /// The oldest entry that was kept at the latest look.
    oldest: u64,
    /// Entries sent again.
    pub resent: u64,
}

impl Keeper {
    pub fn new(mode: Reliability, lines: usize, tail: OutWindow) -> Keeper {
        let region = Region::anonymous(lines * LINE);
        Keeper {
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
            patience: PATIENCE,
            reminders: 0,
            oldest: 0,
            resent: 0,
        }
    }

    /// Sends the entry whose bytes have been written to the copy; `place`, its lines and bytes; `next` is the line after
    /// it, which is cleared.
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

    /// The head, if the credit says one that can be.
    pub fn head(&self, credit: &InWindow, head: u64, tail: u64) -> Option<u64> {
        unseal(Word::Head, credit.load(0), head, tail - head).map(|(head, _)| head)
    }

    /// Forgets what has been consumed.
    pub fn forget(&mut self, head: u64) {
        while self.kept.front().is_some_and(|kept| kept.place < head) {
            self.kept.pop_front();
        }
    }

    /// Whether all has been consumed.
    pub fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }

    /// Does what is due: answers a complaint, or announces the tail. True if it has written something, so that the
    /// consumer must be woken.
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
            (self.oldest, self.tries, self.patience, self.reminders) = (oldest, 0, PATIENCE, 0);
            self.due = Some(now + PATIENCE);
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
            self.patience = (2 * self.patience).min(PATIENCE_MAX);
            self.due = Some(now + self.patience);
            self.reminders += 1;
            self.announce(tail);
            return Ok(true);
        }
        Ok(false)
    }

    /// Says how much is out.
    fn announce(&mut self, tail: u64) {
        self.announced = (self.announced + 1) & 0xfff;
        self.tail.store(0, seal(Word::Tail, tail, self.announced));
        self.tail.fence();
    }

    /// Sends the entry at `place` again, if there is one.
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
        // What comes after the last entry must not look like one.
        let clear = (next == tail).then(|| line(next));
        self.write(lane, line(place), &kept, clear);
        self.kept.insert(i, kept);
        self.resent += 1;
        Ok(true)
    }
}
