//! Jobs that are spawned, several times, while other jobs exist, and by all ranks at once: messages of all sizes both
//! ways between all ranks, collectives and a window over all ranks, and messages of a job that has ended before they
//! are received.

use std::process::Command;
use std::time::Duration;

use mpi::ffi;
use mpi::topology::{InterCommunicator, MergeOrder, SimpleCommunicator};
use mpi::traits::*;
use ntbring_mpi_tests::{filled, mismatch, raw, Job};

const SIZES: [usize; 8] = [0, 1, 8, 48, 1000, 20_000, 300_000, 3_000_000];
const CHILDREN: i32 = 3;
const LAST_WORDS: i32 = 99;

fn spawn(job: &Job, part: &str, children: i32) -> InterCommunicator {
    let mut child = Command::new(std::env::current_exe().expect("a program has a path"));
    child.arg(part);
    job.world.process_at_rank(0).spawn(&child, children).expect("children are born")
}

/// Every rank sends a message of each size to every other rank; odd ones are received from any source.
fn exchange(comm: &SimpleCommunicator) {
    let (me, size) = (comm.rank(), comm.size());
    for (tag, &len) in SIZES.iter().enumerate() {
        let tag = tag as i32;
        let sent: Vec<Vec<u8>> = (0..size).map(|to| filled(me, to, tag, len)).collect();
        mpi::request::scope(|scope| {
            let send = |to: i32| comm.process_at_rank(to).immediate_send_with_tag(scope, &sent[to as usize][..], tag);
            let sends: Vec<_> = (0..size).map(send).collect();
            for i in 0..size {
                let (bytes, status) = match tag % 2 {
                    0 => comm.process_at_rank((me + i) % size).receive_vec_with_tag::<u8>(tag),
                    _ => comm.any_process().receive_vec_with_tag::<u8>(tag),
                };
                assert_eq!((bytes.len(), mismatch(&bytes, status.source_rank(), me, tag)), (len, None));
            }
            for send in sends {
                send.wait();
            }
        });
    }
}

/// Uses a collective, and a window of all ranks to which every other rank writes, of either job.
fn together(comm: &SimpleCommunicator) {
    let (me, size) = (comm.rank() as usize, comm.size() as usize);
    for turn in 0..20u64 {
        let (mine, mut all) = (turn * 100 + me as u64, vec![0u64; size]);
        comm.all_gather_into(&mine, &mut all[..]);
        assert_eq!(all, (0..size as u64).map(|r| turn * 100 + r).collect::<Vec<u64>>());
        comm.barrier();
    }
    // SAFETY: MPI allocates the window's memory with `size` numbers at each rank, and it is read between fences only.
    unsafe {
        let (mut base, mut win) = (std::ptr::null_mut::<i64>(), std::mem::zeroed());
        let at: *mut *mut i64 = &mut base;
        let (info, number) = (ffi::RSMPI_INFO_NULL, i64::equivalent_datatype().as_raw());
        raw::ok(ffi::MPI_Win_allocate(8 * size as i64, 8, info, comm.as_raw(), at.cast(), &mut win), "MPI_Win_allocate");
        std::ptr::write_bytes(base, 0, size);
        raw::ok(ffi::MPI_Win_fence(0, win), "MPI_Win_fence");
        let mine = 1000 + me as i64;
        for target in 0..size as i32 {
            let from = (&raw const mine).cast();
            raw::ok(ffi::MPI_Put(from, 1, number, target, me as i64, 1, number, win), "MPI_Put");
        }
        raw::ok(ffi::MPI_Win_fence(0, win), "MPI_Win_fence");
        let found = std::slice::from_raw_parts(base, size).to_vec();
        assert_eq!(found, (0..size as i64).map(|r| 1000 + r).collect::<Vec<i64>>());
        raw::ok(ffi::MPI_Win_free(&mut win), "MPI_Win_free");
    }
}

fn child(job: &Job, parent: &InterCommunicator, part: &str) {
    match part {
        "exchange" => {
            let all = parent.merge(MergeOrder::High);
            exchange(&all);
            together(&all);
        }
        "at once" => {
            let all = parent.merge(MergeOrder::High);
            assert_eq!(all.size(), 4);
            all.barrier();
        }
        "last words" => {
            let words = filled(job.rank, 0, LAST_WORDS, 500);
            parent.process_at_rank(0).send_with_tag(&words[..], LAST_WORDS);
        }
        _ => panic!("no part called '{part}'"),
    }
}

/// Every rank spawns children of its own, from two commands, at the same time as all others.
fn at_once(job: &Job) {
    let own = SimpleCommunicator::self_comm();
    let child = |_| {
        let mut child = Command::new(std::env::current_exe().expect("a program has a path"));
        child.arg("at once");
        child
    };
    for _ in 0..3 {
        let inter = own.process_at_rank(0).spawn_multiple(&[0, 1].map(child), &[1, 2]).expect("children are born");
        let all = inter.merge(MergeOrder::Low);
        assert_eq!((all.rank(), all.size()), (0, 4));
        all.barrier();
    }
    job.world.barrier();
}

fn main() {
    let job = Job::start("dynamic");
    if let Some(parent) = job.world.parent() {
        let part = std::env::args().nth(1).expect("a child is told what to do");
        return child(&job, &parent, &part);
    }
    let mut before = Vec::new();
    for _ in 0..3 {
        let inter = spawn(&job, "exchange", CHILDREN);
        assert_eq!(inter.remote_size(), CHILDREN);
        let all = inter.merge(MergeOrder::Low);
        assert_eq!((all.rank(), all.size()), (job.rank, job.size + CHILDREN));
        exchange(&all);
        together(&all);
        before.push((inter, all));
    }
    drop(before);
    at_once(&job);
    let inter = spawn(&job, "last words", CHILDREN);
    if job.rank == 0 {
        // By now the children would have ended, if they did not wait until their messages are received.
        std::thread::sleep(Duration::from_millis(300));
        for rank in 0..CHILDREN {
            let (words, _) = inter.process_at_rank(rank).receive_vec_with_tag::<u8>(LAST_WORDS);
            assert_eq!((words.len(), mismatch(&words, rank, 0, LAST_WORDS)), (500, None));
        }
    }
    job.world.barrier();
    drop(inter);
    exchange(&job.world.duplicate());
    job.finish();
}
