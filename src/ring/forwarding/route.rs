//! Source and destination of a packet, and the check of its route.

use crate::gateway::TUNNEL;
use crate::topology::Topology;
use ntbring_manager::ManagerError;
use ntbring_ntb::Side;
use ntbring_queue::{Consumer, Corrupt, Entry, GaveUp};
use ntbring_rma::{Request, REQUEST};

/// Reasons for which forwarding stops.
#[derive(Clone, Debug, thiserror::Error)]
pub enum RelayError {
    /// A lane holds an entry that the protocol does not allow.
    #[error("transit from host {from}: {error}")]
    Corrupt {
        /// The neighbour that wrote the entry.
        from: usize,
        /// The cause.
        error: Corrupt,
    },
    /// Retransmission was given up, since every attempt was damaged on the link.
    #[error("transit to host {to}: {error}")]
    GaveUp {
        /// The neighbour at the other end of the link.
        to: usize,
        /// The cause.
        error: GaveUp,
    },
    /// A packet has arrived that this host must not receive.
    #[error("transit from host {from}: {what} (kind {kind:#x}, {len} bytes, route {route:?})")]
    Packet {
        /// The neighbour that sent the packet.
        from: usize,
        /// The defect that was found.
        what: &'static str,
        /// The packet's kind.
        kind: u8,
        /// The packet's length, bytes.
        len: usize,
        /// The packet's route, if it was long enough to have one.
        route: Option<Route>,
    },
    /// A packet of the network manager is invalid.
    #[error("from host {from}: {error}")]
    Manager {
        /// The neighbour that sent the packet.
        from: usize,
        /// The manager's error.
        error: ManagerError,
    },
}

/// Bit of an entry's kind that is set if the entry's bytes begin with a route.
pub const ROUTED: u8 = 0x40;

/// Source and destination of a packet: 8 bytes, two little-endian 32-bit ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route {
    /// The rank that sent the packet.
    pub src: u32,
    /// The rank that is to receive the packet.
    pub dst: u32,
}

impl Route {
    /// Size of an encoded route, bytes.
    pub const LEN: usize = 8;

    /// Encodes the route.
    pub fn bytes(self) -> [u8; Route::LEN] {
        (u64::from(self.src) | u64::from(self.dst) << 32).to_le_bytes()
    }

    /// Decodes a route; the ranks are not checked.
    pub fn parse(bytes: [u8; Route::LEN]) -> Route {
        let word = u64::from_le_bytes(bytes);
        Route { src: word as u32, dst: (word >> 32) as u32 }
    }
}

/// Creates the error for an invalid packet.
pub(super) fn wrong(from: usize, entry: &Entry, route: Option<Route>, what: &'static str) -> RelayError {
    RelayError::Packet { from, what, kind: entry.kind, len: entry.len, route }
}

/// Returns true if the packet is a request for one-sided operations.
fn is_request(entry: &Entry) -> bool {
    entry.kind == ROUTED | REQUEST
}

/// Returns true if the packet belongs to a tunnel between gateways.
pub(super) fn is_of_tunnel(entry: &Entry) -> bool {
    entry.kind == ROUTED | TUNNEL
}

/// Returns true if the packet is for the forwarder of its destination's host: a request, or a packet of a tunnel.
pub(super) fn is_for_forwarder(entry: &Entry) -> bool {
    is_request(entry) || is_of_tunnel(entry)
}

/// Ways round the ring that packets may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Allowed {
    /// Packets only take the shorter way.
    Shorter,
    /// Packets may take either way round, since links may be down.
    Either,
}

impl Allowed {
    /// Returns true if a packet from host `start` to host `end` in direction `to` may be forwarded by `host`: `host`
    /// must lie between them in this direction. At `end` itself that holds for packets only that are for the forwarder
    /// there (`for_host`).
    pub(super) fn passes(
        self,
        topology: &Topology,
        (start, end): (usize, usize),
        host: usize,
        to: Side,
        for_host: bool,
    ) -> bool {
        let way = topology.links(start, end, to);
        let on_it = host != start && topology.links(start, host, to) <= way && (host != end || for_host);
        start != end && on_it && (self == Allowed::Either || topology.direction(start, end) == to)
    }
}

/// Returns the route of a packet that arrived on `side`, if this host may forward or serve it; otherwise the error.
pub(super) fn check(
    (topology, allowed): (&Topology, Allowed),
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
    let ends = (topology.host_of(route.src), topology.host_of(route.dst));
    if is_request(entry) && entry.len < Route::LEN + Request::LEN {
        return Err(wrong(from, entry, Some(route), "it is too short for a request"));
    }
    if !allowed.passes(topology, ends, host, side.opposite(), is_for_forwarder(entry)) {
        return Err(wrong(from, entry, Some(route), "its route does not lead through this host"));
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

    fn ring(hosts: usize) -> Topology {
        Topology::new(hosts, &(0..hosts as i32).collect::<Vec<_>>()).unwrap()
    }

    /// Returns the hosts that may forward a packet.
    fn passed(t: &Topology, allowed: Allowed, ends: (usize, usize), to: Side, request: bool) -> Vec<usize> {
        (0..t.hosts()).filter(|&host| allowed.passes(t, ends, host, to, request)).collect()
    }

    #[test]
    fn packets_pass_the_hosts_of_their_way_and_no_others() {
        for hosts in 2..=9 {
            let t = ring(hosts);
            for (start, end, to) in (0..hosts * hosts).flat_map(|i| Side::BOTH.map(|to| (i / hosts, i % hosts, to))) {
                let mut between = vec![];
                let mut at = t.neighbour(start, to);
                while start != end && at != end {
                    between.push(at);
                    at = t.neighbour(at, to);
                }
                for (allowed, request) in [(Allowed::Either, false), (Allowed::Either, true), (Allowed::Shorter, true)]
                {
                    let mut way = between.clone();
                    way.extend((request && start != end).then_some(end));
                    way.retain(|_| allowed == Allowed::Either || t.direction(start, end) == to);
                    way.sort_unstable();
                    assert_eq!(passed(&t, allowed, (start, end), to, request), way, "{start}-{end} {to} {allowed:?}");
                }
            }
        }
    }

    #[test]
    fn the_long_way_is_for_rings_whose_links_may_be_down() {
        let t = ring(4);
        assert_eq!(passed(&t, Allowed::Either, (0, 1), Side::Left, false), [2, 3]);
        assert!(passed(&t, Allowed::Shorter, (0, 1), Side::Left, true).is_empty());
        // Packets never reverse: one that goes right from 0 to 1 must not appear at 2.
        assert!(passed(&t, Allowed::Either, (0, 1), Side::Right, false).is_empty());
    }
}
