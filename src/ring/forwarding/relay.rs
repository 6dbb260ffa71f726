//! Forwarding: packets that came from one neighbour and are for hosts beyond this one are sent on to the other
//! neighbour.
//!
//! A packet is an entry of a lane whose kind has [`ROUTED`] set; its bytes begin with a [`Route`]. Packets of one class
//! that leave to the same side form a track. Urgent packets have priority over bulk: between two chunks of bulk of
//! an input, all urgent inputs have a turn. A turn is limited to a few packets, so that bulk does not starve either.
//!
//! In rings that reroute around links that are down, a [`Steward`] decides which links those are. Packets whose next
//! link is down are dropped: their sender still holds them for retransmission, and learns the other route from its
//! host's steward.

use super::crew::thread_of;
use super::desk::Desk;
use super::route::{wrong, Allowed};
pub use super::route::{RelayError, Route, ROUTED};
use super::tally::count;
pub use super::tally::RelayCounters;
use super::track::{Office, Track};
use crate::link::Link;
use crate::membership::Membership;
use crate::plan::Class;
use crate::protocol::FORWARDER_DOORBELL;
use crate::rerouting::steward::{Steward, MANAGE};
use ntbring_ntb::{Port, Side};
use ntbring_queue::{Consumer, Producer};
use std::sync::atomic::Ordering;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Maximum number of rounds over the bulk tracks in one step.
const ROUNDS: usize = 8;

/// Maximum number of manager packets that are taken from a neighbour in one step.
const ORDERS: usize = 8;

/// The control lanes between the stewards of two neighbours.
struct Orders {
    side: Side,
    neighbour: usize,
    port: Arc<dyn Port>,
    incoming: Consumer,
    outgoing: Producer,
    /// Packets damaged and packets retransmitted, as counted so far.
    mended: [u64; 2],
}

/// The host's steward and its control lanes to the neighbours.
struct Home {
    steward: Steward,
    orders: Vec<Orders>,
}

/// A host's forwarder, or one transfer thread's part of it. It has its own lanes, so forwarder and ranks do not contend
/// for lanes.
pub struct Forwarder {
    office: Arc<Office>,
    /// Set in the part that handles the state which all parts share.
    leads: bool,
    /// Tracks of the urgent class, and below those of bulk.
    urgent: Vec<Track>,
    bulk: Vec<Track>,
    /// Set if its links may damage packets (`detect` or `retry`).
    checked: bool,
    /// The steward and its lanes; only in the leading part, in rings that reroute around links that are down.
    home: Option<Home>,
}

impl Forwarder {
    /// Creates the forwarder of this process's host, with its two links, left first.
    pub fn new(members: &Arc<Membership>, links: [&Link; 2], counters: Arc<RelayCounters>) -> Forwarder {
        Self::crew(members, links, counters, 1).pop().expect("one for each thread")
    }

    /// Creates the forwarder of this process's host, divided among `threads` transfer threads ([`super::crew`]).
    pub fn crew(
        members: &Arc<Membership>,
        links: [&Link; 2],
        counters: Arc<RelayCounters>,
        threads: usize,
    ) -> Vec<Forwarder> {
        let (topology, host) = (members.topology().clone(), members.host());
        let policy = members.policy();
        let heals = policy.reroutes();
        let desk = Arc::new(Desk::new(members, heals, threads));
        let allowed = if heals { Allowed::Either } else { Allowed::Shorter };
        let office = Arc::new(Office { topology: topology.clone(), host, allowed, desk, counters });
        let checked = policy.is_checked();
        let part = |thread| {
            let tracks = |class| {
                let mine = Side::BOTH.into_iter().filter(|side| thread_of(threads, *side, class) == thread);
                mine.filter_map(|side| Track::new(&office, links, side, class)).collect()
            };
            let home = || Home {
                steward: Steward::new(topology.clone(), host, members.ways(), Instant::now()),
                orders: links.into_iter().filter_map(Orders::new).collect(),
            };
            let (leads, office) = (thread == 0, office.clone());
            let (urgent, bulk) = (tracks(Class::Urgent), tracks(Class::Bulk));
            Forwarder { urgent, bulk, checked, home: (leads && heals).then(home), leads, office }
        };
        (0..threads).map(part).collect()
    }

    fn tracks(&self) -> impl Iterator<Item = &Track> {
        self.urgent.iter().chain(&self.bulk)
    }

    /// Returns a version that changes with the queue of requests which wait for locks; None if no request waits, or in
    /// a part that does not lead. While it is Some, steps must be repeated without a doorbell.
    pub fn lock_queue_version(&self) -> Option<u32> {
        self.office.desk.lock_queue_version().filter(|_| self.leads)
    }

    /// Returns true if its links may damage packets.
    pub fn is_checked(&self) -> bool {
        self.checked
    }

    /// To be called when the host's ranks have nothing more to do, but other hosts' ranks may: packets in transit are
    /// still forwarded, and ranks that end from now on count as having left, not as dead.
    pub fn leave(&self) {
        self.office.desk.leave();
    }

    /// Returns the time after the latest step until the next timer, independent of doorbells; None if no timer is
    /// armed.
    pub fn rest(&self) -> Option<Duration> {
        self.home.as_ref().map(|home| home.steward.rest())
    }

    /// Returns true if an engine is copying packets: steps must be repeated without a doorbell.
    pub fn is_copying(&self) -> bool {
        self.bulk.iter().any(Track::is_copying)
    }

