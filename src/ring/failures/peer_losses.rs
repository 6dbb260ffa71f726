//! Peers that become unreachable for a rank when other ranks have died or links have gone down.
//!
//! A host counts as dead when its first rank dies, since that process runs the forwarder threads. Packets whose way
//! leads through a dead host, or over a link that has gone down, take the other way round the ring if links retransmit
//! lost packets (`NTBRING_RELIABILITY=retry`). Otherwise they cannot be delivered, since it is unknown which packets
//! were lost there. The links of a dead host to its neighbours are down as well.

use super::link_set::LinkSet;
use crate::topology::Topology;
use ntbring_ntb::Side;
use std::fmt;
use std::time::Duration;

/// A rank of the job whose process has ended, or counts as ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dead {
    /// The rank.
    pub rank: u32,
    /// Its host.
    pub host: usize,
    /// Its process id.
    pub pid: u32,
    /// Set if the process is not known to have ended, but its host has been silent for this time.
    pub silent: Option<Duration>,
}

impl fmt::Display for Dead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Dead { rank, host, pid, silent } = self;
        match silent {
            None => write!(f, "rank {rank} on host {host} (process {pid}) has died"),
            Some(silence) => {
                let seconds = silence.as_secs();
                write!(
                    f,
                    "rank {rank} is lost: host {host} has sent no keep-alive for {seconds} s \
                     (NTBRING_KEEPALIVE_TIMEOUT)"
                )
            }
        }
    }
}

/// Failures observed so far in a job. The set only grows (monotonic).
#[derive(Clone, Debug, Default)]
pub struct Failures {
    /// Ranks that have died.
    pub dead: Vec<Dead>,
    /// Links that have gone down, in rings that do not reroute.
    pub outages: LinkSet,
    /// The failure of the device itself.
    pub device: Option<String>,
}

impl Failures {
    /// Returns the number of failures observed.
    pub fn extent(&self) -> usize {
        self.dead.len() + self.outages.len() + usize::from(self.device.is_some())
    }
}

/// Failure that cuts a rank off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PathFailure {
    /// The first rank of a host on the way has died, so the host forwards no packets any more.
    #[error("{0}, and nothing goes round it")]
    Dead(Dead),
    /// A link that has gone down, between the host to its left and the one to its right.
    #[error(
        "the link between host {0} and host {1} has gone down, and nothing goes round it without \
         NTBRING_RELIABILITY=retry"
    )]
    Link(usize, usize),
}

/// A peer that is permanently unreachable: no message can be sent to it or received from it any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PeerLoss {
    /// The peer's process has ended.
    #[error("{0}")]
    Died(Dead),
    /// The peer lives, but a failure has cut it off.
    #[error("rank {rank} on host {host} cannot be reached any more: {by}")]
    CutOff {
        /// The rank.
        rank: u32,
        /// Its host.
        host: usize,
        /// The failure between this process and the peer.
        by: PathFailure,
    },
    /// A process of another job has ended without announcing it.
    #[error("process {pid} of another job has died")]
    ExternalPeerDied {
        /// Its peer number.
        peer: u32,
        /// Its process id.
        pid: u32,
    },
    /// There is no way to a process of another job.
    #[error(
        "cannot reach process {pid} of another job: it has ended, or it is on another host and neither job has ranks \
         on both hosts. Start one of the jobs on the hosts of the other, too"
    )]
    ExternalPeerUnreachable {
        /// Its peer number.
        peer: u32,
        /// Its process id.
        pid: u32,
    },
    /// A process of another job has left in the regular way.
    #[error("process {pid} of another job has called MPI_Finalize")]
    ExternalPeerLeft {
        /// Its peer number.
        peer: u32,
        /// Its process id.
        pid: u32,
    },
}

impl PeerLoss {
    /// Returns the rank that is unreachable, or the peer number of a process of another job.
    pub fn rank(&self) -> u32 {
        match self {
            PeerLoss::Died(dead) => dead.rank,
            PeerLoss::CutOff { rank, .. } => *rank,
            PeerLoss::ExternalPeerDied { peer, .. }
            | PeerLoss::ExternalPeerUnreachable { peer, .. }
            | PeerLoss::ExternalPeerLeft { peer, .. } => *peer,
        }
    }
}

/// Returns the first rank of a host, which runs its forwarder threads, if it is among the dead.
pub(crate) fn forwarder(topology: &Topology, host: usize, dead: &[Dead]) -> Option<Dead> {
    dead.iter().find(|dead| dead.rank == topology.ranks_of(host)[0]).copied()
}

/// Property of a ring's links that decides which failures cut off a peer.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum FailureScope {
    /// Packets that cannot take one way round the ring take the other.
    Heals,
    /// No retransmission; neighbours access each other's memory directly.
    Mappable,
    /// No retransmission; neighbours' forwarders access memory for each other.
    Served,
}

