//! The part of a producer that has an engine copy entries.

use super::copies::{Copies, Waiting};
use super::producer::{Producer, Slot};
use super::{LINE, PAD};
use ntbring_memory::{CopyEngine, CopySource};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

impl Producer {
    /// Returns this producer with an engine of the port's window, which copies entries of [`Slot::commit_copy`] if they
    /// have at least `min` bytes. The processor copies all others, and all those of checked lanes, which are copied for
    /// retransmission first. The engine must be that of the window of which the lane is a part.
    pub fn with_engine(mut self, engine: Arc<dyn CopyEngine>, min: usize) -> Self {
        if !self.is_checked() {
            let copies = Copies { engine, min, waiting: VecDeque::new(), submitted: 0, completed: 0 };
            self.copies = Some(Box::new(copies));
        }
        self
    }

    /// Returns true if an engine copies large entries.
    #[inline]
    pub fn has_engine(&self) -> bool {
        self.copies.is_some()
    }

    /// Returns true if an engine copies entries' bytes of this number, unless too many copies are in flight.
    #[inline]
    pub fn has_engine_for(&self, bytes: usize) -> bool {
        self.copies.as_ref().is_some_and(|copies| bytes >= copies.min)
    }

    /// Number of copies that are complete, in order of their submission: the source of copy `n` is not read any more if
    /// this is at least `n`.
    pub fn copied(&self) -> u64 {
        self.copies.as_ref().map_or(0, |copies| copies.completed)
    }

    /// Returns true if entries wait for copies: [`Producer::publish_copied`] must be called soon.
    #[inline]
    pub fn is_copying(&self) -> bool {
        self.copies.as_ref().is_some_and(|copies| !copies.waiting.is_empty())
    }

    /// Publishes the entries whose copies, and those of all earlier entries, are complete. Returns their number: unless
    /// it is 0, the consumer should be woken.
    #[inline]
    pub fn publish_copied(&mut self) -> usize {
        match &self.copies {
            Some(copies) if !copies.waiting.is_empty() => self.publish_waiting(),
            _ => 0,
        }
    }

    #[cold]
    fn publish_waiting(&mut self) -> usize {
        let Some(copies) = &mut self.copies else { return 0 };
        let mut published = 0;
        while let Some(&Waiting { line, tag, copy, .. }) = copies.waiting.front() {
            if let Some(copy) = copy {
                if !copies.engine.is_complete(copy) {
                    break;
                }
                copies.completed += 1;
            }
            self.lane.fence();
            self.lane.store(line * LINE, tag);
            self.lane.fence();
            copies.waiting.pop_front();
            published += 1;
        }
        if copies.waiting.is_empty() {
            self.plain_end = self.lines as u16;
        }
        published
    }

    /// Waits until all copies are complete and published, but not longer than `limit`. For the end of a connection,
    /// before sources are given back although their messages may never arrive. Returns false if the engine has not
    /// completed them in time: it may still read their sources.
    pub fn finish_copies(&mut self, limit: Duration) -> bool {
        let start = Instant::now();
        while self.is_copying() {
            if self.publish_copied() == 0 {
                if start.elapsed() >= limit {
                    return false;
                }
                std::thread::yield_now();
            }
        }
        true
    }
}

impl Slot<'_> {
    /// Writes `from` at byte offset `at` of the entry and publishes the entry with its first `len` bytes. Returns None
    /// if `from` is not needed any more. Otherwise an engine copies it, the entry is published by a later call of
    /// [`Producer::publish_copied`], and the number of the copy is returned: the caller keeps the source until
    /// [`Producer::copied`] has reached it. Panics if `from` reaches beyond `len`, `len` exceeds the room, or `kind` is
    /// `PAD`.
    pub fn commit_copy(mut self, kind: u8, len: usize, meta: u16, at: usize, from: CopySource) -> Option<u64> {
        assert!(len <= self.room && kind != PAD && at <= len && from.len() <= len - at);
        let offset = self.offset(at, from.len());
        let from = match &self.lane.copies {
            Some(copies) if from.len() >= copies.min => match self.lane.lane.submit(&*copies.engine, offset, from) {
                Ok(copy) => {
                    let number = copies.submitted + 1;
                    self.finish(kind, len, meta, Some(copy));
                    return Some(number);
                }
                Err(from) => from,
            },
            _ => from,
        };
        self.write(at, from.bytes());
        self.commit(kind, len, meta);
        None
    }
}
