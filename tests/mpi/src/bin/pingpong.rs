//! Ping-pong between rank 0 and a peer: `pingpong [COUNT [BYTES [PEER]]]`, by default 10000 messages of 8 bytes each
//! way with rank 1.
//!
//! The program sends no other messages, so that statistics show only these. Rank 0 prints the results as one JSON line.

use std::time::Instant;

use mpi::traits::*;
use ntbring_mpi_tests::{arg, filled, mismatch, Job};

fn main() {
    let job = Job::start("pingpong");
    job.needs_ranks(2);
    let (count, bytes, peer) = (arg(1, 10_000_u32), arg(2, 8_usize), arg(3, 1_i32));
    assert!(peer > 0 && peer < job.size, "the peer must be one of the ranks 1 to {}", job.size - 1);
    let (mut into, start) = (vec![0_u8; bytes], Instant::now());
    if job.rank == 0 {
        let (out, other) = (filled(0, peer, 1, bytes), job.world.process_at_rank(peer));
        for _ in 0..count {
            other.send(&out[..]);
            other.receive_into(&mut into[..]);
        }
        let micros = start.elapsed().as_secs_f64() * 1e6 / f64::from(count.max(1)) / 2.0;
        println!("{}", serde_json::json!({"messages_each_way": count, "bytes": bytes, "peer": peer, "half_round_trip_us": micros}));
        assert_eq!(mismatch(&into, 0, peer, 1).filter(|_| count > 0), None, "what came back");
    } else if job.rank == peer {
        let zero = job.world.process_at_rank(0);
        for _ in 0..count {
            zero.receive_into(&mut into[..]);
            zero.send(&into[..]);
        }
    }
    job.finish();
}
