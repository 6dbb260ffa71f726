//! All-to-all with megabytes per pair, as one collective and as messages that are all posted at once: neither deadlocks
//! nor losses may occur.

use mpi::traits::*;
use ntbring_mpi_tests::{fill, filled, received_bytes, verify, Job};

/// Returns the size of a message of the second part: different for each pair and direction, and not a round number.
fn size(src: i32, dst: i32, most: usize) -> usize {
    let part = ((src * 7 + dst * 3) % 4 + 1) as usize;
    most / 4 * part - (src * 13 + dst) as usize
}

fn main() {
    let job = Job::start("all_to_all_large");
    let (me, ranks) = (job.rank, job.size);
    let most = if ranks <= 4 { 4 << 20 } else { 1 << 20 };

    let (mut out, mut into) = (vec![0_u8; most * ranks as usize], vec![0_u8; most * ranks as usize]);
    for (peer, block) in out.chunks_mut(most).enumerate() {
        fill(block, me, peer as i32, 1);
    }
    job.world.all_to_all_into(&out[..], &mut into[..]);
    for (peer, block) in into.chunks(most).enumerate() {
        verify(block, peer as i32, me, 1);
    }
    drop((out, into));

    let most = 4 << 20 >> (ranks > 4) as u32;
    let out: Vec<Vec<u8>> = (0..ranks).map(|dst| filled(me, dst, 2, size(me, dst, most))).collect();
    let mut into: Vec<Vec<u8>> = (0..ranks).map(|src| vec![0; size(src, me, most)]).collect();
    mpi::request::scope(|scope| {
        // All send first, so that each message is either unexpected or in a race with its receive; receives are posted
        // in another order than the messages are sent.
        let mut pending: Vec<_> =
            out.iter().enumerate().map(|(dst, buf)| job.world.process_at_rank(dst as i32).immediate_send(scope, &buf[..])).collect();
        for (src, buf) in into.iter_mut().enumerate().rev() {
            pending.push(job.world.process_at_rank(src as i32).immediate_receive_into(scope, &mut buf[..]));
        }
        for (index, request) in pending.into_iter().enumerate() {
            let status = request.wait();
            if index >= ranks as usize {
                let src = status.source_rank();
                assert_eq!(received_bytes(&status), size(src, me, most), "bytes received from {src}");
            }
        }
    });
    for (src, buf) in into.iter().enumerate() {
        verify(buf, src as i32, me, 2);
    }
    job.finish();
}
