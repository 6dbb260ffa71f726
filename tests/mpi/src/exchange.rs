//! The basic exchange of most programs: every rank sends ahead round the ring of ranks and receives from behind.

use mpi::point_to_point::Status;
use mpi::topology::SimpleCommunicator;
use mpi::traits::*;

use crate::{fill, verify};

/// Returns the number of bytes that a status reports.
pub fn received_bytes(status: &Status) -> usize {
    status.count(u8::equivalent_datatype()) as usize
}

/// Returns useful distances for any number of ranks per host: the rank itself, both neighbours, a rank at distance two,
/// and the opposite one.
pub fn shifts(ranks: i32) -> Vec<i32> {
    let mut all = vec![0, 1, 2 % ranks, ranks / 2, ranks - 1];
    all.sort_unstable();
    all.dedup();
    all
}

/// Sends a checked message of `size` bytes to the rank `shift` ahead and receives one of the same size from the rank
/// `shift` behind.
#[track_caller]
pub fn exchange(comm: &SimpleCommunicator, shift: i32, tag: i32, size: usize) {
    let (me, ranks) = (comm.rank(), comm.size());
    let (to, from) = ((me + shift).rem_euclid(ranks), (me - shift).rem_euclid(ranks));
    let (mut out, mut into) = (vec![0; size], vec![0xa5; size + 8]);
    fill(&mut out, me, to, tag);
    let status = mpi::request::scope(|scope| {
        let sending = comm.process_at_rank(to).immediate_send_with_tag(scope, &out[..], tag);
        let status = comm.process_at_rank(from).receive_into_with_tag(&mut into[..], tag);
        sending.wait();
        status
    });
    assert_eq!(received_bytes(&status), size, "bytes received from {from}");
    assert_eq!((status.source_rank(), status.tag()), (from, tag), "the status of a receive");
    verify(&into[..size], from, me, tag);
    assert!(into[size..].iter().all(|b| *b == 0xa5), "bytes behind a message of {size} bytes were written");
}
