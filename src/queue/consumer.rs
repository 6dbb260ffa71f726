//! The receiving end of a lane.

use super::checked::{Finding, Reliability, Verifier, CHECK};
use super::{entry_max, lines_for, Corrupt, Tag, LINE, LINES_MAX, LINES_MIN, PAD, TAG};
use ntbring_memory::{InWindow, OutWindow};

/// Lines of an entry that are asked for as soon as it is seen. More than a core has under way at
/// once would only delay the first.
const PREFETCH: usize = 17;

/// Lines of the latest entry up to which those of the next one are asked for before it is seen: the producer would lose some
/// of more while it writes them.
const AHEAD: usize = 5;

/// The only consumer of a lane. The lane lies in its own memory.
pub struct Consumer {
    lane: InWindow,
    /// Where entries are read from: the lane, but for checked ones.
    view: InWindow,
    /// Memory of the producer whose first word takes our head.
    credit: OutWindow,
    lines: usize,
    /// The most bytes that an entry may have.
    entry_max: usize,
    /// Bytes of every entry that are not the caller's.
    trailer: usize,
    /// Lines looked at so far; `at` is where the next entry must begin.
    cursor: u64,
    at: usize,
    sequence: u16,
    /// Lines of the latest entry, if few.
    ahead: usize,
    /// Entries that were given out and not released yet.
    held: u32,
    /// Lines that may be overwritten, as far as the producer was told.
    returned: u64,
    /// Lines after which it is told, unless it asks.
    return_after: u64,
    /// It is told as soon as so many lines are free: 0 if it has asked.
    due: u64,
    /// What is needed where links are not trusted.
    verifier: Option<Box<Verifier>>,
}

/// A valid entry. Its bytes stay where they are until [`Consumer::release`] was called as often as
/// entries were taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// As committed.
    pub kind: u8,
    /// As committed.
    pub meta: u16,
    /// Where its bytes begin in the lane.
    pub offset: usize,
    /// How many there are.
    pub len: usize,
}

/// What [`Consumer::take_kind`] has found.
pub enum Taken {
    /// There is no entry.
    Nothing,
    /// An entry of the kind that was asked for.
    Entry(Entry),
    /// Something else, which is left where it is: [`Consumer::take`] tells what.
    Other,
}

impl Consumer {
    /// The consumer of the lane that `lane` covers, which writes its head to the first word of
    /// `credit`. Panics if the size is not allowed.
    pub fn new(lane: InWindow, credit: OutWindow) -> Self {
        let lines = lane.len() / LINE;
        assert!((LINES_MIN..=LINES_MAX).contains(&lines), "a lane of {lines} lines");
        let entry_max = entry_max(lines);
        Consumer {
            view: lane.clone(),
            lane,
            credit,
            lines,
            entry_max,
            trailer: 0,
            cursor: 0,
            at: 0,
            sequence: 0,
            ahead: 0,
            held: 0,
            returned: 0,
            return_after: lines as u64 / 2,
            due: lines as u64 / 2,
            verifier: None,
        }
    }

    /// The same consumer, which does not trust the link. `credit` must have two words, and the producer must be
    /// [checked](super::Producer::checked) as well; it announces its tail in the first word of `tail`.
    pub fn checked(mut self, mode: Reliability, tail: InWindow) -> Self {
        if mode != Reliability::Off {
            let (verifier, view) = Verifier::new(mode, self.lines, tail);
            (self.verifier, self.view) = (Some(Box::new(verifier)), view);
            (self.trailer, self.entry_max) = (CHECK, self.entry_max - CHECK);
            self.return_after = self.lines as u64 / 8;
            self.due = self.return_after;
        }
        self
    }

    /// Entries that were damaged or missing.
    pub fn damaged(&self) -> u64 {
        self.verifier.as_ref().map_or(0, |verifier| verifier.damaged)
    }

    /// The memory to read entries from.
    pub fn window(&self) -> &InWindow {
        &self.view
    }

