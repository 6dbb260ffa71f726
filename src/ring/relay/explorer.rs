//! All states that the lanes between a ring's forwarders can come into, whatever is sent and in whichever order things happen:
//! in none of them do lanes wait for each other in a circle.
//!
//! The ways of packets are those of the forwarder's own code ([`Track::way`], [`Allowed::passes`]). Of the rest only
//! what matters for waiting is kept, and everything else may happen at any time:
//!
//! - A lane between forwarders holds so many packets and no more. Of a packet there is which lanes it still has to pass.
//!   Real lanes are counted in lines, and their heads come back late; but whatever is in one, it is either refused more, or
//!   takes it, and an empty lane takes anything (`queue::tests::room` goes through all states of one). So the smallest
//!   capacities, where it is refused soonest, are the hardest.
//! - A rank may have a packet for anybody whenever there is room, by either way round the ring, and so may a forwarder: an
//!   answer, which waits in memory and holds up nothing. Lanes that only ranks write are therefore left out.
//! - A packet whose next stop is the lane of a rank, or the forwarder that serves it, may stay where it is for as long as it
//!   likes, but can always go: a rank in MPI takes what comes, and a request is served or put aside.
//!
//! So a packet can be stuck for ever only behind others that wait for room in a circle of lanes that are full.

use super::super::route::Allowed;
use super::super::track::Track;
use super::Route;
use crate::Topology;
use ntbring_ntb::Side;
use std::collections::{BTreeMap, BTreeSet, HashSet};

/// A lane between forwarders: the host that writes it, and its number there.
type Lane = (usize, usize);

/// Lanes that a packet has still to pass, by their numbers among all lanes.
type Rest = Vec<usize>;

/// How a lane is chosen: the host, whether the packet is for the forwarder at the end of its way, its route.
type WayOn = fn(&Topology, usize, Side, Route, bool) -> usize;

/// The lanes that a packet passes which some forwarder on its way, or at its beginning, has taken.
fn lanes(t: &Topology, side: Side, route: Route, request: bool, first: usize, way_on: WayOn) -> Vec<Lane> {
    let ends = (t.host_of(route.src), t.host_of(route.dst));
    let (mut at, mut lanes) = (first, Vec::new());
    while !(request && at == ends.1) {
        // Its own host's forwarder is not asked: it sends answers of its own.
        assert!(at == ends.0 || Allowed::Either.passes(t, ends, at, side, request), "{route:?} at {at}");
        let way = way_on(t, at, side, route, request);
        let next = t.neighbour(at, side);
        if way < t.ranks_of(next).len() {
            assert_eq!(next, ends.1, "a rank's lane is the end of a way");
            break;
        }
        lanes.push((at, way));
        at = next;
    }
    lanes
}

/// Everything that can be sent in one direction.
struct Traffic {
    /// Lanes, and what can be put into each from outside of them.
    begins: BTreeMap<Lane, BTreeSet<Vec<Lane>>>,
}

impl Traffic {
    fn new(t: &Topology, side: Side, way_on: WayOn) -> Traffic {
        let mut begins = BTreeMap::<Lane, BTreeSet<Vec<Lane>>>::new();
        let mut add = |way: Vec<Lane>| {
            if let Some((first, rest)) = way.split_first() {
                begins.entry(*first).or_default().insert(rest.to_vec());
            }
        };
        for (src, dst) in (0..t.size() * t.size()).map(|i| ((i / t.size()) as u32, (i % t.size()) as u32)) {
            let (route, from, to) = (Route { src, dst }, t.host_of(src), t.host_of(dst));
            if from == to {
                continue;
            }
            let next = t.neighbour(from, side);
            // Of a rank, which has put it into a lane to the next forwarder: messages to next hosts do not need that.
            add(lanes(t, side, route, true, next, way_on));
            if next != to {
                add(lanes(t, side, route, false, next, way_on));
            }
            // Of a forwarder.
            add(lanes(t, side, route, false, from, way_on));
        }
        Traffic { begins }
    }
}

/// What is in all lanes: of each packet the number of what it has still to pass, first come first.
type State = Vec<Vec<u8>>;

struct Explorer {
    capacity: usize,
    /// By number.
    lanes: Vec<Lane>,
    rests: Vec<Rest>,
    /// What can be put into each lane from outside.
    begins: Vec<Vec<u8>>,
    seen: HashSet<State>,
}

