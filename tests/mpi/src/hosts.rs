//! The (emulated) host of each rank.

use mpi::collective::SystemOperation;
use mpi::topology::SimpleCommunicator;
use mpi::traits::*;

/// The hosts of a job as MPI reports them: ranks that can share memory are on one host; hosts are numbered in the order
/// of their smallest rank.
#[derive(Clone, Debug)]
pub struct Hosts {
    /// Number of hosts.
    pub count: usize,
    /// The host of each rank of the world.
    pub of_rank: Vec<usize>,
}

impl Hosts {
    /// Asks MPI. Collective over `world`.
    pub fn discover(world: &SimpleCommunicator) -> Self {
        let me = world.rank();
        let node = world.split_shared(me);
        let mut leader = me;
        node.all_reduce_into(&me, &mut leader, SystemOperation::min());
        let mut leaders = vec![0; world.size() as usize];
        world.all_gather_into(&leader, &mut leaders[..]);
        let mut order = leaders.clone();
        order.sort_unstable();
        order.dedup();
        let of_rank = leaders.iter().filter_map(|l| order.binary_search(l).ok()).collect();
        Self { count: order.len(), of_rank }
    }

    /// Returns the number of ranks on `host`.
    pub fn ranks_on(&self, host: usize) -> usize {
        self.of_rank.iter().filter(|h| **h == host).count()
    }

    /// Returns the number of links between the hosts of two ranks, on the shorter route.
    pub fn distance(&self, a: i32, b: i32) -> usize {
        let apart = self.of_rank[a as usize].abs_diff(self.of_rank[b as usize]);
        apart.min(self.count - apart)
    }
}
