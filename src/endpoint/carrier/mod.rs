//! End to end: what ranks of different hosts send each other where links may lose it, or go down
//! (`NTBRING_RELIABILITY=retry`).
//!
//! Every pair of ranks has a *connection*: a lane in each direction that lies in the sender's own memory, and a copy of it
//! in the receiver's. Both are ordinary lanes; who sends messages, and who takes them, sees nothing else. The carrier brings
//! the entries from one to the other as *parcels*, by whichever way round the ring there is. The sender's lane keeps what
//! is not known to have come; if the way changes, all of that goes once more, by the new one. The receiver's carrier
//! takes each entry once, in order, and ignores the rest. (docs/protocol.md, "End to end")
//!
//! | file | holds |
//! |---|---|
//! | `sender`, `receiver` | the two halves of a connection, without I/O |
//! | `parcel` | what they send each other |
//! | `hop` | the lanes over a link that parcels travel by |
//! | `caretaker` | the thread that carries on while the rank computes |

mod caretaker;
mod hop;
pub mod parcel;
pub mod receiver;
pub mod sender;
#[cfg(test)]
mod tests;

pub(super) use caretaker::Caretaker;
pub use parcel::{Parcel, Place};
pub use receiver::Receiver;
pub use sender::{Outgoing, Sender};

use super::EndpointError;
use hop::Hop;
use ntbring_memory::{ForeignBytes, InWindow, OutWindow, Region};
use ntbring_ntb::Side;
use ntbring_queue::{Consumer, Producer, Reliability, LINE};
use ntbring_ring::relay::Route;
use ntbring_ring::ways::{Snapshot, Ways};
use ntbring_ring::{Membership, Topology};
use std::sync::Arc;
use std::time::Instant;

/// Bytes of a connection's lane in one direction: a way round the ring is some of them long.
const LANE: usize = 128 << 10;

/// Parcels that are taken from a lane, or sent by a connection, before the next.
const BURST: usize = 16;

/// What a rank says that cannot be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Odd(&'static str);

/// One to each rank of another host.
struct Connection {
    route: Route,
    host: usize,
    /// The side by which parcels leave; None if there is no way.
    side: Option<Side>,
    /// Its rank is lost: nothing is carried to or from it.
    lost: bool,
    sender: Sender,
    receiver: Receiver,
}

/// The ends of all connections that messages are put into and taken from, with the rank at the other end.
#[derive(Default)]
pub(super) struct Ends {
    /// What is put into it is sent to that rank.
    pub out: Vec<(u32, Producer)>,
    /// What comes from there.
    pub inbound: Vec<(u32, Consumer)>,
}

/// All connections of a rank.
pub(super) struct Carrier {
    topology: Arc<Topology>,
    rank: u32,
    ways: Ways,
    /// What was last read of them.
    snapshot: Option<Snapshot>,
    hops: Vec<Hop>,
    /// By rank; none to ranks of the same host.
    connections: Vec<Option<Connection>>,
    /// What went wrong. Nothing is carried after that.
    fault: Option<Arc<EndpointError>>,
    /// Steps so far.
    steps: u64,
}

impl Carrier {
    /// The carrier of a rank, and the ends of its connections; None where links are not asked to repeat anything.
    pub fn new(members: &Membership) -> Option<(Carrier, Ends)> {
        let (topology, rank) = (members.topology().clone(), members.rank());
        let links =
            members.links().filter(|links| links.iter().all(|link| link.reliability() == Reliability::Retry))?;
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
        let ways = members.ways();
        Some((Carrier { topology, rank, ways, snapshot: None, hops, connections, fault: None, steps: 0 }, ends))
    }

    /// The most bytes that an entry may have, if all lanes on the way take `packet_max`.
    pub fn entry_max(&self, packet_max: usize) -> usize {
        let hops = self.hops.iter().map(Hop::entry_max).min().unwrap_or(0);
        hops.min(packet_max) - Parcel::HEAD
    }

    /// Carries what there is, in both directions. True if anything new has moved.
    pub fn step(&mut self, now: Instant) -> Result<bool, EndpointError> {
        if self.fault.is_none() {
            match self.carry_on(now) {
                Ok(moved) => return Ok(moved),
                Err(error) => {
                    log::error!("rank {}: {error}; nothing is carried any more", self.rank);
                    self.fault = Some(Arc::new(error));
                }
            }
        }
        self.fault.clone().map_or(Ok(false), |fault| Err(EndpointError::Carrier(fault)))
    }

    fn carry_on(&mut self, now: Instant) -> Result<bool, EndpointError> {
        self.steps = self.steps.wrapping_add(1);
        self.turn(now);
        let mut moved = self.take_in(now)?;
        let ranks = self.connections.len();
        for i in 0..ranks {
            // Another one is the first each time: they share lanes.
            let rank = (self.steps as usize % ranks + i) % ranks;
            moved |= self.send(rank as u32, now);
            self.inform(rank as u32, now);
        }
        self.hops.iter_mut().try_for_each(|hop| hop.look_after(now))?;
        Ok(moved)
    }

