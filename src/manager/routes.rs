//! Local ids, and the routes between all pairs of hosts.
//!
//! A hop to a smaller local id goes *up*, one to a larger id goes *down* (up*/down* routing). A packet begins in
//! class 0. Each time it goes up after it went down, it moves to the next class, and a route may not need more
//! classes than there are. That rules out deadlock (docs/protocol.md). Among the remaining routes the shortest are
//! used, and among several shortest ones those that balance the load best.

use super::deadlock::Channel;
use super::record::Stamp;
use super::table::{Entry, Table};
use super::{Graph, Hwid, Lid, Path, HOSTS_MAX, PORTS};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

/// Number of passes in which each route is chosen: a first pass, and one with each port in front.
const PASSES: usize = 5;

/// The other end of a link, as the index of its host in the plan, and the cost of a hop.
type Link = (usize, u32);

/// Local ids and routes for a network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    classes: u8,
    /// Hosts by local id; the index in this list is the number of a host.
    hosts: Vec<(Hwid, Lid)>,
    links: Vec<[Option<Link>; PORTS]>,
    /// Path from host i to host j, at index i x hosts + j.
    paths: Vec<Path>,
}

impl Plan {
    /// Computes the plan for a graph, on the host that is its root. Hosts keep the local ids that they have in
    /// `kept`, unless that leaves too few routes. If two hosts have the same id, the first one keeps it.
    pub fn new(graph: &Graph, classes: u8, kept: Option<&[(Hwid, Lid)]>) -> Plan {
        let order: Vec<Hwid> = graph.search().into_iter().map(|(hwid, _)| hwid).collect();
        let kept = kept.and_then(|kept| Plan::with(graph, classes, numbered(&order, kept)));
        let plan = kept.or_else(|| Plan::with(graph, classes, numbered(&order, &[])));
        // With ids in the order of a search, every host can go up to the first one, and from there down to any other.
        plan.expect("a route between any two hosts")
    }

    fn with(graph: &Graph, classes: u8, hosts: Vec<(Hwid, Lid)>) -> Option<Plan> {
        let number = |hwid: Hwid| hosts.iter().position(|host| host.0 == hwid);
        let links = hosts.iter().map(|host| {
            let mut ports = [None; PORTS];
            for (port, peer) in graph.links(host.0) {
                ports[usize::from(port)] = number(peer.hwid).map(|to| (to, peer.weight));
            }
            ports
        });
        let mut plan = Plan { classes, links: links.collect(), paths: vec![Path::EMPTY; hosts.len().pow(2)], hosts };
        plan.route().then_some(plan)
    }

    /// The hosts, by local id.
    pub fn hosts(&self) -> &[(Hwid, Lid)] {
        &self.hosts
    }

    /// Returns the route from one host to another, by their indices in [`Plan::hosts`].
    pub fn path(&self, from: usize, to: usize) -> Path {
        self.paths[from * self.hosts.len() + to]
    }

    /// Returns the channels that this route uses.
    pub fn channels(&self, from: usize, to: usize) -> Vec<Channel> {
        let mut state = State { at: from, down: false, class: 0 };
        let hop = |port: u8| {
            let (next, _) = self.step(state, port)?;
            let channel = Channel { host: self.hosts[state.at].0, port, class: next.class };
            state = next;
            Some(channel)
        };
        self.path(from, to).iter().map_while(hop).collect()
    }

    /// Hash of the plan, which differs between plans except for collisions.
    pub fn digest(&self) -> u32 {
        let hosts = self.hosts.iter().flat_map(|(hwid, lid)| hwid.0.to_le_bytes().into_iter().chain([lid.0]));
        let paths = self.paths.iter().flat_map(|path| path.bytes().into_iter().chain([path.len() as u8]));
        hosts.chain(paths).fold(0x811c_9dc5, |sum, byte| (sum ^ u32::from(byte)).wrapping_mul(0x0100_0193))
    }

