//! Entries whose bytes an engine copies, and which are published in order when their copies have completed.
//!
//! A lane has one producer, which reserves lines, sequence numbers and tags in order. An entry whose copy is in flight
//! keeps its place: the tags of it and of all later entries wait here. So copies may complete in any order, and the
//! consumer notices nothing. While tags wait, `Producer::put` refuses entries, because it stores tags at once.

use ntbring_memory::{CopyEngine, CopyTicket};
use std::collections::VecDeque;
use std::sync::Arc;

/// Copies of one lane by an engine, and tags that wait for them.
pub(super) struct Copies {
    pub(super) engine: Arc<dyn CopyEngine>,
    /// Smallest number of bytes that the engine copies.
    pub(super) min: usize,
    pub(super) waiting: VecDeque<Waiting>,
    /// Number of copies that were submitted, and of those that are complete, counted in order of submission.
    pub(super) submitted: u64,
    pub(super) completed: u64,
}

/// An entry that is not published.
pub(super) struct Waiting {
    /// The lane's tail at its first line.
    pub(super) tail: u64,
    pub(super) line: usize,
    pub(super) tag: u64,
    /// Its copy; None if the processor has written its bytes.
    pub(super) copy: Option<CopyTicket>,
}

impl Copies {
    /// Returns true if an entry with this copy must wait.
    #[inline]
    pub(super) fn must_wait(&self, copy: Option<CopyTicket>) -> bool {
        copy.is_some() || !self.waiting.is_empty()
    }

    /// Adds an entry that is not to be published yet.
    pub(super) fn wait(&mut self, tail: u64, line: usize, tag: u64, copy: Option<CopyTicket>) {
        self.submitted += u64::from(copy.is_some());
        self.waiting.push_back(Waiting { tail, line, tag, copy });
    }

    /// Returns the tail of the first entry that is not published.
    pub(super) fn published(&self) -> Option<u64> {
        self.waiting.front().map(|entry| entry.tail)
    }
}
