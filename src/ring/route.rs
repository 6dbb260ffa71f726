//! Where a packet comes from and where it goes, and whether it may come this way.

use super::served::{Request, REQUEST};
use super::Topology;
use ntbring_manager::ManagerError;
use ntbring_ntb::Side;
use ntbring_queue::{Consumer, Corrupt, Entry, GaveUp};

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
    /// A link that damages everything.
    #[error("transit to host {to}: {error}")]
    GaveUp {
        /// The neighbour that it is for.
        to: usize,
        /// What it is.
        error: GaveUp,
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
    /// A packet of the network manager that it cannot take.
    #[error("from host {from}: {error}")]
    Manager {
        /// The neighbour that sent it.
        from: usize,
        /// What is wrong with it.
        error: ManagerError,
    },
}

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

/// The error that a packet is.
pub(super) fn wrong(from: usize, entry: &Entry, route: Option<Route>, what: &'static str) -> RelayError {
    RelayError::Packet { from, what, kind: entry.kind, len: entry.len, route }
}

/// Whether it is for a host's forwarder.
pub(super) fn is_request(entry: &Entry) -> bool {
    entry.kind == ROUTED | REQUEST
}

/// Which ways packets may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Allowed {
    /// The shorter one only.
    Shorter,
    /// Either way round: links may be down.
    Either,
}

impl Allowed {
    /// Whether a packet that goes from host `start` to host `end` in a direction may pass `host`: whether that lies
    /// between them, in this direction. For its end it is only if it is a request, for the forwarder there.
    pub(super) fn passes(
        self,
        topology: &Topology,
        (start, end): (usize, usize),
        host: usize,
        to: Side,
        request: bool,
    ) -> bool {
        let way = topology.links(start, end, to);
        let on_it = host != start && topology.links(start, host, to) <= way && (host != end || request);
        start != end && on_it && (self == Allowed::Either || topology.direction(start, end) == to)
    }
}

/// The route of a packet that came by `side`, if it is one that this host may be asked to take on.
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
    let request = is_request(entry);
    if request && entry.len < Route::LEN + Request::LEN {
        return Err(wrong(from, entry, Some(route), "it is too short for a request"));
    }
    if !allowed.passes(topology, ends, host, side.opposite(), request) {
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

    fn ring(hosts: usize) -> Topology {
        Topology::new(hosts, &(0..hosts as i32).collect::<Vec<_>>()).unwrap()
    }

    /// The hosts that a packet may pass.
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
        // Nobody turns round: what goes right from 0 to 1 has no business at 2.
        assert!(passed(&t, Allowed::Either, (0, 1), Side::Right, false).is_empty());
    }
}
