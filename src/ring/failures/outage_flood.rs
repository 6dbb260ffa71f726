//! Links that have gone down in rings without rerouting (`NTBRING_RELIABILITY` is `off` or `detect`), and the flooding
//! of that news to all hosts.
//!
//! The packets that a link held when it went down are lost unnoticed, so a link that comes up again counts as down for
//! the rest of the job. The hosts at its ends see the outage at their ports. They write it into the window of each
//! neighbour, and neighbours pass it on: each host sends everything that it knows to both sides, at once when that
//! grows, and again periodically, since such a write may be lost like any other. Knowledge only grows (set union), so
//! the order, the number and the direction of the messages make no difference.

use super::link_set::LinkSet;
use crate::membership::Membership;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Interval between two polls of the ports, which are register reads.
const LOOK: Duration = Duration::from_millis(10);

/// Interval between two transmissions of the same set.
const AGAIN: Duration = Duration::from_millis(100);

/// Distributes the outages that a host knows of. Each host has one flooding of outages, in the process of its first
/// rank.
pub struct OutageFlood {
    members: Arc<Membership>,
    looked: Option<Instant>,
    told: LinkSet,
    latest: Option<Instant>,
}

impl OutageFlood {
    /// Creates the flooding of outages of this process's host.
    pub fn new(members: &Arc<Membership>) -> OutageFlood {
        OutageFlood { members: members.clone(), looked: None, told: LinkSet::default(), latest: None }
    }

    /// Polls the ports and tells the neighbours, if it is time. Returns all known outages, and the remaining time until
    /// the next poll if it was too early.
    pub fn attend(&mut self, now: Instant) -> (LinkSet, Option<Duration>) {
        if let Some(rest) = rest(self.looked, LOOK, now) {
            return (self.told, Some(rest));
        }
        self.looked = Some(now);
        let known = self.members.outages().and(self.told);
        let new = known != self.told;
        if new || !known.is_empty() && rest(self.latest, AGAIN, now).is_none() {
            self.members.tell(known, new);
            (self.told, self.latest) = (known, Some(now));
        }
        (known, None)
    }
}

/// Returns the part of `time` that is left after the instant `done`; None if it is over or if there is no such instant.
fn rest(done: Option<Instant>, time: Duration, now: Instant) -> Option<Duration> {
    time.checked_sub(now.saturating_duration_since(done?)).filter(|rest| !rest.is_zero())
}
