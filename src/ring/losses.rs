//! Who is lost to a rank when others have died.
//!
//! A host dies when its first rank does, since that has the threads that forward. What is to pass it goes the other way round
//! where links repeat what is lost, and else nowhere: nobody knows what was lost there. Links that a host has to its
//! neighbours end with it.

use super::join::Link;
use super::{Membership, Topology};
use crate::ntb::{LinkState, Side};
use crate::queue::Reliability;

/// A rank of the job whose process has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("rank {rank} on host {host} (process {pid}) has died")]
pub struct Dead {
    /// Which.
    pub rank: u32,
    /// Its host.
    pub host: usize,
    /// Its process.
    pub pid: u32,
}

/// A rank that can neither be sent anything any more nor be heard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Loss {
    /// Its process has ended.
    #[error("{0}")]
    Died(Dead),
    /// It lives, but others have died that it was reached through.
    #[error("rank {rank} on host {host} cannot be reached any more: {by}, and nothing goes round it")]
    CutOff {
        /// The rank.
        rank: u32,
        /// Its host.
        host: usize,
        /// Who was between.
        by: Dead,
    },
}

impl Loss {
    /// The rank that is lost.
    pub fn rank(&self) -> u32 {
        match self {
            Loss::Died(dead) => dead.rank,
            Loss::CutOff { rank, .. } => *rank,
        }
    }
}

impl Membership {
    /// Who is lost to this process when these have died.
    pub fn losses(&self, dead: &[Dead]) -> Vec<Loss> {
        losses(self.topology(), self.host(), self.bond(), dead)
    }

    fn bond(&self) -> Bond {
        let all = |is: fn(&Link) -> bool| self.links().is_some_and(|links| links.into_iter().all(is));
        if all(|link| link.reliability() == Reliability::Retry) {
            Bond::Heals
        } else if all(Link::is_coherent) {
            Bond::Near
        } else {
            Bond::Served
        }
    }

    /// Where links heal, takes down those to hosts that are among the dead, for whoever looks at the ports: adapters of real
    /// hosts do it by themselves.
    pub fn part_from(&self, dead: &[Dead]) {
        if self.bond() == Bond::Heals {
            self.sides_to(dead).for_each(|side| self.set_link(side, LinkState::Down));
        }
    }

    /// The sides on which the neighbour is a host that is among the dead.
    pub fn sides_to<'a>(&'a self, dead: &'a [Dead]) -> impl Iterator<Item = Side> + 'a {
        let is_dead = |link: &&Link| forwarder(self.topology(), link.neighbour(), dead).is_some();
        self.links().into_iter().flatten().filter(is_dead).map(Link::side)
    }
}

/// Who had the threads that forward at a host, if that is among the dead.
fn forwarder(topology: &Topology, host: usize, dead: &[Dead]) -> Option<Dead> {
    dead.iter().find(|dead| dead.rank == topology.ranks_of(host)[0]).copied()
}

/// What a host's links are to those at their other ends.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Bond {
    /// What cannot go one way goes the other.
    Heals,
    /// Trusted; neighbours reach each other's memory.
    Near,
    /// Neighbours' forwarders have to reach it for each other.
    Served,
}

/// The ranks that are lost to a rank of `host` when these have died.
fn losses(topology: &Topology, host: usize, bond: Bond, dead: &[Dead]) -> Vec<Loss> {
    let lost = |rank: u32| {
        if let Some(dead) = dead.iter().find(|dead| dead.rank == rank) {
            return Some(Loss::Died(*dead));
        }
        let to = topology.host_of(rank);
        obstacle(topology, host, to, bond, dead).map(|by| Loss::CutOff { rank, host: to, by })
    };
    (0..topology.size() as u32).filter_map(lost).collect()
}

