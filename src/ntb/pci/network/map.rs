//! The map of the network, as one host knows it.

use super::announcement::{Announcement, Cable, Circuit, Step};
use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};

/// Largest number of hosts in a map: more are ignored.
const HOSTS_MAX: usize = 256;

/// The announcements of all hosts that this host can reach, and its own.
pub struct Map {
    host: u64,
    /// By the identities of the hosts.
    announcements: BTreeMap<u64, Announcement>,
}

impl Map {
    /// Returns the map of a host that has no neighbours yet.
    pub fn new(host: u64, name: String) -> Map {
        let own = Announcement { host, sequence: 0, name, cables: Vec::new(), circuits: Vec::new() };
        Map { host, announcements: BTreeMap::from([(host, own)]) }
    }

    /// Returns the identity of this host.
    pub fn host(&self) -> u64 {
        self.host
    }

    /// Returns all announcements, in the order of the hosts' identities.
    pub fn announcements(&self) -> impl Iterator<Item = &Announcement> {
        self.announcements.values()
    }

    /// Returns this host's circuits.
    pub fn own_circuits(&self) -> &[Circuit] {
        &self.announcements[&self.host].circuits
    }

    /// Replaces this host's links and circuits. Returns true if that changes its announcement.
    pub fn announce(&mut self, cables: Vec<Cable>, circuits: Vec<Circuit>) -> bool {
        let own = self.announcements.get_mut(&self.host).expect("the own announcement is always there");
        if own.cables == cables && own.circuits == circuits {
            return false;
        }
        (own.cables, own.circuits, own.sequence) = (cables, circuits, own.sequence + 1);
        true
    }

    /// Takes an announcement that a neighbour has passed on. Returns true if it is new.
    pub fn merge(&mut self, other: Announcement) -> bool {
        let known = self.announcements.get(&other.host).map(|known| known.sequence);
        let is_new = other.host != self.host
            && known.is_none_or(|known| known < other.sequence)
            && (known.is_some() || self.announcements.len() < HOSTS_MAX)
            && other.is_valid();
        if is_new {
            self.announcements.insert(other.host, other);
        }
        is_new
    }

    /// Forgets hosts to which no way leads any more. Returns true if there were some.
    pub fn forget_unreachable(&mut self) -> bool {
        let mut reached = HashSet::from([self.host]);
        let mut waiting = vec![self.host];
        while let Some(from) = waiting.pop() {
            waiting.extend(self.links(from).map(|(_, step)| step.host).filter(|host| reached.insert(*host)));
        }
        let before = self.announcements.len();
        self.announcements.retain(|host, _| reached.contains(host));
        before != self.announcements.len()
    }

