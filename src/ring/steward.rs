//! The network manager at work in a job whose links may go down (`NTBRING_RELIABILITY=retry`): each host's forwarder
//! has a steward, which tells the [`Manager`] what becomes of the links, carries its packets, and publishes the ways
//! that its tables say to the host's ranks.
//!
//! No I/O in here: what ports say, packets and the time in; packets, and the word of [`Ways`], out.

use super::probation::{Change, Link};
use super::ways::Ways;
use super::Topology;
use ntbring_manager::{Action, Event, Hwid, Manager, ManagerError, Rules};
use ntbring_ntb::{LinkState, Side};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The kind of an entry that is a packet of the manager, for the forwarder that finds it in its lane.
pub(super) const MANAGE: u8 = 14;

/// Between two looks at the ports.
const LOOK: Duration = Duration::from_millis(10);

/// The longest sleep of a thread that must see that a link goes down, since nobody rings for that...
const SLEEP: Duration = Duration::from_millis(50);
/// ...and the shortest.
const NAP: Duration = Duration::from_millis(1);

/// How long hosts may take to find all links at the start, when they have found each other. Until then ways that are
/// not the shortest are not published: packets go the shortest anyway...
const SETTLING: Duration = Duration::from_millis(200);
/// ...and to find each other. Until then nothing is published, since some have not begun yet.
const GRACE: Duration = Duration::from_secs(2);

/// Packets that wait for room in a lane. The manager says everything again that matters, so what is oldest may go.
const UNSENT_MAX: usize = 64;

/// A link that goes down is seen by the ports at its ends, so silence means little: either a question was put into a link
/// that was down already and nobody knew, then it should be put again; or threads do not get a core, as where there are
/// many hosts on one machine, then more questions make it worse, and nobody should be given up soon.
const RULES: Rules =
    Rules { classes: 2, patience: Duration::from_millis(100), tries: 100, poll: Duration::from_millis(500) };

/// What keeps a host's ways right.
pub struct Steward {
    topology: Arc<Topology>,
    host: usize,
    manager: Manager,
    ways: Ways,
    /// As published, or as packets go before anything is.
    sides: Vec<Option<Side>>,
    /// Whether whatever tables say is so: the first finding of each other is over.
    ripe: bool,
    links: [Link; 2],
    /// Packets that wait for room, by side.
    unsent: [VecDeque<Vec<u8>>; 2],
    start: Instant,
    /// At the latest [`Steward::attend`], since the start.
    now: Duration,
    /// When the ports are looked at next.
    look: Duration,
    /// When the manager wants to be woken.
    due: Option<Duration>,
    reroutes: u64,
}

impl Steward {
    /// The steward of a host, which has not seen its links yet.
    pub fn new(topology: Arc<Topology>, host: usize, ways: Ways, start: Instant) -> Steward {
        let mut steward = Steward {
            host,
            manager: Manager::new(Hwid(host as u64), RULES),
            ways,
            sides: (0..topology.hosts()).map(|to| Some(topology.direction(host, to))).collect(),
            topology,
            ripe: false,
            links: Default::default(),
            unsent: Default::default(),
            start,
            now: Duration::ZERO,
            look: Duration::ZERO,
            due: None,
            reroutes: 0,
        };
        steward.tell(Event::Busy(true));
        steward
    }

    /// Whether the link on a side can be used.
    pub fn is_up(&self, side: Side) -> bool {
        self.links[side as usize].is_up()
    }

    /// How often ways have changed after they were published first.
    pub fn reroutes(&self) -> u64 {
        self.reroutes
    }

    /// How long nothing has to be attended to after the latest [`Steward::attend`].
    pub fn rest(&self) -> Duration {
        self.due.map_or(SLEEP, |due| due.saturating_sub(self.now)).clamp(NAP, SLEEP)
    }

    /// To be called often: looks at the links now and then, and does what is due.
    pub fn attend(&mut self, now: Instant, link: impl Fn(Side) -> LinkState) {
        self.now = now.saturating_duration_since(self.start).max(self.now);
        if self.now >= self.look {
            self.look = self.now + LOOK;
            // Both before anything follows: what cannot go by one of them may go by the other.
            let changes = Side::BOTH.map(|side| (side, self.links[side as usize].look(self.now, link(side))));
            for (side, change) in changes {
                change.into_iter().for_each(|change| self.changed(side, change));
            }
            if !self.ripe && self.now >= SETTLING {
                self.follow();
            }
        }
        if self.due.is_some_and(|due| self.now >= due) {
            self.tell(Event::Tick);
        }
    }

