//! Links that have gone down where nothing goes round them (`off` and `detect`), and how all hosts hear of them.
//!
//! Nobody knows what a link had in it when it went down, so one that comes up again counts as down for the rest of the job.
//! Its ends see it at their ports. They tell their neighbours by a scratchpad, who pass it on to theirs: each host says all
//! that it knows, to both sides, when that becomes more, and again now and then, since such a word may be lost like any other.
//! What is known only grows, so it makes no difference in which order, how often and by which way round the ring it comes.

use super::topology::HOSTS_MAX;
use super::{Membership, Topology, FORWARDER_DOORBELL};
use ntbring_ntb::Side;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The scratchpad that it goes by. Whoever has joined has read what the handshake wrote there.
const NEWS: usize = 0;

/// Between two looks, which are reads of registers.
const LOOK: Duration = Duration::from_millis(10);

/// Between two times that the same is said.
const AGAIN: Duration = Duration::from_millis(100);

// A bit for each link, in half a scratchpad.
const _: () = assert!(HOSTS_MAX <= 16);

/// Links of a ring. Each has the number of the host to whose right it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkSet(u16);

impl LinkSet {
    /// Adds a link.
    pub fn insert(&mut self, link: usize) {
        self.0 |= 1 << link;
    }

    /// Whether a link is among them.
    pub fn contains(self, link: usize) -> bool {
        self.0 >> link & 1 != 0
    }

    /// How many there are.
    pub fn len(self) -> usize {
        self.0.count_ones() as usize
    }

    /// Whether there are none.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// These and others.
    pub fn and(self, others: LinkSet) -> LinkSet {
        LinkSet(self.0 | others.0)
    }

    /// As a scratchpad says it: once plain and once inverted, so that nothing else is taken for it.
    fn word(self) -> u32 {
        u32::from(!self.0) << 16 | u32::from(self.0)
    }

    /// What a scratchpad says in a ring of so many hosts; nothing, unless it is such a word.
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
    /// The links that have gone down, as far as this host has seen or heard, where nothing goes round them: else none.
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

    /// The sides of this host on which the link is one of these.
    pub fn sides_over(&self, links: LinkSet) -> impl Iterator<Item = Side> + '_ {
        let (topology, host) = (self.topology(), self.host());
        Side::BOTH.into_iter().filter(move |side| links.contains(topology.link(host, *side)))
    }

    /// Whether the link on a side has gone down, where nothing goes round it.
    pub fn has_been_down(&self, side: Side) -> bool {
        self.outages().contains(self.topology().link(self.host(), side))
    }

    /// Tells the neighbours that these links have gone down, and wakes their forwarders if that is `new`.
    fn tell(&self, links: LinkSet, new: bool) {
        for link in self.links().into_iter().flatten() {
            // Also by links that have gone down: some come up again.
            link.port.peer_scratchpad(NEWS, links.word());
            if new {
                link.port.ring(FORWARDER_DOORBELL);
            }
        }
    }
}

impl Topology {
    /// The number of the link on a side of a host.
    pub fn link(&self, host: usize, side: Side) -> usize {
        match side {
            Side::Left => self.neighbour(host, side),
            Side::Right => host,
        }
    }
}

/// Passes on what a host knows. Each host has one, in the process of its first rank.
pub struct Herald {
    members: Arc<Membership>,
    looked: Option<Instant>,
    told: LinkSet,
    latest: Option<Instant>,
}

impl Herald {
    /// The herald of this process's host.
    pub fn new(members: &Arc<Membership>) -> Herald {
        Herald { members: members.clone(), looked: None, told: LinkSet::default(), latest: None }
    }

    /// Looks, and says what there is to be said, if it is time. Returns all that is known, and how soon to look again if it
    /// was not.
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

/// What is left of a time since something was done; None if it is over.
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
        // A link that is not there; registers that nobody has written, and what the handshake leaves.
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
