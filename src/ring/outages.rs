//! Links that have gone down in rings without rerouting (`NTBRING_RELIABILITY` is `off` or `detect`), and the flooding
//! of that news to all hosts.
//!
//! The packets that a link held when it went down are lost unnoticed, so a link that comes up again counts as down for
//! the rest of the job. The hosts at its ends see the outage at their ports. They write it into a scratchpad of each
//! neighbour, and neighbours pass it on: each host sends everything that it knows to both sides, at once when that
//! grows, and again periodically, since such a write may be lost like any other. Knowledge only grows (set union), so
//! the order, the number and the direction of the messages make no difference.

use super::topology::HOSTS_MAX;
use super::{Membership, Topology, FORWARDER_DOORBELL};
use ntbring_ntb::Side;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Scratchpad that carries the set. A rank that has joined has already read the value that the handshake wrote there.
const NEWS: usize = 0;

/// Interval between two polls of the ports, which are register reads.
const LOOK: Duration = Duration::from_millis(10);

/// Interval between two transmissions of the same set.
const AGAIN: Duration = Duration::from_millis(100);

// The set has one bit for each link, in half a scratchpad.
const _: () = assert!(HOSTS_MAX <= 16);

/// Set of links of a ring. A link has the number of the host that it is to the right of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkSet(u16);

impl LinkSet {
    /// Adds a link to the set.
    pub fn insert(&mut self, link: usize) {
        self.0 |= 1 << link;
    }

    /// Returns true if the set contains a link.
    pub fn contains(self, link: usize) -> bool {
        self.0 >> link & 1 != 0
    }

    /// Returns the number of links in the set.
    pub fn len(self) -> usize {
        self.0.count_ones() as usize
    }

    /// Returns true if the set is empty.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Returns the union of both sets.
    pub fn and(self, others: LinkSet) -> LinkSet {
        LinkSet(self.0 | others.0)
    }

    /// Returns the scratchpad encoding: the bits once plain and once inverted, so that no other value is taken for a
    /// set.
    fn word(self) -> u32 {
        u32::from(!self.0) << 16 | u32::from(self.0)
    }

    /// Decodes a scratchpad in a ring of `hosts` hosts. Returns the empty set if the word is not a valid encoding.
    fn parse(word: u32, hosts: usize) -> LinkSet {
        let set = LinkSet(word as u16);
        match set.word() == word && u32::from(set.0) >> hosts == 0 {
            true => set,
            false => LinkSet::default(),
        }
    }
}

impl FromIterator<usize> for LinkSet {
    fn from_iter<I: IntoIterator<Item = usize>>(links: I) -> LinkSet {
        links.into_iter().fold(LinkSet::default(), |mut set, link| {
            set.insert(link);
            set
        })
    }
}

impl Membership {
    /// Returns the links that have gone down, as far as this host has observed or been told. In rings that reroute, the
    /// set is always empty.
    pub fn outages(&self) -> LinkSet {
        let Some(links) = self.links().filter(|_| !self.heals()) else { return LinkSet::default() };
        let (topology, mut known) = (self.topology(), LinkSet::default());
        for link in links {
            if link.has_been_down() {
                known.insert(topology.link(self.host(), link.side()));
            }
            known = known.and(LinkSet::parse(link.port.scratchpad(NEWS), topology.hosts()));
        }
        known
    }

    /// Returns the sides of this host whose link is in the set.
    pub fn sides_over(&self, links: LinkSet) -> impl Iterator<Item = Side> + '_ {
        let (topology, host) = (self.topology(), self.host());
        Side::BOTH.into_iter().filter(move |side| links.contains(topology.link(host, *side)))
    }

    /// Returns true if the link on a side has gone down in a ring that does not reroute.
    pub fn has_been_down(&self, side: Side) -> bool {
        self.outages().contains(self.topology().link(self.host(), side))
    }

    /// Tells the neighbours that these links have gone down, and wakes their forwarders if that is `new`.
    fn tell(&self, links: LinkSet, new: bool) {
        for link in self.links().into_iter().flatten() {
            // Links that have gone down are written to as well: some come up again.
            link.port.peer_scratchpad(NEWS, links.word());
            if new {
                link.port.ring(FORWARDER_DOORBELL);
            }
        }
    }
}

impl Topology {
    /// Returns the number of the link on a side of a host.
    pub fn link(&self, host: usize, side: Side) -> usize {
        match side {
            Side::Left => self.neighbour(host, side),
            Side::Right => host,
        }
    }
}

/// Distributes the outages that a host knows of. Each host has one herald, in the process of its first rank.
pub struct Herald {
    members: Arc<Membership>,
    looked: Option<Instant>,
    told: LinkSet,
    latest: Option<Instant>,
}

impl Herald {
    /// Creates the herald of this process's host.
    pub fn new(members: &Arc<Membership>) -> Herald {
        Herald { members: members.clone(), looked: None, told: LinkSet::default(), latest: None }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_survive_their_word_and_nothing_else_is_one() {
        for links in [vec![], vec![0], vec![15], vec![0, 7, 15]] {
            let set: LinkSet = links.iter().copied().collect();
            assert_eq!((LinkSet::parse(set.word(), 16), set.len()), (set, links.len()));
            assert!((0..16).all(|link| set.contains(link) == links.contains(&link)));
            for bit in 0..32 {
                assert!(LinkSet::parse(set.word() ^ 1 << bit, 16).is_empty(), "{links:?} with bit {bit} flipped");
            }
        }
        // A link that does not exist; a register that was never written, and the value that the handshake leaves.
        let fourth: LinkSet = [4].into_iter().collect();
        for word in [fourth.word(), 0, u32::MAX, 0x4e54 << 16 | u32::from(super::super::PROTOCOL_VERSION)] {
            assert!(LinkSet::parse(word, 4).is_empty(), "{word:x}");
        }
    }

    #[test]
    fn each_link_has_one_number_at_both_ends() {
        for hosts in 2..=HOSTS_MAX {
            let topology = Topology::simulated(hosts);
            for host in 0..hosts {
                let next = topology.neighbour(host, Side::Right);
                assert_eq!(topology.link(host, Side::Right), topology.link(next, Side::Left));
            }
        }
    }
}
