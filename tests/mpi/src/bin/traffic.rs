//! Sends known messages: `traffic [SECONDS]`.
//!
//! First rank `a` sends rank `b` `1 + (a + 2b) % 3` messages of each size, for all pairs of ranks one after the other.
//! Rank 0 prints what was sent, as {"sizes":[..],"msgs":[[..one per receiver..]..one per sender..],"bytes":[[..]]}, with
//! bytes of payloads.
//!
//! With SECONDS the ranks then differ for that time: rank 0 computes; the last rank sends a large message to rank 0 by a
//! synchronous send; rank 1 has got 3 messages that it does not receive; and all but the last wait for a message of
//! 1000 bytes of rank 0.

use std::time::{Duration, Instant};

use mpi::traits::*;
use ntbring_mpi_tests::{arg, filled, verify, Job};

/// Sizes of the messages.
const SIZES: [usize; 8] = [0, 1, 8, 9, 1000, 5000, 70_000, 1 << 20];

/// Size of the message that nobody receives, of the one for which ranks wait, and of the synchronous one.
const KEPT: usize = 100;
const AWAITED: usize = 1000;
const LARGE: usize = 4 << 20;

/// Returns the number of messages of each size from rank `a` to rank `b`.
fn number(a: i32, b: i32) -> usize {
    if a == b {
        0
    } else {
        1 + ((a + 2 * b) % 3) as usize
    }
}

fn exchange(job: &Job) {
    for a in 0..job.size {
        for b in (0..job.size).filter(|&b| b != a) {
            for (tag, size) in (0..).zip(SIZES) {
                for _ in 0..number(a, b) {
                    if job.rank == a {
                        job.world.process_at_rank(b).send_with_tag(&filled(a, b, tag, size)[..], tag);
                    } else if job.rank == b {
                        let mut buf = vec![0; size];
                        job.world.process_at_rank(a).receive_into_with_tag(&mut buf[..], tag);
                        verify(&buf, a, b, tag);
                    }
                }
            }
        }
    }
}

fn differ(job: &Job, time: Duration) {
    let (zero, last) = (job.world.process_at_rank(0), job.size - 1);
    let mut buf = vec![0; LARGE];
    if job.rank == 0 {
        for _ in 0..3 {
            job.world.process_at_rank(1).send_with_tag(&[1u8; KEPT][..], 1);
        }
        let start = Instant::now();
        while start.elapsed() < time {
            std::hint::spin_loop();
        }
        job.world.process_at_rank(last).receive_into_with_tag(&mut buf[..], 3);
        (1..last).for_each(|rank| job.world.process_at_rank(rank).send_with_tag(&[2u8; AWAITED][..], 2));
    } else if job.rank == last {
        zero.synchronous_send_with_tag(&buf[..], 3);
    } else {
        zero.receive_into_with_tag(&mut buf[..AWAITED], 2);
    }
    if job.rank == 1 {
        (0..3).for_each(|_| _ = zero.receive_into_with_tag(&mut buf[..KEPT], 1));
    }
}

fn main() {
    let job = Job::start("traffic");
    job.needs_ranks(3);
    let seconds = arg(1, 0.0_f64);
    exchange(&job);
    if job.rank == 0 {
        let all = |each: usize| (0..job.size).map(|a| (0..job.size).map(|b| number(a, b) * each).collect::<Vec<_>>()).collect::<Vec<_>>();
        let (msgs, bytes) = (all(SIZES.len()), all(SIZES.iter().sum()));
        println!("{}", serde_json::json!({"sizes": SIZES, "msgs": msgs, "bytes": bytes}));
    }
    if seconds > 0.0 {
        differ(&job, Duration::from_secs_f64(seconds));
    }
    job.finish();
}
