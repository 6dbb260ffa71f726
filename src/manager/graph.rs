//! Hosts and links as found by a manager.

use super::record::{Peer, Ports};
use super::{Hwid, Path, HOSTS_MAX};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// The ports that hosts have reported, seen from one host (the root).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Graph {
    root: Hwid,
    hosts: BTreeMap<Hwid, Ports>,
}

impl Graph {
    /// Returns the graph of these hosts as seen by `root`, which must be one of them.
    pub fn new(root: Hwid, hosts: BTreeMap<Hwid, Ports>) -> Graph {
        Graph { root, hosts }
    }

    /// Returns the same hosts and links, seen from another host.
    pub fn seen_from(&self, root: Hwid) -> Graph {
        Graph { root, hosts: self.hosts.clone() }
    }

    /// Returns the ports that a host has reported.
    pub fn ports(&self, hwid: Hwid) -> Option<&Ports> {
        self.hosts.get(&hwid)
    }

    /// Returns the link at a port if the hosts at both ends report it. Its weight is the larger one of those they
    /// report.
    pub fn link(&self, from: Hwid, port: u8) -> Option<Peer> {
        let peer = self.hosts.get(&from)?.get(usize::from(port)).copied().flatten()?;
        let back = self.hosts.get(&peer.hwid)?.get(usize::from(peer.port)).copied().flatten()?;
        let agreed = (back.hwid, back.port) == (from, port) && peer.hwid != from;
        agreed.then(|| Peer { weight: peer.weight.max(back.weight), ..peer })
    }

    /// Returns the links of a host, in ascending order of its ports.
    pub fn links(&self, from: Hwid) -> impl Iterator<Item = (u8, Peer)> + '_ {
        (0..super::PORTS as u8).filter_map(move |port| Some((port, self.link(from, port)?)))
    }

    /// Returns the reachable hosts and the path to each, in the order of a breadth-first search through ascending
    /// ports. The first host is the root.
    pub fn search(&self) -> Vec<(Hwid, Path)> {
        let mut found = vec![(self.root, Path::EMPTY)];
        let mut known = BTreeSet::from([self.root]);
        let mut next = VecDeque::from(found.clone());
        while let Some((from, path)) = next.pop_front() {
            for (port, peer) in self.links(from) {
                let Some(way) = path.then(port).filter(|_| found.len() < HOSTS_MAX) else { continue };
                if known.insert(peer.hwid) {
                    found.push((peer.hwid, way));
                    next.push_back((peer.hwid, way));
                }
            }
        }
        found
    }
}
