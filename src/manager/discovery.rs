//! Breadth-first search: a host asks its neighbours for their neighbours, then asks those, and so on.
//!
//! All known hosts are asked at once, so a search takes about twice as long as the path to the most distant host. The
//! result does not depend on the order in which replies arrive.

use super::record::{Record, Stamp};
use super::{Graph, Hwid, Lid, Path, Rules, HOSTS_MAX};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// A request that waits for its reply.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Question {
    /// Host that is expected at the end of the path.
    expected: Hwid,
    /// Number of times the request was sent.
    asked: u8,
    /// Time at which the request is repeated or given up.
    due: Duration,
}

/// A search in progress.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Discovery {
    root: Hwid,
    found: BTreeMap<Hwid, (Record, Path)>,
    open: BTreeMap<Path, Question>,
    /// Paths that lead nowhere, or not to the expected host.
    failed: BTreeSet<Path>,
}

/// Result of a search.
pub(super) struct Found {
    /// Hosts and links.
    pub graph: Graph,
    /// Version of the table of each other host.
    pub stamps: Vec<(Hwid, Stamp)>,
    /// Local ids of all hosts; they may contain duplicates.
    pub lids: Vec<(Hwid, Lid)>,
    /// True if any host is used by a job.
    pub busy: bool,
}

impl Discovery {
    /// Returns the search of a host that knows only itself.
    pub fn new(own: Record) -> Discovery {
        let found = BTreeMap::from([(own.hwid, (own, Path::EMPTY))]);
        Discovery { root: own.hwid, found, open: BTreeMap::new(), failed: BTreeSet::new() }
    }

    /// Returns the paths of the requests that can be sent for the first time now.
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
                    let question = Question { expected: peer.hwid, asked: 1, due: now + rules.reply_timeout };
                    self.open.insert(way, question);
                }
            }
        }
        ways
    }

    /// Records the reply of the host at the end of a path.
    pub fn answered(&mut self, way: Path, record: Record) {
        let Some(question) = self.open.remove(&way) else { return };
        if question.expected != record.hwid {
            // The hosts at the two ends report different cables, and one of them is wrong; their records will show
            // which one.
            self.failed.insert(way);
        }
        self.found.entry(record.hwid).or_insert((record, way));
    }

    /// Records that a request met a port that is down.
    pub fn returned(&mut self, way: Path) {
        if self.open.remove(&way).is_some() {
            self.failed.insert(way);
        }
    }

    /// Returns the paths of the requests that must be repeated. Those that were sent often enough are given up.
    pub fn overdue(&mut self, now: Duration, rules: &Rules) -> Vec<Path> {
        let given_up = |question: &Question| question.due <= now && question.asked >= rules.tries;
        let gone: Vec<Path> = self.open.iter().filter(|(_, q)| given_up(q)).map(|(way, _)| *way).collect();
        gone.into_iter().for_each(|way| self.returned(way));
        let overdue = self.open.iter_mut().filter(|(_, question)| question.due <= now);
        overdue
            .map(|(way, question)| {
                (question.asked, question.due) = (question.asked + 1, now + rules.reply_timeout);
                *way
            })
            .collect()
    }

    /// Time at which [`Discovery::overdue`] has something to return.
    pub fn due(&self) -> Option<Duration> {
        self.open.values().map(|question| question.due).min()
    }

    /// Records an unsolicited record of the host at the end of `way`. Returns true if the host gave this search
    /// different ports before.
    ///
    /// The search finds in this way a host that is expected at the end of a path but does not receive packets over
    /// it: a link may be down at one end only.
    pub fn heard(&mut self, way: Path, record: &Record) -> bool {
        if let Some((before, _)) = self.found.get(&record.hwid) {
            return before.ports != record.ports;
        }
        if self.open.values().any(|question| question.expected == record.hwid) {
            self.begin_with(way, *record);
        }
        false
    }

    /// Adds a host to the result by its record, without a request.
    pub fn begin_with(&mut self, way: Path, record: Record) {
        if record.hwid != self.root {
            self.open.retain(|_, question| question.expected != record.hwid);
            self.found.insert(record.hwid, (record, way));
        }
    }

    /// Returns true if no request is open.
    pub fn is_over(&self) -> bool {
        self.open.is_empty()
    }

    /// Returns the result.
    pub fn result(self) -> Found {
        let others = self.found.values().filter(|(record, _)| record.hwid != self.root);
        let stamps = others.map(|(record, _)| (record.hwid, record.stamp)).collect();
        let busy = self.found.values().any(|(record, _)| record.busy);
        let lids = self.found.values().map(|(record, _)| (record.hwid, record.lid)).collect();
        let hosts = self.found.into_iter().map(|(hwid, (record, _))| (hwid, record.ports)).collect();
        Found { graph: Graph::new(self.root, hosts), stamps, lids, busy }
    }
}
