//! Large messages between ranks that are not in MPI: once both sides know of each other's calls, all of the payload comes though
//! nobody calls anything. Every rank sends to the one so many places ahead, and looks at nothing but its memory.

use std::time::{Duration, Instant};

use mpi::traits::*;
use ntbring_mpi_tests::{arg, fail, filled, verify, Job};

const LIMIT: Duration = Duration::from_secs(40);
/// Distance of the words that are looked at.
const STRIDE: usize = 4096;
const PAYLOAD: i32 = 1;
const SENT: i32 = 2;

fn main() {
    let (size, shift): (usize, i32) = (arg(1, 16 << 20), arg(2, 1));
    let job = Job::start("overlap");
    let (to, from) = (job.ahead(shift), job.ahead(-shift));
    for _ in 0..3 {
        let out = filled(job.rank, to, PAYLOAD, size);
        let expected = filled(from, job.rank, PAYLOAD, size);
        let mut into = vec![0; size];
        let at = into.as_ptr();
        let has_come = |offset: usize| {
            // SAFETY: inside `into`, and all of its bytes are looked at as they are.
            let word = unsafe { at.add(offset).cast::<u64>().read_volatile() };
            word.to_ne_bytes() == expected[offset..][..8]
        };
        mpi::request::scope(|scope| {
            let (ahead, behind) = (job.world.process_at_rank(to), job.world.process_at_rank(from));
            let receiving = behind.immediate_receive_into_with_tag(scope, &mut into[..], PAYLOAD);
            let sending = ahead.immediate_send_with_tag(scope, &out[..], PAYLOAD);
            // Whoever has this has found the receive for the payload.
            ahead.send_with_tag(&0u8, SENT);
            behind.receive_with_tag::<u8>(SENT);
            let start = Instant::now();
            while !(0..size - 8).step_by(STRIDE).chain([size - 8]).all(has_come) {
                if start.elapsed() > LIMIT {
                    let come = (0..size - 8).step_by(STRIDE).filter(|&offset| has_come(offset)).count() * STRIDE;
                    fail(format!("about {come} of {size} bytes have come by themselves"));
                }
                std::thread::sleep(Duration::from_millis(1));
            }
            // Who has all of it is still needed by the others: everybody stays out of MPI for as long.
            std::thread::sleep(Duration::from_millis(100));
            receiving.wait();
            sending.wait();
        });
        verify(&into, from, job.rank, PAYLOAD);
        job.world.barrier();
    }
    job.finish();
}
