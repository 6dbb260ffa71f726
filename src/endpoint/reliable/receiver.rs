//! The receiving half of a connection.

use super::datagram::{Datagram, Place};
use crate::error::Malformed;
use ntbring_memory::{ForeignBytes, InWindow, OutWindow};
use ntbring_queue::{lines_for, Tag, LINE, PAD, TAG};
use std::time::{Duration, Instant};

/// Longest delay of an acknowledgement when no other datagram goes to the sender.
const DELAY: Duration = Duration::from_millis(1);

/// A copy of the sender's lane, as far as it has arrived. Entries are put into it in order and exactly once; a
/// consumer in this process takes them out.
pub struct Receiver {
    lane: OutWindow,
    /// The window in whose first word the consumer stores its head.
    credit: InWindow,
    lines: usize,
    has: Place,
    /// The last acknowledgement: lines that have arrived, and the head.
    acknowledged: (u64, u64),
    /// Deadline of the next acknowledgement.
    due: Option<Instant>,
    /// Number of the missing entry that was last reported.
    reported: Option<u64>,
    lacks: bool,
}

impl Receiver {
    /// Creates the receiving half of the lane that `lane` covers; its consumer stores its head in the first word of
    /// `credit`.
    pub fn new(lane: OutWindow, credit: InWindow) -> Receiver {
        let lines = lane.len() / LINE;
        let (has, acknowledged) = (Place::default(), (0, 0));
        Receiver { lane, credit, lines, has, acknowledged, due: None, reported: None, lacks: false }
    }

    /// Returns the position up to which entries have arrived, and the consumer's head.
    pub fn state(&self) -> (Place, u64) {
        (self.has, self.credit.load(0))
    }

    /// Processes a datagram. Returns true if it brought a new entry.
    pub fn take(&mut self, datagram: &Datagram, bytes: ForeignBytes, now: Instant) -> Result<bool, Malformed> {
        let place = datagram.place;
        if !datagram.is_ordered() {
            // An acknowledgement may have overtaken entries, so its position says nothing about losses.
            return Ok(false);
        }
        let soon = if datagram.asks { now } else { now + DELAY };
        self.due = Some(self.due.map_or(soon, |due| due.min(soon)));
        if place.lines > self.has.lines {
            // The entries between were lost. That is reported once; if the report is lost, too, the sender will ask.
            if datagram.asks || self.reported != Some(self.has.entries) {
                (self.lacks, self.reported, self.due) = (true, Some(self.has.entries), Some(now));
            }
            return Ok(false);
        }
        let Some(word) = datagram.tag.filter(|_| place == self.has) else { return Ok(false) };
        self.deposit(word, bytes)?;
        Ok(true)
    }

    /// Deposits the next entry in the lane.
    fn deposit(&mut self, word: u64, bytes: ForeignBytes) -> Result<(), Malformed> {
        let at = (self.has.lines % self.lines as u64) as usize;
        let rest = self.lines - at;
        let tag = Tag::parse(word).filter(|_| Tag::carries(word, self.has.entries as u16));
        let tag = tag.ok_or(Malformed("sent an entry whose tag has a wrong sequence number"))?;
        let (len, lines) = match tag.kind {
            PAD => (0, rest),
            _ => (tag.len as usize, lines_for(tag.len as usize)),
        };
        if len != bytes.len() || lines > rest {
            return Err(Malformed("sent an entry whose length differs from its tag"));
        }
        // One line more, because the word after the entry is cleared.
        let taken = self.has.lines - self.credit.load(0) + lines as u64 + 1;
        if taken > self.lines as u64 {
            return Err(Malformed("sent more than its lane holds"));
        }
        self.lane.store((at + lines) % self.lines * LINE, 0);
        self.lane.write(at * LINE + TAG, bytes);
        self.lane.fence();
        self.lane.store(at * LINE, word);
        self.has = self.has.after(lines);
        Ok(())
    }

    /// True if a datagram without an entry must be sent to acknowledge what has arrived.
    pub fn is_to_tell(&self, now: Instant) -> bool {
        let (lines, head) = self.acknowledged;
        let much = self.lines as u64 / 4;
        let (has, freed) = (self.has.lines - lines, self.credit.load(0) - head);
        self.lacks || has >= much || freed >= much || self.due.is_some_and(|due| now >= due)
    }

    /// True if an acknowledgement is pending.
    pub fn owes(&self) -> bool {
        self.due.is_some()
    }

    /// Returns a datagram about `place` in the other direction, with the current acknowledgement.
    pub fn datagram(&self, place: Place) -> Datagram {
        let (has, head) = self.state();
        Datagram { place, has, head, lacks: self.lacks, ..Datagram::default() }
    }

    /// Records that `datagram` was sent. Its own fields count, because the consumer may have advanced since it was
    /// built.
    pub fn has_sent(&mut self, datagram: &Datagram) {
        (self.acknowledged, self.due, self.lacks) = ((datagram.has.lines, datagram.head), None, false);
    }

    /// Repeats the acknowledgement after a change of the route to the sender, because earlier ones may be lost.
    pub fn repeat(&mut self, now: Instant) {
        if self.has.lines > 0 {
            self.due = Some(now);
        }
    }
}
