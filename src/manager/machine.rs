//! The manager of one host, as a state machine.

use super::discovery::{Discovery, Found};
use super::events::{Action, Event, ManagerError};
use super::format::PacketError;
use super::packet::{Body, Header, Method};
use super::ports::PortStates;
use super::record::{Ports, Record, Stamp, EPOCH_MAX};
use super::role::{Lead, Look, Role, Watch};
use super::table::{Assembly, Fragment, Table};
use super::{Graph, Hwid, Lid, Path, Rules};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// The manager of one host.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Manager {
    hwid: Hwid,
    rules: Rules,
    ports: PortStates,
    busy: bool,
    /// Number of the last search.
    round: u32,
    discovery: Option<Discovery>,
    /// True if something has changed since the current search began.
    again: bool,
    /// Result of the last completed search.
    graph: Graph,
    /// Local ids that hosts had at that time, if any of them is used by a job.
    lids: Option<Vec<(Hwid, Lid)>>,
    role: Role,
    table: Arc<Table>,
    assembly: Option<Assembly>,
    /// Largest epoch of any host seen so far.
    epoch: u64,
    timer: Option<Duration>,
}

impl Manager {
    /// Returns the manager of a host whose ports are all down: the master of a network with one host.
    pub fn new(hwid: Hwid, rules: Rules) -> Manager {
        let graph = Graph::new(hwid, BTreeMap::from([(hwid, Ports::default())]));
        Manager {
            hwid,
            rules,
            ports: PortStates::new(),
            busy: false,
            round: 0,
            discovery: None,
            again: false,
            role: Role::Master(Lead::new(graph.clone())),
            graph,
            lids: None,
            table: Arc::new(Table::alone(hwid, rules.classes)),
            assembly: None,
            epoch: 1,
            timer: None,
        }
    }

    /// Hardware id of this host.
    pub fn hwid(&self) -> Hwid {
        self.hwid
    }

    /// The host that this host considers the master.
    pub fn master(&self) -> Hwid {
        match &self.role {
            Role::Master(_) => self.hwid,
            Role::Standby(watch) => watch.master,
        }
    }

    /// The newest routing table of this host.
    pub fn table(&self) -> &Arc<Table> {
        &self.table
    }

    /// The record that this host sends to others.
    pub fn record(&self) -> Record {
        Record {
            hwid: self.hwid,
            stamp: self.table.stamp(),
            master: self.master(),
            lid: self.table.lid(),
            busy: self.busy,
            ports: self.ports.record(),
        }
    }

    /// Processes an event; returns the actions to take, in order.
    pub fn step(&mut self, now: Duration, event: Event<'_>) -> Result<Vec<Action>, ManagerError> {
        let (mut out, master) = (Vec::new(), self.master());
        let changed = match event {
            Event::PortUp { port, weight } => {
                let changed = self.ports.up(now, port, weight)?;
                self.greet(now, &mut out);
                changed
            }
            Event::PortDown { port } => self.ports.down(port)?,
            Event::Packet { port, bytes } => {
                self.packet(now, port, bytes, &mut out).map_err(|error| ManagerError::Packet { port, error })?
            }
            Event::Tick => self.tick(now, &mut out),
            Event::Busy(busy) => {
                self.busy = busy;
                false
            }
        };
        if changed {
            self.search(now, None, &mut out);
        }
        self.conclude(now, &mut out);
        if self.master() != master {
            out.push(Action::Master(self.master()));
        }
        let due = self.due();
        if due != self.timer {
            self.timer = due;
            out.push(Action::Timer(due));
        }
        Ok(out)
    }

    /// Sends requests through ports at which no neighbour is known yet.
    fn greet(&mut self, now: Duration, out: &mut Vec<Action>) {
        let ways = self.ports.greetings(now, self.rules.poll);
        self.ask(ways, out);
    }

    /// Runs the timers that are due. Returns true if a search must begin.
    fn tick(&mut self, now: Duration, out: &mut Vec<Action>) -> bool {
        self.greet(now, out);
        let (ways, search) = match (&mut self.discovery, &mut self.role) {
            (Some(discovery), _) => (discovery.overdue(now, &self.rules), false),
            (None, Role::Master(_)) => (Vec::new(), false),
            (None, Role::Standby(watch)) => match watch.look(now, &self.rules) {
                Look::Wait => (Vec::new(), false),
                Look::Ask => (vec![watch.way], false),
                Look::Search => (Vec::new(), true),
            },
        };
        self.ask(ways, out);
        search
    }

    /// Time at which the next [`Event::Tick`] is due.
    pub fn due(&self) -> Option<Duration> {
        let watch = match (&self.discovery, &self.role) {
            (Some(discovery), _) => discovery.due(),
            (None, Role::Standby(watch)) => Some(watch.due),
            (None, Role::Master(_)) => None,
        };
        self.ports.due().into_iter().chain(watch).min()
    }

