//! One-sided operations while their target computes for 2 s and more without any MPI call; needs at least 2 ranks.
//!
//! All other ranks, at any distance, lock the target's memory, operate on it and unlock it; at the end each increments
//! a
//! counter there. The target only reads its own memory, and makes no MPI call before all are done: if its help were
//! needed, the program would never end.

use std::time::{Duration, Instant};

use mpi::traits::*;
use ntbring_mpi_tests::window::{op, row, Window};
use ntbring_mpi_tests::Job;

const COMPUTE: Duration = Duration::from_secs(2);
/// Time limit, for machines that have other work.
const PATIENCE: Duration = Duration::from_secs(60);
/// The numbers of the target: count of ranks that are done, sums, numbers that only a mutex guards, and a part for each
/// rank.
const DONE: usize = 0;
const SUM: usize = 1;
const SWAPPED: usize = 2;
const GUARDED: usize = 3;
const ORDERED: usize = 8;
const PART: usize = 20_000;
const PARTS: usize = 512;
const ROUNDS: usize = 25;

fn part(rank: i32) -> usize {
    PARTS + rank as usize * PART
}

fn compute(time: Duration) -> f64 {
    let (start, mut x) = (Instant::now(), 1.0_f64);
    while start.elapsed() < time {
        (0..10_000).for_each(|_| x = (x * 1.000_001 + 0.5).sqrt());
    }
    x
}

fn be_the_target(job: &Job, w: &Window) {
    let others = i64::from(job.size) - 1;
    assert!(compute(COMPUTE).is_finite(), "the computation went wrong");
    let end = Instant::now() + PATIENCE;
    while w.own(DONE) != others {
        assert!(Instant::now() < end, "{} of {others} ranks got through while rank {} computed", w.own(DONE), job.rank);
        std::thread::sleep(Duration::from_millis(1));
    }
    std::sync::atomic::fence(std::sync::atomic::Ordering::Acquire);
    let all = others * ROUNDS as i64;
    assert_eq!((w.own(SUM), w.own(SWAPPED), w.own(GUARDED)), (3 * all, all, all), "sums, swaps and what the mutex guards");
    for rank in (0..job.size).filter(|r| *r != job.rank) {
        assert_eq!(w.own(ORDERED + rank as usize), 2 * ROUNDS as i64 - 1, "what rank {rank} did in order");
        (0..PART).for_each(|i| assert_eq!(w.own(part(rank) + i), i64::from(rank) + i as i64, "number {i} that rank {rank} put"));
    }
}

fn be_an_origin(job: &Job, w: &mut Window, target: i32) -> f64 {
    // Most of the operations follow when the target certainly computes.
    std::thread::sleep(Duration::from_millis(100));
    let start = Instant::now();
    w.lock_all();
    let mine: Vec<i64> = (0..PART).map(|i| i64::from(job.rank) + i as i64).collect();
    w.put(&mine, row(PART), target, part(job.rank), row(PART));
    w.flush(target);
    let mut back = vec![-1; PART];
    w.get(&mut back, row(PART), target, part(job.rank), row(PART));
    assert!(back == mine, "what was put is there");
    let (ones, own) = ([1_i64], ORDERED + job.rank as usize);
    let maxima: Vec<[i64; 1]> = (0..ROUNDS).map(|i| [2 * i as i64]).collect();
    for maximum in &maxima {
        w.accumulate(op("sum"), &ones, row(1), target, SUM, row(1));
        w.fetch(op("sum"), 1, target, SUM);
        let mut before = [0];
        w.get_accumulate(op("sum"), &ones, &mut before, row(1), target, SUM, row(1));
        assert!(before[0] >= 2, "{before:?} before the third of three");
        let mut old = w.fetch(op("sum"), 0, target, SWAPPED);
        loop {
            match w.swap(old, old + 1, target, SWAPPED) {
                found if found == old => break,
                found => old = found,
            }
        }
        w.accumulate(op("max"), maximum, row(1), target, own, row(1));
        w.accumulate(op("sum"), &ones, row(1), target, own, row(1));
    }
    w.unlock_all();
    for round in 0..ROUNDS {
        w.lock(target, true);
        let mut number = [i64::MIN];
        w.get(&mut number, row(1), target, GUARDED, row(1));
        number[0] += 1;
        w.put(&number, row(1), target, GUARDED, row(1));
        w.unlock(target);
        if round % 5 == 0 {
            w.lock(target, false);
            let mut now = [0];
            w.get(&mut now, row(1), target, GUARDED, row(1));
            w.unlock(target);
            assert!(now[0] >= number[0], "a number that others only add to: {now:?} after {number:?}");
        }
    }
    w.lock(target, false);
    w.fetch(op("sum"), 1, target, DONE);
    w.unlock(target);
    start.elapsed().as_secs_f64()
}

fn main() {
    let job = Job::start("window_passive");
    job.needs_ranks(2);
    for target in [0, job.size - 1] {
        let mut w = Window::unlocked(&job, part(job.size));
        (0..PARTS).for_each(|i| w.set(i, 0));
        job.world.barrier();
        let mut seconds = 0.0;
        match job.rank == target {
            true => be_the_target(&job, &w),
            false => seconds = be_an_origin(&job, &mut w, target),
        }
        let mut longest = seconds;
        job.world.all_reduce_into(&seconds, &mut longest, mpi::collective::SystemOperation::max());
        if job.rank == 0 {
            println!("{}", serde_json::json!({"target": target, "seconds": longest}));
        }
    }
    job.finish();
}
