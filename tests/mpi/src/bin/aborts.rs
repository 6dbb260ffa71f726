//! MPI_Abort by one rank, at some time, while all ranks are busy: with messages of all sizes (`traffic`, or `thread`,
//! where another thread of that rank calls it), with a receiver that receives nothing (`flood`), with windows
//! (`window`), in a barrier that this rank does not enter (`barrier`), without any MPI call (`compute`), or with
//! children (`children`). Further ends that concern only some ranks at first: MPI_Abort in a communicator of every
//! other rank while the rest is in MPI_Finalize (`part`); exit without MPI_Finalize, with that code (`exit`) or with 0
//! (`quit`), while the rest is in it; exit of spawned children (`child`).
//!
//! `aborts MODE RANK MILLISECONDS`; the error code is 37.

use std::process::Command;
use std::time::{Duration, Instant};

use mpi::topology::Color;
use mpi::traits::*;
use mpi::Threading;
use ntbring_mpi_tests::window::{op, row, Window};
use ntbring_mpi_tests::{arg, exchange, shifts, Job};

const CODE: i32 = 37;
const SIZES: [usize; 5] = [0, 8, 5000, 70_000, 3_000_000];

fn main() {
    let (mode, by, after): (String, i32, u64) = (arg(1, "traffic".into()), arg(2, 0), arg(3, 0));
    let level = if mode == "thread" { Threading::Multiple } else { Threading::Single };
    let job = Job::start_threaded("aborts", level);
    let end = Instant::now() + Duration::from_millis(after);
    let abort_in_time = || {
        if job.rank == by && Instant::now() >= end {
            job.world.abort(CODE)
        }
    };
    match mode.as_str() {
        "traffic" => loop {
            messages(&job, &abort_in_time);
        },
        "thread" => std::thread::scope(|threads| {
            if job.rank == by {
                threads.spawn(|| {
                    std::thread::sleep(Duration::from_millis(after));
                    job.world.abort(CODE)
                });
            }
            loop {
                messages(&job, &|| {});
            }
        }),
        "flood" if job.rank != by => loop {
            job.world.process_at_rank(by).send(&[0_u8; 1000]);
        },
        "window" => windows(&job, &abort_in_time),
        "barrier" if job.rank != by => job.world.barrier(),
        "exit" | "quit" if job.rank != by => return,
        "exit" | "quit" => {
            std::thread::sleep(Duration::from_millis(after));
            std::process::exit(if mode == "exit" { CODE } else { 0 })
        }
        "part" => {
            let color = Color::with_value(job.rank % 2);
            let part = job.world.split_by_color(color).expect("each rank has a color");
            if job.rank % 2 != by % 2 {
                return;
            }
            loop {
                for shift in shifts(part.size()) {
                    exchange(&part, shift, 0, 5000);
                }
                if job.rank == by && Instant::now() >= end {
                    part.abort(CODE)
                }
            }
        }
        "child" | "children" => match job.world.parent() {
            Some(_) if mode == "child" => std::process::exit(CODE),
            // It waits for a message that no rank sends.
            Some(parent) => _ = parent.process_at_rank(0).receive::<u8>(),
            None => {
                let mut child = Command::new(std::env::current_exe().expect("a program has a path"));
                child.arg(&mode);
                let _children = job.world.process_at_rank(0).spawn(&child, 2).expect("children are born");
                loop {
                    messages(&job, if mode == "children" { &abort_in_time } else { &|| {} });
                }
            }
        },
        _ => {}
    }
    loop {
        abort_in_time();
        std::hint::spin_loop();
    }
}

/// Exchanges some messages of each size at each distance.
fn messages(job: &Job, between: &dyn Fn()) {
    for shift in shifts(job.size) {
        for (tag, size) in SIZES.into_iter().enumerate() {
            exchange(&job.world, shift, tag as i32, size);
            between();
        }
    }
}

fn windows(job: &Job, between: &dyn Fn()) {
    let mut window = Window::of(&job.world, 64);
    window.lock_all();
    for turn in 0.. {
        let target = job.ahead(turn % job.size);
        window.put(&[1; 32], row(32), target, 0, row(32));
        window.accumulate(op("sum"), &[1; 16], row(16), target, 32, row(16));
        window.flush(target);
        between();
    }
}
