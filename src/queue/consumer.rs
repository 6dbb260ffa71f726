//! The consumer of a lane.

use super::checked::{Finding, Verifier, CHECK};
use super::reliability::Reliability;
use super::{entry_max, lines_for, Corrupt, Tag, LINE, LINES_MAX, LINES_MIN, PAD, TAG};
use ntbring_memory::{InWindow, OutWindow};

/// Number of an entry's lines that are prefetched as soon as its tag is seen. More than a core can have in flight
/// would only delay the first ones.
const PREFETCH: usize = 17;

/// Largest number of lines of the latest entry for which the lines of the next entry are prefetched before its tag is
/// seen. With more, the prefetch would take some lines away from the producer while it writes them.
const AHEAD: usize = 5;

/// The only consumer of a lane. The lane is in the consumer's memory.
pub struct Consumer {
    lane: InWindow,
    /// Memory from which entries are read: the lane, or the verified copy if the lane is checked.
    view: InWindow,
    /// Memory of the producer. The consumer writes its head into the first word.
    credit: OutWindow,
    lines: usize,
    /// Largest number of bytes in an entry.
    entry_max: usize,
    /// Bytes at the end of every entry that do not belong to the caller (the checksum).
    trailer: usize,
    /// Number of lines consumed so far; the next entry must begin at line `at`.
    cursor: u64,
    at: usize,
    sequence: u16,
    /// Number of lines of the latest entry; 0 if it has more than [`AHEAD`].
    ahead: usize,
    /// Number of entries taken and not yet released.
    held: u32,
    /// Head that was last returned to the producer.
    returned: u64,
    /// Number of lines after which the head is returned without a request.
    return_after: u64,
    /// Cursor from which on the head is returned at the next release; 0 if an entry has requested it.
    due: u64,
    /// State for error detection on links that are not trusted.
    verifier: Option<Box<Verifier>>,
}

/// A valid entry. Its bytes stay in place until [`Consumer::release`] has been called once for each entry taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Kind with which the entry was committed.
    pub kind: u8,
    /// Additional value with which the entry was committed.
    pub meta: u16,
    /// Byte offset of the entry's bytes in [`Consumer::window`].
    pub offset: usize,
    /// Number of bytes.
    pub len: usize,
}

/// Result of [`Consumer::take_kind`].
pub enum Taken {
    /// There is no entry.
    Nothing,
    /// An entry of the requested kind.
    Entry(Entry),
    /// Another entry or an error. It is left in place for [`Consumer::take`].
    Other,
}

/// The first bytes of an entry that was not taken yet.
pub struct Beginning<'a> {
    lane: &'a InWindow,
    offset: usize,
}

impl Beginning<'_> {
    /// Returns the first eight bytes as a word; those behind the entry's end have no meaning.
    #[inline]
    pub fn word(&self) -> u64 {
        self.lane.load(self.offset)
    }
}

impl Consumer {
    /// Returns the consumer of the lane that `lane` covers. It writes its head into the first word of `credit`.
    /// Panics if the size of the lane is not allowed.
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

    /// Returns this consumer with error detection for untrusted links. `credit` must have two words, and the producer
    /// must be [checked](super::Producer::checked) in the same mode; it announces its tail in the first word of
    /// `tail`.
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

    /// Number of entries that were damaged or missing.
    pub fn damaged(&self) -> u64 {
        self.verifier.as_ref().map_or(0, |verifier| verifier.damaged)
    }

    /// Memory from which entries are read.
    pub fn window(&self) -> &InWindow {
        &self.view
    }

    /// Number of lines in the lane.
    pub fn lines(&self) -> usize {
        self.lines
    }

    /// Bytes of the lane that the entries taken so far occupy, over all laps; the counterpart of
    /// [`Producer::produced`](super::Producer::produced).
    pub fn consumed(&self) -> u64 {
        self.cursor * LINE as u64
    }

    /// Number of entries consumed so far, modulo 2^16, including padding.
    pub fn sequence(&self) -> u16 {
        self.sequence
    }