    /// Lines in the lane.
    pub fn lines(&self) -> usize {
        self.lines
    }

    /// Entries consumed so far, modulo 2^16, fillings included.
    pub fn sequence(&self) -> u16 {
        self.sequence
    }

    /// Entries given out and not released.
    pub fn held(&self) -> u32 {
        self.held
    }

    /// The next entry, if there is one. Entries may be held while later ones are taken; their
    /// space is returned once none is held any more.
    #[inline]
    pub fn take(&mut self) -> Result<Option<Entry>, Corrupt> {
        if self.verifier.is_some() {
            return self.take_verified();
        }
        let word = self.lane.load(self.at * LINE);
        if !Tag::carries(word, self.sequence) {
            return self.nothing(word);
        }
        let Some(tag) = Tag::parse(word).filter(|tag| tag.kind != PAD) else { return self.take_padded(word) };
        self.accept(tag).map(Some)
    }

    /// The next entry, if there is one, it is of this kind, and the caller finds its length and meta as they should be:
    /// [`Consumer::take`] with less to decide.
    #[inline(always)]
    pub fn take_kind(&mut self, kind: u8, fits: impl FnOnce(usize, u16) -> bool) -> Taken {
        if self.verifier.is_some() {
            return Taken::Other;
        }
        let word = self.lane.load(self.at * LINE);
        if !Tag::carries(word, self.sequence) {
            self.look_ahead();
            return match self.nothing(word) {
                Ok(_) => Taken::Nothing,
                Err(_) => Taken::Other,
            };
        }
        match Tag::plain(word, kind).filter(|tag| fits(tag.len as usize, tag.meta)) {
            Some(tag) => self.accept(tag).map_or(Taken::Other, Taken::Entry),
            None => Taken::Other,
        }
    }

    /// Asks for the lines behind the one that is looked at, as many as the latest entry had, and for the next one's: what is
    /// written into them comes together with the tag, not after it.
    #[inline(always)]
    fn look_ahead(&self) {
        for line in 1..=self.ahead {
            self.lane.prefetch((self.at + line) * LINE);
        }
    }

    /// The next entry, if it is there and is one that the caller knows all about by its kind, length and meta: everything
    /// else, what is wrong with it included, is left to [`Consumer::take`].
    #[inline(always)]
    pub fn take_known<K>(&mut self, know: impl FnOnce(u8, usize, u16) -> Option<K>) -> Option<(Entry, K)> {
        let word = self.lane.load(self.at * LINE);
        if self.verifier.is_some() || !Tag::carries(word, self.sequence) {
            return None;
        }
        let tag = Tag::parse(word)?;
        let known = know(tag.kind, tag.len as usize, tag.meta)?;
        Some((self.accept(tag).ok()?, known))
    }

    /// Takes the filling that ends a lap, and what may follow it.
    #[cold]
    fn take_padded(&mut self, word: u64) -> Result<Option<Entry>, Corrupt> {
        // A lap has an entry at least: two fillings in a row would be the beginning of an endless loop.
        if self.at == 0 {
            return Err(Corrupt::NoTag { line: self.at, word });
        }
        self.advance(self.lines - self.at);
        self.take()
    }

    /// Takes the next entry if it is there and whole. What has been taken is told as soon as there is no more.
    fn take_verified(&mut self) -> Result<Option<Entry>, Corrupt> {
        loop {
            let max = self.entry_max.min((self.lines - self.at) * LINE - TAG - self.trailer);
            let Some(verifier) = &mut self.verifier else { return Ok(None) };
            let (place, head) = ((self.at, self.cursor), if self.held == 0 { self.cursor } else { self.returned });
            match verifier.find(&self.lane, &self.credit, place, self.sequence, max, head)? {
                Finding::Entry(tag) if tag.kind == PAD => self.advance(self.lines - self.at),
                Finding::Entry(tag) => return self.accept(tag).map(Some),
                Finding::Nothing => {
                    if self.returned != head {
                        (self.returned, self.due) = (head, head + self.return_after);
                        verifier.return_head(&self.credit, head);
                    }
                    return Ok(None);
                }
            }
        }
    }