    /// Returns the table of a host, by its index in [`Plan::hosts`].
    pub fn table(&self, stamp: Stamp, of: usize) -> Table {
        let entry = |(to, &(hwid, lid)): (usize, &(Hwid, Lid))| Entry { lid, hwid, path: self.path(of, to) };
        let entries = self.hosts.iter().enumerate().map(entry).collect();
        Table::new(stamp, self.hosts[of].1, self.classes, entries)
    }

    /// Returns the state after one hop, and the cost of the hop. Returns None if there is no link, or no class left.
    fn step(&self, state: State, port: u8) -> Option<(State, u32)> {
        let (to, weight) = self.links[state.at][usize::from(port)]?;
        let up = to < state.at;
        let class = state.class + u8::from(state.down && up);
        (class < self.classes).then_some((State { at: to, down: !up, class }, weight))
    }

    /// Chooses all routes. Returns false if there is no route between two hosts.
    fn route(&mut self) -> bool {
        let count = self.hosts.len();
        let distances: Vec<Distances> = (0..count).map(|to| self.distances(to)).collect();
        let far = |from: usize, to: usize| distances[to].0[State::first(from).index(self.classes)];
        let mut pairs: Vec<(u64, usize, usize)> = Vec::new();
        for (from, to) in (0..count).flat_map(|from| (0..count).map(move |to| (from, to))).filter(|(a, b)| a != b) {
            match far(from, to) {
                Some(distance) => pairs.push((distance, from, to)),
                None => return false,
            }
        }
        // Pairs at a short distance come first, because they have the fewest alternatives.
        pairs.sort_unstable();
        let mut load = Load(vec![[0; PORTS]; count]);
        for pass in 0..PASSES {
            let mut changed = false;
            for &(_, from, to) in &pairs {
                let old = (pass > 0).then(|| self.path(from, to));
                if let Some(old) = old {
                    load.add(self, from, old, -1);
                }
                let new = self.cheapest(from, &distances[to], &load, pass);
                let better = old.is_none_or(|old| load.price(self, from, new) <= load.price(self, from, old));
                let path = if better { new } else { old.unwrap_or(new) };
                load.add(self, from, path, 1);
                self.paths[from * count + to] = path;
                changed |= better;
            }
            if !changed {
                break;
            }
        }
        true
    }

    /// Returns the distance from every state to a host (Dijkstra's algorithm).
    fn distances(&self, to: usize) -> Distances {
        let mut far: Vec<Option<u64>> = vec![None; self.hosts.len() * 2 * usize::from(self.classes)];
        let ends = State::all(to, self.classes);
        let mut next: BinaryHeap<Reverse<(u64, State)>> = ends.map(|state| Reverse((0, state))).collect();
        while let Some(Reverse((distance, state))) = next.pop() {
            let known = &mut far[state.index(self.classes)];
            if known.is_some() {
                continue;
            }
            *known = Some(distance);
            // Links have the same weight in both directions, so the search can run backwards.
            for &(before, weight) in self.links[state.at].iter().flatten() {
                let up = state.at < before;
                if up == state.down {
                    continue;
                }
                for down in [false, true] {
                    if let Some(class) = state.class.checked_sub(u8::from(down && up)) {
                        next.push(Reverse((distance + u64::from(weight), State { at: before, down, class })));
                    }
                }
            }
        }
        Distances(far)
    }

    /// Returns the cheapest of the shortest routes from a host. Among those of equal price it returns the one with
    /// the smallest port at the first hop where they differ, with ports counted from `pass` on, modulo 4.
    fn cheapest(&self, from: usize, distances: &Distances, load: &Load, pass: usize) -> Path {
        let mut known = vec![None; distances.0.len()];
        let mut state = State::first(from);
        self.price(state, distances, load, &mut known, pass);
        let mut path = Path::EMPTY;
        while let Some((_, port, next)) = known[state.index(self.classes)].flatten() {
            (path, state) = (path.then(port).unwrap_or(path), next);
        }
        path
    }