    /// Number of entries taken and not yet released.
    pub fn held(&self) -> u32 {
        self.held
    }

    /// Takes the next entry; returns None if there is none. Entries may be held while later ones are taken; their
    /// space is returned once no entry is held any more.
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

    /// Takes the next entry if it has this kind and `fits` accepts its length and meta: a fast path for
    /// [`Consumer::take`].
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

    /// Prefetches the lines behind the current one: as many as the latest entry had, and the first line of the next
    /// entry. Bytes written to them then arrive together with the tag, not after it.
    #[inline(always)]
    fn look_ahead(&self) {
        for line in 1..=self.ahead {
            self.lane.prefetch((self.at + line) * LINE);
        }
    }

    /// Takes the next entry if `know` recognises its kind, length, meta and beginning, and returns it with the value
    /// that `know` returned. All other cases, errors included, are left to [`Consumer::take`].
    #[inline(always)]
    pub fn take_known<K>(
        &mut self,
        know: impl FnOnce(u8, usize, u16, Beginning<'_>) -> Option<K>,
    ) -> Option<(Entry, K)> {
        let word = self.lane.load(self.at * LINE);
        if self.verifier.is_some() || !Tag::carries(word, self.sequence) {
            return None;
        }
        let tag = Tag::parse(word)?;
        let beginning = Beginning { lane: &self.lane, offset: self.at * LINE + TAG };
        let known = know(tag.kind, tag.len as usize, tag.meta, beginning)?;
        Some((self.accept(tag).ok()?, known))
    }

    /// Skips the padding that ends a lap, and takes the entry that follows it, if there is one.
    #[cold]
    fn take_padded(&mut self, word: u64) -> Result<Option<Entry>, Corrupt> {
        // A lap has at least one entry. Without this check, consecutive padding entries could keep the loop running
        // for ever.
        if self.at == 0 {
            return Err(Corrupt::NoTag { line: self.at, word });
        }
        self.advance(self.lines - self.at);
        self.take()
    }

    /// Takes the next entry if it is there and passes its checksum. Returns the head to the producer as soon as the
    /// lane is empty.
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

    /// Takes the entry with the tag that was found at the current line.
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
        // Prefetches the rest of the entry while the caller reads its header.
        for line in 1..lines.min(PREFETCH) {
            self.lane.prefetch((self.at + line) * LINE);
        }
        self.advance(lines);
        self.held += 1;
        Ok(entry)
    }

    /// Returns true if the tag of the next entry is there. Costs one load.
    #[inline(always)]
    pub fn has_next(&self) -> bool {
        Tag::carries(self.lane.load(self.at * LINE), self.sequence)
    }

    /// Returns true if there is no next entry. Nothing is taken.
    #[inline]
    pub fn is_empty(&self) -> bool {
        !self.has_next()
    }

    /// Diagnoses a hang: if the next entry is missing but a later one seems to be there, returns the distance to it
    /// in lines and in entries. Either the tag in between was lost on the link, or some entry's bytes look like a
    /// tag.
    pub fn gap(&self) -> Option<(usize, u16)> {
        if self.has_next() {
            return None;
        }
        let later = |further: usize| {
            let tag = Tag::parse(self.lane.load((self.at + further) % self.lines * LINE))?;
            let ahead = tag.sequence.wrapping_sub(self.sequence);
            // An entry takes at least one line.
            let possible = (1..=further).contains(&usize::from(ahead)) && tag.len as usize <= self.entry_max;
            possible.then_some((further, ahead))
        };
        (1..self.lines).find_map(later)
    }

    /// Classifies a word that is not the expected tag: no entry yet, or a protocol violation.
    #[inline]
    fn nothing(&self, word: u64) -> Result<Option<Entry>, Corrupt> {
        match Tag::parse(word) {
            // The previous lap had at most one entry per line.
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

    /// Releases one of the entries taken; it does not matter which one. Returns true if the head was returned to the
    /// producer, which may be waiting for it. Panics if no entry is held.
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

    /// Writes the head to the producer's memory.
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
