//! Forwarding: packets that came from one neighbour and are for hosts beyond this one go on to the
//! other neighbour.
//!
//! A packet is an entry of a lane whose kind has [`ROUTED`] set; its bytes begin with a [`Route`].
//! It is copied once, from the lane it came by straight into the next: into the lane of the
//! receiving rank if the next host is where it is going, else into the next forwarder's lane. A
//! request is for the forwarder of the host where it is going, which serves it.

use super::served::server::{Answer, Server};
use super::served::{Request, REQUEST};
use super::{rank_doorbell, Membership, Topology, FORWARDER_DOORBELL};
use crate::ntb::{Port, Side};
use crate::queue::{Consumer, Corrupt, Entry, Producer};
use crate::ring::join::Link;
use crate::ring::plan::End;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

/// The bit of an entry's kind that says that its bytes begin with a route.
pub const ROUTED: u8 = 0x40;

/// Where a packet comes from and where it goes: 8 bytes, two little-endian 32-bit ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route {
    /// The rank that sent it.
    pub src: u32,
    /// The rank that it is for.
    pub dst: u32,
}

impl Route {
    /// Bytes that a route takes.
    pub const LEN: usize = 8;

    /// As bytes.
    pub fn bytes(self) -> [u8; Route::LEN] {
        (u64::from(self.src) | u64::from(self.dst) << 32).to_le_bytes()
    }

    /// From bytes; the ranks are not checked.
    pub fn parse(bytes: [u8; Route::LEN]) -> Route {
        let word = u64::from_le_bytes(bytes);
        Route { src: word as u32, dst: (word >> 32) as u32 }
    }
}

/// Why forwarding had to stop.
#[derive(Clone, Debug, thiserror::Error)]
pub enum RelayError {
    /// A lane holds what the protocol does not allow.
    #[error("transit from host {from}: {error}")]
    Corrupt {
        /// The neighbour that wrote it.
        from: usize,
        /// What it is.
        error: Corrupt,
    },
    /// A packet that has no business here.
    #[error("transit from host {from}: {what} (kind {kind:#x}, {len} bytes, route {route:?})")]
    Packet {
        /// The neighbour that sent it.
        from: usize,
        /// What is wrong.
        what: &'static str,
        /// Its kind.
        kind: u8,
        /// Its length.
        len: usize,
        /// Its route, if it was long enough to have one.
        route: Option<Route>,
    },
}

/// What a forwarder has done.
#[derive(Default)]
pub struct RelayCounters {
    /// Packets passed on.
    pub chunks: AtomicU64,
    /// Their bytes.
    pub bytes: AtomicU64,
    /// Requests served.
    pub served: AtomicU64,
    /// Heads returned.
    pub head_updates: AtomicU64,
    /// Doorbells rung.
    pub doorbells: AtomicU64,
    /// Times the transfer thread has slept.
    pub sleeps: AtomicU64,
}

fn count(counter: &AtomicU64, n: u64) {
    counter.fetch_add(n, Ordering::Relaxed);
}

struct Input {
    side: Side,
    /// The neighbour's doorbell for its producer.
    bell: usize,
    lane: Consumer,
    /// A packet that found its way out full.
    blocked: Option<Entry>,
}

struct Output {
    port: Arc<dyn Port>,
    ranks: Vec<Producer>,
    /// Before and beyond the dateline.
    transit: [Producer; 2],
    /// What waits for room in each of these lanes, in this order.
    answers: Vec<VecDeque<Answer>>,
}

impl Output {
    /// The lane of this number, and its doorbell: those of the next host's ranks first, then those to its
    /// forwarder.
    fn way(&mut self, n: usize) -> (&mut Producer, usize) {
        let ranks = self.ranks.len();
        match self.ranks.get_mut(n) {
            Some(lane) => (lane, rank_doorbell(n)),
            None => (&mut self.transit[n - ranks], FORWARDER_DOORBELL),
        }
    }
}

/// A host's forwarder. It has lanes of its own, so it and the host's ranks do not disturb each other.
pub struct Forwarder {
    topology: Arc<Topology>,
    host: usize,
    inputs: Vec<Input>,
    outputs: [Output; 2],
    server: Server,
    /// Answers that wait for room.
    unsent: usize,
    counters: Arc<RelayCounters>,
}

/// Packets that one input may pass on before the next has its turn.
const TURN: usize = 8;

