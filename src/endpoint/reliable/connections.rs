//! All connections of a rank, and their transfer over the links.

use super::datagram::Datagram;
use super::halves::{receiving_half, sending_half};
use super::hop::Hop;
use super::receiver::Receiver;
use super::sender::Sender;
use crate::error::{EndpointError, Malformed};
use ntbring_memory::ForeignBytes;
use ntbring_ntb::Side;
use ntbring_queue::{Consumer, Producer};
use ntbring_ring::relay::Route;
use ntbring_ring::routing_table::{RoutingTable, Snapshot};
use ntbring_ring::{Membership, Topology};
use std::sync::Arc;
use std::time::Instant;

/// Maximum number of datagrams taken from one lane, or sent on one connection, before the next one has its turn.
const BURST: usize = 16;

/// The connection to one rank of another host.
struct Connection {
    route: Route,
    host: usize,
    /// The side by which datagrams leave; None if there is no route.
    side: Option<Side>,
    /// True if the rank is lost: no datagrams are sent to it or accepted from it.
    lost: bool,
    sender: Sender,
    receiver: Receiver,
}

/// The ends of all connections, each with the rank at its other end: messages are put into and taken from them.
#[derive(Default)]
pub struct Ends {
    /// Producers; an entry put into one is sent to that rank.
    pub out: Vec<(u32, Producer)>,
    /// Consumers of the entries that come from that rank.
    pub inbound: Vec<(u32, Consumer)>,
}

/// All connections of a rank.
pub struct ReliableConnections {
    topology: Arc<Topology>,
    rank: u32,
    routes: RoutingTable,
    /// The routes as last read.
    snapshot: Option<Snapshot>,
    hops: Vec<Hop>,
    /// Indexed by rank; None for ranks of the same host.
    connections: Vec<Option<Connection>>,
    /// The first error. No connection sends or receives after it.
    fault: Option<Arc<EndpointError>>,
    /// Number of steps so far.
    steps: u64,
}

impl ReliableConnections {
    /// Builds the reliable connections of a rank and their ends. Returns None in rings that do not reroute.
    pub fn new(members: &Membership) -> Option<(ReliableConnections, Ends)> {
        let (topology, rank) = (members.topology().clone(), members.rank());
        let links = members.links().filter(|_| members.policy().reroutes())?;
        let (host, local) = (members.host(), topology.local_of(rank));
        let hops = links.map(|link| Hop::new(link, &topology, local)).into();
        let mut ends = Ends::default();
        let mut connect = |dst: u32| {
            let to = topology.host_of(dst);
            (to != host).then(|| {
                let (out, sender) = sending_half();
                let (inbound, receiver) = receiving_half();
                ends.out.push((dst, out));
                ends.inbound.push((dst, inbound));
                let (route, side) = (Route { src: rank, dst }, Some(topology.direction(host, to)));
                Connection { route, host: to, side, lost: false, sender, receiver }
            })
        };
        let connections = (0..topology.size() as u32).map(&mut connect).collect();
        let routes = members.routes();
        Some((
            ReliableConnections { topology, rank, routes, snapshot: None, hops, connections, fault: None, steps: 0 },
            ends,
        ))
    }

    /// Returns the largest entry, in bytes, if all lanes on the way accept `packet_max` bytes.
    pub fn entry_max(&self, packet_max: usize) -> usize {
        let hops = self.hops.iter().map(Hop::entry_max).min().unwrap_or(0);
        hops.min(packet_max) - Datagram::HEAD
    }

    /// Sends and receives pending datagrams. Returns true if a new entry was sent or has arrived.
    pub fn step(&mut self, now: Instant) -> Result<bool, EndpointError> {
        if self.fault.is_none() {
            match self.carry_on(now) {
                Ok(moved) => return Ok(moved),
                Err(error) => {
                    log::error!("rank {}: {error}; the reliable connection has stopped", self.rank);
                    self.fault = Some(Arc::new(error));
                }
            }
        }
        self.fault.clone().map_or(Ok(false), |fault| Err(EndpointError::Reliable(fault)))
    }

    /// Returns the number of steps so far.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// True if the connections have stopped because of an error.
    pub fn has_failed(&self) -> bool {
        self.fault.is_some()
    }

    /// Stops the connections with an error, unless they have stopped already.
    pub fn fail(&mut self, text: &str) {
        self.fault.get_or_insert_with(|| Arc::new(EndpointError::Argument(text.to_string())));
    }

    fn carry_on(&mut self, now: Instant) -> Result<bool, EndpointError> {
        self.steps = self.steps.wrapping_add(1);
        self.turn(now);
        let mut moved = self.take_in(now)?;
        let ranks = self.connections.len();
        for i in 0..ranks {
            // The first connection to be served rotates, because the connections share lanes.
            let rank = (self.steps as usize % ranks + i) % ranks;
            moved |= self.send(rank as u32, now);
            self.inform(rank as u32, now);
        }
        self.hops.iter_mut().try_for_each(|hop| hop.look_after(now))?;
        Ok(moved)
    }

