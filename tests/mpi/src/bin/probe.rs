//! Probe, Iprobe, Mprobe and Improbe, for named senders and for any source, with messages of all sizes from all ranks
//! at once.

use mpi::point_to_point::{Message, Status};
use mpi::topology::{AnyProcess, Process};
use mpi::traits::*;
use ntbring_mpi_tests::{filled, received_bytes, shifts, verify, Job};

const SIZES: [usize; 8] = [0, 1, 50, 1000, 10_000, 40_000, 100_000, 1 << 20];

fn test_probe<S: Source>(from: &S, tag: i32) -> Status {
    loop {
        if let Some(status) = from.immediate_probe_with_tag(tag) {
            return status;
        }
    }
}

fn test_matched_probe<S: Source>(from: &S, tag: i32) -> (Message, Status) {
    loop {
        if let Some(found) = from.immediate_matched_probe_with_tag(tag) {
            return found;
        }
    }
}

/// Receives one message with the probing call of the number `way`.
fn take<S: Source>(job: &Job, from: &S, way: usize, tag: i32) -> (Vec<u8>, Status) {
    match way {
        0 | 1 => {
            let seen = if way == 0 { from.probe_with_tag(tag) } else { test_probe(from, tag) };
            let mut buf = vec![0; received_bytes(&seen)];
            let status = job.world.process_at_rank(seen.source_rank()).receive_into_with_tag(&mut buf[..], seen.tag());
            assert_eq!(received_bytes(&status), buf.len(), "bytes received after a probe");
            (buf, status)
        }
        _ => {
            let (message, seen) = if way == 2 { from.matched_probe_with_tag(tag) } else { test_matched_probe(from, tag) };
            let mut buf = vec![0; received_bytes(&seen)];
            let status = if way == 2 {
                message.matched_receive_into(&mut buf[..])
            } else {
                mpi::request::scope(|scope| message.immediate_matched_receive_into(scope, &mut buf[..]).wait())
            };
            assert_eq!(received_bytes(&status), buf.len(), "bytes received after a matched probe");
            assert_eq!((status.source_rank(), status.tag()), (seen.source_rank(), seen.tag()), "sender and tag after a matched probe");
            (buf, status)
        }
    }
}

/// Every rank sends to the ranks at the given distances and receives with each kind of probe.
fn part(job: &Job, way: usize, any: bool) {
    let tag = way as i32 * 2 + i32::from(any);
    let distances = shifts(job.size);
    let out: Vec<(i32, Vec<u8>)> = SIZES
        .iter()
        .flat_map(|size| distances.iter().map(move |shift| (job.ahead(*shift), *size)))
        .map(|(dst, size)| (dst, filled(job.rank, dst, tag, size)))
        .collect();
    mpi::request::scope(|scope| {
        let sending: Vec<_> =
            out.iter().map(|(dst, buf)| job.world.process_at_rank(*dst).immediate_send_with_tag(scope, &buf[..], tag)).collect();
        let mut seen = vec![0; job.size as usize];
        for size in SIZES {
            for shift in &distances {
                let named: Process = job.world.process_at_rank(job.ahead(-shift));
                let anyone: AnyProcess = job.world.any_process();
                let (buf, status) = if any { take(job, &anyone, way, tag) } else { take(job, &named, way, tag) };
                let src = status.source_rank();
                if !any {
                    assert_eq!((src, buf.len()), (named.rank(), size), "sender and size");
                }
                // Messages of each sender are in order; senders may alternate.
                assert_eq!(buf.len(), SIZES[seen[src as usize]], "size of the next message from {src}");
                seen[src as usize] += 1;
                verify(&buf, src, job.rank, tag);
            }
        }
        sending.into_iter().for_each(|request| request.wait_without_status());
    });
    job.world.barrier();
}

/// A matched message belongs to its receiver: no other probe or receive finds it, and it may be received after its
/// successor.
fn matched_is_taken(job: &Job) {
    let (to, from) = (job.ahead(job.size / 2), job.ahead(-(job.size / 2)));
    let (first, second) = (filled(job.rank, to, 50, 3000), filled(job.rank, to, 51, 70_000));
    mpi::request::scope(|scope| {
        let sending = [&first, &second].map(|buf| job.world.process_at_rank(to).immediate_send_with_tag(scope, &buf[..], 50));
        let source = job.world.process_at_rank(from);
        let (early, seen) = source.matched_probe_with_tag(50);
        assert_eq!(received_bytes(&seen), 3000, "bytes of the message matched first");
        let seen = source.probe_with_tag(50);
        assert_eq!(received_bytes(&seen), 70_000, "a probe after a matched probe sees the next message");
        let mut buf = vec![0; 70_000];
        source.receive_into_with_tag(&mut buf[..], 50);
        verify(&buf, from, job.rank, 51);
        assert!(source.immediate_probe_with_tag(50).is_none(), "a matched message was seen by a later probe");
        let mut buf = vec![0; 3000];
        early.matched_receive_into(&mut buf[..]);
        verify(&buf, from, job.rank, 50);
        sending.into_iter().for_each(|request| request.wait_without_status());
    });
    job.world.barrier();
}

fn main() {
    let job = Job::start("probe");
    assert!(job.world.any_process().immediate_probe().is_none(), "a probe saw a message before any was sent");
    job.world.barrier();
    for way in 0..4 {
        part(&job, way, false);
        part(&job, way, true);
    }
    matched_is_taken(&job);
    assert!(job.world.any_process().immediate_probe().is_none(), "a message was left over");
    job.finish();
}