    /// Takes the entry whose tag was found.
    #[inline(always)]
    fn accept(&mut self, tag: Tag) -> Result<Entry, Corrupt> {
        let len = tag.len as usize;
        let max = self.entry_max.min((self.lines - self.at) * LINE - TAG - self.trailer);
        if len > max {
            return Err(Corrupt::Length { line: self.at, len, max });
        }
        let entry = Entry { kind: tag.kind, meta: tag.meta, offset: self.at * LINE + TAG, len };
        let lines = lines_for(len + self.trailer);
        self.ahead = if lines <= AHEAD { lines } else { 0 };
        // The rest of the entry comes near while its header is looked at.
        for line in 1..lines.min(PREFETCH) {
            self.lane.prefetch((self.at + line) * LINE);
        }
        self.advance(lines);
        self.held += 1;
        if tag.asks {
            self.due = 0;
        }
        Ok(entry)
    }

    /// Whether an entry is there, as far as its tag tells. One load.
    #[inline(always)]
    pub fn has_next(&self) -> bool {
        Tag::carries(self.lane.load(self.at * LINE), self.sequence)
    }

    /// Whether an entry is there, without taking it.
    #[inline]
    pub fn is_empty(&self) -> bool {
        !self.has_next()
    }

    /// For the diagnosis of a hang: if the next entry is not there but a later one seems to be, how many
    /// lines further on and how many entries later. The tag between them was lost on the way, or some
    /// entry's bytes look like a tag.
    pub fn gap(&self) -> Option<(usize, u16)> {
        if self.has_next() {
            return None;
        }
        let later = |further: usize| {
            let tag = Tag::parse(self.lane.load((self.at + further) % self.lines * LINE))?;
            let ahead = tag.sequence.wrapping_sub(self.sequence);
            // An entry takes a line or more.
            let possible = (1..=further).contains(&usize::from(ahead)) && tag.len as usize <= self.entry_max;
            possible.then_some((further, ahead))
        };
        (1..self.lines).find_map(later)
    }

    /// What it means that a word is not the tag that is expected now.
    #[inline]
    fn nothing(&self, word: u64) -> Result<Option<Entry>, Corrupt> {
        match Tag::parse(word) {
            // The lap before had at most one entry a line.
            Some(tag) if self.sequence.wrapping_sub(tag.sequence) as usize <= self.lines => Ok(None),
            Some(tag) => Err(Corrupt::Sequence { line: self.at, expected: self.sequence, found: tag.sequence }),
            None if word == 0 => Ok(None),
            None => Err(Corrupt::NoTag { line: self.at, word }),
        }
    }

    #[inline]
    fn advance(&mut self, lines: usize) {
        self.cursor += lines as u64;
        self.at = if self.at + lines == self.lines { 0 } else { self.at + lines };
        self.sequence = self.sequence.wrapping_add(1);
    }

    /// Gives the space of one entry back that was taken; which one does not matter. True if the
    /// head was returned to the producer, who may be waiting for it.
    #[inline(always)]
    pub fn release(&mut self) -> bool {
        assert!(self.held > 0, "released more than was taken");
        self.held -= 1;
        let due = self.held == 0 && self.cursor >= self.due;
        if due {
            self.return_head();
        }
        due
    }

    /// Tells the producer what was consumed.
    #[inline(never)]
    fn return_head(&mut self) {
        (self.returned, self.due) = (self.cursor, self.cursor + self.return_after);
        if let Some(verifier) = &mut self.verifier {
            return verifier.return_head(&self.credit, self.cursor);
        }
        self.credit.fence();
        self.credit.store(0, self.cursor);
        self.credit.fence();
    }
}
