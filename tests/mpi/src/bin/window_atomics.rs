//! Accumulates of all ranks to the same numbers, by any mechanism, add up and stay in order; and all ranks make
//! progress while the target computes.
//!
//! `window_atomics hold` never ends: it is for a test that kills rank 1, which nearly always works on rank 0's memory.
//! A rank prints its process id once it is at it.

use std::io::Write;
use std::time::{Duration, Instant};

use mpi::traits::*;
use ntbring_mpi_tests::window::{op, row, spread, Window};
use ntbring_mpi_tests::{arg, Job};

/// Rounds in which each rank adds 4 to the first number of every rank and 1 to the others.
const ROUNDS: usize = 40;
const LEN: usize = 64;

fn sums(job: &Job) {
    let w = Window::new(job, LEN);
    (0..LEN).for_each(|i| w.set(i, 0));
    w.settle(job);
    let (ones, mut before) = ([1_i64; LEN], [0; LEN]);
    let (half, less) = (spread(LEN / 2, 2), spread(LEN / 2 - 1, 2));
    for round in 0..ROUNDS {
        for target in 0..job.size {
            let target = (target + job.rank) % job.size;
            w.accumulate(op("sum"), &ones, row(1), target, 0, row(1));
            w.fetch(op("sum"), 1, target, 0);
            w.get_accumulate(op("sum"), &ones, &mut before, row(1), target, 0, row(1));
            let mut old = w.fetch(op("sum"), 0, target, 0);
            loop {
                match w.swap(old, old + 1, target, 0) {
                    found if found == old => break,
                    found => old = found,
                }
            }
            // All other numbers, half of them as contiguous rows, half as vectors.
            match round % 2 {
                0 => w.accumulate(op("sum"), &ones, row(LEN - 1), target, 1, row(LEN - 1)),
                _ => {
                    w.accumulate(op("sum"), &ones, half, target, 1, half);
                    w.accumulate(op("sum"), &ones, row(LEN / 2 - 1), target, 2, less);
                }
            }
        }
    }
    w.settle(job);
    let rounds = ROUNDS as i64 * i64::from(job.size);
    (0..LEN).for_each(|i| assert_eq!(w.own(i), if i == 0 { 4 * rounds } else { rounds }, "number {i} after all have added"));
    job.world.barrier();
}

/// Checks that accumulates of one rank are applied in the order of the calls.
fn order(job: &Job) {
    let w = Window::new(job, job.size as usize);
    (0..job.size as usize).for_each(|i| w.set(i, 0));
    w.settle(job);
    let maxima: Vec<[i64; 1]> = (0..200).map(|i| [2 * i]).collect();
    // A single number, too, but with a datatype that uses another mechanism to distant ranks.
    let derived = spread(1, 2);
    for target in 0..job.size {
        let mut last = i64::MIN;
        for i in 0..200 {
            // In another order the result would differ.
            let shape = if i % 7 < 2 { derived } else { row(1) };
            w.accumulate(op("max"), &maxima[i as usize], shape, target, job.rank as usize, row(1));
            w.accumulate(op("sum"), &[1], row(1), target, job.rank as usize, row(1));
            if i % 50 == 0 {
                let now = w.fetch(op("sum"), 0, target, job.rank as usize);
                assert_eq!(now, 2 * i + 1, "after {i} pairs; it was {last}");
                last = now;
            }
        }
    }
    w.settle(job);
    (0..job.size as usize).for_each(|i| assert_eq!(w.own(i), 399, "number {i}"));
    job.world.barrier();
}

/// Rank `target` makes no MPI call until all others have completed their operations on its memory.
fn while_it_computes(job: &Job, target: i32) {
    let w = Window::new(job, LEN);
    (0..LEN).for_each(|i| w.set(i, 0));
    w.settle(job);
    let count = i64::from(job.size) - 1;
    if job.rank == target {
        let end = Instant::now() + Duration::from_secs(30);
        while w.own(0) != count {
            assert!(Instant::now() < end, "{} of {count} ranks got through while rank {target} computed", w.own(0));
            std::thread::yield_now();
        }
        std::sync::atomic::fence(std::sync::atomic::Ordering::Acquire);
        assert_eq!((w.own(1), w.own(2)), (100 * count, count), "what they added");
        (0..job.size).filter(|r| *r != target).for_each(|r| assert_eq!(w.own(8 + r as usize), i64::from(r), "what rank {r} put"));
    } else {
        let mine = [i64::from(job.rank)];
        w.put(&mine, row(1), target, 8 + job.rank as usize, row(1));
        w.flush(target);
        let mut back = [-1];
        w.get(&mut back, row(1), target, 8 + job.rank as usize, row(1));
        assert_eq!(back, mine);
        (0..100).for_each(|_| w.accumulate(op("sum"), &[1], row(1), target, 1, row(1)));
        let mut old = 0;
        while w.swap(old, old + 1, target, 2) != old {
            old = w.fetch(op("sum"), 0, target, 2);
        }
        // The notice that this rank is done comes last.
        w.flush(target);
        w.fetch(op("sum"), 1, target, 0);
    }
    w.settle(job);
}

/// All ranks access rank 0's memory, rank 1 with accumulates that take long.
fn hold(job: &Job) {
    const LONG: usize = 2_000_000;
    let w = Window::new(job, LONG);
    let ones = vec![1; LONG];
    let work = || {
        if job.rank == 1 {
            w.accumulate(op("sum"), &ones, row(LONG), 0, 0, row(LONG));
        } else {
            w.fetch(op("sum"), 1, 0, 0);
        }
    };
    work();
    println!("holds {}", std::process::id());
    std::io::stdout().flush().expect("mpiexec reads the output");
    loop {
        work();
    }
}

fn main() {
    let job = Job::start("window_atomics");
    if arg(1, String::new()) == "hold" {
        hold(&job);
    }
    sums(&job);
    order(&job);
    while_it_computes(&job, 0);
    while_it_computes(&job, job.size - 1);
    job.finish();
}
