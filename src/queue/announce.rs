//! Lanes whose tail is announced and whose head is returned after every entry, each by a control
//! write of its own: what queues did before lazy head caching. For experiments only, to measure
//! what the other way saves.
//!
//! The tag is written all the same, since it holds the entry's length; the consumer believes the
//! tail.

use super::{Consumer, Producer};
use ntbring_memory::{InWindow, OutWindow};

impl Producer {
    /// The same producer, which writes its tail to the first word of `tail`, in the consumer's
    /// memory, after every entry.
    pub fn announcing(mut self, tail: OutWindow) -> Self {
        self.announcement = Some(tail);
        self
    }
}

impl Consumer {
    /// The same consumer, which takes what lies before the tail that the producer writes to the
    /// first word of `tail`, and returns its head whenever it holds nothing.
    pub fn announced(mut self, tail: InWindow) -> Self {
        self.tail = Some(tail);
        self.plain = false;
        (self.return_after, self.due) = (1, 1);
        self
    }
}