impl Forwarder {
    /// The forwarder of this process's host, which has these links, left first.
    pub fn new(members: &Arc<Membership>, links: [&Link; 2], counters: Arc<RelayCounters>) -> Forwarder {
        let (topology, host) = (members.topology().clone(), members.host());
        let mut inputs = Vec::new();
        for link in links {
            let mut input = |from, bell, beyond| {
                let lane = link.consumer(from, End::Forwarder, beyond);
                inputs.push(Input { side: link.side(), bell, lane, blocked: None });
            };
            for local in 0..topology.ranks_of(link.neighbour()).len() {
                input(End::Rank(local), rank_doorbell(local), false);
            }
            input(End::Forwarder, FORWARDER_DOORBELL, false);
            input(End::Forwarder, FORWARDER_DOORBELL, true);
        }
        let outputs = links.map(|link| {
            let ranks = topology.ranks_of(link.neighbour()).len();
            Output {
                port: link.port(),
                ranks: (0..ranks).map(|local| link.producer(End::Forwarder, End::Rank(local), false)).collect(),
                transit: [false, true].map(|beyond| link.producer(End::Forwarder, End::Forwarder, beyond)),
                answers: (0..ranks + 2).map(|_| VecDeque::new()).collect(),
            }
        });
        Forwarder { topology, host, inputs, outputs, server: Server::new(members), unsent: 0, counters }
    }

    /// Whether there must be another step soon though nobody rings.
    pub fn is_waiting(&self) -> bool {
        self.server.is_waiting()
    }

    /// Passes on what is there and finds room, a few packets from each input, and serves requests.
    /// Returns how many.
    pub fn step(&mut self) -> Result<usize, RelayError> {
        let mut moved = self.server.step();
        for i in 0..self.inputs.len() {
            for _ in 0..TURN {
                if !self.pass_on(i)? {
                    break;
                }
                moved += 1;
            }
        }
        if self.unsent > 0 || !self.server.answers.is_empty() {
            moved += self.send_answers();
        }
        Ok(moved)
    }

    /// The number of the lane by which a packet goes on. One that is not for a host's forwarder goes
    /// straight to its rank there.
    fn way_on(topology: &Topology, host: usize, side: Side, route: Route, for_host: bool) -> usize {
        let (next, end) = (topology.neighbour(host, side), topology.host_of(route.dst));
        if end == next && !for_host {
            return topology.local_of(route.dst);
        }
        let beyond = topology.beyond_dateline(topology.host_of(route.src), host, side);
        topology.ranks_of(next).len() + usize::from(beyond)
    }

    /// Sends of the answers what there is room for. They wait in memory, each lane's for itself, so that
    /// requests are never held up by them.
    fn send_answers(&mut self) -> usize {
        let Forwarder { topology, host, outputs, server, unsent, counters, .. } = self;
        while let Some(answer) = server.answers.pop_front() {
            let side = topology.direction(*host, topology.host_of(answer.route.dst));
            let way = Self::way_on(topology, *host, side, answer.route, false);
            outputs[side as usize].answers[way].push_back(answer);
            *unsent += 1;
        }
        let mut sent = 0;
        for output in outputs {
            for n in 0..output.answers.len() {
                while let Some(answer) = output.answers[n].pop_front() {
                    let (lane, bell) = output.way(n);
                    if !answer.put(lane) {
                        output.answers[n].push_front(answer);
                        break;
                    }
                    output.port.ring(bell);
                    count(&counters.doorbells, 1);
                    server.sent(&answer);
                    sent += 1;
                }
            }
        }
        *unsent -= sent;
        sent
    }

