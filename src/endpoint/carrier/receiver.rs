//! The receiving half of a connection.

use super::parcel::{Parcel, Place};
use super::Odd;
use ntbring_memory::{ForeignBytes, InWindow, OutWindow};
use ntbring_queue::{lines_for, Tag, LINE, PAD, TAG};
use std::time::{Duration, Instant};

/// The longest that the sender is not told what has come, if nothing else goes to it.
const DELAY: Duration = Duration::from_millis(1);

/// A copy of the sender's lane, as far as it has come. Entries are put into it in order and once; a consumer of this process
/// takes them out.
pub struct Receiver {
    lane: OutWindow,
    /// Where the consumer leaves its head.
    credit: InWindow,
    lines: usize,
    has: Place,
    /// What the sender was told: lines that have come, head.
    told: (u64, u64),
    /// When it is to be told at the latest.
    tell: Option<Instant>,
    /// At which entry it was told that this one is lacking.
    complained: Option<u64>,
    lacks: bool,
}

impl Receiver {
    /// Of the lane that `lane` covers, whose consumer leaves its head in the first word of `credit`.
    pub fn new(lane: OutWindow, credit: InWindow) -> Receiver {
        let lines = lane.len() / LINE;
        let (has, told) = (Place::default(), (0, 0));
        Receiver { lane, credit, lines, has, told, tell: None, complained: None, lacks: false }
    }

    /// What has come, and the head.
    pub fn state(&self) -> (Place, u64) {
        (self.has, self.credit.load(0))
    }

    /// Takes a parcel in. True if it brought an entry that is new.
    pub fn take(&mut self, parcel: &Parcel, bytes: ForeignBytes, now: Instant) -> Result<bool, Odd> {
        let place = parcel.place;
        if !parcel.is_ordered() {
            // It may have overtaken entries.
            return Ok(false);
        }
        let soon = if parcel.asks { now } else { now + DELAY };
        self.tell = Some(self.tell.map_or(soon, |tell| tell.min(soon)));
        if place.lines > self.has.lines {
            // What lies between was lost. It is said once; if that is lost, too, the sender will ask.
            if parcel.asks || self.complained != Some(self.has.entries) {
                (self.lacks, self.complained, self.tell) = (true, Some(self.has.entries), Some(now));
            }
            return Ok(false);
        }
        let Some(word) = parcel.tag.filter(|_| place == self.has) else { return Ok(false) };
        self.deposit(word, bytes)?;
        Ok(true)
    }

    /// Puts the next entry into the lane.
    fn deposit(&mut self, word: u64, bytes: ForeignBytes) -> Result<(), Odd> {
        let at = (self.has.lines % self.lines as u64) as usize;
        let rest = self.lines - at;
        let tag = Tag::parse(word).filter(|_| Tag::carries(word, self.has.entries as u16));
        let tag = tag.ok_or(Odd("sent an entry with the number of another"))?;
        let (len, lines) = match tag.kind {
            PAD => (0, rest),
            _ => (tag.len as usize, lines_for(tag.len as usize)),
        };
        if len != bytes.len() || lines > rest {
            return Err(Odd("sent an entry of another length than it says"));
        }
        // One line more: the word after the entry is cleared.
        let taken = self.has.lines - self.credit.load(0) + lines as u64 + 1;
        if taken > self.lines as u64 {
            return Err(Odd("sent more than there is room for"));
        }
        self.lane.store((at + lines) % self.lines * LINE, 0);
        self.lane.write(at * LINE + TAG, bytes);
        self.lane.fence();
        self.lane.store(at * LINE, word);
        self.has = self.has.after(lines);
        Ok(())
    }

    /// Whether the sender is to be told by a parcel of its own how far this has come.
    pub fn is_to_tell(&self, now: Instant) -> bool {
        let (lines, head) = self.told;
        let much = self.lines as u64 / 4;
        let (has, freed) = (self.has.lines - lines, self.credit.load(0) - head);
        self.lacks || has >= much || freed >= much || self.tell.is_some_and(|tell| now >= tell)
    }

    /// Whether something has come of which the sender does not know yet.
    pub fn owes(&self) -> bool {
        self.tell.is_some()
    }

    /// A parcel about `place` in the other direction, which tells the sender how far this has come.
    pub fn telling(&self, place: Place) -> Parcel {
        let (has, head) = self.state();
        Parcel { place, has, head, lacks: self.lacks, ..Parcel::default() }
    }

    /// That parcel is on its way. What counts is what it says: the consumer may have gone on meanwhile.
    pub fn has_told(&mut self, parcel: &Parcel) {
        (self.told, self.tell, self.lacks) = ((parcel.has.lines, parcel.head), None, false);
    }

    /// The way to the sender has changed: what it was told may be lost.
    pub fn repeat(&mut self, now: Instant) {
        if self.has.lines > 0 {
            self.tell = Some(now);
        }
    }
}
