//! Forwarding: packets that have arrived from one neighbour and are for hosts beyond this one are sent on to the other
//! neighbour.
//!
//! A packet is an entry of a lane whose kind has [`ROUTED`] set; its bytes begin with a [`Route`]. Packets of one class
//! that leave to the same side form a transit channel. Urgent packets have priority over bulk packets: between two bulk
//! chunks of an input, all urgent inputs have a turn. A turn is limited to a few packets, so that bulk packets do not
//! starve either.
//!
//! In rings that reroute around links that are down, a [`ManagerDriver`] observes the links. Packets whose next link is
//! down are dropped: their sender still holds them for retransmission, and learns the other route from its host's
//! manager driver.

use super::forwarder_state::ForwarderState;
use super::relay_counters::count;
pub use super::relay_counters::RelayCounters;
use super::route::{wrong, Allowed};
pub use super::route::{RelayError, Route, ROUTED};
use super::thread_split::thread_of;
use super::transit_channel::{ForwarderContext, TransitChannel};
use crate::gateway::Gateway;
use crate::layout::Class;
use crate::link::Link;
use crate::membership::Membership;
use crate::protocol::FORWARDER_DOORBELL;
use crate::rerouting::manager_driver::{ManagerDriver, MANAGE};
use ntbring_ntb::{Port, Side};
use ntbring_queue::{Consumer, Producer};
use std::sync::atomic::Ordering;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Maximum number of rounds over the bulk transit channels in one step.
const ROUNDS: usize = 8;

/// Maximum number of manager packets that are taken from a neighbour in one step.
const CONTROL_PACKETS: usize = 8;

/// The control lanes between the manager drivers of two neighbours.
struct ControlLanes {
    side: Side,
    neighbour: usize,
    port: Arc<dyn Port>,
    incoming: Consumer,
    outgoing: Producer,
    /// Numbers of damaged and of retransmitted packets, as counted so far.
    counted: [u64; 2],
}

/// The host's manager driver and its control lanes to the neighbours.
struct HostManager {
    manager_driver: ManagerDriver,
    control: Vec<ControlLanes>,
}

/// A host's forwarder, or one forwarder thread's part of it. It has its own lanes, so the forwarder and the ranks do
/// not contend for lanes.
pub struct Forwarder {
    context: Arc<ForwarderContext>,
    /// Set in the part that handles the state which all parts share.
    leads: bool,
    /// Transit channels of the urgent class, and, in the next field, those of the bulk class.
    urgent: Vec<TransitChannel>,
    bulk: Vec<TransitChannel>,
    /// Set if its links may damage packets (`detect` or `retry`).
    checked: bool,
    /// The manager driver and its lanes; only in the leading part, in rings that reroute around links that are down.
    host_manager: Option<HostManager>,
    /// The gateway; only in the leading part.
    gateway: Option<Gateway>,
}

impl Forwarder {
    /// Creates the forwarder of this process's host, with its two links, left first.
    pub fn new(members: &Arc<Membership>, links: [&Link; 2], counters: Arc<RelayCounters>) -> Forwarder {
        Self::per_thread(members, links, counters, 1).pop().expect("one for each thread")
    }