    /// Returns the port of a host and the step of each of its links that both ends announce.
    fn links(&self, from: u64) -> impl Iterator<Item = (u8, Step)> + '_ {
        let cables = self.announcements.get(&from).map_or(&[][..], |own| &own.cables);
        cables.iter().filter_map(move |cable| {
            let other = self.announcements.get(&cable.peer)?.cables.iter();
            let mut back = other.filter(|back| (back.peer, back.peer_port) == (from, cable.port));
            let back = back.find(|back| back.port == cable.peer_port)?;
            Some((cable.port, Step { host: cable.peer, port: cable.peer_port, epoch: back.epoch }))
        })
    }

    /// Returns true if a host is known.
    pub fn knows(&self, host: u64) -> bool {
        self.announcements.contains_key(&host)
    }

    /// Returns true if all links of a way from a host are still those with which it was found.
    pub fn is_up(&self, from: u64, steps: &[Step]) -> bool {
        let mut at = from;
        steps.iter().all(|step| self.links(std::mem::replace(&mut at, step.host)).any(|(_, link)| link == *step))
    }

    /// Returns the shortest way from this host to another. Ways that leave by `port` and arrive at `opposite` come
    /// first: the two ways round a ring then have no link in common. Then come those that leave by `port`, then all.
    pub fn way(&self, to: u64, port: u8, opposite: u8) -> Option<Vec<Step>> {
        let any = |_: u8| true;
        let leaves = |first: u8| first == port;
        let arrives = |last: u8| last == opposite;
        self.search(to, leaves, arrives).or_else(|| self.search(to, leaves, any)).or_else(|| self.search(to, any, any))
    }

    fn search(&self, to: u64, leaves: impl Fn(u8) -> bool, arrives: impl Fn(u8) -> bool) -> Option<Vec<Step>> {
        // The host from which each host was reached first, with the step that led to it.
        let mut reached: HashMap<u64, (u64, Step)> = HashMap::new();
        let mut waiting = VecDeque::from([self.host]);
        while let Some(from) = waiting.pop_front() {
            for (port, step) in self.links(from) {
                let is_refused = from == self.host && !leaves(port) || step.host == to && !arrives(step.port);
                if is_refused || step.host == self.host || reached.contains_key(&step.host) {
                    continue;
                }
                reached.insert(step.host, (from, step));
                if step.host == to {
                    return Some(self.steps(&reached, to));
                }
                waiting.push_back(step.host);
            }
        }
        None
    }

    /// Returns the steps from this host to another.
    fn steps(&self, reached: &HashMap<u64, (u64, Step)>, to: u64) -> Vec<Step> {
        let mut at = to;
        let back = std::iter::from_fn(|| {
            let &(from, step) = reached.get(&at)?;
            at = from;
            Some(step)
        });
        let mut steps: Vec<Step> = back.collect();
        steps.reverse();
        steps
    }

    /// Returns the circuits on whose ways this host is, each with its first host and this host's place among the steps.
    pub fn circuits_here(&self) -> impl Iterator<Item = (u64, &Circuit, usize)> {
        let others = self.announcements.values().filter(|other| other.host != self.host);
        others.flat_map(|other| other.circuits.iter().map(|circuit| (other.host, circuit))).filter_map(
            |(from, circuit)| {
                let place = circuit.steps.iter().position(|step| step.host == self.host)?;
                Some((from, circuit, place))
            },
        )
    }

    /// Returns true unless another host has a circuit to the slice with this key that is interrupted.
    pub fn is_reached(&self, key: u64) -> bool {
        let own = |(_, circuit, place): &(u64, &Circuit, usize)| circuit.key == key && place + 1 == circuit.steps.len();
        self.circuits_here().filter(own).all(|(from, circuit, _)| self.is_up(from, &circuit.steps))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Joins hosts by cables: each has two ends of a host and a port.
    fn network(hosts: u64, cables: &[[(u64, u8); 2]]) -> Vec<Map> {
        let mut maps: Vec<Map> = (1..=hosts).map(|host| Map::new(host, format!("node{host}"))).collect();
        let end = |[(host, port), (peer, peer_port)]: [(u64, u8); 2]| {
            (host, Cable { port, peer, peer_port, epoch: 1, window: 4096, rate: 0 })
        };
        let ends: Vec<(u64, Cable)> = cables.iter().flat_map(|&[a, b]| [end([a, b]), end([b, a])]).collect();
        for map in &mut maps {
            let own = ends.iter().filter(|(host, _)| *host == map.host()).map(|&(_, cable)| cable).collect();
            map.announce(own, Vec::new());
        }
        flood(&mut maps, &ends);
        maps
    }

    /// Passes announcements on between neighbours until none is new.
    fn flood(maps: &mut [Map], ends: &[(u64, Cable)]) {
        let mut is_new = true;
        while std::mem::take(&mut is_new) {
            for (host, cable) in ends {
                let known: Vec<Announcement> = maps[*host as usize - 1].announcements().cloned().collect();
                for one in known {
                    is_new |= maps[cable.peer as usize - 1].merge(one);
                }
            }
        }
    }

    fn ring(hosts: u64) -> Vec<Map> {
        let cables: Vec<_> = (0..hosts).map(|host| [(host + 1, 1), ((host + 1) % hosts + 1, 0)]).collect();
        network(hosts, &cables)
    }

    fn hosts(way: Option<Vec<Step>>) -> Vec<u64> {
        way.map_or_else(Vec::new, |steps| steps.iter().map(|step| step.host).collect())
    }

    #[test]
    fn the_two_ways_round_a_ring_share_no_link() {
        let maps = ring(4);
        assert!(maps.iter().all(|map| map.announcements().count() == 4));
        assert_eq!(hosts(maps[0].way(3, 1, 0)), [2, 3]);
        assert_eq!(hosts(maps[0].way(3, 0, 1)), [4, 3]);
        // To a neighbour, but round the ring: the ports say so.
        assert_eq!(hosts(maps[0].way(2, 0, 1)), [4, 3, 2]);
        // No way arrives there: one that leaves by the port.
        assert_eq!(hosts(maps[0].way(2, 1, 1)), [2]);
        assert_eq!(hosts(maps[0].way(9, 1, 0)), [0; 0]);
    }

    #[test]
    fn ways_lead_through_any_graph() {
        // A chain whose first host has one adapter, and a host that hangs on its middle.
        let maps = network(4, &[[(1, 0), (2, 0)], [(2, 1), (3, 0)], [(2, 2), (4, 3)]]);
        assert_eq!(hosts(maps[0].way(3, 1, 0)), [2, 3]);
        assert_eq!(hosts(maps[2].way(4, 1, 0)), [2, 4]);
    }

    #[test]
    fn hosts_that_no_way_reaches_are_forgotten() {
        let mut maps = network(3, &[[(1, 1), (2, 0)], [(2, 1), (3, 0)]]);
        let way = maps[0].way(3, 1, 0).unwrap();
        assert!(maps[0].is_up(1, &way));
        let mut second = maps[1].announcements().find(|one| one.host == 2).unwrap().clone();
        second.sequence += 1;
        second.cables.retain(|cable| cable.peer != 3);
        assert!(maps[0].merge(second.clone()) && !maps[0].merge(second), "an announcement is new once");
        assert!(!maps[0].is_up(1, &way));
        assert!(maps[0].forget_unreachable() && !maps[0].knows(3) && maps[0].knows(2));
    }

    #[test]
    fn a_link_that_was_down_is_another_link() {
        let mut maps = ring(3);
        let way = maps[0].way(2, 1, 0).unwrap();
        let mut second = maps[1].announcements().find(|one| one.host == 2).unwrap().clone();
        second.sequence += 1;
        second.cables[0].epoch += 1;
        second.cables[1].epoch += 1;
        maps[0].merge(second);
        assert!(!maps[0].is_up(1, &way) && hosts(maps[0].way(2, 1, 0)) == [2]);
    }

    #[test]
    fn circuits_are_known_to_the_hosts_on_their_ways() {
        let mut maps = ring(4);
        let steps = maps[0].way(3, 1, 0).unwrap();
        let cables = maps[0].announcements().find(|one| one.host == 1).unwrap().cables.clone();
        let circuit = Circuit { id: 8, user: 1000, key: 77, steps };
        assert!(maps[0].announce(cables.clone(), vec![circuit.clone()]) && !maps[0].announce(cables, vec![circuit]));
        let own = maps[0].announcements().find(|one| one.host == 1).unwrap().clone();
        maps[1..].iter_mut().for_each(|map| assert!(map.merge(own.clone())));
        let places: Vec<Vec<usize>> =
            maps.iter().map(|map| map.circuits_here().map(|(_, _, place)| place).collect()).collect();
        assert_eq!(places, [vec![], vec![0], vec![1], vec![]]);
        assert!(maps[2].is_reached(77) && maps[2].is_reached(78));
    }

    #[test]
    fn invalid_announcements_are_ignored() {
        let mut map = Map::new(1, String::new());
        let valid = Announcement { host: 2, sequence: 1, name: String::new(), cables: vec![], circuits: vec![] };
        let cable = Cable { port: 9, peer: 1, peer_port: 0, epoch: 0, window: 0, rate: 0 };
        assert!(!map.merge(Announcement { host: 0, ..valid.clone() }));
        assert!(!map.merge(Announcement { host: 1, ..valid.clone() }), "its own");
        assert!(!map.merge(Announcement { cables: vec![cable], ..valid.clone() }));
        let circuit = Circuit { id: 2, user: 0, key: 1, steps: vec![] };
        assert!(!map.merge(Announcement { circuits: vec![circuit], ..valid.clone() }));
        assert!(map.merge(valid));
    }
}
