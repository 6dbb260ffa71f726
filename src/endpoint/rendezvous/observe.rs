//! Waits of a rank's offers and fetches, and their durations.

use super::offers::Offers;
use crate::observation::{Reason, Waits};

impl Offers {
    /// Records that a payload which is sent through a lane has left.
    pub fn has_left(&mut self, cookie: usize) {
        if let Some(i) = self.leaving.iter().position(|leaving| leaving.cookie == cookie) {
            let since = self.leaving.swap_remove(i).since;
            self.sent.count_time(since.elapsed());
        }
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