/// Who is in the way between two hosts; None if there is a way.
fn obstacle(topology: &Topology, host: usize, to: usize, bond: Bond, dead: &[Dead]) -> Option<Dead> {
    let forwarder = |host: usize| forwarder(topology, host, dead);
    let between = |from: usize, side: Side, to: usize| {
        let next = |&host: &usize| Some(topology.neighbour(host, side)).filter(|&next| next != to);
        std::iter::successors(next(&from), next).find_map(forwarder)
    };
    if host == to {
        return None;
    }
    let near = topology.distance(host, to) == 1 && bond == Bond::Near;
    if bond != Bond::Heals {
        // Both ways, which may be different ones of equal length: there and back belong together.
        let there = between(host, topology.direction(host, to), to);
        let way = there.or_else(|| between(to, topology.direction(to, host), host));
        return way.or_else(|| forwarder(to).filter(|_| !near));
    }
    // Its links go with its forwarder.
    forwarder(to).or_else(|| {
        let ways = Side::BOTH.map(|side| between(host, side, to));
        ways[0].and(ways[1])
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ring(hosts: usize, per_host: usize) -> Topology {
        Topology::new(hosts, &(0..hosts * per_host).map(|rank| (rank / per_host) as i32).collect::<Vec<_>>()).unwrap()
    }

    fn lost(topology: &Topology, host: usize, bond: Bond, dead: &[u32]) -> Vec<(u32, bool)> {
        let dead: Vec<_> = dead.iter().map(|&rank| Dead { rank, host: topology.host_of(rank), pid: 1 }).collect();
        let losses = losses(topology, host, bond, &dead);
        losses.iter().map(|loss| (loss.rank(), matches!(loss, Loss::Died(_)))).collect()
    }

    #[test]
    fn neighbours_lose_only_who_has_died() {
        for (hosts, bond) in [(2, Bond::Near), (3, Bond::Served), (3, Bond::Heals)] {
            assert_eq!(lost(&ring(hosts, 1), 0, bond, &[1]), [(1, true)]);
        }
    }

    #[test]
    fn what_passes_a_dead_host_goes_round_it_only_where_links_repeat() {
        let four = ring(4, 1);
        // Of there and back, one goes by host 1, the other by host 3.
        assert_eq!(lost(&four, 0, Bond::Near, &[1]), [(1, true), (2, false)]);
        assert_eq!(lost(&four, 2, Bond::Near, &[1]), [(0, false), (1, true)]);
        assert_eq!(lost(&four, 0, Bond::Heals, &[1]), [(1, true)]);
        assert_eq!(lost(&four, 2, Bond::Heals, &[1]), [(1, true)]);
        assert_eq!(lost(&four, 3, Bond::Near, &[1]), [(1, true)]);
        // In two pieces.
        assert_eq!(lost(&four, 0, Bond::Heals, &[1, 3]), [(1, true), (2, false), (3, true)]);
    }

    #[test]
    fn a_hosts_other_ranks_live_on_beside_its_neighbours() {
        let four = ring(4, 2);
        // The second rank of host 1 forwards nothing.
        assert_eq!(lost(&four, 0, Bond::Near, &[3]), [(3, true)]);
        // The first does; its sibling can do without only for those that write to it themselves.
        assert_eq!(lost(&four, 0, Bond::Near, &[2]), [(2, true), (4, false), (5, false)]);
        assert_eq!(lost(&four, 3, Bond::Near, &[2]), [(2, true), (3, false)]);
        for bond in [Bond::Heals, Bond::Served] {
            assert_eq!(lost(&four, 0, bond, &[2])[..2], [(2, true), (3, false)]);
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
                    let dead = [Dead { rank: died as u32, host: died, pid: 1 }];
                    let there = |a, b, bond| obstacle(&topology, a, b, bond, &dead).is_some();
                    assert_eq!(
                        there(a, b, Bond::Near),
                        there(b, a, Bond::Near),
                        "{a} and {b} of {hosts} without {died}"
                    );
                    assert!(!there(a, b, Bond::Heals), "{a} and {b} of {hosts} without {died}");
                }
            }
        }
    }
}
