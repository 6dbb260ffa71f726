//! Latency and bandwidth of one pair of ranks, while all others wait in a barrier.

use std::time::{Duration, Instant};

use mpi::topology::Process;
use mpi::traits::*;
use ntbring_mpi_tests::{filled, mismatch, Job};

/// The results for one pair.
pub struct Measured {
    /// Half a round trip of 8 bytes in microseconds.
    pub latency_us: f64,
    /// Bandwidth of messages of 1 MiB in 10^6 bytes per second.
    pub bandwidth_mb_s: f64,
}

const SMALL: usize = 8;
const LARGE: usize = 1 << 20;
const WINDOW: usize = 8;
const BATCHES: usize = 9;
/// Fewest batches.
const BATCHES_LEAST: usize = 3;
/// Time after which they suffice: on slow links, such as those of virtual machines.
const PATIENCE: Duration = Duration::from_secs(3);
/// Intended largest duration of a batch, however slow the route is.
const BATCH_TIME: Duration = Duration::from_millis(40);
/// Tags: the next step (0 for the end), small messages, large ones, the reply to a window, results for rank 0.
const ORDER: i32 = 101;
const PING: i32 = 102;
const DATA: i32 = 103;
const DONE: i32 = 104;
const RESULT: i32 = 105;

/// Measures between `low` and `high`; rank 0 gets the result. Collective.
pub fn pair(job: &Job, low: i32, high: i32) -> Option<Measured> {
    job.world.barrier();
    let mut result = None;
    if job.rank == low {
        let other = job.world.process_at_rank(high);
        let latency_us = median(drive(&other, 200, ping)) / 2.0;
        let out = filled(low, high, DATA, LARGE);
        let bandwidth = drive(&other, 4, |other, windows| send_windows(other, windows, &out));
        let bandwidth_mb_s = LARGE as f64 * WINDOW as f64 / median(bandwidth);
        result = Some(Measured { latency_us, bandwidth_mb_s });
    } else if job.rank == high {
        let other = job.world.process_at_rank(low);
        obey(&other, pong);
        let mut into = vec![0; LARGE * WINDOW];
        obey(&other, |other, windows| receive_windows(other, windows, &mut into));
        // The contents of the measured messages are checked, too.
        if let Some(what) = into.chunks(LARGE).find_map(|part| mismatch(part, low, high, DATA)) {
            panic!("while measuring: {what}");
        }
    }
    if low != 0 && job.rank == low {
        if let Some(m) = result.take() {
            job.world.process_at_rank(0).send_with_tag(&[m.latency_us, m.bandwidth_mb_s][..], RESULT);
        }
    } else if low != 0 && job.rank == 0 {
        let mut both = [0.0; 2];
        job.world.process_at_rank(low).receive_into_with_tag(&mut both[..], RESULT);
        result = Some(Measured { latency_us: both[0], bandwidth_mb_s: both[1] });
    }
    job.world.barrier();
    result
}

/// Runs batches of `work`, after a warm-up batch from which the length of the others is computed. Returns the time per
/// iteration of each batch in microseconds.
fn drive(other: &Process, most: u64, work: impl Fn(&Process, u64)) -> Vec<f64> {
    let batch = |iterations: u64| {
        other.send_with_tag(&iterations, ORDER);
        let start = Instant::now();
        work(other, iterations);
        start.elapsed().as_secs_f64() * 1e6 / iterations as f64
    };
    let warm_up = batch(most.div_ceil(8));
    let iterations = ((BATCH_TIME.as_secs_f64() * 1e6 / warm_up) as u64).clamp(1, most);
    let (mut times, start) = (Vec::new(), Instant::now());
    while times.len() < BATCHES && (times.len() < BATCHES_LEAST || start.elapsed() < PATIENCE) {
        times.push(batch(iterations));
    }
    other.send_with_tag(&0_u64, ORDER);
    times
}

/// Does the partner's part of [`drive`].
fn obey(other: &Process, mut work: impl FnMut(&Process, u64)) {
    loop {
        let (iterations, _) = other.receive_with_tag::<u64>(ORDER);
        if iterations == 0 {
            return;
        }
        work(other, iterations);
    }
}

fn ping(other: &Process, iterations: u64) {
    let mut buf = [0x11_u8; SMALL];
    for _ in 0..iterations {
        other.send_with_tag(&buf[..], PING);
        other.receive_into_with_tag(&mut buf[..], PING);
    }
}

fn pong(other: &Process, iterations: u64) {
    let mut buf = [0_u8; SMALL];
    for _ in 0..iterations {
        other.receive_into_with_tag(&mut buf[..], PING);
        other.send_with_tag(&buf[..], PING);
    }
}

fn send_windows(other: &Process, windows: u64, out: &[u8]) {
    for _ in 0..windows {
        mpi::request::scope(|scope| {
            let sending: Vec<_> = (0..WINDOW).map(|_| other.immediate_send_with_tag(scope, out, DATA)).collect();
            sending.into_iter().for_each(|request| request.wait_without_status());
        });
        other.receive_into_with_tag(&mut [0_u8][..], DONE);
    }
}

fn receive_windows(other: &Process, windows: u64, into: &mut [u8]) {
    for _ in 0..windows {
        mpi::request::scope(|scope| {
            let parts = into.chunks_mut(LARGE);
            let receiving: Vec<_> = parts.map(|part| other.immediate_receive_into_with_tag(scope, part, DATA)).collect();
            receiving.into_iter().for_each(|request| request.wait_without_status());
        });
        other.send_with_tag(&[1_u8][..], DONE);
    }
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_unstable_by(f64::total_cmp);
    times[times.len() / 2]
}
