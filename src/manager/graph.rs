//! Hosts and links as a manager has found them.

use super::record::{Peer, Ports};
use super::{Hwid, Path, HOSTS_MAX};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// What hosts have said of their ports, seen from one of them.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Graph {
    root: Hwid,
    hosts: BTreeMap<Hwid, Ports>,
}

impl Graph {
    /// The graph of these hosts as `root`, which must be one of them, sees it.
    pub fn new(root: Hwid, hosts: BTreeMap<Hwid, Ports>) -> Graph {
        Graph { root, hosts }
    }

    /// The same hosts and links, seen from another host.
    pub fn seen_from(&self, root: Hwid) -> Graph {
        Graph { root, hosts: self.hosts.clone() }
    }

    /// What a host has said of its ports.
    pub fn ports(&self, hwid: Hwid) -> Option<&Ports> {
        self.hosts.get(&hwid)
    }

    /// The link at a port, if the hosts at both ends know of it; it costs what the end says that says more.
    pub fn link(&self, from: Hwid, port: u8) -> Option<Peer> {
        let peer = self.hosts.get(&from)?.get(usize::from(port)).copied().flatten()?;
        let back = self.hosts.get(&peer.hwid)?.get(usize::from(peer.port)).copied().flatten()?;
        let agreed = (back.hwid, back.port) == (from, port) && peer.hwid != from;
        agreed.then(|| Peer { weight: peer.weight.max(back.weight), ..peer })
    }

    /// The links of a host, by ascending port.
    pub fn links(&self, from: Hwid) -> impl Iterator<Item = (u8, Peer)> + '_ {
        (0..super::PORTS as u8).filter_map(move |port| Some((port, self.link(from, port)?)))
    }

    /// The hosts that can be reached, in the order of a breadth-first search through ascending ports,
    /// and the way to each. The first is the one whose graph this is.
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
