//! The lanes over one link: datagrams leave and arrive in them.

use super::datagram::{Datagram, DATAGRAM};
use crate::error::{EndpointError, Malformed};
use ntbring_memory::ForeignBytes;
use ntbring_ntb::{LinkState, Port, Side};
use ntbring_queue::{Consumer, Producer};
use ntbring_ring::join::Link;
use ntbring_ring::layout::{Class, End};
use ntbring_ring::relay::{Route, ROUTED};
use ntbring_ring::{rank_doorbell, Topology};
use std::sync::Arc;
use std::time::Instant;

/// The lanes between this rank and the ranks and forwarder of one neighbouring host.
pub struct Hop {
    side: Side,
    /// The neighbouring host.
    next: usize,
    port: Arc<dyn Port>,
    /// Number of ranks of the neighbouring host.
    ranks: usize,
    /// Outgoing lanes, each with the neighbour's doorbell: one to each rank, then the forwarder's, then the
    /// forwarder's bulk lane if there is one.
    outlets: Vec<(Producer, usize)>,
    /// Incoming lanes in the same order, each with the doorbell for returned heads.
    inlets: Vec<(Consumer, usize)>,
    pub doorbells: u64,
    pub head_updates: u64,
}

impl Hop {
    /// Attaches the lanes of the rank with local number `local` on its host.
    pub fn new(link: &Link, topology: &Topology, local: usize) -> Hop {
        let (me, next) = (End::Rank(local), link.neighbour());
        let (side, ranks) = (link.side(), topology.ranks_of(next).len());
        let ends = |to: Side| {
            let ranks = (0..ranks).map(|local| (End::Rank(local), rank_doorbell(local)));
            ranks.chain([(End::Forwarder, link.bell(to, Class::Urgent))])
        };
        let bulk_out = link.bulk_producer(me, End::Forwarder, false).map(|lane| (lane, link.bell(side, Class::Bulk)));
        let back = side.opposite();
        let bulk_in = link.bulk_consumer(End::Forwarder, me, false).map(|lane| (lane, link.bell(back, Class::Bulk)));
        let outlets = ends(side).map(|(end, bell)| (link.producer(me, end, false), bell));
        let inlets = ends(back).map(|(end, bell)| (link.consumer(end, me, false), bell));
        Hop {
            side,
            next,
            port: link.port(),
            ranks,
            outlets: outlets.chain(bulk_out).collect(),
            inlets: inlets.chain(bulk_in).collect(),
            doorbells: 0,
            head_updates: 0,
        }
    }

    /// Returns the largest entry, in bytes, that all of these lanes accept.
    pub fn entry_max(&self) -> usize {
        self.outlets.iter().map(|(lane, _)| lane.entry_max()).min().unwrap_or(0)
    }

    /// Sends a datagram, and the bytes of its entry, towards a rank in this direction. Returns false if the lane is
    /// full. Datagrams for ranks beyond the neighbour go through its forwarder: datagrams that must stay in order use
    /// the bulk lane, pure acknowledgements use the urgent lane and overtake them.
    pub fn put(&mut self, topology: &Topology, route: Route, datagram: &Datagram, bytes: ForeignBytes) -> bool {
        let n = match topology.host_of(route.dst) == self.next {
            true => topology.local_of(route.dst),
            false if datagram.is_ordered() => self.outlets.len() - 1,
            false => self.ranks,
        };
        let len = Datagram::HEAD + bytes.len();
        let (lane, bell) = &mut self.outlets[n];
        let Some(mut slot) = lane.reserve(len) else { return false };
        slot.write_bytes(0, &datagram.bytes(route));
        if !bytes.is_empty() {
            slot.write(Datagram::HEAD, bytes);
        }
        slot.commit(ROUTED | DATAGRAM, len, 0);
        self.port.ring(*bell);
        self.doorbells += 1;
        true
    }

    /// Takes up to `most` datagrams from each lane. Returns the number taken.
    pub fn take(
        &mut self,
        most: usize,
        mut taker: impl FnMut(Route, Datagram, ForeignBytes) -> Result<(), EndpointError>,
    ) -> Result<usize, EndpointError> {
        let mut taken = 0;
        for (lane, bell) in &mut self.inlets {
            for _ in 0..most {
                let from = || format!("host {} on the {} link", self.next, self.side);
                let entry = lane.take().map_err(|error| EndpointError::Corrupt { from: from(), error })?;
                let Some(entry) = entry else { break };
                let malformed = || EndpointError::Datagram {
                    from: from(),
                    what: Malformed("sent an entry that is not a datagram"),
                };
                if entry.kind != ROUTED | DATAGRAM || entry.len < Datagram::HEAD {
                    return Err(malformed());
                }
                let mut head = [0; Datagram::HEAD];
                lane.window().read(entry.offset, &mut head);
                let (route, datagram) = Datagram::parse(head).ok_or_else(malformed)?;
                let bytes = lane.window().foreign(entry.offset + Datagram::HEAD, entry.len - Datagram::HEAD);
                taker(route, datagram, bytes)?;
                taken += 1;
                if lane.release() {
                    self.head_updates += 1;
                    self.doorbells += 1;
                    self.port.ring(*bell);
                }
            }
        }
        Ok(taken)
    }

    /// Retransmits entries that the link has lost or damaged. While the link is down this achieves nothing; the
    /// connections then also send the contents of these lanes by the other route.
    pub fn look_after(&mut self, now: Instant) -> Result<(), EndpointError> {
        if self.is_settled() {
            return Ok(());
        }
        for (lane, bell) in &mut self.outlets {
            let woken = lane.look_after(now);
            let to = || format!("host {} on the {} link", self.next, self.side);
            if woken.map_err(|error| EndpointError::GaveUp { to: to(), error })? {
                self.port.ring(*bell);
                self.doorbells += 1;
            }
        }
        Ok(())
    }

    /// True if the neighbour has acknowledged every entry, or if the link is down.
    pub fn is_settled(&self) -> bool {
        self.outlets.iter().all(|(lane, _)| lane.is_settled()) || self.port.link() == LinkState::Down
    }

    /// Returns the link's side.
    pub fn side(&self) -> Side {
        self.side
    }

    /// Returns the bytes of lane space that have been sent over the link.
    pub fn produced(&self) -> u64 {
        self.outlets.iter().map(|(lane, _)| lane.produced()).sum()
    }

    /// Returns two counts of entries that the link has lost or damaged: on their way to the neighbour, and on their
    /// way here.
    pub fn mended(&self) -> (u64, u64) {
        let resent = self.outlets.iter().map(|(lane, _)| lane.resent()).sum();
        (resent, self.inlets.iter().map(|(lane, _)| lane.damaged()).sum())
    }
}