/// Returns the ranks that are unreachable for a rank of `host`, given these failures.
pub(crate) fn peer_losses(
    topology: &Topology,
    host: usize,
    failure_scope: FailureScope,
    failures: &Failures,
) -> Vec<PeerLoss> {
    let lost = |rank: u32| {
        if let Some(dead) = failures.dead.iter().find(|dead| dead.rank == rank) {
            return Some(PeerLoss::Died(*dead));
        }
        let to = topology.host_of(rank);
        path_failure(topology, host, to, failure_scope, failures).map(|by| PeerLoss::CutOff { rank, host: to, by })
    };
    (0..topology.size() as u32).filter_map(lost).collect()
}

/// Returns the failure that cuts off host `to` from `host`; None if there is a route.
fn path_failure(
    topology: &Topology,
    host: usize,
    to: usize,
    failure_scope: FailureScope,
    failures: &Failures,
) -> Option<PathFailure> {
    let forwarder = |host: usize| forwarder(topology, host, &failures.dead).map(PathFailure::Dead);
    let outage = |at: usize, side: Side| {
        let next = topology.neighbour(at, side);
        let ends = if side == Side::Right { (at, next) } else { (next, at) };
        failures.outages.contains(topology.link(at, side)).then_some(PathFailure::Link(ends.0, ends.1))
    };
    // Returns the first failure on a way: a link, then the host behind it, unless that is the destination.
    let between = |from: usize, side: Side, to: usize| {
        let next = |&at: &usize| Some(topology.neighbour(at, side)).filter(|&next| next != to);
        let mut hosts = std::iter::successors(Some(from), next);
        hosts.find_map(|at| if at == from { None } else { forwarder(at) }.or_else(|| outage(at, side)))
    };
    if host == to {
        return None;
    }
    let near = topology.distance(host, to) == 1 && failure_scope == FailureScope::Mappable;
    if failure_scope != FailureScope::Heals {
        if topology.hosts() == 2 {
            // Messages use one link, small collectives both.
            if let Some(link) = Side::BOTH.into_iter().find_map(|side| outage(host, side)) {
                return Some(link);
            }
        }
        // Both directions must work; where two ways are equally long, there and back may differ.
        let there = between(host, topology.direction(host, to), to);
        let way = there.or_else(|| between(to, topology.direction(to, host), host));
        return way.or_else(|| forwarder(to).filter(|_| !near));
    }
    // The links of a host go down with its forwarder.
    forwarder(to).or_else(|| {
        let routes = Side::BOTH.map(|side| between(host, side, to));
        routes[0].and(routes[1])
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ring(hosts: usize, per_host: usize) -> Topology {
        Topology::new(hosts, &(0..hosts * per_host).map(|rank| (rank / per_host) as i32).collect::<Vec<_>>()).unwrap()
    }

    fn lost(topology: &Topology, host: usize, failure_scope: FailureScope, dead: &[u32]) -> Vec<(u32, bool)> {
        let dead = dead.iter().map(|&rank| Dead { rank, host: topology.host_of(rank), pid: 1, silent: None }).collect();
        let peer_losses = peer_losses(topology, host, failure_scope, &Failures { dead, ..Failures::default() });
        peer_losses.iter().map(|loss| (loss.rank(), matches!(loss, PeerLoss::Died(_)))).collect()
    }

    #[test]
    fn neighbours_lose_only_who_has_died() {
        for (hosts, failure_scope) in [(2, FailureScope::Mappable), (3, FailureScope::Served), (3, FailureScope::Heals)]
        {
            assert_eq!(lost(&ring(hosts, 1), 0, failure_scope, &[1]), [(1, true)]);
        }
    }

    #[test]
    fn what_passes_a_dead_host_goes_round_it_only_where_links_repeat() {
        let four = ring(4, 1);
        // One direction goes by host 1, the other by host 3.
        assert_eq!(lost(&four, 0, FailureScope::Mappable, &[1]), [(1, true), (2, false)]);
        assert_eq!(lost(&four, 2, FailureScope::Mappable, &[1]), [(0, false), (1, true)]);
        assert_eq!(lost(&four, 0, FailureScope::Heals, &[1]), [(1, true)]);
        assert_eq!(lost(&four, 2, FailureScope::Heals, &[1]), [(1, true)]);
        assert_eq!(lost(&four, 3, FailureScope::Mappable, &[1]), [(1, true)]);
        // The ring is in two parts.
        assert_eq!(lost(&four, 0, FailureScope::Heals, &[1, 3]), [(1, true), (2, false), (3, true)]);
    }

    #[test]
    fn a_hosts_other_ranks_live_on_beside_its_neighbours() {
        let four = ring(4, 2);
        // The second rank of host 1 forwards nothing.
        assert_eq!(lost(&four, 0, FailureScope::Mappable, &[3]), [(3, true)]);
        // The first does; its sibling is still reached by those that write to it directly.
        assert_eq!(lost(&four, 0, FailureScope::Mappable, &[2]), [(2, true), (4, false), (5, false)]);
        assert_eq!(lost(&four, 3, FailureScope::Mappable, &[2]), [(2, true), (3, false)]);
        for failure_scope in [FailureScope::Heals, FailureScope::Served] {
            assert_eq!(lost(&four, 0, failure_scope, &[2])[..2], [(2, true), (3, false)]);
        }
    }

    #[test]
    fn both_ends_agree() {
        for hosts in 2..=8 {
            let topology = ring(hosts, 1);
            for (a, b, died) in
                (0..hosts).flat_map(|a| (0..hosts).flat_map(move |b| (0..hosts).map(move |d| (a, b, d))))
            {
                if died != a && died != b {
                    let dead = vec![Dead { rank: died as u32, host: died, pid: 1, silent: None }];
                    let failures = Failures { dead, ..Failures::default() };
                    let there = |a, b, failure_scope| path_failure(&topology, a, b, failure_scope, &failures).is_some();
                    assert_eq!(
                        there(a, b, FailureScope::Mappable),
                        there(b, a, FailureScope::Mappable),
                        "{a} and {b} of {hosts} without {died}"
                    );
                    assert!(!there(a, b, FailureScope::Heals), "{a} and {b} of {hosts} without {died}");
                }
            }
        }
    }

    /// Returns, for each host of a ring, the hosts that are unreachable for it without these links.
    fn cut(hosts: usize, links: &[usize]) -> Vec<Vec<u32>> {
        let topology = ring(hosts, 1);
        let failures = Failures { outages: links.iter().copied().collect(), ..Failures::default() };
        let of = |failure_scope, host| {
            peer_losses(&topology, host, failure_scope, &failures).iter().map(PeerLoss::rank).collect()
        };
        let [near, served] = [FailureScope::Mappable, FailureScope::Served]
            .map(|failure_scope| (0..hosts).map(|host| of(failure_scope, host)).collect());
        assert_eq!(near, served, "the same links, whatever they are made of");
        near
    }

    #[test]
    fn a_link_that_goes_down_takes_with_it_whose_way_leads_over_it() {
        // Both links between two hosts are used.
        assert_eq!([0, 1].map(|link| cut(2, &[link])), [[vec![1], vec![0]], [vec![1], vec![0]]]);
        assert_eq!(cut(3, &[0]), [vec![1], vec![0], vec![]]);
        assert_eq!(cut(3, &[2]), [vec![2], vec![], vec![0]]);
        // Opposite hosts need the whole ring, there and back.
        assert_eq!(cut(4, &[0]), [vec![1, 2], vec![0, 3], vec![0], vec![1]]);
        assert_eq!(cut(4, &[1]), [vec![2], vec![2, 3], vec![0, 1], vec![1]]);
        assert_eq!(cut(4, &[3]), [vec![2, 3], vec![3], vec![0], vec![0, 1]]);
        assert_eq!(cut(5, &[0]), [vec![1, 2], vec![0, 4], vec![0], vec![], vec![1]]);
        assert_eq!(cut(5, &[0, 2]), [vec![1, 2], vec![0, 3, 4], vec![0, 3, 4], vec![1, 2], vec![1, 2]]);
    }

    #[test]
    fn both_ends_of_a_way_over_a_link_agree() {
        for hosts in 2..=8 {
            for link in 0..hosts {
                let lost = cut(hosts, &[link]);
                for (a, b) in (0..hosts).flat_map(|a| (0..hosts).map(move |b| (a, b))) {
                    assert_eq!(
                        lost[a].contains(&(b as u32)),
                        lost[b].contains(&(a as u32)),
                        "{a}, {b} of {hosts}, {link}"
                    );
                }
            }
        }
    }

    #[test]
    fn a_loss_names_the_link_or_the_dead() {
        let topology = ring(4, 1);
        let failures = Failures {
            dead: vec![Dead { rank: 1, host: 1, pid: 9, silent: None }],
            outages: [3].into_iter().collect(),
            device: None,
        };
        let texts: Vec<String> =
            peer_losses(&topology, 0, FailureScope::Mappable, &failures).iter().map(PeerLoss::to_string).collect();
        assert_eq!(texts.len(), 3);
        assert_eq!(texts[0], "rank 1 on host 1 (process 9) has died");
        assert!(
            texts[1].starts_with("rank 2 on host 2 cannot be reached any more: rank 1 on host 1 (process 9) has died")
        );
        assert!(
            texts[2].contains("host 3 cannot be reached any more: the link between host 3 and host 0 has gone down")
        );
        assert!(texts[2].ends_with("NTBRING_RELIABILITY=retry"), "{}", texts[2]);
        assert_eq!(failures.extent(), 2);
    }
}
