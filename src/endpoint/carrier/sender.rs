//! The sending half of a connection.

use super::parcel::{Parcel, Place};
use super::Odd;
use ntbring_memory::{ForeignBytes, InWindow, OutWindow};
use ntbring_queue::{lines_for, Tag, LINE, PAD, TAG};
use std::time::{Duration, Instant};

/// Until the receiver is asked for the first time how far it has come; after that it is twice as long each time.
const ASK_AFTER: Duration = Duration::from_millis(2);
/// The longest that this becomes.
const ASK_SELDOM: Duration = Duration::from_secs(4);

/// What was put into the lane of a connection and is not known to be at the receiver. It stays in the lane, in memory of
/// this process: space is given back to the producer only when the receiver has consumed it.
pub struct Sender {
    lane: InWindow,
    /// Where the producer looks for the head.
    credit: OutWindow,
    lines: usize,
    /// What comes next.
    next: Place,
    /// The furthest that was ever sent.
    furthest: Place,
    /// What the receiver has.
    has: Place,
    /// The head as told to the producer.
    head: u64,
    /// When the receiver is to be asked, and how long it is until then.
    ask: Option<Instant>,
    patience: Duration,
    /// Entries sent again.
    pub resent: u64,
}

/// An entry to be sent.
pub struct Outgoing {
    /// Where in the connection's lane it is.
    pub place: Place,
    /// Its tag, as a word.
    pub tag: u64,
    /// Its bytes.
    pub bytes: ForeignBytes,
    /// Lines that it takes.
    lines: usize,
}

impl Sender {
    /// Of the lane that `lane` covers, whose producer reads the head from the first word of `credit`.
    pub fn new(lane: InWindow, credit: OutWindow) -> Sender {
        let (lines, start) = (lane.len() / LINE, Place::default());
        let (next, furthest, has) = (start, start, start);
        Sender { lane, credit, lines, next, furthest, has, head: 0, ask: None, patience: ASK_AFTER, resent: 0 }
    }

    /// The next entry that was produced and not sent.
    pub fn outgoing(&self) -> Option<Outgoing> {
        let at = (self.next.lines % self.lines as u64) as usize;
        let word = self.lane.load(at * LINE);
        let tag = Tag::parse(word).filter(|_| Tag::carries(word, self.next.entries as u16))?;
        let (len, lines) = match tag.kind {
            PAD => (0, self.lines - at),
            _ => (tag.len as usize, lines_for(tag.len as usize)),
        };
        // A receiver that claims to have a part of an entry has this read what is no tag for one.
        if lines > self.lines - at {
            return None;
        }
        let bytes = self.lane.foreign(at * LINE + TAG, len);
        Some(Outgoing { place: self.next, tag: word, bytes, lines })
    }

    /// It is on its way.
    pub fn sent(&mut self, entry: &Outgoing, now: Instant) {
        self.resent += u64::from(entry.place < self.furthest);
        self.next = entry.place.after(entry.lines);
        self.furthest = self.furthest.max(self.next);
        self.ask.get_or_insert(now + self.patience);
    }

    /// Everything that is not known to be at the receiver is sent once more.
    fn rewind(&mut self) {
        self.next = self.has;
    }

    /// The way to the receiver has changed: what was under way may be lost.
    pub fn turned(&mut self, now: Instant) {
        self.rewind();
        self.patience = ASK_AFTER;
        self.ask = self.waits().then(|| now + self.patience);
    }

    /// Whether anything is to be heard from the receiver: that it has everything, or that it has consumed so much that the
    /// producer has room in any case. A consumer that has consumed all does not tell the last half of a lane.
    fn waits(&self) -> bool {
        self.has < self.furthest || self.taken() > self.lines as u64 / 2
    }

    /// Whether all that was produced is at the receiver.
    pub fn is_settled(&self) -> bool {
        self.next == self.has && self.outgoing().is_none()
    }

    /// Takes note of what the receiver says. True if anything has changed.
    pub fn told(&mut self, parcel: &Parcel, now: Instant) -> Result<bool, Odd> {
        let Parcel { has, head, .. } = *parcel;
        if has.lines < self.has.lines {
            // It was overtaken by another.
            return Ok(false);
        }
        if has.lines > self.furthest.lines || has.entries > self.furthest.entries {
            return Err(Odd("claims to have what was never sent"));
        }
        if head > has.lines {
            return Err(Odd("claims to have consumed what it does not have"));
        }
        let news = has != self.has || head > self.head;
        (self.has, self.next) = (has, self.next.max(has));
        if head > self.head {
            self.head = head;
            self.credit.store(0, head);
        }
        if news {
            self.patience = ASK_AFTER;
            self.ask = self.waits().then(|| now + self.patience);
        }
        if parcel.lacks {
            self.rewind();
        }
        Ok(news || parcel.lacks)
    }

    /// Whether the receiver is to be asked now how far it has come.
    pub fn is_to_ask(&self, now: Instant) -> bool {
        self.ask.is_some_and(|ask| now >= ask)
    }

    /// It was asked; the next time will be later.
    pub fn has_asked(&mut self, now: Instant) {
        self.patience = (2 * self.patience).min(ASK_SELDOM);
        self.ask = Some(now + self.patience);
    }

    /// Where the next entry will be.
    pub fn place(&self) -> Place {
        self.next
    }

    /// Lines that were sent and are not known to be consumed.
    pub fn taken(&self) -> u64 {
        self.furthest.lines - self.head
    }

    /// Entries that are not known to be at the receiver, as far as they were sent.
    pub fn open(&self) -> u64 {
        self.furthest.entries - self.has.entries
    }
}
