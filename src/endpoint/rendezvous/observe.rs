//! Waits of a rank's offers and fetches, and their durations.

use super::fetch::Fetch;
use super::offers::Offers;
use crate::observation::{Reason, Waits};
use ntbring_timeline::Direction;
use std::time::Instant;

impl Offers {
    /// Records that a payload which is sent through a lane has left.
    pub fn has_left(&mut self, cookie: usize) {
        if let Some(i) = self.leaving.iter().position(|leaving| leaving.cookie == cookie) {
            let left = self.leaving.swap_remove(i);
            self.has_gone(left.dest, left.bytes, left.since);
        }
    }

    /// Records that a payload which was offered at `since` is with its receiver, or has left.
    pub(super) fn has_gone(&mut self, dest: u32, bytes: u64, since: Instant) {
        self.sent.count_time(since.elapsed());
        ntbring_timeline::has_moved(Direction::Out, dest, bytes, since);
    }

    /// Records that a payload has arrived.
    pub(super) fn has_arrived(&mut self, fetch: &Fetch) {
        self.fetched.count_time(fetch.since.elapsed());
        ntbring_timeline::has_moved(Direction::In, fetch.src, fetch.size, fetch.since);
    }

    /// Adds the offers that no receiver has accepted, and the payloads that are being fetched.
    pub fn waits(&self, waits: &mut Waits) {
        for (_, given) in &self.given {
            waits.add(Reason::Receive, Some(given.dest), 1, given.payload.len());
        }
        for (_, fetch) in &self.fetches {
            waits.add(Reason::Payload, Some(fetch.src), 1, fetch.size - fetch.arrived);
        }
    }
}
