//! Driver of the network manager in a job whose links may go down (`NTBRING_RELIABILITY=retry`). Each host's forwarder
//! has a manager driver, which reports link states to the [`Manager`], carries its packets, and publishes the routes of
//! its tables to the host's ranks.
//!
//! The module contains no I/O: its inputs are the states of ports, packets and the time; its outputs are packets and
//! the routing table ([`RoutingTable`]).

use super::hysteresis::{HealthChange, LinkHealth};
use super::routing_table::RoutingTable;
use crate::topology::Topology;
use ntbring_manager::{Action, Event, Hwid, Manager, ManagerError, Rules};
use ntbring_ntb::{LinkState, Side};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Entry kind of a packet of the manager, for the forwarder that finds it in its control lane.
pub(crate) const MANAGE: u8 = 14;

/// Interval between two polls of the ports.
const LOOK: Duration = Duration::from_millis(10);

/// Longest sleep of a thread that must notice link outages, since an outage rings no doorbell.
const SLEEP: Duration = Duration::from_millis(50);
/// Shortest sleep of such a thread.
const NAP: Duration = Duration::from_millis(1);

/// Time that hosts have at the start to find all links, once they have found each other. Until it is over, tables with
/// routes that are not the shortest are not published: packets take the shortest route by default.
const SETTLING: Duration = Duration::from_millis(200);
/// Time that hosts have at the start to find each other. Until it is over, an incomplete table is not published, since
/// some hosts may not have started yet.
const GRACE: Duration = Duration::from_secs(2);

/// Maximum number of packets that wait for room in a lane. The manager repeats all packets that matter, so the oldest
/// may be discarded.
const UNSENT_MAX: usize = 64;

/// Rules of the manager. The ports at the ends of a link detect when it goes down, so a missing answer proves little.
/// Either a request was put into a link that was already down unnoticed; then it should be repeated. Or threads do not
/// get a core, as with many hosts on one machine; then more requests make it worse, and no host should be given up
/// soon.
const RULES: Rules =
    Rules { classes: 2, reply_timeout: Duration::from_millis(100), tries: 100, poll: Duration::from_millis(500) };

/// Driver of one host's network manager; keeps the host's routes up to date.
pub struct ManagerDriver {
    topology: Arc<Topology>,
    host: usize,
    manager: Manager,
    routes: RoutingTable,
    /// Side by which each host is reached: as published, or the default routes before anything is published.
    sides: Vec<Option<Side>>,
    /// Set once the initial discovery is over; every table is published from then on.
    discovered: bool,
    links: [LinkHealth; 2],
    /// Packets that wait for room in a lane, by side.
    unsent: [VecDeque<Vec<u8>>; 2],
    start: Instant,
    /// Time of the latest [`ManagerDriver::attend`], since the start.
    now: Duration,
    /// Time of the next poll of the ports, since the start.
    look: Duration,
    /// Time of the manager's next timer, since the start.
    due: Option<Duration>,
    reroutes: u64,
}

impl ManagerDriver {
    /// Creates the manager driver of a host, which has not observed its links yet.
    pub fn new(topology: Arc<Topology>, host: usize, routes: RoutingTable, start: Instant) -> ManagerDriver {
        let mut manager_driver = ManagerDriver {
            host,
            manager: Manager::new(Hwid(host as u64), RULES),
            routes,
            sides: (0..topology.hosts()).map(|to| Some(topology.direction(host, to))).collect(),
            topology,
            discovered: false,
            links: Default::default(),
            unsent: Default::default(),
            start,
            now: Duration::ZERO,
            look: Duration::ZERO,
            due: None,
            reroutes: 0,
        };
        manager_driver.pass_event(Event::Busy(true));
        manager_driver
    }

    /// Returns true if the link on a side can be used.
    pub fn is_up(&self, side: Side) -> bool {
        self.links[side as usize].is_up()
    }

    /// Returns the number of route changes after the first publication.
    pub fn reroutes(&self) -> u64 {
        self.reroutes
    }

