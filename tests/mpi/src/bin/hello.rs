//! Every rank reports its rank and host; rank 0 prints the reports in order.

use mpi::traits::*;
use ntbring_mpi_tests::{Hosts, Job};

fn main() {
    let job = Job::start("hello");
    let hosts = Hosts::discover(&job.world);
    let processor = mpi::environment::processor_name().unwrap_or_default();
    let line = format!("rank {} of {} on host {} of {} ({processor})", job.rank, job.size, hosts.of_rank[job.rank as usize], hosts.count);
    if job.rank == 0 {
        println!("{line}");
        for rank in 1..job.size {
            let (bytes, _) = job.world.process_at_rank(rank).receive_vec::<u8>();
            println!("{}", String::from_utf8_lossy(&bytes));
        }
    } else {
        job.world.process_at_rank(0).send(line.as_bytes());
    }
    job.finish();
}