    /// Processes a packet. Returns true if a search must begin.
    fn packet(&mut self, now: Duration, port: u8, bytes: &[u8], out: &mut Vec<Action>) -> Result<bool, PacketError> {
        let (mut header, payload) = Header::parse(bytes)?;
        // A packet that has already arrived at its destination cannot come in by a port.
        let Some(backward) = header.backward.then(port).filter(|_| !header.has_arrived()) else {
            return Err(PacketError::Value("path counter"));
        };
        header.backward = backward;
        if !self.ports.is_up(port) {
            // The packet was on the cable when the link went down, or the link is coming up and this host has not been
            // informed yet.
            return Ok(false);
        }
        if let Some(next) = header.next() {
            self.forward(&header, next, payload, out);
            return Ok(false);
        }
        let way = header.backward.reversed();
        match Body::parse(header.method, payload)? {
            Body::Ask(record) => {
                let changed = self.meet(port, &header, &record);
                let answer = Body::Answer(self.record()).packet(header.round, way);
                self.send(way, answer, out);
                Ok(self.heard(now, way, &record, out) || changed)
            }
            Body::Answer(record) => {
                let changed = self.meet(port, &header, &record);
                if header.round == self.round {
                    match (&mut self.discovery, &mut self.role) {
                        (Some(discovery), _) => discovery.answered(way, record),
                        (None, Role::Standby(watch)) if watch.way == way && watch.master == record.hwid => {
                            watch.answered(record.master, now, &self.rules);
                        }
                        _ => {}
                    }
                }
                Ok(changed)
            }
            Body::Returned(way) if header.round == self.round => match (&mut self.discovery, &self.role) {
                (Some(discovery), _) => {
                    discovery.returned(way);
                    Ok(false)
                }
                (None, Role::Standby(watch)) => Ok(watch.way == way),
                (None, Role::Master(_)) => Ok(false),
            },
            Body::Returned(_) => Ok(false),
            Body::Table(fragment) => self.fragment(now, way, &fragment, out),
        }
    }

    /// Forwards a packet; a request that cannot be forwarded is returned to its sender.
    fn forward(&self, header: &Header, next: u8, payload: &[u8], out: &mut Vec<Action>) {
        if self.ports.is_up(next) {
            out.push(Action::Send { port: next, bytes: header.with(payload) });
        } else if header.method == Method::Ask {
            let back = header.backward.reversed();
            self.send(back, Body::Returned(header.forward).packet(header.round, back), out);
        }
    }

    /// Sends a packet along a path, unless the first port is down.
    fn send(&self, way: Path, bytes: Vec<u8>, out: &mut Vec<Action>) {
        if let Some(port) = way.get(0).filter(|port| self.ports.is_up(*port)) {
            out.push(Action::Send { port, bytes });
        }
    }

    fn ask(&self, ways: Vec<Path>, out: &mut Vec<Action>) {
        let question = Body::Ask(self.record());
        for way in ways {
            self.send(way, question.packet(self.round, way), out);
        }
    }

    /// Learns the neighbour at a port from a packet of one hop. Returns true if the neighbour is new.
    fn meet(&mut self, port: u8, header: &Header, record: &Record) -> bool {
        let (1, Some(there)) = (header.forward.len(), header.forward.get(0)) else { return false };
        self.ports.meet(port, record.hwid, there)
    }

    /// Processes a request from the host at the end of `way`, with its record. Returns true if a search must begin.
    fn heard(&mut self, now: Duration, way: Path, record: &Record, out: &mut Vec<Action>) -> bool {
        match (&mut self.discovery, &self.role) {
            (Some(discovery), _) => {
                self.again |= discovery.heard(way, record);
                false
            }
            (None, Role::Master(_)) if self.graph.ports(record.hwid) != Some(&record.ports) => {
                // The host need not be asked again, possibly over a link that is down at its end.
                self.search(now, Some((way, *record)), out);
                false
            }
            (None, Role::Master(_)) => {
                let (theirs, ours) = (record.stamp, self.table.stamp());
                if theirs > ours {
                    self.epoch = self.epoch.max(theirs.epoch);
                    self.publish(now, out);
                } else if theirs < ours {
                    self.send_table(record.hwid, now, true, out);
                }
                false
            }
            // A host that considers this one the master may have information that this one lacks.
            (None, Role::Standby(_)) => record.master == self.hwid,
        }
    }

    /// Begins a search, optionally with the record of a host at the end of a path as if it had replied. A search in
    /// progress is abandoned, because its requests may be stuck.
    fn search(&mut self, now: Duration, with: Option<(Path, Record)>, out: &mut Vec<Action>) {
        self.round = self.round.wrapping_add(1);
        self.again = false;
        let mut discovery = Discovery::new(self.record());
        with.into_iter().for_each(|(way, record)| discovery.begin_with(way, record));
        self.discovery = Some(discovery);
        self.explore(now, out);
    }

