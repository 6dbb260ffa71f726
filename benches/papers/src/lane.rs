//! The queue between two ends: ntbring's lane, a ring buffer of 64-byte lines whose entries are valid by their tag and
//! whose head the consumer returns once in half a lane. With explicit control writes it also does the following, as
//! queues without these two mechanisms do:
//!
//! - the sender stores the number of entries behind every entry (the *announced tail*), and the receiver takes no entry
//!   before;
//! - the receiver stores its head after every entry (the *eager head*).
//!
//! The tag is written in all cases, since it holds the length of the entry.
//!
//! ```text
//! window   | credit, 64 bytes | tail, 64 bytes | lane | memory for placed payloads |
//! ```

use crate::Error;
use ntbring_memory::{ForeignBytes, InWindow, OutWindow, Region};
use ntbring_queue::{lines_for, Consumer, Entry, Producer, LINE, TAG};

/// Offset of the lane in a window, bytes: behind the head of the opposite lane and the tail of this one.
pub const CONTROL: usize = 2 * LINE;
/// Offset of the tail, bytes.
const TAIL: usize = LINE;

/// The sending end.
pub struct Sender {
    lane: Producer,
    /// The window for the tail, if tails are announced.
    tail: Option<OutWindow>,
    entries: u64,
}

impl Sender {
    /// Creates the sending end of the lane of `lane` bytes in the peer's window, whose head is returned to this end's
    /// window.
    pub fn new(peer: &OutWindow, own: &InWindow, lane: usize, explicit: bool) -> Sender {
        let tail = explicit.then(|| peer.part(TAIL, 8));
        Sender { lane: Producer::new(peer.part(CONTROL, lane), own.part(0, 8)), tail, entries: 0 }
    }

    /// Returns the largest number of bytes of an entry.
    pub fn entry_max(&self) -> usize {
        self.lane.entry_max()
    }

    /// Sends an entry. Returns false if there is no room for it now.
    #[inline]
    pub fn put(&mut self, kind: u8, bytes: &[u8]) -> bool {
        if !self.lane.put(kind, 0, bytes, ForeignBytes::EMPTY) {
            let Some(mut slot) = self.lane.reserve(bytes.len()) else { return false };
            slot.write_bytes(0, bytes);
            slot.commit(kind, bytes.len(), 0);
        }
        self.entries += 1;
        if let Some(tail) = &self.tail {
            tail.fence();
            tail.store(0, self.entries);
            tail.fence();
        }
        true
    }
}

/// The receiving end.
pub struct Receiver {
    lane: Consumer,
    explicit: Option<Explicit>,
}

/// Explicit head and tail.
struct Explicit {
    /// The window in which the sender announces its tail.
    tail: InWindow,
    /// The window of the head, in the sender's memory.
    head: OutWindow,
    lines: u64,
    /// Number of entries taken.
    taken: u64,
    /// The first line of the latest entry, and the line behind it, counted from the first line of the first wrap.
    began: u64,
    end: u64,
    wraps: u64,
}

impl Receiver {
    /// Creates the receiving end of the lane of `lane` bytes in this end's window, whose head is written to the peer's.
    pub fn new(own: &InWindow, peer: &OutWindow, lane: usize, explicit: bool) -> Receiver {
        let (window, head) = (own.part(CONTROL, lane), peer.part(0, 8));
        if !explicit {
            return Receiver { lane: Consumer::new(window, head), explicit: None };
        }
        // The lazy head is not used: the eager one replaces it.
        let nowhere = OutWindow::new(Region::anonymous(8));
        let lines = (lane / LINE) as u64;
        let explicit = Explicit { tail: own.part(TAIL, 8), head, lines, taken: 0, began: 0, end: 0, wraps: 0 };
        Receiver { lane: Consumer::new(window, nowhere), explicit: Some(explicit) }
    }

    /// Returns the next entry, if there is one. It must be released before the next one is taken.
    #[inline]
    pub fn take(&mut self) -> Result<Option<Entry>, Error> {
        if let Some(explicit) = &self.explicit {
            if explicit.tail.load(0) <= explicit.taken {
                return Ok(None);
            }
        }
        let entry = self.lane.take()?;
        if let (Some(explicit), Some(entry)) = (&mut self.explicit, &entry) {
            explicit.take(entry);
        }
        Ok(entry)
    }

    /// Copies bytes of an entry from offset `at` on.
    #[inline]
    pub fn read(&self, entry: &Entry, at: usize, to: &mut [u8]) {
        self.lane.window().read(entry.offset + at, to);
    }

    /// Releases the space of the entry that was taken.
    #[inline]
    pub fn release(&mut self) {
        self.lane.release();
        if let Some(Explicit { head, end, .. }) = &self.explicit {
            head.fence();
            head.store(0, *end);
            head.fence();
        }
    }
}

impl Explicit {
    fn take(&mut self, entry: &Entry) {
        let began = ((entry.offset - TAG) / LINE) as u64;
        // The lane was wrapped: a lane holds several entries.
        self.wraps += u64::from(began < self.began);
        self.taken += 1;
        (self.began, self.end) = (began, self.wraps * self.lines + began + lines_for(entry.len) as u64);
    }
}