    /// Takes a packet that has come by a side.
    pub fn take(&mut self, side: Side, bytes: &[u8]) -> Result<(), ManagerError> {
        self.event(Event::Packet { port: side as u8, bytes })
    }

    /// The packet that is to be sent next by a side.
    pub fn next(&self, side: Side) -> Option<&[u8]> {
        self.unsent[side as usize].front().map(Vec::as_slice)
    }

    /// It was sent.
    pub fn sent(&mut self, side: Side) {
        self.unsent[side as usize].pop_front();
    }

    /// Has the manager take an event that it cannot refuse.
    fn tell(&mut self, event: Event<'_>) {
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
                    self.ways.agree(self.manager.table().lid(), master.0 as usize);
                }
            }
        }
        if news {
            self.ways.agree(self.manager.table().lid(), self.manager.master().0 as usize);
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

    /// The link on a side has changed.
    fn changed(&mut self, side: Side, change: Change) {
        let (host, to, port) = (self.host, self.topology.neighbour(self.host, side), side as u8);
        match change {
            Change::Down { proven } => {
                self.unsent[side as usize].clear();
                // Ranks need not wait for the new table to turn round.
                let news = self.publish(self.sides.clone()).unwrap_or_else(|| "this changes no way".into());
                // A link that comes and goes is warned of once.
                let level = if proven { log::Level::Warn } else { log::Level::Info };
                log::log!(level, "host {host}: the {side} link, to host {to}, is down; {news}");
                self.tell(Event::PortDown { port });
            }
            Change::Up { weight } => {
                let level = if change.is_plain() { log::Level::Debug } else { log::Level::Info };
                log::log!(level, "host {host}: the {side} link, to host {to}, is up; a hop over it counts as {weight}");
                self.tell(Event::PortUp { port, weight });
            }
        }
    }

    /// Whether the table is what there is to be found, as far as can be told at the start.
    fn has_ripened(&self) -> bool {
        let (table, mut all) = (self.manager.table(), 0..self.topology.hosts());
        let hops = |host: usize| table.host(Hwid(host as u64)).map(|entry| entry.path.len());
        let shortest = |host: usize| hops(host) == Some(self.topology.distance(self.host, host));
        if self.now < SETTLING {
            all.all(shortest)
        } else {
            self.now >= GRACE || all.all(|host| hops(host).is_some())
        }
    }

    /// Publishes the ways of the manager's table.
    fn follow(&mut self) {
        self.ripe = self.ripe || self.has_ripened();
        if !self.ripe {
            return;
        }
        let table = self.manager.table();
        let side = |host: usize| table.host(Hwid(host as u64))?.path.get(0).and_then(side_of);
        let sides = (0..self.topology.hosts()).map(side).collect();
        let first = !self.ways.read().is_published();
        let Some(news) = self.publish(sides) else { return };
        let lost = (0..self.sides.len()).any(|host| self.sides[host].is_none());
        let level = match (lost, first) {
            (true, _) => log::Level::Warn,
            (false, false) => log::Level::Info,
            (false, true) => log::Level::Debug,
        };
        log::log!(level, "host {}: {news}", self.host);
    }

    /// Publishes ways, those that begin with a link that is down by the other side. Returns what is new, in words.
    fn publish(&mut self, wanted: Vec<Option<Side>>) -> Option<String> {
        let usable = |side: Side| [side, side.opposite()].into_iter().find(|side| self.is_up(*side));
        let mut sides: Vec<_> = wanted.into_iter().map(|side| side.and_then(usable)).collect();
        // Nothing is sent to the own host; it is to make no difference.
        sides[self.host] = Some(Side::Right);
        let first = !self.ways.read().is_published();
        let changed = self.ways.publish(&sides);
        self.reroutes += u64::from(changed && !first);
        let before = std::mem::replace(&mut self.sides, sides);
        describe(&before, &self.sides)
    }

    /// A line on each link and on the ways, for the diagnosis of a hang.
    pub fn describe(&self) -> Vec<String> {
        let link = |side: Side| format!("forwarder: {side} link {:?}", self.links[side as usize]);
        let mut lines: Vec<String> = Side::BOTH.map(link).into();
        lines.push(format!(
            "forwarder: hosts are reached to the {:?}, generation {}, master {}, {:?} packets wait",
            self.sides,
            self.ways.read().generation(),
            self.manager.master(),
            [0, 1].map(|side: usize| self.unsent[side].len())
        ));
        lines
    }
}

/// The manager's port 0 is the left one.
fn side_of(port: u8) -> Option<Side> {
    Side::BOTH.get(usize::from(port)).copied()
}

/// What is different, in words: `hosts 2, 3 are now reached to the left`. None if nothing is.
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
