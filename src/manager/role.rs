//! Roles of a host in its network: the master, or a standby that monitors the master.

use super::packet::Body;
use super::record::Stamp;
use super::routes::Plan;
use super::table::{Fragment, Table};
use super::{Graph, Hwid, Lid, Path, Rules};
use std::collections::BTreeMap;
use std::time::Duration;

/// Role of a host: master or standby.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Role {
    Master(Lead),
    Standby(Watch),
}

/// State of the master.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Lead {
    /// The network for which the tables were computed.
    pub graph: Graph,
    /// The tables of the other hosts.
    tables: BTreeMap<Hwid, Sent>,
}

/// A table that was sent.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Sent {
    way: Path,
    stamp: Stamp,
    bytes: Vec<u8>,
    last: Duration,
}

impl Lead {
    /// Returns the state of the master of a single host, or of a network for which it has computed no tables.
    pub fn new(graph: Graph) -> Lead {
        Lead { graph, tables: BTreeMap::new() }
    }

    /// Computes the tables of an epoch for a network; returns the state of the master and its own table.
    pub fn plan(
        graph: Graph,
        master: Hwid,
        epoch: u64,
        rules: &Rules,
        kept: Option<&[(Hwid, Lid)]>,
    ) -> (Lead, Option<Table>) {
        let plan = Plan::new(&graph, rules.classes, kept);
        let stamp = Stamp { epoch, master, digest: plan.digest() };
        let ways: BTreeMap<Hwid, Path> = graph.search().into_iter().collect();
        let (mut tables, mut own) = (BTreeMap::new(), None);
        for (number, &(hwid, _)) in plan.hosts().iter().enumerate() {
            let table = plan.table(stamp, number);
            match ways.get(&hwid) {
                Some(way) if !way.is_empty() => {
                    let sent = Sent { way: *way, stamp, bytes: table.bytes(), last: Duration::ZERO };
                    tables.insert(hwid, sent);
                }
                _ => own = Some(table),
            }
        }
        (Lead { graph, tables }, own)
    }

    /// All hosts that have tables.
    pub fn hosts(&self) -> Vec<Hwid> {
        self.tables.keys().copied().collect()
    }

    /// Returns the packets that carry a host's table to it.
    pub fn send(&mut self, to: Hwid, now: Duration, round: u32) -> Vec<(Path, Vec<u8>)> {
        let Some(sent) = self.tables.get_mut(&to) else { return Vec::new() };
        sent.last = now;
        let Sent { way, stamp, bytes, .. } = sent;
        Fragment::all(*stamp, bytes).map(|fragment| (*way, Body::Table(fragment).packet(round, *way))).collect()
    }

    /// Same as `send`, if the last transmission is old enough for the host to have confirmed its table.
    pub fn send_again(&mut self, to: Hwid, now: Duration, round: u32, rules: &Rules) -> Vec<(Path, Vec<u8>)> {
        match self.tables.get(&to) {
            Some(sent) if now >= sent.last + rules.reply_timeout => self.send(to, now, round),
            _ => Vec::new(),
        }
    }
}

/// State of a standby, which monitors its master.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Watch {
    pub master: Hwid,
    /// Path to the master.
    pub way: Path,
    /// Time of the next keep-alive request.
    pub due: Duration,
    /// Number of requests since the last reply.
    asked: u8,
    /// True if the host has replied that it is not the master.
    doubt: bool,
}

/// Next step of a standby.
pub(super) enum Look {
    Wait,
    /// Send a keep-alive request to the master.
    Ask,
    /// Search the network: the master does not reply, or is no longer the master.
    Search,
}

impl Watch {
    /// Returns the state of a standby that has not sent a request yet.
    pub fn new(master: Hwid, way: Path, due: Duration) -> Watch {
        Watch { master, way, due, asked: 0, doubt: false }
    }

    /// Returns the next step, and counts a request that is due.
    pub fn look(&mut self, now: Duration, rules: &Rules) -> Look {
        if now < self.due {
            Look::Wait
        } else if self.doubt || self.asked >= rules.tries {
            Look::Search
        } else {
            (self.asked, self.due) = (self.asked + 1, now + rules.reply_timeout);
            Look::Ask
        }
    }

    /// Records a reply of the master. `named` is the host that it considers the master.
    pub fn answered(&mut self, named: Hwid, now: Duration, rules: &Rules) {
        // If it names another host, that host may be new and gets time to announce itself.
        (self.asked, self.due, self.doubt) = (0, now + rules.poll, named != self.master);
    }
}
