//! 10^5 small messages from up to 3 senders to a receiver that starts a second late: `flood [MESSAGES [LATE_MS]]`.
//!
//! The senders are rank 0's two neighbours and the opposite rank. Every message carries its number, and messages of one
//! sender must arrive in order.

use std::time::Duration;

use mpi::traits::*;
use ntbring_mpi_tests::{arg, filled, received_bytes, verify, Job};

const TAG: i32 = 5;

/// Returns the size of message `number` of a sender: from 8 bytes up to two cache lines.
fn size(number: u64) -> usize {
    8 + (number % 113) as usize
}

fn main() {
    let job = Job::start("flood");
    job.needs_ranks(2);
    let (messages, late_ms) = (arg(1, 100_000_u64), arg(2, 1000_u64));
    let mut senders = vec![1, job.size / 2, job.size - 1];
    senders.sort_unstable();
    senders.dedup();
    // The first sender also sends the remainder of the division.
    let share = |index: usize| messages / senders.len() as u64 + if index == 0 { messages % senders.len() as u64 } else { 0 };

    if job.rank == 0 {
        std::thread::sleep(Duration::from_millis(late_ms));
        let mut next = vec![0_u64; job.size as usize];
        let mut buf = [0_u8; 256];
        for _ in 0..messages {
            let status = job.world.any_process().receive_into_with_tag(&mut buf[..], TAG);
            let (from, bytes) = (status.source_rank(), received_bytes(&status));
            let expected = &mut next[from as usize];
            let mut number = [0; 8];
            number.copy_from_slice(&buf[..8]);
            assert_eq!(u64::from_le_bytes(number), *expected, "number of a message from {from}");
            assert_eq!(bytes, size(*expected), "size of message {expected} from {from}");
            verify(&buf[8..bytes], from, 0, TAG);
            *expected += 1;
        }
        for (index, sender) in senders.iter().enumerate() {
            assert_eq!(next[*sender as usize], share(index), "messages from {sender}");
        }
    } else if let Some(index) = senders.iter().position(|s| *s == job.rank) {
        let to = job.world.process_at_rank(0);
        let payloads: Vec<Vec<u8>> = (0..113).map(|n| filled(job.rank, 0, TAG, size(n) - 8)).collect();
        let mut buf = [0_u8; 256];
        for number in 0..share(index) {
            let bytes = size(number);
            buf[..8].copy_from_slice(&number.to_le_bytes());
            buf[8..bytes].copy_from_slice(&payloads[(number % 113) as usize]);
            to.send_with_tag(&buf[..bytes], TAG);
        }
    }
    job.world.barrier();
    job.finish();
}
