//! A host forwards while its rank computes; needs at least 4 hosts of 1 rank.
//!
//! Ranks 0 and 2 exchange ping-pongs through host 1 (on 4 hosts the distance by host 3 is the same, so both compute)
//! while the ranks between compute for 2 s without any MPI call. Rank 0 prints the half round trips as
//! {"max_us":..,"median_us":..,"messages":..,"large_median_us":..}. Only the order of magnitude is checked: the median
//! is below 100 ms, whereas waiting for the ranks between would take seconds.

use std::time::{Duration, Instant};

use mpi::traits::*;
use ntbring_mpi_tests::{filled, received_bytes, verify, Hosts, Job};

const COMPUTE: Duration = Duration::from_secs(2);
/// Delay of the ping-pongs: by then the others certainly compute, and the ping-pongs end well before those do.
const BEFORE: Duration = Duration::from_millis(200);
const MEASURE: Duration = Duration::from_millis(1300);
const LARGE: usize = 256 << 10;
/// Tags: a small ping, a large ping, the end.
const SMALL: i32 = 1;
const BIG: i32 = 2;
const END: i32 = 3;

/// Computes until 2 s have passed, without any MPI call.
fn compute() -> f64 {
    let (start, mut x) = (Instant::now(), 1.0_f64);
    while start.elapsed() < COMPUTE {
        for _ in 0..10_000 {
            x = (x * 1.000_001 + 0.5).sqrt();
        }
    }
    x
}

/// Measures half round trips in microseconds, of small and of large messages.
fn measure(job: &Job, peer: i32) -> (Vec<f64>, Vec<f64>) {
    std::thread::sleep(BEFORE);
    let (other, start) = (job.world.process_at_rank(peer), Instant::now());
    let (mut small, mut large) = (Vec::new(), Vec::new());
    let outs = [filled(0, peer, SMALL, 64), filled(0, peer, BIG, LARGE)];
    let mut into = vec![0; LARGE];
    for number in 1.. {
        if start.elapsed() > MEASURE || number > 20_000 {
            break;
        }
        // Every 50th is a large one.
        let is_large = number % 50 == 0;
        let (out, tag) = if is_large { (&outs[1], BIG) } else { (&outs[0], SMALL) };
        let sent = Instant::now();
        other.send_with_tag(&out[..], tag);
        let status = other.receive_into_with_tag(&mut into[..], tag);
        let times = if is_large { &mut large } else { &mut small };
        times.push(sent.elapsed().as_secs_f64() * 1e6 / 2.0);
        assert_eq!(received_bytes(&status), out.len(), "bytes that came back");
        verify(&into[..out.len()], 0, peer, tag);
    }
    other.send_with_tag::<[u8]>(&[], END);
    (small, large)
}

fn echo(job: &Job) {
    let (zero, mut buf) = (job.world.process_at_rank(0), vec![0_u8; LARGE]);
    loop {
        let status = zero.receive_into(&mut buf[..]);
        if status.tag() == END {
            return;
        }
        zero.send_with_tag(&buf[..received_bytes(&status)], status.tag());
    }
}

fn median(times: &mut [f64]) -> f64 {
    times.sort_unstable_by(f64::total_cmp);
    times.get(times.len() / 2).copied().unwrap_or(f64::NAN)
}

fn main() {
    let job = Job::start("transit_compute");
    job.needs_ranks(4);
    let hosts = Hosts::discover(&job.world);
    let (me, peer) = (job.rank, 2);
    // True for a rank on a shortest route between the two.
    let between = me != 0 && me != peer && hosts.distance(0, me) + hosts.distance(me, peer) == hosts.distance(0, peer);
    // The first messages of a pair are not measured, since they may set up state.
    if me == 0 {
        job.world.process_at_rank(peer).send_with_tag(&filled(0, peer, SMALL, 64)[..], SMALL);
        job.world.process_at_rank(peer).receive_into(&mut [0_u8; 64][..]);
    } else if me == peer {
        let mut buf = [0_u8; 64];
        job.world.process_at_rank(0).receive_into(&mut buf[..]);
        job.world.process_at_rank(0).send_with_tag(&buf[..], SMALL);
    }
    job.world.barrier();
    if me == 0 {
        let (mut small, mut large) = measure(&job, peer);
        let max = small.iter().chain(&large).copied().fold(0.0, f64::max);
        let (middle, large_middle) = (median(&mut small), median(&mut large));
        println!("{}", serde_json::json!({"max_us": max, "median_us": middle, "messages": small.len(), "large_median_us": large_middle}));
        assert!(small.len() >= 10, "only {} ping-pongs in {MEASURE:?}", small.len());
        assert!(middle < 100_000.0, "the median half round trip is {middle} us: are messages forwarded only when ranks call MPI?");
    } else if me == peer {
        echo(&job);
    } else if between || hosts.count != job.size as usize {
        assert!(compute().is_finite(), "the computation went wrong");
    }
    job.world.barrier();
    job.finish();
}