    /// Returns true if [`Forwarder::look_after`] has to be called soon.
    pub fn is_unsettled(&self) -> bool {
        let orders = self.home.iter().flat_map(|home| &home.orders);
        let desk = &self.office.desk;
        self.tracks().any(Track::is_unsettled)
            || orders.into_iter().any(|orders| desk.is_up(orders.side) && !orders.outgoing.is_settled())
    }

    /// Checks for links that have gone down, in rings that do not reroute. To be called now and then, and before a
    /// sleep; returns the longest sleep until the next call, if there is a limit.
    pub fn look_at_links(&self, now: Instant) -> Option<Duration> {
        self.leads.then(|| self.office.desk.look_at_links(now)).flatten()
    }

    /// Handles retransmission of packets that may have been damaged or lost, and the states of links in rings that
    /// reroute.
    pub fn look_after(&mut self, now: Instant) -> Result<(), RelayError> {
        if let Some(Home { steward, orders }) = &mut self.home {
            let Office { desk, counters, .. } = &*self.office;
            desk.watch(now);
            steward.attend(now, |side| orders[side as usize].port.link());
            Side::BOTH.into_iter().for_each(|side| desk.set_up(side, steward.is_up(side)));
            counters.reroutes.store(steward.reroutes(), Ordering::Relaxed);
            for orders in orders {
                orders.look_after(now, desk.is_up(orders.side), counters)?;
            }
        }
        self.urgent.iter_mut().chain(&mut self.bulk).try_for_each(|track| track.look_after(now))
    }

    /// Forwards the packets that are there and find room, a few from each input, and serves requests. Returns the
    /// number of packets and requests.
    pub fn step(&mut self) -> Result<usize, RelayError> {
        let mut moved = if self.leads { self.office.desk.step() } else { 0 };
        if let Some(home) = &mut self.home {
            moved += home.step(&self.office)?;
        }
        moved += self.step_urgent()?;
        for _ in 0..ROUNDS {
            let mut bulk = 0;
            for track in &mut self.bulk {
                bulk += track.step()?;
            }
            if bulk == 0 {
                break;
            }
            moved += bulk + self.step_urgent()?;
        }
        Ok(moved)
    }

    fn step_urgent(&mut self) -> Result<usize, RelayError> {
        let mut moved = 0;
        for track in &mut self.urgent {
            moved += track.step()?;
        }
        Ok(moved)
    }

    /// Returns one line on every lane that is not empty, for the diagnosis of a hang.
    pub fn describe(&self) -> Vec<String> {
        let mut lines = if self.leads { self.office.desk.describe() } else { vec![] };
        lines.extend(self.home.iter().flat_map(|home| home.steward.describe()));
        lines.extend(self.tracks().flat_map(Track::describe));
        lines
    }
}

impl Home {
    /// Receives packets of the neighbours' stewards, and sends those of this host's steward, as far as there is room.
    fn step(&mut self, office: &Office) -> Result<usize, RelayError> {
        let Home { steward, orders } = self;
        let mut moved = 0;
        for orders in orders {
            moved += orders.take(steward, office)? + orders.send(steward, office);
        }
        Ok(moved)
    }
}

impl Orders {
    fn new(link: &Link) -> Option<Orders> {
        let (side, neighbour, port) = (link.side(), link.neighbour(), link.port());
        let (incoming, outgoing) = (link.orders_in()?, link.orders_out()?);
        Some(Orders { side, neighbour, port, incoming, outgoing, mended: [0; 2] })
    }

    fn ring(&self, counters: &RelayCounters) {
        self.port.ring(FORWARDER_DOORBELL);
        count(&counters.doorbells, 1);
    }

    fn look_after(&mut self, now: Instant, up: bool, counters: &RelayCounters) -> Result<(), RelayError> {
        let to = self.neighbour;
        if up && self.outgoing.look_after(now).map_err(|error| RelayError::GaveUp { to, error })? {
            self.ring(counters);
        }
        let mended = [self.incoming.damaged(), self.outgoing.resent()];
        let before = std::mem::replace(&mut self.mended, mended);
        count(&counters.damaged[self.side as usize], mended[0] - before[0]);
        count(&counters.resent[self.side as usize], mended[1] - before[1]);
        Ok(())
    }

    fn take(&mut self, steward: &mut Steward, office: &Office) -> Result<usize, RelayError> {
        let from = self.neighbour;
        for taken in 0..ORDERS {
            let entry = self.incoming.take().map_err(|error| RelayError::Corrupt { from, error })?;
            let Some(entry) = entry else { return Ok(taken) };
            if entry.kind != MANAGE {
                return Err(wrong(from, &entry, None, "it is not a packet of the network manager"));
            }
            let mut bytes = vec![0; entry.len];
            self.incoming.window().read(entry.offset, &mut bytes);
            steward.take(self.side, &bytes).map_err(|error| RelayError::Manager { from, error })?;
            if self.incoming.release() {
                count(&office.counters.head_updates, 1);
                self.ring(&office.counters);
            }
        }
        Ok(ORDERS)
    }

    fn send(&mut self, steward: &mut Steward, office: &Office) -> usize {
        let mut sent = 0;
        while let Some(packet) = steward.next(self.side) {
            // Every packet fits an empty lane: see the test `every_packet_fits_the_smallest_lane_that_is_checked`.
            let Some(mut slot) = self.outgoing.reserve(packet.len()) else { break };
            slot.write_bytes(0, packet);
            slot.commit(MANAGE, packet.len(), 0);
            self.ring(&office.counters);
            steward.sent(self.side);
            sent += 1;
        }
        sent
    }
}
