//! Exhaustive exploration of event orders: packets are delivered, and ports notice link changes, in all possible
//! orders. States that were seen before are not explored again. Whenever nothing is in flight any more, time passes,
//! and then the managers must agree on the state of the network.

use super::LONG;
use crate::network::Network;
use crate::shape::Shape;
use crate::{Action, Event, Manager, Rules};
use std::collections::hash_map::DefaultHasher;
use std::collections::{BTreeMap, HashSet, VecDeque};
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

/// A scripted event: a cable comes up or goes down, or a host loses its state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Happening {
    Up(usize),
    Down(usize),
    /// A restart of a host, whose cables must be down.
    Restart(usize),
}
use Happening::*;

/// A manager, and a hash that identifies its state.
#[derive(Clone)]
struct Node {
    manager: Arc<Manager>,
    hash: u64,
}

impl Node {
    fn new(manager: Manager) -> Node {
        let mut hasher = DefaultHasher::new();
        manager.hash(&mut hasher);
        Node { manager: Arc::new(manager), hash: hasher.finish() }
    }
}

#[derive(Clone)]
struct State {
    nodes: Vec<Node>,
    up: Vec<bool>,
    /// Packets on the cables, by cable and destination end.
    cables: Vec<[VecDeque<Arc<[u8]>>; 2]>,
    /// Link changes that ports have not noticed yet, by cable and end.
    unseen: Vec<[VecDeque<bool>; 2]>,
    /// Number of scripted events that have happened.
    happened: usize,
}

/// A possible next step.
#[derive(Clone, Copy, Debug)]
enum Move {
    Happen,
    Notice(usize, usize),
    Deliver(usize, usize),
}

struct Explorer {
    shape: Shape,
    rules: Rules,
    script: Vec<Happening>,
    plugs: BTreeMap<(usize, u8), (usize, usize)>,
    seen: HashSet<(u64, u64)>,
    ends: usize,
    most: usize,
}

impl Explorer {
    /// Returns a network for the script, after the events in `start`.
    fn new(shape: &str, start: &[Happening], script: &[Happening], most: usize) -> (Explorer, State) {
        let shape = Shape::parse(shape).unwrap();
        let plug = |cable: usize, end: usize| (shape.cables[cable].ends[end], (cable, end));
        let plugs = (0..shape.cables.len()).flat_map(|cable| [plug(cable, 0), plug(cable, 1)]).collect();
        let (seen, rules) = (HashSet::new(), Rules::default());
        let mut explorer = Explorer { shape, rules, script: Vec::new(), plugs, seen, ends: 0, most };
        let mut state = State {
            nodes: explorer.shape.hosts.iter().map(|hwid| Node::new(Manager::new(*hwid, rules))).collect(),
            up: vec![false; explorer.shape.cables.len()],
            cables: vec![Default::default(); explorer.shape.cables.len()],
            unseen: vec![Default::default(); explorer.shape.cables.len()],
            happened: 0,
        };
        // The events in `start` happen in one order.
        for happening in start {
            explorer.script = vec![*happening];
            state.happened = 0;
            while let Some(next) = explorer.moves(&state).first() {
                state = explorer.apply(&state, *next);
            }
        }
        (explorer.script, state.happened) = (script.to_vec(), 0);
        (explorer, state)
    }

    /// Explores all orders of the script and its consequences, up to `most` states.
    fn run(shape: &str, start: &[Happening], script: &[Happening], most: usize) -> Explorer {
        let (mut explorer, state) = Explorer::new(shape, start, script, most);
        explorer.explore(state);
        eprintln!("{shape}, {start:?}, {script:?}: {} states, {} ends", explorer.seen.len(), explorer.ends);
        explorer
    }

    /// Returns true if all states were seen.
    fn is_complete(&self) -> bool {
        self.seen.len() < self.most
    }

    fn explore(&mut self, start: State) {
        let mut open = vec![start];
        while let Some(state) = open.pop() {
            if self.seen.len() >= self.most || !self.seen.insert(self.print_of(&state)) {
                continue;
            }
            let moves = self.moves_of_one(&state).unwrap_or_else(|| self.moves(&state));
            if moves.is_empty() {
                self.ends += 1;
                self.settle(&state);
            }
            open.extend(moves.into_iter().map(|next| self.apply(&state, next)));
        }
    }

    fn print_of(&self, state: &State) -> (u64, u64) {
        let half = |salt: u64| {
            let mut hasher = DefaultHasher::new();
            salt.hash(&mut hasher);
            state.nodes.iter().for_each(|node| node.hash.hash(&mut hasher));
            (&state.up, &state.cables, &state.unseen, state.happened).hash(&mut hasher);
            hasher.finish()
        };
        (half(1), half(2))
    }