    /// Sends entries that are in the lane to `rank`, as far as the outgoing lanes have room. Returns true if any was
    /// sent.
    pub fn send(&mut self, rank: u32, now: Instant) -> bool {
        let ReliableConnections { topology, hops, connections, fault: None, .. } = self else { return false };
        let Some(Some(Connection { route, side: Some(side), sender, receiver, .. })) =
            connections.get_mut(rank as usize)
        else {
            return false;
        };
        let hop = &mut hops[*side as usize];
        let mut sent = 0;
        while let Some(entry) = sender.outgoing().filter(|_| sent < BURST) {
            let datagram = Datagram { tag: Some(entry.tag), ..receiver.datagram(entry.place) };
            if !hop.put(topology, *route, &datagram, sender.bytes(&entry)) {
                break;
            }
            receiver.has_sent(&datagram);
            sender.sent(&entry, now);
            sent += 1;
        }
        sent > 0
    }

    /// Sends an acknowledgement to a rank, or asks it for one, if either is due.
    fn inform(&mut self, rank: u32, now: Instant) {
        let ReliableConnections { topology, hops, connections, .. } = self;
        let Some(Some(Connection { route, side: Some(side), sender, receiver, .. })) =
            connections.get_mut(rank as usize)
        else {
            return;
        };
        let asks = sender.is_to_ask(now);
        if asks || receiver.is_to_tell(now) {
            let datagram = Datagram { asks, ..receiver.datagram(sender.place()) };
            if hops[*side as usize].put(topology, *route, &datagram, ForeignBytes::EMPTY) {
                receiver.has_sent(&datagram);
                if asks {
                    sender.has_asked(now);
                }
            }
        }
    }

    /// Takes datagrams from all incoming lanes.
    fn take_in(&mut self, now: Instant) -> Result<bool, EndpointError> {
        let ReliableConnections { hops, connections, rank, .. } = self;
        let mut news = false;
        for hop in hops {
            hop.take(BURST, |route, datagram, bytes| {
                let connection = connections.get_mut(route.src as usize).filter(|_| route.dst == *rank);
                let malformed = |what| EndpointError::Datagram { from: format!("rank {}", route.src), what };
                let Some(Some(Connection { lost, sender, receiver, .. })) = connection else {
                    return Err(malformed(Malformed("has no connection to this rank")));
                };
                if *lost {
                    return Ok(());
                }
                news |= sender.acknowledge(&datagram, now).map_err(malformed)?;
                news |= receiver.take(&datagram, bytes, now).map_err(malformed)?;
                Ok(())
            })?;
        }
        Ok(news)
    }

    /// Follows changes of the host's routes. Entries sent by the old route are retransmitted.
    fn turn(&mut self, now: Instant) {
        let snapshot = self.routes.read();
        if self.snapshot == Some(snapshot) || !snapshot.is_published() {
            return;
        }
        self.snapshot = Some(snapshot);
        for connection in self.connections.iter_mut().flatten() {
            let side = snapshot.side(connection.host).filter(|_| !connection.lost);
            if side != connection.side {
                connection.side = side;
                connection.sender.turned(now);
                connection.receiver.repeat(now);
            }
        }
    }

    /// Stops all transfers to and from a lost rank.
    pub fn lose(&mut self, rank: u32) {
        if let Some(Some(connection)) = self.connections.get_mut(rank as usize) {
            (connection.lost, connection.side) = (true, None);
        }
    }

    /// True if another step is needed soon even though no doorbell will ring.
    pub fn is_waiting(&self) -> bool {
        let waits = |connection: &Connection| {
            connection.side.is_some() && (!connection.sender.is_settled() || connection.receiver.owes())
        };
        self.connections.iter().flatten().any(waits) || !self.hops.iter().all(Hop::is_settled)
    }

    /// Returns three counts: entries retransmitted over a link, entries that links had damaged, entries retransmitted
    /// end to end.
    pub fn mended(&self) -> (u64, u64, u64) {
        let (resent, damaged) = self.hops.iter().map(Hop::mended).fold((0, 0), |a, b| (a.0 + b.0, a.1 + b.1));
        (resent, damaged, self.connections.iter().flatten().map(|c| c.sender.resent).sum())
    }

    /// Returns for one link: bytes of lane space sent by it, entries retransmitted over it, entries that arrived
    /// damaged.
    pub fn crossed(&self, side: Side) -> [u64; 3] {
        let of = self.hops.iter().filter(|hop| hop.side() == side);
        of.map(|hop| [hop.produced(), hop.mended().0, hop.mended().1])
            .fold([0; 3], |sum, more| std::array::from_fn(|i| sum[i] + more[i]))
    }

    /// Returns the number of doorbells rung and of heads returned.
    pub fn writes(&self) -> (u64, u64) {
        self.hops.iter().map(|hop| (hop.doorbells, hop.head_updates)).fold((0, 0), |a, b| (a.0 + b.0, a.1 + b.1))
    }

    /// Returns a line for each connection that has unacknowledged entries or no route.
    pub fn describe(&self) -> Vec<String> {
        let line = |connection: &Connection| {
            let Connection { route, side, sender, receiver, .. } = connection;
            let way = side.map_or_else(|| "there is no route".to_string(), |side| format!("to the {side}"));
            let (has, _) = receiver.state();
            format!(
                "connection to rank {}: {way}, {} entries not known to be there, {} lines not known to be consumed; {} \
                 entries have come",
                route.dst,
                sender.open(),
                sender.taken(),
                has.entries
            )
        };
        let malformed = |connection: &&Connection| connection.sender.taken() > 0 || connection.side.is_none();
        self.connections.iter().flatten().filter(malformed).map(line).collect()
    }
}
