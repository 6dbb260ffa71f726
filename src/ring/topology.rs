//! Hosts and ranks, distances and directions.

use ntbring_ntb::Side;

/// Maximum number of hosts in a ring.
pub const HOSTS_MAX: usize = 64;

/// Placement of ranks on the hosts of a ring. The right neighbour of host `h` is host `h + 1`; that of the last host is
/// host 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topology {
    host_of: Vec<u16>,
    local_of: Vec<u16>,
    ranks_of: Vec<Vec<u32>>,
}

/// A job that cannot be laid out on a ring.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TopologyError {
    /// More hosts than a ring can have, or none.
    #[error("a ring has 1 to {HOSTS_MAX} hosts, this job has {0}")]
    Hosts(usize),
    /// A rank on a host that does not exist.
    #[error("rank {rank} is said to be on host {host}, but there are {hosts} hosts")]
    Host {
        /// The rank.
        rank: usize,
        /// Its host.
        host: i64,
        /// Number of hosts.
        hosts: usize,
    },
    /// A host without ranks, so without a process that could forward.
    #[error("host {0} has no rank, so it has no process that could forward")]
    Empty(usize),
}

impl Topology {
    /// Creates the ring of `hosts` hosts where rank `r` lives on host `host_of[r]`.
    pub fn new(hosts: usize, host_of: &[i32]) -> Result<Topology, TopologyError> {
        if !(1..=HOSTS_MAX).contains(&hosts) {
            return Err(TopologyError::Hosts(hosts));
        }
        let mut topology = Topology { host_of: vec![], local_of: vec![], ranks_of: vec![vec![]; hosts] };
        for (rank, &host) in host_of.iter().enumerate() {
            let Some(ranks) = usize::try_from(host).ok().and_then(|h| topology.ranks_of.get_mut(h)) else {
                return Err(TopologyError::Host { rank, host: host.into(), hosts });
            };
            topology.host_of.push(host as u16);
            topology.local_of.push(ranks.len() as u16);
            ranks.push(rank as u32);
        }
        match topology.ranks_of.iter().position(Vec::is_empty) {
            Some(host) => Err(TopologyError::Empty(host)),
            None => Ok(topology),
        }
    }

    /// Creates a ring of any number of hosts with one rank each, for the simulator: no job has more than [`HOSTS_MAX`].
    pub fn simulated(hosts: usize) -> Topology {
        let host_of = (0..hosts as u16).collect();
        let ranks_of = (0..hosts as u32).map(|rank| vec![rank]).collect();
        Topology { host_of, local_of: vec![0; hosts], ranks_of }
    }

    /// Returns the number of hosts.
    pub fn hosts(&self) -> usize {
        self.ranks_of.len()
    }

    /// Returns the number of ranks in the job.
    pub fn size(&self) -> usize {
        self.host_of.len()
    }

    /// Returns the host of a rank. Panics if there is no such rank.
    pub fn host_of(&self, rank: u32) -> usize {
        self.host_of[rank as usize] as usize
    }

    /// Returns the index of a rank among the ranks of its host. Panics if there is no such rank.
    pub fn local_of(&self, rank: u32) -> usize {
        self.local_of[rank as usize] as usize
    }

    /// Returns the ranks of a host, in order. Panics if there is no such host.
    pub fn ranks_of(&self, host: usize) -> &[u32] {
        &self.ranks_of[host]
    }

    /// Returns the neighbour of a host. In a ring of one, that is the host itself.
    pub fn neighbour(&self, host: usize, side: Side) -> usize {
        match side {
            Side::Left => (host + self.hosts() - 1) % self.hosts(),
            Side::Right => (host + 1) % self.hosts(),
        }
    }

    /// Returns the number of hops that a packet for all hosts takes in one direction: half of the hosts are reached in
    /// each.
    pub fn span(&self, rightward: bool) -> usize {
        match rightward {
            true => self.hosts() / 2,
            false => (self.hosts() - 1) / 2,
        }
    }

    /// Returns the number of links between two hosts on the way that leaves by `side`.
    pub fn links(&self, from: usize, to: usize, side: Side) -> usize {
        match side {
            Side::Left => (from + self.hosts() - to) % self.hosts(),
            Side::Right => (to + self.hosts() - from) % self.hosts(),
        }
    }

    /// Returns the number of links between two hosts on the shorter way.
    pub fn distance(&self, from: usize, to: usize) -> usize {
        self.links(from, to, Side::Left).min(self.links(from, to, Side::Right))
    }

    /// Returns the side on which a message leaves `from` for another host `to`: the shorter way. If both are equally
    /// long, hosts with an even number go right and the others left, which spreads the load; the result depends on no
    /// changing state, so messages cannot overtake each other.
    pub fn direction(&self, from: usize, to: usize) -> Side {
        let right = (to + self.hosts() - from) % self.hosts();
        match right.cmp(&(self.hosts() - right)) {
            std::cmp::Ordering::Less => Side::Right,
            std::cmp::Ordering::Greater => Side::Left,
            std::cmp::Ordering::Equal if from.is_multiple_of(2) => Side::Right,
            std::cmp::Ordering::Equal => Side::Left,
        }
    }