    fn pass_on(&mut self, i: usize) -> Result<bool, RelayError> {
        let Forwarder { topology, host, inputs, outputs, server, counters, .. } = self;
        let input = &mut inputs[i];
        let from = topology.neighbour(*host, input.side);
        let entry = match input.blocked.take() {
            Some(entry) => entry,
            None => match input.lane.take().map_err(|error| RelayError::Corrupt { from, error })? {
                Some(entry) => entry,
                None => return Ok(false),
            },
        };
        let side = input.side.opposite();
        let route = check(topology, *host, input.side, from, &input.lane, &entry)?;
        let output = &mut outputs[side as usize];
        if topology.host_of(route.dst) == *host {
            let (at, len) = (entry.offset + Route::LEN, entry.len - Route::LEN);
            if !server.take(route, input.lane.window(), at, len) {
                return Err(wrong(from, &entry, Some(route), "its sender has more requests open than it may"));
            }
            count(&counters.served, 1);
            Self::taken(input, outputs, counters);
            return Ok(true);
        }
        let way = Self::way_on(topology, *host, side, route, is_request(&entry));
        let (lane, bell) = output.way(way);
        if entry.len > lane.entry_max() {
            return Err(wrong(from, &entry, Some(route), "it is too long for the next lane"));
        }
        let Some(mut slot) = lane.reserve(entry.len) else {
            input.blocked = Some(entry);
            return Ok(false);
        };
        slot.write(0, input.lane.window().foreign(entry.offset, entry.len));
        slot.commit(entry.kind, entry.len, entry.meta);
        output.port.ring(bell);
        count(&counters.doorbells, 1);
        count(&counters.chunks, 1);
        count(&counters.bytes, entry.len as u64);
        Self::taken(input, outputs, counters);
        Ok(true)
    }

    /// Gives back the space of the entry that was taken from an input.
    fn taken(input: &mut Input, outputs: &[Output; 2], counters: &RelayCounters) {
        if input.lane.release() {
            count(&counters.head_updates, 1);
            count(&counters.doorbells, 1);
            outputs[input.side as usize].port.ring(input.bell);
        }
    }

    /// One line on every lane that is not empty, for the diagnosis of a hang.
    pub fn describe(&self) -> Vec<String> {
        let mut lines = self.server.describe();
        if self.unsent > 0 {
            lines.push(format!("forwarder: {} answers wait for room", self.unsent));
        }
        for (i, input) in self.inputs.iter().enumerate() {
            if input.blocked.is_some() || !input.lane.is_empty() {
                let state = if input.blocked.is_some() { "waits for room" } else { "has packets" };
                lines.push(format!("forwarder: input {i} from the {} {state}", input.side));
            }
        }
        for side in Side::BOTH {
            let output = &self.outputs[side as usize];
            for (name, lane) in
                output.ranks.iter().map(|l| ("rank", l)).chain(output.transit.iter().map(|l| ("transit", l)))
            {
                if lane.taken() > 0 {
                    lines.push(format!(
                        "forwarder: {name} lane to the {side}: {} of {} lines not known to be free",
                        lane.taken(),
                        lane.lines()
                    ));
                }
            }
        }
        lines
    }
}

fn wrong(from: usize, entry: &Entry, route: Option<Route>, what: &'static str) -> RelayError {
    RelayError::Packet { from, what, kind: entry.kind, len: entry.len, route }
}

fn is_request(entry: &Entry) -> bool {
    entry.kind == ROUTED | REQUEST
}

/// The route of a packet that came by `side`, if it is one that this host may be asked to take on.
fn check(
    topology: &Topology,
    host: usize,
    side: Side,
    from: usize,
    lane: &Consumer,
    entry: &Entry,
) -> Result<Route, RelayError> {
    if entry.kind & ROUTED == 0 || entry.len < Route::LEN {
        return Err(wrong(from, entry, None, "it has no route"));
    }
    let mut bytes = [0; Route::LEN];
    lane.window().read(entry.offset, &mut bytes);
    let route = Route::parse(bytes);
    let size = topology.size() as u32;
    if route.src >= size || route.dst >= size {
        return Err(wrong(from, entry, Some(route), "there is no such rank"));
    }
    let (start, end) = (topology.host_of(route.src), topology.host_of(route.dst));
    let request = is_request(entry);
    if request && entry.len < Route::LEN + Request::LEN {
        return Err(wrong(from, entry, Some(route), "it is too short for a request"));
    }
    // On the shorter way from start to end, and not at either of them, unless it is for this forwarder.
    let on_the_way = start != end
        && topology.direction(start, end) == side.opposite()
        && topology.distance(start, host) + topology.distance(host, end) == topology.distance(start, end)
        && host != start
        && (host != end || request);
    if !on_the_way {
        return Err(wrong(from, entry, Some(route), "its way does not lead through this host"));
    }
    Ok(route)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn routes_survive_their_bytes() {
        let route = Route { src: 3, dst: 0xfffe_0001 };
        assert_eq!(Route::parse(route.bytes()), route);
    }
}