    /// Creates the forwarder of this process's host, divided among `threads` forwarder threads
    /// ([`super::thread_split`]).
    pub fn per_thread(
        members: &Arc<Membership>,
        links: [&Link; 2],
        counters: Arc<RelayCounters>,
        threads: usize,
    ) -> Vec<Forwarder> {
        let (topology, host) = (members.topology().clone(), members.host());
        let policy = members.policy();
        let heals = policy.reroutes();
        let state = Arc::new(ForwarderState::new(members, heals, threads));
        let allowed = if heals { Allowed::Either } else { Allowed::Shorter };
        let context = Arc::new(ForwarderContext { topology: topology.clone(), host, allowed, state, counters });
        let checked = policy.is_checked();
        let part = |thread| {
            let channels = |class| {
                let mine = Side::BOTH.into_iter().filter(|side| thread_of(threads, *side, class) == thread);
                mine.filter_map(|side| TransitChannel::new(&context, links, side, class)).collect()
            };
            let host_manager = || HostManager {
                manager_driver: ManagerDriver::new(topology.clone(), host, members.routes(), Instant::now()),
                control: links.into_iter().filter_map(ControlLanes::new).collect(),
            };
            let (leads, context) = (thread == 0, context.clone());
            let (urgent, bulk) = (channels(Class::Urgent), channels(Class::Bulk));
            let mailbox = if leads { members.take_gateway_mailbox() } else { None };
            let gateway = mailbox.map(|mailbox| Gateway::new(members, mailbox, Instant::now()));
            Forwarder {
                urgent,
                bulk,
                checked,
                host_manager: (leads && heals).then(host_manager),
                gateway,
                leads,
                context,
            }
        };
        (0..threads).map(part).collect()
    }

    fn channels(&self) -> impl Iterator<Item = &TransitChannel> {
        self.urgent.iter().chain(&self.bulk)
    }

    /// Returns a version that changes with the queue of requests that wait for locks; None if no request waits, or in a
    /// part that does not lead. While it is Some, steps must be repeated without a doorbell.
    pub fn lock_queue_version(&self) -> Option<u32> {
        self.context.state.lock_queue_version().filter(|_| self.leads)
    }

    /// Returns true if its links may damage packets.
    pub fn is_checked(&self) -> bool {
        self.checked
    }

    /// Marks the host as leaving: packets in transit are still forwarded, and ranks that end from now on count as
    /// having left, not as dead. To be called when the host's ranks have nothing more to do, but other hosts' ranks
    /// may.
    pub fn leave(&self) {
        self.context.state.leave();
    }

    /// Returns the time after the latest step until the next timer, independent of doorbells; None if no timer is
    /// armed.
    pub fn rest(&self) -> Option<Duration> {
        let manager = self.host_manager.as_ref().map(|host_manager| host_manager.manager_driver.rest());
        let gateway = self.gateway.as_ref().and_then(|gateway| gateway.rest(Instant::now()));
        manager.into_iter().chain(gateway).min()
    }

    /// Returns true if an engine is copying packets: steps must be repeated without a doorbell.
    pub fn is_copying(&self) -> bool {
        self.bulk.iter().any(TransitChannel::is_copying)
    }

    /// Returns true if [`Forwarder::look_after`] has to be called soon.
    pub fn is_unsettled(&self) -> bool {
        let control = self.host_manager.iter().flat_map(|host_manager| &host_manager.control);
        let state = &self.context.state;
        self.channels().any(TransitChannel::is_unsettled)
            || control.into_iter().any(|control| state.is_up(control.side) && !control.outgoing.is_settled())
    }

    /// Checks for links that have gone down, in rings that do not reroute. To be called periodically, and before a
    /// sleep. Returns the longest sleep until the next call, if there is a limit.
    pub fn look_at_links(&self, now: Instant) -> Option<Duration> {
        self.leads.then(|| self.context.state.look_at_links(now)).flatten()
    }

    /// Handles retransmission of packets that may have been damaged or lost, and the states of links in rings that
    /// reroute.
    pub fn look_after(&mut self, now: Instant) -> Result<(), RelayError> {
        if let Some(HostManager { manager_driver, control }) = &mut self.host_manager {
            let ForwarderContext { state, counters, .. } = &*self.context;
            state.watch(now);
            manager_driver.attend(now, |side| control[side as usize].port.link());
            Side::BOTH.into_iter().for_each(|side| state.set_up(side, manager_driver.is_up(side)));
            counters.reroutes.store(manager_driver.reroutes(), Ordering::Relaxed);
            for control in control {
                control.look_after(now, state.is_up(control.side), counters)?;
            }
        }
        self.urgent.iter_mut().chain(&mut self.bulk).try_for_each(|channel| channel.look_after(now))
    }