    /// Returns true if a packet that began at host `from` and is about to cross the link from `at` to its neighbour on
    /// `side` has crossed, or now crosses, the link between the last host and host 0 (the dateline). See
    /// docs/protocol.md on deadlock.
    pub fn beyond_dateline(&self, from: usize, at: usize, side: Side) -> bool {
        let next = self.neighbour(at, side);
        match side {
            Side::Right => next < from,
            Side::Left => next > from,
        }
    }

    /// Returns the number of the link on a side of a host.
    pub fn link(&self, host: usize, side: Side) -> usize {
        match side {
            Side::Left => self.neighbour(host, side),
            Side::Right => host,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ring(hosts: usize) -> Topology {
        Topology::new(hosts, &(0..hosts as i32).collect::<Vec<_>>()).unwrap()
    }

    #[test]
    fn every_route_is_shortest_and_arrives() {
        for hosts in 2..=HOSTS_MAX {
            let t = ring(hosts);
            for from in 0..hosts {
                for to in (0..hosts).filter(|&to| to != from) {
                    let side = t.direction(from, to);
                    let mut at = from;
                    for _ in 0..t.distance(from, to) {
                        at = t.neighbour(at, side);
                    }
                    assert_eq!(at, to, "{from} -> {to} of {hosts}");
                    assert!(t.distance(from, to) <= hosts / 2);
                }
            }
        }
    }

    #[test]
    fn both_ways_together_are_the_ring() {
        for hosts in 2..=HOSTS_MAX {
            let t = ring(hosts);
            for (from, to) in (0..hosts * hosts).map(|i| (i / hosts, i % hosts)) {
                let [left, right] = Side::BOTH.map(|side| t.links(from, to, side));
                assert_eq!(left + right, if from == to { 0 } else { hosts });
                assert_eq!(t.distance(from, to), t.links(from, to, t.direction(from, to)));
            }
        }
    }

    #[test]
    fn equal_ways_are_split_evenly() {
        for hosts in [4, 6, 8, 16] {
            let t = ring(hosts);
            let right = (0..hosts).filter(|&h| t.direction(h, (h + hosts / 2) % hosts) == Side::Right);
            assert_eq!(right.count(), hosts / 2);
        }
    }

    /// The transit lanes that a packet takes one after the other, each with the next one that it may wait for.
    fn waits_of(t: &Topology, from: usize, to: usize, side: Side, class: usize) -> Vec<(usize, usize)> {
        // Lane (at, side, class, beyond): forwarder of `at` to forwarder of its neighbour. A packet stays in its class.
        let index = |at: usize, side: Side, beyond: bool| ((at * 2 + side as usize) * 2 + class) * 2 + beyond as usize;
        let mut lanes = vec![];
        // The first link is crossed by the sender's own lane.
        let mut at = t.neighbour(from, side);
        // Requests also use the last transit lane, to the forwarder of their destination; other packets do not.
        while at != to {
            lanes.push(index(at, side, t.beyond_dateline(from, at, side)));
            at = t.neighbour(at, side);
        }
        lanes.windows(2).map(|pair| (pair[0], pair[1])).collect()
    }

    /// The deadlock argument of docs/protocol.md, checked exhaustively: the graph of transit lanes, with an edge from
    /// each lane to those that it may wait for, has no cycle, even if every packet may take either way round, and all
    /// of them at once.
    #[test]
    fn transit_lanes_wait_for_each_other_without_a_cycle() {
        for hosts in 2..=HOSTS_MAX {
            let t = ring(hosts);
            let mut waits = vec![vec![]; hosts * 8];
            let mut longest = 0;
            for (from, to) in (0..hosts * hosts).map(|i| (i / hosts, i % hosts)).filter(|(from, to)| from != to) {
                for side in Side::BOTH {
                    let waiting = (0..2).flat_map(|class| waits_of(&t, from, to, side, class));
                    waiting.for_each(|(lane, next)| waits[lane].push(next));
                    longest = longest.max(t.links(from, to, side));
                }
            }
            assert_eq!(longest, hosts - 1);
            // Repeatedly remove lanes that wait for no other: all must go.
            let mut gone = vec![false; waits.len()];
            while let Some(i) = (0..waits.len()).find(|&i| !gone[i] && waits[i].iter().all(|&j| gone[j])) {
                gone[i] = true;
            }
            assert!(gone.iter().all(|&g| g), "a cycle in a ring of {hosts}");
        }
    }

    #[test]
    fn impossible_jobs_are_refused() {
        assert_eq!(Topology::new(0, &[]), Err(TopologyError::Hosts(0)));
        assert_eq!(Topology::new(65, &[0]), Err(TopologyError::Hosts(65)));
        assert_eq!(Topology::new(2, &[0, 2]), Err(TopologyError::Host { rank: 1, host: 2, hosts: 2 }));
        assert_eq!(Topology::new(2, &[0, -1]), Err(TopologyError::Host { rank: 1, host: -1, hosts: 2 }));
        assert_eq!(Topology::new(2, &[1]), Err(TopologyError::Empty(0)));
    }

    #[test]
    fn each_link_has_one_number_at_both_ends() {
        for hosts in 2..=HOSTS_MAX {
            let topology = Topology::simulated(hosts);
            for host in 0..hosts {
                let next = topology.neighbour(host, Side::Right);
                assert_eq!(topology.link(host, Side::Right), topology.link(next, Side::Left));
            }
        }
    }
}
