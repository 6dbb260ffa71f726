//! The sending half of a connection.

use super::datagram::{Datagram, Place};
use crate::error::Malformed;
use ntbring_memory::{ForeignBytes, InWindow, OutWindow};
use ntbring_queue::{lines_for, Tag, LINE, PAD, TAG};
use std::time::{Duration, Instant};

/// Time until the receiver is first asked for an acknowledgement; it doubles with each further request (back-off).
const ASK_AFTER: Duration = Duration::from_millis(2);
/// Upper limit of that time.
const ASK_SELDOM: Duration = Duration::from_secs(4);

/// The sending half: the entries in a connection's lane that the receiver has not acknowledged. They stay in the
/// lane, in memory of this process; the producer gets the space back only when the receiver has consumed them.
pub struct Sender {
    lane: InWindow,
    /// The window from whose first word the producer reads the head.
    credit: OutWindow,
    lines: usize,
    /// Position of the next entry to send.
    next: Place,
    /// Highest position ever sent.
    furthest: Place,
    /// Position up to which the receiver has acknowledged.
    has: Place,
    /// The head as stored for the producer.
    head: u64,
    /// Deadline of the next request for an acknowledgement, and the current interval between requests.
    ask: Option<Instant>,
    ask_interval: Duration,
    /// Number of entries retransmitted.
    pub resent: u64,
}

/// An entry to be sent.
pub struct Outgoing {
    /// Its position in the connection's lane.
    pub place: Place,
    /// Its tag, as a word.
    pub tag: u64,
    /// Number of its bytes; [`Sender::bytes`] returns them.
    pub len: usize,
    /// Lines that it occupies.
    lines: usize,
}

impl Sender {
    /// Creates the sending half of the lane that `lane` covers; its producer reads the head from the first word of
    /// `credit`.
    pub fn new(lane: InWindow, credit: OutWindow) -> Sender {
        let (lines, start) = (lane.len() / LINE, Place::default());
        let (next, furthest, has) = (start, start, start);
        Sender { lane, credit, lines, next, furthest, has, head: 0, ask: None, ask_interval: ASK_AFTER, resent: 0 }
    }

    /// Returns the next entry that was produced but not sent.
    pub fn outgoing(&self) -> Option<Outgoing> {
        let at = (self.next.lines % self.lines as u64) as usize;
        let word = self.lane.load(at * LINE);
        let tag = Tag::parse(word).filter(|_| Tag::carries(word, self.next.entries as u16))?;
        let (len, lines) = match tag.kind {
            PAD => (0, self.lines - at),
            _ => (tag.len as usize, lines_for(tag.len as usize)),
        };
        // A receiver that acknowledges a part of an entry would make this read a tag where there is none.
        if lines > self.lines - at {
            return None;
        }
        Some(Outgoing { place: self.next, tag: word, len, lines })
    }

    /// Returns the bytes of an entry to be sent.
    pub fn bytes(&self, entry: &Outgoing) -> ForeignBytes<'_> {
        let at = (entry.place.lines % self.lines as u64) as usize;
        self.lane.foreign(at * LINE + TAG, entry.len)
    }

    /// Records that `entry` was sent.
    pub fn sent(&mut self, entry: &Outgoing, now: Instant) {
        self.resent += u64::from(entry.place < self.furthest);
        self.next = entry.place.after(entry.lines);
        self.furthest = self.furthest.max(self.next);
        self.ask.get_or_insert(now + self.ask_interval);
    }

    /// Schedules every unacknowledged entry for retransmission.
    fn rewind(&mut self) {
        self.next = self.has;
    }

    /// Retransmits after a change of the route to the receiver, because datagrams under way may be lost.
    pub fn turned(&mut self, now: Instant) {
        self.rewind();
        self.ask_interval = ASK_AFTER;
        self.ask = self.waits().then(|| now + self.ask_interval);
    }

    /// True if an acknowledgement is expected: that everything has arrived, or that enough was consumed for the
    /// producer to have room in any case. (A consumer that has consumed everything does not report the last half
    /// lane.)
    fn waits(&self) -> bool {
        self.has < self.furthest || self.taken() > self.lines as u64 / 2
    }

    /// True if the receiver has acknowledged all that was produced.
    pub fn is_settled(&self) -> bool {
        self.next == self.has && self.outgoing().is_none()
    }

    /// Processes an acknowledgement. Returns true if it changed anything.
    pub fn acknowledge(&mut self, datagram: &Datagram, now: Instant) -> Result<bool, Malformed> {
        let Datagram { has, head, .. } = *datagram;
        if has.lines < self.has.lines {
            // A newer acknowledgement has overtaken this one.
            return Ok(false);
        }
        if has.lines > self.furthest.lines || has.entries > self.furthest.entries {
            return Err(Malformed("acknowledges entries that were never sent"));
        }
        if head > has.lines {
            return Err(Malformed("claims to have consumed entries that it has not acknowledged"));
        }
        let news = has != self.has || head > self.head;
        (self.has, self.next) = (has, self.next.max(has));
        if head > self.head {
            self.head = head;
            self.credit.store(0, head);
        }
        if news {
            self.ask_interval = ASK_AFTER;
            self.ask = self.waits().then(|| now + self.ask_interval);
        }
        if datagram.lacks {
            self.rewind();
        }
        Ok(news || datagram.lacks)
    }

    /// True if the receiver is to be asked for an acknowledgement now.
    pub fn is_to_ask(&self, now: Instant) -> bool {
        self.ask.is_some_and(|ask| now >= ask)
    }

    /// Records that the receiver was asked, and doubles the interval to the next request.
    pub fn has_asked(&mut self, now: Instant) {
        self.ask_interval = (2 * self.ask_interval).min(ASK_SELDOM);
        self.ask = Some(now + self.ask_interval);
    }

    /// Returns the position of the next entry.
    pub fn place(&self) -> Place {
        self.next
    }

    /// Returns the lines that were sent and are not known to be consumed.
    pub fn taken(&self) -> u64 {
        self.furthest.lines - self.head
    }

    /// Returns the number of entries that were sent and are not acknowledged.
    pub fn open(&self) -> u64 {
        self.furthest.entries - self.has.entries
    }
}