    /// Returns the time after the latest [`ManagerDriver::attend`] until the next call is needed.
    pub fn rest(&self) -> Duration {
        self.due.map_or(SLEEP, |due| due.saturating_sub(self.now)).clamp(NAP, SLEEP)
    }

    /// Polls the links at intervals, and runs timers that are due. To be called often.
    pub fn attend(&mut self, now: Instant, link: impl Fn(Side) -> LinkState) {
        self.now = now.saturating_duration_since(self.start).max(self.now);
        if self.now >= self.look {
            self.look = self.now + LOOK;
            // Both sides are polled before any change is handled: packets that cannot leave by one side may leave by
            // the other.
            let changes = Side::BOTH.map(|side| (side, self.links[side as usize].look(self.now, link(side))));
            for (side, change) in changes {
                change.into_iter().for_each(|change| self.changed(side, change));
            }
            if !self.discovered && self.now >= SETTLING {
                self.follow();
            }
        }
        if self.due.is_some_and(|due| self.now >= due) {
            self.pass_event(Event::Tick);
        }
    }

    /// Processes a packet that has arrived on a side. Fails if the manager cannot parse it.
    pub fn take(&mut self, side: Side, bytes: &[u8]) -> Result<(), ManagerError> {
        self.event(Event::Packet { port: side as u8, bytes })
    }

    /// Returns the next packet to be sent on a side.
    pub fn next(&self, side: Side) -> Option<&[u8]> {
        self.unsent[side as usize].front().map(Vec::as_slice)
    }

    /// Removes the packet that [`ManagerDriver::next`] has returned for a side; to be called when it was sent.
    pub fn sent(&mut self, side: Side) {
        self.unsent[side as usize].pop_front();
    }

    /// Passes the manager an event that it cannot refuse.
    fn pass_event(&mut self, event: Event<'_>) {
        if let Err(error) = self.event(event) {
            log::error!("host {}: {error}", self.host);
        }
    }

    fn event(&mut self, event: Event<'_>) -> Result<(), ManagerError> {
        let mut news = false;
        for action in self.manager.step(self.now, event)? {
            match action {
                Action::Send { port, bytes } => self.post(port, bytes),
                Action::Timer(due) => self.due = due,
                Action::Table { .. } => news = true,
                Action::Master(master) => {
                    log::debug!("host {}: the master is host {master}", self.host);
                    self.routes.agree(self.manager.table().lid(), master.0 as usize);
                }
            }
        }
        if news {
            self.routes.agree(self.manager.table().lid(), self.manager.master().0 as usize);
            self.follow();
        }
        Ok(())
    }

    fn post(&mut self, port: u8, bytes: Vec<u8>) {
        let Some(side) = side_of(port).filter(|side| self.is_up(*side)) else { return };
        let unsent = &mut self.unsent[side as usize];
        if unsent.len() == UNSENT_MAX {
            unsent.pop_front();
        }
        unsent.push_back(bytes);
    }

    /// Handles a state change of the link on a side.
    fn changed(&mut self, side: Side, change: HealthChange) {
        let (host, to, port) = (self.host, self.topology.neighbour(self.host, side), side as u8);
        match change {
            HealthChange::Down { proven } => {
                self.unsent[side as usize].clear();
                // Ranks reverse direction at once, without waiting for the new table.
                let news = self.publish(self.sides.clone()).unwrap_or_else(|| "no route changes".into());
                // A flapping link causes one warning only.
                let level = if proven { log::Level::Warn } else { log::Level::Info };
                log::log!(level, "host {host}: the {side} link, to host {to}, is down; {news}");
                self.pass_event(Event::PortDown { port });
            }
            HealthChange::Up { weight } => {
                let level = if change.is_plain() { log::Level::Debug } else { log::Level::Info };
                log::log!(level, "host {host}: the {side} link, to host {to}, is up; a hop over it counts as {weight}");
                self.pass_event(Event::PortUp { port, weight });
            }
        }
    }

