//! The counters of a rank in two successive readings.

use crate::reading::Rank;
use ntbring_endpoint::{Peer, COUNTERS, LINK_COUNTERS};

/// Shortest time between two publications of a rank's counters from which rates are computed, seconds.
const SHORTEST: f64 = 0.001;

/// The counters of a rank in a reading, and in the one before.
pub struct Change<'a> {
    /// The newer counters.
    pub now: &'a Rank,
    /// The older counters; None if the rank was not there.
    pub before: Option<&'a Rank>,
    /// Time between the two publications, seconds; None if the rank has not published since the reading before.
    own_s: Option<f64>,
    /// Time between the readings, seconds: that of the counters of the forwarder, which are always current.
    relay_s: Option<f64>,
}

impl<'a> Change<'a> {
    /// Compares the counters of two readings, `elapsed` seconds apart.
    pub fn new(now: &'a Rank, before: Option<&'a Rank>, elapsed: Option<f64>) -> Change<'a> {
        let own_s = before.map(|before| now.published.saturating_duration_since(before.published).as_secs_f64());
        let own_s = own_s.filter(|seconds| *seconds >= SHORTEST);
        let relay_s = elapsed.filter(|seconds| before.is_some() && *seconds >= SHORTEST);
        Change { now, before, own_s, relay_s }
    }

    /// Returns the increase of a counter of the rank per second.
    pub fn rate(&self, name: &str) -> Option<f64> {
        let at = COUNTERS.iter().position(|counter| counter.name == name)?;
        self.own_rate(self.now.figures.counters[at], self.before?.figures.counters[at])
    }

    /// Returns the increase per second of a number that the rank has counted.
    pub fn own_rate(&self, now: u64, before: u64) -> Option<f64> {
        self.own_s.map(|seconds| now.saturating_sub(before) as f64 / seconds)
    }

    /// Returns the bytes per second that the rank and its host's forwarder have sent over the link with this index.
    pub fn link_rate(&self, link: usize) -> Option<f64> {
        let old = self.before?.figures.links.get(link)?;
        let increase = |name: &str| {
            let at = link_counter(name);
            self.now.figures.links[link].counters[at].saturating_sub(old.counters[at]) as f64
        };
        let own = self.own_s.map(|seconds| increase("sent_bytes") / seconds);
        let relayed = self.relay_s.map(|seconds| increase("forwarded_bytes") / seconds);
        match (own, relayed) {
            (None, None) => None,
            (own, relayed) => Some(own.unwrap_or(0.0) + relayed.unwrap_or(0.0)),
        }
    }

    /// Returns the total of a counter of the link with this index, and its increase since the reading before.
    pub fn link_total(&self, link: usize, name: &str) -> (u64, u64) {
        let at = link_counter(name);
        let total = self.now.figures.links[link].counters[at];
        let old = self.before.and_then(|before| before.figures.links.get(link));
        (total, old.map_or(0, |old| total.saturating_sub(old.counters[at])))
    }

    /// Returns the messages and bytes sent to a peer per second.
    pub fn peer_rates(&self, peer: &Peer) -> [Option<f64>; 2] {
        let Some(before) = self.before else { return [None; 2] };
        let old = before.figures.peers.iter().find(|old| old.rank == peer.rank);
        let (msgs, bytes) = old.map_or((0, 0), |old| (old.msgs, old.bytes));
        [self.own_rate(peer.msgs, msgs), self.own_rate(peer.bytes, bytes)]
    }
}

/// Returns the position of a counter of links.
fn link_counter(name: &str) -> usize {
    let found = LINK_COUNTERS.iter().position(|counter| counter.name == name);
    found.unwrap_or_else(|| panic!("there is no counter {name} of links"))
}
