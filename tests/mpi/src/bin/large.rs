//! Messages of 64 MiB between neighbours and between opposite ranks, both directions at once: `large [BYTES]`.

use mpi::traits::*;
use ntbring_mpi_tests::{arg, fill, received_bytes, verify, Job};

fn swap(job: &Job, peer: i32, out: &mut [u8], into: &mut [u8], tag: i32) {
    fill(out, job.rank, peer, tag);
    into.fill(0);
    let peer_process = job.world.process_at_rank(peer);
    let status = mpi::request::scope(|scope| {
        let receiving = peer_process.immediate_receive_into_with_tag(scope, into, tag);
        let sending = peer_process.immediate_send_with_tag(scope, out, tag);
        sending.wait();
        receiving.wait()
    });
    assert_eq!(received_bytes(&status), out.len(), "bytes received from {peer}");
    verify(into, peer, job.rank, tag);
}

fn main() {
    let job = Job::start("large");
    job.needs_ranks(2);
    let bytes = arg(1, 64 << 20);
    let (mut out, mut into) = (vec![0; bytes], vec![0; bytes]);
    let partner = |first: i32, second: i32| match job.rank {
        me if me == first => Some(second),
        me if me == second => Some(first),
        _ => None,
    };
    // Neighbours: (1, 2), (3, 4), ... and across the end to 0. Pairs begin at odd ranks, so that with two ranks per
    // host both ranks of a pair are on different hosts.
    let neighbour = (1..job.size).step_by(2).find_map(|odd| partner(odd, (odd + 1) % job.size));
    if let Some(peer) = neighbour {
        swap(&job, peer, &mut out, &mut into, 1);
    }
    job.world.barrier();
    if let Some(peer) = partner(0, job.size / 2).filter(|_| job.size > 2) {
        swap(&job, peer, &mut out, &mut into, 2);
    }
    job.world.barrier();
    job.finish();
}
