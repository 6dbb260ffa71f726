//! A stream of messages from rank 0 to a peer: `stream [COUNT [BYTES [PEER]]]`, by default 100000 messages of 8 bytes
//! to rank 1.
//!
//! The only other message is an empty one from the peer at the end. Messages of 8 bytes and more carry their number,
//! which is checked. Rank 0 prints the results as one JSON line.

use std::time::Instant;

use mpi::traits::*;
use ntbring_mpi_tests::{arg, filled, received_bytes, verify, Job};

fn main() {
    let job = Job::start("stream");
    job.needs_ranks(2);
    let (count, bytes, peer) = (arg(1, 100_000_u64), arg(2, 8_usize), arg(3, 1_i32));
    assert!(peer > 0 && peer < job.size, "the peer must be one of the ranks 1 to {}", job.size - 1);
    let numbered = bytes >= 8;
    if job.rank == 0 {
        let (mut out, other, start) = (filled(0, peer, 1, bytes), job.world.process_at_rank(peer), Instant::now());
        if numbered {
            out[8..].copy_from_slice(&filled(0, peer, 1, bytes - 8));
        }
        for number in 0..count {
            if numbered {
                out[..8].copy_from_slice(&number.to_le_bytes());
            }
            other.send(&out[..]);
        }
        other.receive_into::<[u8]>(&mut []);
        let seconds = start.elapsed().as_secs_f64();
        println!("{}", serde_json::json!({"messages": count, "bytes": bytes, "peer": peer, "seconds": seconds}));
    } else if job.rank == peer {
        let (mut into, zero) = (vec![0_u8; bytes], job.world.process_at_rank(0));
        for number in 0..count {
            let status = zero.receive_into(&mut into[..]);
            assert_eq!(received_bytes(&status), bytes, "bytes of message {number}");
            if numbered {
                assert_eq!(into[..8], number.to_le_bytes(), "the number message {number} carries");
            }
            verify(if numbered { &into[8..] } else { &into }, 0, peer, 1);
        }
        zero.send::<[u8]>(&[]);
    }
    job.finish();
}
