//! Breadth-first search: a host asks its neighbours who theirs are, then those, and so on.
//!
//! All that are known are asked at once, so a search takes about as long as twice the way to the
//! host furthest away. What is found does not depend on the order in which answers come.

use super::record::{Record, Stamp};
use super::{Graph, Hwid, Lid, Path, Rules, HOSTS_MAX};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// A question that waits for its answer.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Question {
    /// Who is said to be there.
    expected: Hwid,
    /// How often it was put.
    asked: u8,
    /// When it is put again, or given up.
    due: Duration,
}

/// A search that is going on.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Discovery {
    root: Hwid,
    found: BTreeMap<Hwid, (Record, Path)>,
    open: BTreeMap<Path, Question>,
    /// Ways that lead nowhere, or not to whom they should.
    failed: BTreeSet<Path>,
}

/// What a search has found.
pub(super) struct Found {
    /// Hosts and links.
    pub graph: Graph,
    /// Which table each of the others has.
    pub stamps: Vec<(Hwid, Stamp)>,
    /// The local ids that all have; some may have the same.
    pub lids: Vec<(Hwid, Lid)>,
    /// Whether any host is used by a job.
    pub busy: bool,
}

impl Discovery {
    /// The search of a host that knows only itself.
    pub fn new(own: Record) -> Discovery {
        let found = BTreeMap::from([(own.hwid, (own, Path::EMPTY))]);
        Discovery { root: own.hwid, found, open: BTreeMap::new(), failed: BTreeSet::new() }
    }

    /// The ways of the questions that can be put now for the first time.
    pub fn questions(&mut self, now: Duration, rules: &Rules) -> Vec<Path> {
        let mut expected: BTreeSet<Hwid> = self.open.values().map(|question| question.expected).collect();
        let mut ways = Vec::new();
        for (record, path) in self.found.values() {
            for (port, peer) in record.ports.iter().enumerate() {
                let (Some(peer), Some(way)) = (peer, path.then(port as u8)) else { continue };
                let wanted = !self.found.contains_key(&peer.hwid) && !self.failed.contains(&way);
                let room = self.found.len() + expected.len() < HOSTS_MAX;
                if wanted && room && expected.insert(peer.hwid) {
                    ways.push(way);
                    let question = Question { expected: peer.hwid, asked: 1, due: now + rules.patience };
                    self.open.insert(way, question);
                }
            }
        }
        ways
    }

    /// The host at the end of a way has answered.
    pub fn answered(&mut self, way: Path, record: Record) {
        let Some(question) = self.open.remove(&way) else { return };
        if question.expected != record.hwid {
            // Somebody is wrong about this cable; who, will be seen in their records.
            self.failed.insert(way);
        }
        self.found.entry(record.hwid).or_insert((record, way));
    }

    /// A question has met a port that is down.
    pub fn returned(&mut self, way: Path) {
        if self.open.remove(&way).is_some() {
            self.failed.insert(way);
        }
    }

    /// The ways of the questions that are to be put again. Those that were put often enough are given up.
    pub fn overdue(&mut self, now: Duration, rules: &Rules) -> Vec<Path> {
        let given_up = |question: &Question| question.due <= now && question.asked >= rules.tries;
        let gone: Vec<Path> = self.open.iter().filter(|(_, q)| given_up(q)).map(|(way, _)| *way).collect();
        gone.into_iter().for_each(|way| self.returned(way));
        let overdue = self.open.iter_mut().filter(|(_, question)| question.due <= now);
        overdue
            .map(|(way, question)| {
                (question.asked, question.due) = (question.asked + 1, now + rules.patience);
                *way
            })
            .collect()
    }

    /// When [`Discovery::overdue`] will have something to say.
    pub fn due(&self) -> Option<Duration> {
        self.open.values().map(|question| question.due).min()
    }

    /// A host has said of itself, unasked, what it would answer; `way` leads to it. Whether it has told this search something
    /// else of its ports before.
    ///
    /// Whoever is said to be at the end of a way, and does not hear what comes by it, is found so: a link may be down at one
    /// end only.
    pub fn heard(&mut self, way: Path, record: &Record) -> bool {
        if let Some((before, _)) = self.found.get(&record.hwid) {
            return before.ports != record.ports;
        }
        if self.open.values().any(|question| question.expected == record.hwid) {
            self.begin_with(way, *record);
        }
        false
    }

    /// Takes a host for found that has said of itself what it would answer.
    pub fn begin_with(&mut self, way: Path, record: Record) {
        if record.hwid != self.root {
            self.open.retain(|_, question| question.expected != record.hwid);
            self.found.insert(record.hwid, (record, way));
        }
    }

    /// Whether nothing is open any more.
    pub fn is_over(&self) -> bool {
        self.open.is_empty()
    }

    /// What was found.
    pub fn result(self) -> Found {
        let others = self.found.values().filter(|(record, _)| record.hwid != self.root);
        let stamps = others.map(|(record, _)| (record.hwid, record.stamp)).collect();
        let busy = self.found.values().any(|(record, _)| record.busy);
        let lids = self.found.values().map(|(record, _)| (record.hwid, record.lid)).collect();
        let hosts = self.found.into_iter().map(|(hwid, (record, _))| (hwid, record.ports)).collect();
        Found { graph: Graph::new(self.root, hosts), stamps, lids, busy }
    }
}