    fn moves(&self, state: &State) -> Vec<Move> {
        let mut moves = Vec::new();
        let must_wait = match self.script.get(state.happened) {
            // As long as no port has noticed the event it has no effect, so no order is lost.
            Some(Up(cable)) if state.unseen[*cable].iter().all(VecDeque::is_empty) => return vec![Move::Happen],
            Some(Restart(host)) => {
                // A manager that starts considers all its ports to be down.
                let own = |cable: &usize| self.shape.cables[*cable].ends.iter().any(|end| end.0 == *host);
                assert!((0..state.up.len()).filter(own).all(|cable| !state.up[cable]));
                (0..state.up.len()).filter(own).any(|cable| state.unseen[cable].iter().any(|unseen| !unseen.is_empty()))
            }
            Some(_) => false,
            None => true,
        };
        if !must_wait {
            moves.push(Move::Happen);
        }
        for (cable, end) in (0..state.up.len()).flat_map(|cable| [(cable, 0), (cable, 1)]) {
            if !state.unseen[cable][end].is_empty() {
                moves.push(Move::Notice(cable, end));
            }
            if !state.cables[cable][end].is_empty() {
                moves.push(Move::Deliver(cable, end));
            }
        }
        moves
    }

    /// Returns the steps of one host, if all further input to it queues behind the input that is there already.
    /// Earlier steps of other hosts then make no difference to it, and its effects on them are only delayed. Every
    /// final state can therefore be reached by one of these steps next (a persistent set), and other orders need not
    /// be tried.
    fn moves_of_one(&self, state: &State) -> Option<Vec<Move>> {
        let script = &self.script[state.happened..];
        (0..self.shape.hosts.len()).find_map(|host| {
            let cables = self.shape.cables.iter().enumerate();
            let ends: Vec<(usize, usize)> = cables
                .flat_map(|(cable, plugs)| [0, 1].map(|end| (cable, end, plugs.ends[end].0)))
                .filter(|plug| plug.2 == host)
                .map(|(cable, end, _)| (cable, end))
                .collect();
            let concerned = script.iter().any(|happening| match happening {
                Up(cable) | Down(cable) => ends.iter().any(|end| end.0 == *cable),
                Restart(other) => *other == host,
            });
            let heads = ends.iter().all(|&(cable, end)| !state.up[cable] || !state.cables[cable][end].is_empty());
            let mut moves = Vec::new();
            for (cable, end) in ends {
                moves.extend((!state.unseen[cable][end].is_empty()).then_some(Move::Notice(cable, end)));
                moves.extend((!state.cables[cable][end].is_empty()).then_some(Move::Deliver(cable, end)));
            }
            (!concerned && heads && !moves.is_empty()).then_some(moves)
        })
    }

    fn apply(&self, state: &State, next: Move) -> State {
        let mut state = state.clone();
        match next {
            Move::Happen => {
                let happening = self.script[state.happened];
                state.happened += 1;
                match happening {
                    Up(cable) | Down(cable) => {
                        let up = happening == Up(cable);
                        state.up[cable] = up;
                        state.cables[cable].iter_mut().for_each(VecDeque::clear);
                        state.unseen[cable].iter_mut().for_each(|unseen| unseen.push_back(up));
                    }
                    Restart(host) => state.nodes[host] = Node::new(Manager::new(self.shape.hosts[host], self.rules)),
                }
            }
            Move::Notice(cable, end) => {
                let up = state.unseen[cable][end].pop_front().unwrap();
                let (host, port) = self.shape.cables[cable].ends[end];
                let event = if up { Event::PortUp { port, weight: 1 } } else { Event::PortDown { port } };
                self.step(&mut state, host, event);
            }
            Move::Deliver(cable, end) => {
                let bytes = state.cables[cable][end].pop_front().unwrap();
                let (host, port) = self.shape.cables[cable].ends[end];
                self.step(&mut state, host, Event::Packet { port, bytes: &bytes });
            }
        }
        state
    }

    fn step(&self, state: &mut State, host: usize, event: Event<'_>) {
        let mut manager = (*state.nodes[host].manager).clone();
        let before = manager.table().stamp();
        for action in manager.step(Duration::ZERO, event).unwrap() {
            if let Action::Send { port, bytes } = action {
                let (cable, end) = self.plugs[&(host, port)];
                if state.up[cable] {
                    state.cables[cable][1 - end].push_back(bytes.into());
                }
            }
        }
        assert!(before <= manager.table().stamp(), "an old table has replaced a new one");
        state.nodes[host] = Node::new(manager);
    }

