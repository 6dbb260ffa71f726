//! What a host is in its network: the master, or a standby that watches it.

use super::packet::Body;
use super::record::Stamp;
use super::routes::Plan;
use super::table::{Piece, Table};
use super::{Graph, Hwid, Lid, Path, Rules};
use std::collections::BTreeMap;
use std::time::Duration;

/// Master or standby.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Role {
    Master(Lead),
    Standby(Watch),
}

/// What the master knows.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Lead {
    /// The network for which it has made the tables.
    pub graph: Graph,
    /// The tables of the others.
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
    /// The master of a network of one host, or of one that it makes no tables for.
    pub fn new(graph: Graph) -> Lead {
        Lead { graph, tables: BTreeMap::new() }
    }

    /// Makes the tables of an epoch for a network, and gives the master's own.
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

    /// The packets that bring a host its table.
    pub fn send(&mut self, to: Hwid, now: Duration, round: u32) -> Vec<(Path, Vec<u8>)> {
        let Some(sent) = self.tables.get_mut(&to) else { return Vec::new() };
        sent.last = now;
        let Sent { way, stamp, bytes, .. } = sent;
        Piece::all(*stamp, bytes).map(|piece| (*way, Body::Table(piece).packet(round, *way))).collect()
    }

    /// The same, if the last time is long enough ago for the host to have said that it has it.
    pub fn send_again(&mut self, to: Hwid, now: Duration, round: u32, rules: &Rules) -> Vec<(Path, Vec<u8>)> {
        match self.tables.get(&to) {
            Some(sent) if now >= sent.last + rules.patience => self.send(to, now, round),
            _ => Vec::new(),
        }
    }
}

/// What a standby knows of its master.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Watch {
    pub master: Hwid,
    /// The way there.
    pub way: Path,
    /// When it is asked next.
    pub due: Duration,
    /// Questions since its last answer.
    asked: u8,
    /// It has said that it is not the master.
    doubt: bool,
}

/// What a standby is to do next.
pub(super) enum Look {
    Wait,
    /// Ask the master.
    Ask,
    /// It does not answer, or is not what it was: look who is there.
    Search,
}

impl Watch {
    /// A standby that has not asked yet.
    pub fn new(master: Hwid, way: Path, due: Duration) -> Watch {
        Watch { master, way, due, asked: 0, doubt: false }
    }

    /// What is to be done now.
    pub fn look(&mut self, now: Duration, rules: &Rules) -> Look {
        if now < self.due {
            Look::Wait
        } else if self.doubt || self.asked >= rules.tries {
            Look::Search
        } else {
            (self.asked, self.due) = (self.asked + 1, now + rules.patience);
            Look::Ask
        }
    }

    /// The master has answered, and named the one that it takes for the master.
    pub fn answered(&mut self, named: Hwid, now: Duration, rules: &Rules) {
        // If it has named another, that one may be new: there is time for it to say so itself.
        (self.asked, self.due, self.doubt) = (0, now + rules.poll, named != self.master);
    }
}