    /// Returns the least price from a state to the end, and stores the best port in `known`. The recursion is at most
    /// as deep as there are hosts, because a route passes no host twice.
    fn price(&self, state: State, distances: &Distances, load: &Load, known: &mut [Option<Best>], pass: usize) -> u64 {
        let index = state.index(self.classes);
        if let Some(best) = known[index] {
            return best.map_or(0, |(price, ..)| price);
        }
        let mut best: Best = None;
        for turn in 0..PORTS {
            let port = ((turn + pass) % PORTS) as u8;
            let Some((next, weight)) = self.step(state, port) else { continue };
            let rest = distances.0[next.index(self.classes)];
            if rest.map(|rest| rest + u64::from(weight)) != distances.0[index] {
                continue;
            }
            let price = load.hop(state.at, port, weight) + self.price(next, distances, load, known, pass);
            if best.is_none_or(|(least, ..)| price < least) {
                best = Some((price, port, next));
            }
        }
        known[index] = Some(best);
        best.map_or(0, |(price, ..)| price)
    }
}

/// Best continuation from a state: price, port, and next state. None at the end.
type Best = Option<(u64, u8, State)>;

/// Distances to one host, by state.
struct Distances(Vec<Option<u64>>);

/// State of a packet: its host, true if its last hop went down, and its class.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct State {
    at: usize,
    down: bool,
    class: u8,
}

impl State {
    fn first(at: usize) -> State {
        State { at, down: false, class: 0 }
    }

    fn all(at: usize, classes: u8) -> impl Iterator<Item = State> {
        (0..classes).flat_map(move |class| [false, true].map(|down| State { at, down, class }))
    }

    fn index(self, classes: u8) -> usize {
        (self.at * 2 + usize::from(self.down)) * usize::from(classes) + usize::from(self.class)
    }
}

/// Number of routes over each direction of each link, by the sending host and its port.
struct Load(Vec<[u64; PORTS]>);

impl Load {
    /// Returns the price of one more route over a hop: the increase of the sum of weight x routes^2, which is least
    /// when routes are spread evenly.
    fn hop(&self, from: usize, port: u8, weight: u32) -> u64 {
        u64::from(weight) * (2 * self.0[from][usize::from(port)] + 1)
    }

    fn hops(plan: &Plan, from: usize, path: Path) -> impl Iterator<Item = (usize, u8, u32)> + '_ {
        path.iter().scan(from, move |at, port| {
            let (to, weight) = plan.links[*at][usize::from(port)]?;
            Some((std::mem::replace(at, to), port, weight))
        })
    }

    fn price(&self, plan: &Plan, from: usize, path: Path) -> u64 {
        Load::hops(plan, from, path).map(|(at, port, weight)| self.hop(at, port, weight)).sum()
    }

    fn add(&mut self, plan: &Plan, from: usize, path: Path, change: i64) {
        for (at, port, _) in Load::hops(plan, from, path) {
            let load = &mut self.0[at][usize::from(port)];
            *load = load.saturating_add_signed(change);
        }
    }
}

/// Assigns local ids in the order of the search, from 1 on. Hosts in `kept` keep their ids, and the others get the
/// smallest free ones.
fn numbered(order: &[Hwid], kept: &[(Hwid, Lid)]) -> Vec<(Hwid, Lid)> {
    let mut free: BTreeSet<Lid> = (1..=HOSTS_MAX as u8).map(Lid).collect();
    let mut given: BTreeMap<Hwid, Lid> = BTreeMap::new();
    for (hwid, lid) in kept {
        if order.contains(hwid) && !given.contains_key(hwid) && free.remove(lid) {
            given.insert(*hwid, *lid);
        }
    }
    let lid = |hwid: &Hwid| given.get(hwid).copied().or_else(|| free.pop_first());
    let mut hosts: Vec<(Hwid, Lid)> = order.iter().zip(order.iter().map_while(lid)).map(|(h, l)| (*h, l)).collect();
    hosts.sort_by_key(|host| host.1);
    hosts
}
