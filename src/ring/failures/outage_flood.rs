//! Flooding of link outages to all hosts, in rings without rerouting (`NTBRING_RELIABILITY` is `off` or `detect`).
//!
//! The loss of the packets that were in transit on a link when it went down is not detected, so a link that comes up
//! again counts as down for the rest of the job. The hosts at its ends observe the outage at their ports. They write it
//! into the window of each neighbour, and neighbours pass it on: each host sends its whole set of outages to both
//! sides, at once when the set grows, and again periodically, since such a write may be lost like any other. The set
//! only grows (set union), so the order, the number and the direction of the messages make no difference.

use super::link_set::LinkSet;
use crate::membership::Membership;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Interval between two polls of the ports, which are register reads.
const LOOK: Duration = Duration::from_millis(10);

/// Interval between two transmissions of the same set.
const AGAIN: Duration = Duration::from_millis(100);

/// Distributes the set of outages that a host knows. Each host has one, in the process of its first rank.
pub struct OutageFlood {
    members: Arc<Membership>,
    looked: Option<Instant>,
    flooded: LinkSet,
    sent: Option<Instant>,
}

impl OutageFlood {
    /// Creates the flooding of outages for this process's host.
    pub fn new(members: &Arc<Membership>) -> OutageFlood {
        OutageFlood { members: members.clone(), looked: None, flooded: LinkSet::default(), sent: None }
    }

    /// Polls the ports and sends the set of outages to the neighbours, if it is time. Returns all known outages, and
    /// the remaining time until the next poll if it was too early.
    pub fn attend(&mut self, now: Instant) -> (LinkSet, Option<Duration>) {
        if let Some(rest) = rest(self.looked, LOOK, now) {
            return (self.flooded, Some(rest));
        }
        self.looked = Some(now);
        let known = self.members.outages().and(self.flooded);
        let new = known != self.flooded;
        if new || !known.is_empty() && rest(self.sent, AGAIN, now).is_none() {
            self.members.report_outages(known, new);
            (self.flooded, self.sent) = (known, Some(now));
        }
        (known, None)
    }
}

/// Returns the part of `time` that is left after the instant `done`; None if nothing is left or if there is no such
/// instant.
fn rest(done: Option<Instant>, time: Duration, now: Instant) -> Option<Duration> {
    time.checked_sub(now.saturating_duration_since(done?)).filter(|rest| !rest.is_zero())
}
