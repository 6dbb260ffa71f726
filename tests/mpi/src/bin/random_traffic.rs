//! A large number of random messages: `random_traffic [SEED [ROUNDS]]`.
//!
//! All ranks derive the same schedule from the seed, so that each knows which messages must arrive. Sizes range from 0
//! to 256 KiB, few tags are used by many messages (so that order matters), ranks pause at random, and requests are
//! waited for in random order.

use std::time::Duration;

use mpi::traits::*;
use ntbring_mpi_tests::{arg, filled, received_bytes, verify, Job, Rng};

/// One message of the schedule; `index` is in the payload, so that exchanged messages are detected.
struct Message {
    src: i32,
    dst: i32,
    tag: i32,
    size: usize,
    index: i32,
}

fn main() {
    let job = Job::start("random_traffic");
    let (seed, rounds) = (arg(1, 1_u64), arg(2, 30_i32));
    let mut schedule_rng = Rng::new(seed);
    let mut own_rng = Rng::new(seed * 1000 + job.rank as u64 + 1);
    for round in 0..rounds {
        let schedule: Vec<Message> = (0..24 * job.size)
            .map(|number| Message {
                src: schedule_rng.below(job.size as u64) as i32,
                dst: schedule_rng.below(job.size as u64) as i32,
                tag: schedule_rng.below(3) as i32,
                size: schedule_rng.size(18),
                index: round * 10_000 + number,
            })
            .collect();
        let sent: Vec<(&Message, Vec<u8>)> =
            schedule.iter().filter(|m| m.src == job.rank).map(|m| (m, filled(m.src, m.dst, m.index, m.size))).collect();
        // Some receive buffers are longer than the message.
        let mut received: Vec<(&Message, Vec<u8>)> =
            schedule.iter().filter(|m| m.dst == job.rank).map(|m| (m, vec![0; m.size + own_rng.below(100) as usize])).collect();
        if own_rng.below(4) == 0 {
            std::thread::sleep(Duration::from_micros(own_rng.below(3000)));
        }
        let senders_first = own_rng.below(2) == 0;
        mpi::request::scope(|scope| {
            let mut pending = Vec::new();
            let sends = sent.iter().map(|(m, buf)| {
                let request = job.world.process_at_rank(m.dst).immediate_send_with_tag(scope, &buf[..], m.tag);
                (None, request)
            });
            let receives = received.iter_mut().map(|(m, buf)| {
                let request = job.world.process_at_rank(m.src).immediate_receive_into_with_tag(scope, &mut buf[..], m.tag);
                (Some(*m), request)
            });
            if senders_first {
                pending.extend(sends.chain(receives));
            } else {
                pending.extend(receives.chain(sends));
            }
            own_rng.shuffle(&mut pending);
            for (message, request) in pending {
                let status = request.wait();
                if let Some(m) = message {
                    assert_eq!(received_bytes(&status), m.size, "bytes of message {} from {}", m.index, m.src);
                }
            }
        });
        for (m, buf) in &received {
            verify(&buf[..m.size], m.src, m.dst, m.index);
        }
    }
    job.world.barrier();
    job.finish();
}