    fn explore(&mut self, now: Duration, out: &mut Vec<Action>) {
        if let Some(discovery) = &mut self.discovery {
            let ways = discovery.questions(now, &self.rules);
            self.ask(ways, out);
        }
    }

    /// Continues a search, and acts on its result when it is complete.
    fn conclude(&mut self, now: Duration, out: &mut Vec<Action>) {
        self.explore(now, out);
        while let Some(discovery) = self.discovery.take_if(|discovery| discovery.is_over()) {
            if self.again {
                self.search(now, None, out);
                continue;
            }
            let Found { graph, stamps, lids, busy } = discovery.result();
            let reached = graph.search();
            (self.graph, self.lids) = (graph, busy.then_some(lids));
            let newest = stamps.iter().map(|(_, stamp)| stamp.epoch).max();
            self.epoch = self.epoch.max(newest.unwrap_or(0));
            match reached.into_iter().min() {
                Some((master, way)) if master != self.hwid => {
                    self.role = Role::Standby(Watch::new(master, way, now));
                    self.tick(now, out);
                }
                _ => self.lead(now, &stamps, out),
            }
        }
    }

    /// Acts as the master: computes new tables if anything is new, otherwise sends tables to hosts with an outdated
    /// one.
    fn lead(&mut self, now: Duration, stamps: &[(Hwid, Stamp)], out: &mut Vec<Action>) {
        let ours = self.table.stamp();
        let same = matches!(&self.role, Role::Master(lead) if lead.graph == self.graph) && ours.master == self.hwid;
        let newer = self.epoch > ours.epoch || stamps.iter().any(|(_, theirs)| *theirs > ours);
        if !same || newer {
            return self.publish(now, out);
        }
        for (hwid, _) in stamps.iter().filter(|(_, theirs)| *theirs < ours) {
            self.send_table(*hwid, now, true, out);
        }
    }

    /// Computes tables for the discovered network, newer than all existing ones, and sends them.
    fn publish(&mut self, now: Duration, out: &mut Vec<Action>) {
        self.epoch = (self.epoch + 1).min(EPOCH_MAX);
        // Local ids given by this master take precedence over those given by another.
        let own = self.table.hosts().iter().map(|entry| (entry.hwid, entry.lid));
        let kept: Option<Vec<_>> = self.lids.as_ref().map(|lids| own.chain(lids.iter().copied()).collect());
        let (lead, own) = Lead::plan(self.graph.clone(), self.hwid, self.epoch, &self.rules, kept.as_deref());
        let hosts = lead.hosts();
        self.role = Role::Master(lead);
        if let Some(own) = own {
            self.adopt(own, out);
        }
        for host in hosts {
            self.send_table(host, now, false, out);
        }
    }

    /// Sends a host its table.
    fn send_table(&mut self, host: Hwid, now: Duration, again: bool, out: &mut Vec<Action>) {
        let Role::Master(lead) = &mut self.role else { return };
        let packets = match again {
            true => lead.send_again(host, now, self.round, &self.rules),
            false => lead.send(host, now, self.round),
        };
        for (way, packet) in packets {
            self.send(way, packet, out);
        }
    }

    /// Processes a chunk of a table. `way` is the path back to its sender. Returns true if a search must begin.
    fn fragment(
        &mut self,
        now: Duration,
        way: Path,
        fragment: &Fragment<'_>,
        out: &mut Vec<Action>,
    ) -> Result<bool, PacketError> {
        let sender = fragment.stamp.master;
        if fragment.stamp <= self.table.stamp() || sender == self.hwid {
            return Ok(false);
        }
        if sender > self.hwid && matches!(self.role, Role::Master(_)) {
            // The sender does not know yet that there is a host with a smaller id.
            self.epoch = self.epoch.max(fragment.stamp.epoch);
            return Ok(self.discovery.is_none());
        }
        let Some(bytes) = Assembly::add(&mut self.assembly, fragment) else { return Ok(false) };
        let table = Table::parse(&bytes)?;
        let ours = table.host(self.hwid).map(|entry| entry.lid) == Some(table.lid());
        if !ours || table.stamp() != fragment.stamp || table.classes() != self.rules.classes {
            return Err(PacketError::Value("table for another host"));
        }
        self.epoch = self.epoch.max(fragment.stamp.epoch);
        self.adopt(table, out);
        let master = self.master();
        match &mut self.role {
            _ if sender < master => self.role = Role::Standby(Watch::new(sender, way, now + self.rules.poll)),
            // The sender has not discovered this host's master: check that the master is still there.
            Role::Standby(watch) if sender > master => watch.due = now,
            // The path used for requests may be one that the master no longer uses.
            Role::Standby(watch) if sender == master => watch.way = way,
            _ => {}
        }
        Ok(self.tick(now, out))
    }

    fn adopt(&mut self, table: Table, out: &mut Vec<Action>) {
        let renumbered = self.table.renumbers(&table);
        self.table = Arc::new(table);
        out.push(Action::Table { table: self.table.clone(), renumbered });
    }
}
