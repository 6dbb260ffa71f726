//! Exhaustive exploration of the states of the lanes between a ring's forwarders, for any traffic and any order of
//! events: in no state do lanes wait for each other in a cycle.
//!
//! The routes of packets come from the forwarder's own code ([`TransitChannel::way`], [`Allowed::passes`]). The rest of
//! the model keeps only what matters for waiting, and everything else may happen at any time:
//!
//! - A lane between forwarders holds a fixed number of packets. A packet is modelled as the list of lanes that it still
//!   has to pass. Real lanes are counted in lines, and their heads come back late; but in any state a lane either
//!   refuses a packet or accepts it, and an empty lane accepts any packet (`queue::tests::room` goes through all states
//!   of one lane). So the smallest capacities, which refuse soonest, are the hardest.
//! - A rank may have a packet for any other rank whenever there is room, by either way round the ring, and so may a
//!   forwarder: a reply or a packet of a tunnel, which waits in memory and holds up no lane. Lanes that only ranks
//!   write are therefore left out.
//! - A packet whose next stop is the lane of a rank, or the forwarder that serves it, may stay where it is for as long
//!   as it likes, but can always proceed: a rank in MPI receives all packets, and a request is served or put aside.
//!
//! So a packet can only be stuck for ever behind others that wait for room in a cycle of full lanes.

use super::route::{Allowed, Route};
use super::transit_channel::TransitChannel;
use crate::topology::Topology;
use ntbring_ntb::Side;
use std::collections::{BTreeMap, BTreeSet, HashSet};

/// A lane between forwarders: the host that writes it, and the lane's number there.
type Lane = (usize, usize);

/// Lanes that a packet still has to pass, by their numbers among all lanes.
type Rest = Vec<usize>;

/// Function that chooses the output lane: arguments are the topology, the host, the side, the route, and whether the
/// packet is for the forwarder at its destination.
type WayOn = fn(&Topology, usize, Side, Route, bool) -> usize;

/// Returns the lanes of a packet's route that a forwarder has chosen, either on the way or at its beginning.
fn lanes(t: &Topology, side: Side, route: Route, request: bool, first: usize, way_on: WayOn) -> Vec<Lane> {
    let ends = (t.host_of(route.src), t.host_of(route.dst));
    let (mut at, mut lanes) = (first, Vec::new());
    while !(request && at == ends.1) {
        // The forwarder of the packet's own host makes no check: it sends replies of its own.
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

/// All packets that can be sent in one direction.
struct Traffic {
    /// For each lane, the packets that can enter the model there: the lanes that they still have to pass.
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
            // Sent by a rank, which has put it into a lane to the next forwarder: messages to neighbours do not need
            // that.
            add(lanes(t, side, route, true, next, way_on));
            if next != to {
                add(lanes(t, side, route, false, next, way_on));
            }
            // Sent by a forwarder: a reply, and a packet of a tunnel.
            add(lanes(t, side, route, false, from, way_on));
            add(lanes(t, side, route, true, from, way_on));
        }
        Traffic { begins }
    }
}

/// Contents of all lanes: for each packet, first in first out, the index of the lanes that it still has to pass.
type State = Vec<Vec<u8>>;

struct Explorer {
    capacity: usize,
    /// All lanes, by number.
    lanes: Vec<Lane>,
    rests: Vec<Rest>,
    /// For each lane, the packets that can enter it from outside the model.
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
            // Also every suffix of it, which is left after some hops.
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

    /// Returns the lane that a packet has to enter next, and its remaining lanes after that.
    fn next(&self, kind: u8) -> Option<(usize, u8)> {
        let (first, rest) = self.rests[usize::from(kind)].split_first()?;
        Some((*first, self.rests.binary_search_by(|other| other.as_slice().cmp(rest)).unwrap() as u8))
    }

    fn has_room(&self, state: &State, lane: usize) -> bool {
        state[lane].len() < self.capacity
    }

    /// Calls `found` with every state that can follow.
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

    /// Returns lanes that wait for each other's room in a cycle, if there are any.
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

    /// Goes through all states. Returns the first one with a cycle, and the cycle.
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

/// Returns the ring with `ranks[h]` ranks on host `h`.
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
            assert_eq!(explore(ranks, side, capacity, TransitChannel::way), None, "{ranks:?} {side}");
        }
    }
}

/// Counter-check: if packets before and beyond the dateline share one lane, the exploration finds a cycle.
#[test]
fn without_a_dateline_they_would() {
    let alike: WayOn = |t, at, side, route, request| {
        let ranks = t.ranks_of(t.neighbour(at, side)).len();
        TransitChannel::way(t, at, side, route, request).min(ranks)
    };
    for (hosts, capacity) in [(4, 1), (4, 2), (5, 1)] {
        let (state, circle) = explore(&vec![1; hosts], Side::Right, capacity, alike).expect("a circle");
        assert_eq!(circle.len(), hosts, "{state:?}");
    }
}