    /// Returns true if the table is complete, as far as this can be decided at the start: all routes are shortest ones;
    /// after [`SETTLING`], all hosts are reached; after [`GRACE`], any table counts as complete.
    fn is_complete(&self) -> bool {
        let (table, mut all) = (self.manager.table(), 0..self.topology.hosts());
        let hops = |host: usize| table.host(Hwid(host as u64)).map(|entry| entry.path.len());
        let shortest = |host: usize| hops(host) == Some(self.topology.distance(self.host, host));
        if self.now < SETTLING {
            all.all(shortest)
        } else {
            self.now >= GRACE || all.all(|host| hops(host).is_some())
        }
    }

    /// Publishes the routes of the manager's table.
    fn follow(&mut self) {
        self.discovered = self.discovered || self.is_complete();
        if !self.discovered {
            return;
        }
        let table = self.manager.table();
        let side = |host: usize| table.host(Hwid(host as u64))?.path.get(0).and_then(side_of);
        let sides = (0..self.topology.hosts()).map(side).collect();
        let first = !self.routes.read().is_published();
        let Some(news) = self.publish(sides) else { return };
        let lost = (0..self.sides.len()).any(|host| self.sides[host].is_none());
        let level = match (lost, first) {
            (true, _) => log::Level::Warn,
            (false, false) => log::Level::Info,
            (false, true) => log::Level::Debug,
        };
        log::log!(level, "host {}: {news}", self.host);
    }

    /// Publishes routes; a route whose first link is down is replaced by the one through the other side. Returns a
    /// description of the changes, if there are any.
    fn publish(&mut self, wanted: Vec<Option<Side>>) -> Option<String> {
        let usable = |side: Side| [side, side.opposite()].into_iter().find(|side| self.is_up(*side));
        let mut sides: Vec<_> = wanted.into_iter().map(|side| side.and_then(usable)).collect();
        // No packet is sent to the own host; a constant entry keeps it from counting as a change.
        sides[self.host] = Some(Side::Right);
        let first = !self.routes.read().is_published();
        let changed = self.routes.publish(&sides);
        self.reroutes += u64::from(changed && !first);
        let before = std::mem::replace(&mut self.sides, sides);
        describe(&before, &self.sides)
    }

    /// Returns a line on each link and one on the routes, for the diagnosis of a hang.
    pub fn describe(&self) -> Vec<String> {
        let link = |side: Side| format!("forwarder: {side} link {:?}", self.links[side as usize]);
        let mut lines: Vec<String> = Side::BOTH.map(link).into();
        lines.push(format!(
            "forwarder: hosts are reached to the {:?}, generation {}, master {}, {:?} packets wait",
            self.sides,
            self.routes.read().generation(),
            self.manager.master(),
            [0, 1].map(|side: usize| self.unsent[side].len())
        ));
        lines
    }
}

/// Returns the side of a manager's port. Port 0 is the left one.
fn side_of(port: u8) -> Option<Side> {
    Side::BOTH.get(usize::from(port)).copied()
}

/// Describes the differences in words: `hosts 2, 3 are now reached to the left`. Returns None if there are none.
fn describe(before: &[Option<Side>], after: &[Option<Side>]) -> Option<String> {
    let changed = |to: Option<Side>| {
        let hosts: Vec<usize> = (0..after.len()).filter(|&host| after[host] == to && before[host] != to).collect();
        let names = hosts.iter().map(usize::to_string).collect::<Vec<_>>().join(", ");
        let (hosts, are) = match hosts.len() {
            0 => return None,
            1 => ("host", "is"),
            _ => ("hosts", "are"),
        };
        Some(match to {
            Some(side) => format!("{hosts} {names} {are} now reached to the {side}"),
            None => format!("{hosts} {names} cannot be reached any more"),
        })
    };
    let parts: Vec<String> = [Some(Side::Left), Some(Side::Right), None].into_iter().filter_map(changed).collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

#[cfg(test)]
mod tests;
