//! Packets for several hosts: multicast, and broadcast to all. One packet goes right and one left, each with the hosts that are
//! nearer that way; every host on the way that it concerns delivers it to its ranks and passes it on with the
//! rest of them. So each link carries it once at most. (Broadcast and multicast of control messages: SPAX, ETRI 1995.)

use super::route::{wrong, Allowed, RelayError, Route, ROUTED};
use super::Topology;
use ntbring_ntb::Side;
use ntbring_queue::{Consumer, Entry, Producer};

/// The kind of such a packet's entry, without its route bit.
pub const CAST: u8 = 16;

/// The most bytes that such a packet may carry: the smallest lane takes it, also if it is checked.
pub const CAST_MAX: usize = 944;

/// A set of hosts, by their numbers in the ring, which are below 64. (A ring has at most 16.)
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HostSet(u64);

impl HostSet {
    /// Hosts that a set can tell apart.
    pub const MAX: usize = 64;

    /// All hosts of a ring.
    pub fn all(topology: &Topology) -> HostSet {
        (0..topology.hosts()).collect()
    }

    /// Whether a host is in it.
    pub fn contains(self, host: usize) -> bool {
        host < Self::MAX && self.0 >> host & 1 != 0
    }

    /// The same set without a host.
    pub fn without(self, host: usize) -> HostSet {
        HostSet(if host < Self::MAX { self.0 & !(1 << host) } else { self.0 })
    }

    /// Whether no host is in it.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The hosts, in order.
    pub fn hosts(self) -> impl Iterator<Item = usize> {
        (0..Self::MAX).filter(move |&host| self.contains(host))
    }

    /// As a word: bit h for host h.
    pub fn word(self) -> u64 {
        self.0
    }

    /// From a word; the hosts are not checked.
    pub fn from_word(word: u64) -> HostSet {
        HostSet(word)
    }

    /// The parts of it that are reached from a host by the left and by the right, without that host itself.
    pub fn parted(self, topology: &Topology, from: usize) -> [HostSet; 2] {
        Side::BOTH.map(|side| {
            self.without(from)
                .hosts()
                .filter(|&to| to < topology.hosts() && topology.direction(from, to) == side)
                .collect()
        })
    }
}

impl FromIterator<usize> for HostSet {
    fn from_iter<T: IntoIterator<Item = usize>>(hosts: T) -> HostSet {
        HostSet(hosts.into_iter().filter(|&host| host < Self::MAX).fold(0, |word, host| word | 1 << host))
    }
}

/// What such a packet begins with: a route whose source is the sender's rank and whose destination is that of the
/// receiver, once there is one (0 before), and the hosts that it still has to come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cast {
    /// Who sent it, and the rank that it is delivered to.
    pub route: Route,
    /// The hosts that it is for.
    pub hosts: HostSet,
}

impl Cast {
    /// Bytes of it.
    pub const LEN: usize = Route::LEN + 8;

    /// Of what a rank sends to these hosts.
    pub fn new(src: u32, hosts: HostSet) -> Cast {
        Cast { route: Route { src, dst: 0 }, hosts }
    }

    /// As bytes.
    pub fn bytes(&self) -> [u8; Cast::LEN] {
        let mut bytes = [0; Cast::LEN];
        bytes[..Route::LEN].copy_from_slice(&self.route.bytes());
        bytes[Route::LEN..].copy_from_slice(&self.hosts.word().to_le_bytes());
        bytes
    }

    fn parse(bytes: [u8; Cast::LEN]) -> Cast {
        let (route, hosts) = bytes.split_at(Route::LEN);
        let word = u64::from_le_bytes(hosts.try_into().expect("its length"));
        Cast { route: Route::parse(route.try_into().expect("its length")), hosts: HostSet::from_word(word) }
    }

    /// Puts it and `bytes` into a lane; false if there is no room.
    pub fn put(&self, lane: &mut Producer, bytes: &[u8]) -> bool {
        let len = Cast::LEN + bytes.len();
        let Some(mut slot) = lane.reserve(len) else { return false };
        slot.write_bytes(0, &self.bytes());
        slot.write_bytes(Cast::LEN, bytes);
        slot.commit(ROUTED | CAST, len, 0);
        true
    }
}

/// Whether an entry is such a packet.
pub(super) fn is_cast(entry: &Entry) -> bool {
    entry.kind == ROUTED | CAST
}

/// Such a packet that came to `host` from `from` on its way to a side, if all that it is for may be asked of this host.
pub(super) fn check(
    (topology, allowed): (&Topology, Allowed),
    host: usize,
    to: Side,
    from: usize,
    lane: &Consumer,
    entry: &Entry,
) -> Result<Cast, RelayError> {
    if entry.len < Cast::LEN {
        return Err(wrong(from, entry, None, "it is too short for a packet for several hosts"));
    }
    let mut bytes = [0; Cast::LEN];
    lane.window().read(entry.offset, &mut bytes);
    let cast = Cast::parse(bytes);
    let odd = |what| Err(wrong(from, entry, Some(cast.route), what));
    if cast.route.src as usize >= topology.size() {
        return odd("there is no such rank");
    }
    if entry.len > Cast::LEN + CAST_MAX {
        return odd("it is too long for a packet for several hosts");
    }
    let start = topology.host_of(cast.route.src);
    let leads = |end| end < topology.hosts() && allowed.passes(topology, (start, end), host, to, true);
    if cast.hosts.is_empty() || !cast.hosts.hosts().all(leads) {
        return odd("its way does not lead through this host");
    }
    Ok(cast)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::LANE_MIN;
    use ntbring_queue::{entry_max, Reliability, LINE};

    #[test]
    fn sets_survive_their_words() {
        let set: HostSet = [0, 5, 15, 63].into_iter().collect();
        assert_eq!(HostSet::from_word(set.word()), set);
        assert_eq!(set.hosts().collect::<Vec<_>>(), [0, 5, 15, 63]);
        assert!(set.contains(5) && !set.without(5).contains(5) && !set.contains(64));
        assert_eq!([64, 100].into_iter().collect::<HostSet>(), HostSet::default());
        let cast = Cast { route: Route { src: 7, dst: 9 }, hosts: set };
        assert_eq!(Cast::parse(cast.bytes()), cast);
    }

    #[test]
    fn every_host_is_in_one_part_and_the_parts_go_round_the_ring_once() {
        for hosts in 1..=crate::topology::HOSTS_MAX {
            let t = Topology::new(hosts, &(0..hosts as i32).collect::<Vec<_>>()).unwrap();
            for from in 0..hosts {
                let [left, right] = HostSet::all(&t).parted(&t, from);
                let mut all: Vec<usize> = left.hosts().chain(right.hosts()).chain([from]).collect();
                all.sort_unstable();
                assert_eq!(all, (0..hosts).collect::<Vec<_>>());
                // The furthest of either side: no link is crossed by both.
                let furthest = |part: HostSet, side| part.hosts().map(|to| t.links(from, to, side)).max().unwrap_or(0);
                assert!(furthest(left, Side::Left) + furthest(right, Side::Right) < hosts);
            }
        }
    }

    #[test]
    fn the_longest_fits_the_smallest_lane() {
        let most = entry_max(LANE_MIN / LINE) - Reliability::Retry.trailer();
        assert!(Cast::LEN + CAST_MAX <= most, "{most}");
    }
}