    /// Sends to a rank what has been put into the lane to it and finds room. True if anything did.
    pub fn send(&mut self, rank: u32, now: Instant) -> bool {
        let Carrier { topology, hops, connections, fault: None, .. } = self else { return false };
        let Some(Some(Connection { route, side: Some(side), sender, receiver, .. })) =
            connections.get_mut(rank as usize)
        else {
            return false;
        };
        let hop = &mut hops[*side as usize];
        let mut sent = 0;
        while let Some(entry) = sender.outgoing().filter(|_| sent < BURST) {
            let parcel = Parcel { tag: Some(entry.tag), ..receiver.telling(entry.place) };
            if !hop.put(topology, *route, &parcel, entry.bytes) {
                break;
            }
            receiver.has_told(&parcel);
            sender.sent(&entry, now);
            sent += 1;
        }
        sent > 0
    }

    /// Tells a rank how far it has come, and asks it the same, if it is time.
    fn inform(&mut self, rank: u32, now: Instant) {
        let Carrier { topology, hops, connections, .. } = self;
        let Some(Some(Connection { route, side: Some(side), sender, receiver, .. })) =
            connections.get_mut(rank as usize)
        else {
            return;
        };
        let asks = sender.is_to_ask(now);
        if asks || receiver.is_to_tell(now) {
            let parcel = Parcel { asks, ..receiver.telling(sender.place()) };
            if hops[*side as usize].put(topology, *route, &parcel, ForeignBytes::EMPTY) {
                receiver.has_told(&parcel);
                if asks {
                    sender.has_asked(now);
                }
            }
        }
    }

    /// Takes in what has come.
    fn take_in(&mut self, now: Instant) -> Result<bool, EndpointError> {
        let Carrier { hops, connections, rank, .. } = self;
        let mut news = false;
        for hop in hops {
            hop.take(BURST, |route, parcel, bytes| {
                let connection = connections.get_mut(route.src as usize).filter(|_| route.dst == *rank);
                let odd = |what| EndpointError::Parcel { from: format!("rank {}", route.src), what };
                let Some(Some(Connection { lost, sender, receiver, .. })) = connection else {
                    return Err(odd(Odd("has no connection to this rank")));
                };
                if *lost {
                    return Ok(());
                }
                news |= sender.told(&parcel, now).map_err(odd)?;
                news |= receiver.take(&parcel, bytes, now).map_err(odd)?;
                Ok(())
            })?;
        }
        Ok(news)
    }

    /// Follows the host's ways. What was sent by another one is sent again.
    fn turn(&mut self, now: Instant) {
        let snapshot = self.ways.read();
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

    /// Carries nothing to or from a rank any more.
    pub fn lose(&mut self, rank: u32) {
        if let Some(Some(connection)) = self.connections.get_mut(rank as usize) {
            (connection.lost, connection.side) = (true, None);
        }
    }

    /// Whether there must be another step soon though nobody rings.
    pub fn is_waiting(&self) -> bool {
        let waits = |connection: &Connection| {
            connection.side.is_some() && (!connection.sender.is_settled() || connection.receiver.owes())
        };
        self.connections.iter().flatten().any(waits) || !self.hops.iter().all(Hop::is_settled)
    }

    /// Entries sent again over a link, entries that links had damaged, entries sent again end to end.
    pub fn mended(&self) -> (u64, u64, u64) {
        let (resent, damaged) = self.hops.iter().map(Hop::mended).fold((0, 0), |a, b| (a.0 + b.0, a.1 + b.1));
        (resent, damaged, self.connections.iter().flatten().map(|c| c.sender.resent).sum())
    }

    /// Of one link: bytes of lanes sent by it, entries sent again, entries that it had damaged on their way here.
    pub fn crossed(&self, side: Side) -> [u64; 3] {
        let of = self.hops.iter().filter(|hop| hop.side() == side);
        of.map(|hop| [hop.produced(), hop.mended().0, hop.mended().1])
            .fold([0; 3], |sum, more| std::array::from_fn(|i| sum[i] + more[i]))
    }

    /// Doorbells rung, and heads returned.
    pub fn writes(&self) -> (u64, u64) {
        self.hops.iter().map(|hop| (hop.doorbells, hop.head_updates)).fold((0, 0), |a, b| (a.0 + b.0, a.1 + b.1))
    }

    /// Lines on connections in which something is under way or that have no way.
    pub fn describe(&self) -> Vec<String> {
        let line = |connection: &Connection| {
            let Connection { route, side, sender, receiver, .. } = connection;
            let way = side.map_or_else(|| "there is no way".to_string(), |side| format!("to the {side}"));
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
        let odd = |connection: &&Connection| connection.sender.taken() > 0 || connection.side.is_none();
        self.connections.iter().flatten().filter(odd).map(line).collect()
    }
}

/// The sending half of a connection, and what fills its lane.
pub fn sending_half() -> (Producer, Sender) {
    let (lane, credit) = (Region::anonymous(LANE), Region::anonymous(LINE));
    let producer = Producer::new(OutWindow::new(lane.clone()), InWindow::new(credit.clone()));
    (producer, Sender::new(InWindow::new(lane), OutWindow::new(credit)))
}

/// The receiving half of a connection, and what empties its lane.
pub fn receiving_half() -> (Consumer, Receiver) {
    let (lane, credit) = (Region::anonymous(LANE), Region::anonymous(LINE));
    let consumer = Consumer::new(InWindow::new(lane.clone()), OutWindow::new(credit.clone()));
    (consumer, Receiver::new(OutWindow::new(lane), InWindow::new(credit)))
}
