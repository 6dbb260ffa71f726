//! Failures as a process observes them.

use super::member::Membership;
use crate::failures::{forwarder, peer_losses, Dead, FailureScope, Failures, LinkSet, PathFailure, PeerLoss};
use crate::link::Link;
use crate::protocol::FORWARDER_DOORBELL;
use ntbring_ntb::{LinkState, Side};

impl Membership {
    /// Returns the failures that this process can observe.
    pub fn failures(&self) -> Failures {
        let device = self.adapters.fabric.failure().map(|failure| failure.to_string());
        Failures { dead: self.dead(), outages: self.outages(), device }
    }

    /// Returns a failure that interrupts the ring, of which small collectives need every link and host; None if there
    /// is none.
    pub fn ring_cut(&self, failures: &Failures) -> Option<PathFailure> {
        let (topology, hosts) = (self.topology(), 0..self.topology().hosts());
        let gone = |link: &usize| failures.outages.contains(*link);
        hosts.into_iter().find(gone).map(|left| PathFailure::Link(left, topology.neighbour(left, Side::Right)))
    }

    /// Returns the peers that are unreachable for this process, given these failures.
    pub fn peer_losses(&self, failures: &Failures) -> Vec<PeerLoss> {
        peer_losses(self.topology(), self.host(), self.failure_scope(), failures)
    }

    fn failure_scope(&self) -> FailureScope {
        if self.policy().reroutes() {
            FailureScope::Heals
        } else if self.policy().shortcuts().segments {
            FailureScope::Mappable
        } else {
            FailureScope::Served
        }
    }

    /// In rings that reroute, marks the links to dead hosts as down at this host's ports, for all users of the ports.
    /// Adapters of real hosts report such links by themselves.
    pub fn take_down_links_to(&self, dead: &[Dead]) {
        if self.policy().reroutes() {
            self.sides_to(dead).for_each(|side| self.set_link(side, LinkState::Down));
        }
    }

    /// Returns the sides on which the neighbour is a host that is among the dead.
    pub fn sides_to<'a>(&'a self, dead: &'a [Dead]) -> impl Iterator<Item = Side> + 'a {
        let is_dead = |link: &&Link| forwarder(self.topology(), link.neighbour(), dead).is_some();
        self.links().into_iter().flatten().filter(is_dead).map(Link::side)
    }
}

impl Membership {
    /// Returns the links that have gone down, as far as this host has observed that or has been informed by its
    /// neighbours. In rings that reroute, the set is always empty.
    pub fn outages(&self) -> LinkSet {
        let Some(links) = self.links().filter(|_| !self.policy().reroutes()) else { return LinkSet::default() };
        let (topology, mut known) = (self.topology(), LinkSet::default());
        for link in links {
            if link.has_been_down() {
                known.insert(topology.link(self.host(), link.side()));
            }
            known = known.and(link.reported_outages(topology.hosts()));
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

    /// Informs the neighbours that these links have gone down, and wakes their forwarders if the set is `new`.
    pub(crate) fn report_outages(&self, links: LinkSet, new: bool) {
        for link in self.links().into_iter().flatten() {
            // The set is also written to links that have gone down, since some of them come up again.
            link.write_outages(links);
            if new {
                link.port.ring(FORWARDER_DOORBELL);
            }
        }
    }
}