impl Explorer {
    fn new(traffic: &Traffic, capacity: usize) -> Explorer {
        let mut lanes: BTreeSet<Lane> = traffic.begins.keys().copied().collect();
        lanes.extend(traffic.begins.values().flatten().flatten());
        let lanes = Vec::from_iter(lanes);
        let number = |lane: &Lane| lanes.binary_search(lane).unwrap();
        let mut rests = BTreeSet::<Rest>::new();
        for rest in traffic.begins.values().flatten() {
            let rest: Rest = rest.iter().map(number).collect();
            // And what is left of it later.
            rests.extend((0..=rest.len()).map(|passed| rest[passed..].to_vec()));
        }
        let rests = Vec::from_iter(rests);
        let kind = |rest: &Vec<Lane>| {
            let rest: Rest = rest.iter().map(number).collect();
            rests.binary_search(&rest).unwrap() as u8
        };
        let into = |lane: &Lane| traffic.begins.get(lane).into_iter().flatten().map(kind).collect();
        let begins = lanes.iter().map(into).collect();
        Explorer { capacity, lanes, rests, begins, seen: HashSet::new() }
    }

    /// The lane that a packet has to go to next, and what it has to pass then.
    fn next(&self, kind: u8) -> Option<(usize, u8)> {
        let (first, rest) = self.rests[usize::from(kind)].split_first()?;
        Some((*first, self.rests.binary_search_by(|other| other.as_slice().cmp(rest)).unwrap() as u8))
    }

    fn has_room(&self, state: &State, lane: usize) -> bool {
        state[lane].len() < self.capacity
    }

    /// Everything that can happen next.
    fn follow(&self, state: &State, mut found: impl FnMut(State)) {
        for lane in 0..self.lanes.len() {
            if self.has_room(state, lane) {
                for kind in &self.begins[lane] {
                    let mut after = state.clone();
                    after[lane].push(*kind);
                    found(after);
                }
            }
            let Some(head) = state[lane].first() else { continue };
            let next = self.next(*head);
            if next.is_none_or(|(to, _)| self.has_room(state, to)) {
                let mut after = state.clone();
                after[lane].remove(0);
                next.into_iter().for_each(|(to, kind)| after[to].push(kind));
                found(after);
            }
        }
    }

    /// Lanes that wait for each other's room in a circle, if there are any.
    fn circle(&self, state: &State) -> Option<Vec<Lane>> {
        let waits_for = |lane: usize| {
            let (to, _) = self.next(*state[lane].first()?)?;
            (!self.has_room(state, to)).then_some(to)
        };
        (0..self.lanes.len()).find_map(|start| {
            let (mut way, mut at) = (vec![], start);
            while !way.contains(&at) {
                way.push(at);
                at = waits_for(at)?;
            }
            Some(way.into_iter().map(|lane| self.lanes[lane]).collect())
        })
    }

    /// Goes through all states. The first one with a circle, and the circle.
    fn explore(&mut self) -> Option<(State, Vec<Lane>)> {
        let mut open = vec![vec![Vec::new(); self.lanes.len()]];
        self.seen.insert(open[0].clone());
        while let Some(state) = open.pop() {
            assert!(state.iter().all(|lane| lane.len() <= self.capacity), "more than there is room for");
            if let Some(circle) = self.circle(&state) {
                return Some((state, circle));
            }
            let mut found = Vec::new();
            self.follow(&state, |after| found.push(after));
            open.extend(found.into_iter().filter(|after| self.seen.insert(after.clone())));
        }
        None
    }
}

/// So many ranks on each host.
fn ring(ranks: &[usize]) -> Topology {
    let host_of: Vec<i32> = ranks.iter().zip(0..).flat_map(|(ranks, host)| vec![host; *ranks]).collect();
    Topology::new(ranks.len(), &host_of).unwrap()
}

fn explore(ranks: &[usize], side: Side, capacity: usize, way_on: WayOn) -> Option<(State, Vec<Lane>)> {
    let traffic = Traffic::new(&ring(ranks), side, way_on);
    let mut explorer = Explorer::new(&traffic, capacity);
    let found = explorer.explore();
    eprintln!("{ranks:?} {side}, {capacity}: {} lanes, {} states", explorer.lanes.len(), explorer.seen.len());
    found
}

#[test]
fn forwarders_never_wait_for_each_other_in_a_circle() {
    for side in Side::BOTH {
        for (ranks, capacity) in [(&[1; 3][..], 1), (&[1; 3], 3), (&[2, 1, 3], 2), (&[1; 4], 1), (&[1; 4], 2)] {
            assert_eq!(explore(ranks, side, capacity, Track::way), None, "{ranks:?} {side}");
        }
    }
}

/// It takes only one lane for both classes, and what they are for is found out.
#[test]
fn without_a_dateline_they_would() {
    let alike: WayOn = |t, at, side, route, request| {
        let ranks = t.ranks_of(t.neighbour(at, side)).len();
        Track::way(t, at, side, route, request).min(ranks)
    };
    for (hosts, capacity) in [(4, 1), (4, 2), (5, 1)] {
        let (state, circle) = explore(&vec![1; hosts], Side::Right, capacity, alike).expect("a circle");
        assert_eq!(circle.len(), hosts, "{state:?}");
    }
}