    /// Forwards the packets that have arrived and for which there is room, a few from each input, and serves requests.
    /// Returns the number of packets and requests.
    pub fn step(&mut self) -> Result<usize, RelayError> {
        let mut moved = if self.leads { self.context.state.step() } else { 0 };
        if let Some(host_manager) = &mut self.host_manager {
            moved += host_manager.step(&self.context)?;
        }
        if let Some(gateway) = &mut self.gateway {
            moved += self.context.state.step_gateway(gateway, Instant::now);
        }
        moved += self.step_urgent()?;
        for _ in 0..ROUNDS {
            let mut bulk = 0;
            for channel in &mut self.bulk {
                bulk += channel.step()?;
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
        for channel in &mut self.urgent {
            moved += channel.step()?;
        }
        Ok(moved)
    }

    /// Returns one line on every lane that is not empty, for the diagnosis of a hang.
    pub fn describe(&self) -> Vec<String> {
        let mut lines = if self.leads { self.context.state.describe() } else { vec![] };
        lines.extend(self.host_manager.iter().flat_map(|host_manager| host_manager.manager_driver.describe()));
        lines.extend(self.gateway.iter().flat_map(Gateway::describe));
        lines.extend(self.channels().flat_map(TransitChannel::describe));
        lines
    }
}

impl HostManager {
    /// Receives packets of the neighbours' manager drivers, and sends those of this host's manager driver, as far as
    /// there is room.
    fn step(&mut self, context: &ForwarderContext) -> Result<usize, RelayError> {
        let HostManager { manager_driver, control } = self;
        let mut moved = 0;
        for control in control {
            moved += control.take(manager_driver, context)? + control.send(manager_driver, context);
        }
        Ok(moved)
    }
}

impl ControlLanes {
    fn new(link: &Link) -> Option<ControlLanes> {
        let (side, neighbour, port) = (link.side(), link.neighbour(), link.port());
        let (incoming, outgoing) = (link.control_in()?, link.control_out()?);
        Some(ControlLanes { side, neighbour, port, incoming, outgoing, counted: [0; 2] })
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
        let counted = [self.incoming.damaged(), self.outgoing.resent()];
        let before = std::mem::replace(&mut self.counted, counted);
        count(&counters.damaged[self.side as usize], counted[0] - before[0]);
        count(&counters.resent[self.side as usize], counted[1] - before[1]);
        Ok(())
    }

    fn take(&mut self, manager_driver: &mut ManagerDriver, context: &ForwarderContext) -> Result<usize, RelayError> {
        let from = self.neighbour;
        for taken in 0..CONTROL_PACKETS {
            let entry = self.incoming.take().map_err(|error| RelayError::Corrupt { from, error })?;
            let Some(entry) = entry else { return Ok(taken) };
            if entry.kind != MANAGE {
                return Err(wrong(from, &entry, None, "it is not a packet of the network manager"));
            }
            let mut bytes = vec![0; entry.len];
            self.incoming.window().read(entry.offset, &mut bytes);
            manager_driver.take(self.side, &bytes).map_err(|error| RelayError::Manager { from, error })?;
            if self.incoming.release() {
                count(&context.counters.head_updates, 1);
                self.ring(&context.counters);
            }
        }
        Ok(CONTROL_PACKETS)
    }

    fn send(&mut self, manager_driver: &mut ManagerDriver, context: &ForwarderContext) -> usize {
        let mut sent = 0;
        while let Some(packet) = manager_driver.next(self.side) {
            // Every packet fits an empty lane: see the test `every_packet_fits_the_smallest_lane_that_is_checked`.
            let Some(mut slot) = self.outgoing.reserve(packet.len()) else { break };
            slot.write_bytes(0, packet);
            slot.commit(MANAGE, packet.len(), 0);
            self.ring(&context.counters);
            manager_driver.sent(self.side);
            sent += 1;
        }
        sent
    }
}