    /// Lets time pass, without events from outside.
    fn settle(&self, state: &State) {
        let mut shape = self.shape.clone();
        shape.cables.iter_mut().zip(&state.up).for_each(|(cable, up)| cable.up = *up);
        let managers = state.nodes.iter().map(|node| Some((*node.manager).clone())).collect();
        let mut network = Network::resumed(shape, self.rules, managers);
        if let Err(error) = network.settle(LONG) {
            panic!("{}, {:?}: {error}", self.shape.name, self.script);
        }
    }
}

/// Scripts all of whose orders are explored in about a second.
const SMALL: &[(&str, &[Happening], &[Happening])] = &[
    // Hosts that are switched on together.
    ("line:2", &[], &[Up(0)]),
    ("ring:2", &[], &[Up(0), Up(1)]),
    ("line:3", &[], &[Up(0), Up(1)]),
    // Two parts that are joined, and a line that becomes a ring.
    ("line:4", &[Up(0), Up(2)], &[Up(1)]),
    ("ring:4", &[Up(0), Up(1), Up(2)], &[Up(3)]),
    // Links that fail.
    ("line:2", &[], &[Up(0), Down(0), Up(0)]),
    ("ring:3", &[Up(0), Up(1), Up(2)], &[Down(0)]),
    ("ring:3", &[Up(0), Up(1), Up(2)], &[Down(0), Down(2)]),
    ("ring:4", &[Up(0), Up(1), Up(2), Up(3)], &[Down(1)]),
    ("ring:4", &[Up(0), Up(1), Up(2), Up(3)], &[Down(0), Down(2)]),
    // A master that fails, and may come back.
    ("line:2", &[Up(0)], &[Down(0), Restart(0), Up(0)]),
    ("ring:3", &[Up(0), Up(1), Up(2)], &[Down(0), Down(2), Restart(0), Up(0)]),
    ("ring:4", &[Up(0), Up(1), Up(2), Up(3)], &[Down(0), Down(3)]),
];

/// Scripts with up to twenty million states.
const LARGE: &[(&str, &[Happening], &[Happening])] = &[
    ("line:3", &[], &[Up(0), Up(1), Down(0)]),
    ("ring:3", &[Up(0), Up(1), Up(2)], &[Down(0), Up(0)]),
    ("ring:4", &[Up(0), Up(1), Up(2), Up(3)], &[Down(0), Down(3), Restart(0), Up(0)]),
];

/// Scripts with more states.
const ENDLESS: &[(&str, &[Happening], &[Happening])] = &[
    ("line:3", &[], &[Up(0), Up(1), Down(0), Up(0)]),
    ("ring:3", &[], &[Up(0), Up(1), Up(2)]),
    ("line:4", &[], &[Up(0), Up(1), Up(2)]),
    ("ring:4", &[], &[Up(0), Up(1), Up(2), Up(3)]),
    ("ring:4", &[], &[Up(0), Up(1), Up(2), Up(3), Down(0), Down(3), Restart(0), Up(0), Down(1), Up(3), Up(1)]),
    ("line:4", &[Up(0), Up(2)], &[Up(1), Down(0), Down(2), Restart(3), Up(0), Up(2)]),
    ("torus:2x2", &[], &[Up(0), Up(2), Up(4), Up(6), Up(1), Up(3), Down(0), Down(1), Up(5), Up(7)]),
];

#[test]
fn managers_agree_whatever_comes_first() {
    for (shape, start, script) in SMALL {
        assert!(Explorer::run(shape, start, script, 100_000).is_complete());
    }
}

#[test]
#[ignore = "takes some minutes"]
fn managers_agree_whatever_comes_first_in_larger_networks() {
    for (shape, start, script) in LARGE {
        assert!(Explorer::run(shape, start, script, 20_000_000).is_complete(), "{shape} {start:?} {script:?}");
    }
    for (shape, start, script) in ENDLESS {
        Explorer::run(shape, start, script, 1_000_000);
    }
}

/// Explores random orders, where there are too many for all.
#[test]
fn managers_agree_after_many_orders() {
    for (shape, start, script) in ENDLESS {
        let (explorer, begin) = Explorer::new(shape, start, script, 0);
        let mut random = fastrand::Rng::with_seed(1);
        for _ in 0..100 {
            let mut state = begin.clone();
            while let Some(next) = random.choice(explorer.moves(&state)) {
                state = explorer.apply(&state, next);
            }
            explorer.settle(&state);
        }
    }
}
