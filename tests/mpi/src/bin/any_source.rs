//! MPI_ANY_SOURCE and MPI_ANY_TAG with all ranks sending at once, from the same host and from others; messages of one
//! sender stay in order.

use mpi::point_to_point::Status;
use mpi::traits::*;
use ntbring_mpi_tests::{filled, received_bytes, verify, Job};

/// Number of messages from each sender to each receiver in one part.
const EACH: i32 = 24;
const LONGEST: usize = 200_000;

/// Returns a size between nothing and more than any eager limit.
fn size(src: i32, dst: i32, number: i32) -> usize {
    [0, 1, 8, 60, 300, 5000, 20_000, LONGEST][((src * 5 + dst * 3 + number) % 8) as usize]
}

/// Returns one of a few tags, so that the number of a message does not follow from it.
fn tag(part: i32, number: i32) -> i32 {
    part * 4 + number % 3
}

/// Checks a received message; `next` holds the number of the next message from each sender.
fn check(job: &Job, part: i32, status: &Status, buf: &[u8], next: &mut [i32]) {
    let src = status.source_rank();
    let number = next[src as usize];
    next[src as usize] += 1;
    assert_eq!(status.tag(), tag(part, number), "tag of message {number} from {src} in part {part}");
    assert_eq!(received_bytes(status), size(src, job.rank, number), "size of message {number} from {src} in part {part}");
    verify(&buf[..received_bytes(status)], src, job.rank, part * 1000 + number);
}

/// Lets every rank in `senders` send to every rank in `receivers`, all at once; `receive` receives the messages.
fn part(job: &Job, part: i32, receivers: std::ops::Range<i32>, receive: impl FnOnce(&mut [i32])) {
    let out: Vec<(i32, i32, Vec<u8>)> = (0..EACH)
        .flat_map(|number| receivers.clone().map(move |dst| (dst, number)))
        .map(|(dst, number)| (dst, number, filled(job.rank, dst, part * 1000 + number, size(job.rank, dst, number))))
        .collect();
    mpi::request::scope(|scope| {
        let sending: Vec<_> = out
            .iter()
            .map(|(dst, number, buf)| job.world.process_at_rank(*dst).immediate_send_with_tag(scope, &buf[..], tag(part, *number)))
            .collect();
        if receivers.contains(&job.rank) {
            let mut next = vec![0; job.size as usize];
            receive(&mut next);
            assert!(next.iter().all(|n| *n == EACH), "messages from each rank in part {part}: {next:?}, not {EACH} each");
        }
        sending.into_iter().for_each(|request| request.wait_without_status());
    });
    job.world.barrier();
}

fn main() {
    let job = Job::start("any_source");
    let total = EACH * job.size;
    let mut buf = vec![0; LONGEST];

    // One receiver, with blocking receives of any message.
    part(&job, 0, 0..1, |next| {
        for _ in 0..total {
            let status = job.world.any_process().receive_into(&mut buf[..]);
            check(&job, 0, &status, &buf, next);
        }
    });

    // All ranks receive from all others at the same time.
    part(&job, 1, 0..job.size, |next| {
        for _ in 0..total {
            let status = job.world.any_process().receive_into(&mut buf[..]);
            check(&job, 1, &status, &buf, next);
        }
    });

    // Eight receives of any message are always posted; they match in the order in which they were posted.
    part(&job, 2, 0..job.size, |next| {
        let mut left = total as usize;
        while left > 0 {
            let many = left.min(8);
            let mut buffers = vec![vec![0; LONGEST]; many];
            let statuses: Vec<Status> = mpi::request::scope(|scope| {
                let posted: Vec<_> =
                    buffers.iter_mut().map(|b| job.world.any_process().immediate_receive_into(scope, &mut b[..])).collect();
                posted.into_iter().map(|request| request.wait()).collect()
            });
            for (status, buffer) in statuses.iter().zip(&buffers) {
                check(&job, 2, status, buffer, next);
            }
            left -= many;
        }
    });

    // Receives from a named sender and from any sender alternate: a third of each sender's messages is received by
    // name.
    part(&job, 3, 0..job.size, |next| {
        for src in 0..job.size {
            for _ in 0..EACH / 3 {
                let status = job.world.process_at_rank(src).receive_into(&mut buf[..]);
                check(&job, 3, &status, &buf, next);
            }
        }
        for _ in 0..total - EACH / 3 * job.size {
            let status = job.world.any_process().receive_into(&mut buf[..]);
            check(&job, 3, &status, &buf, next);
        }
    });
    job.finish();
}
