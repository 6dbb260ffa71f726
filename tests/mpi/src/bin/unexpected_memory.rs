//! Unexpected messages take memory according to their size: 20,000 unexpected messages of 1 KiB must not take much more
//! than 20 MiB. (MPICH itself takes a cell of 69,632 bytes for each: 1.3 GiB.)

use mpi::traits::*;
use ntbring_mpi_tests::{filled, resident, verify, Job};

const MESSAGES: usize = 20_000;
const SIZE: usize = 1024;

fn main() {
    let job = Job::start("unexpected_memory");
    job.needs_ranks(2);
    let (sender, receiver) = (job.size - 1, 0);
    job.world.barrier();
    if job.rank == sender {
        let to = job.world.process_at_rank(receiver);
        let out = filled(sender, receiver, 3, SIZE);
        for _ in 0..MESSAGES {
            to.send_with_tag(&out[..], 3);
        }
        to.send_with_tag(&[1_u8][..], 4);
    } else if job.rank == receiver {
        let from = job.world.process_at_rank(sender);
        let before = resident();
        // Sent last, received first: by then all the others have arrived as unexpected messages.
        from.receive_into_with_tag(&mut [0_u8][..], 4);
        let grown = resident().saturating_sub(before);
        let mut into = vec![0_u8; SIZE];
        for _ in 0..MESSAGES {
            from.receive_into_with_tag(&mut into[..], 3);
        }
        verify(&into, sender, receiver, 3);
        // The limit: twice their size, and 1 KiB for the request of each.
        let limit = MESSAGES * (2 * SIZE + 1024);
        assert!(grown <= limit, "{MESSAGES} messages of {SIZE} bytes took {grown} bytes, at most {limit} are allowed");
    }
    job.world.barrier();
    job.finish();
}
