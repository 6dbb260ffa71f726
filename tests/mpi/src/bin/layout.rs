//! Prints the host of each rank and checks the layout: `layout [RANKS_PER_HOST [HOSTS]]`.
//!
//! Without arguments it only checks that the hosts that MPI reports are consistent. With them, every host must have
//! exactly that many ranks.

use mpi::traits::*;
use ntbring_mpi_tests::{arg, Hosts, Job};

fn main() {
    let job = Job::start("layout");
    let (per_host, count) = (arg(1, 0_usize), arg(2, 0_usize));
    let hosts = Hosts::discover(&job.world);
    if job.rank == 0 {
        println!("{} ranks on {} hosts, host of each rank: {:?}", job.size, hosts.count, hosts.of_rank);
    }
    assert_eq!(hosts.of_rank.len(), job.size as usize, "ranks that have a host");
    if per_host > 0 {
        for host in 0..hosts.count {
            assert_eq!(hosts.ranks_on(host), per_host, "ranks on host {host}");
        }
        assert_eq!(hosts.count * per_host, job.size as usize, "hosts times ranks a host");
    }
    if count > 0 {
        assert_eq!(hosts.count, count, "number of hosts");
    }
    // A communicator of one host contains exactly the ranks of that host, which can communicate in it.
    let node = job.world.split_shared(job.rank);
    assert_eq!(node.size() as usize, hosts.ranks_on(hosts.of_rank[job.rank as usize]), "size of the host's communicator");
    let mut all = vec![-1; node.size() as usize];
    node.all_gather_into(&job.rank, &mut all[..]);
    for rank in all {
        assert_eq!(hosts.of_rank[rank as usize], hosts.of_rank[job.rank as usize], "host of rank {rank}");
    }
    // Communicators must be freed before MPI_Finalize.
    drop(node);
    job.finish();
}
