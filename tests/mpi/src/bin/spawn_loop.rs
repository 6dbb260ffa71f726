//! Children are started, communicated with and left, many times, and connect to a port in between. No resources of them
//! are kept: no descriptor, mapping or memory in their parents, no zombie and next to no memory in mpiexec.

use std::ffi::CStr;
use std::fs;
use std::os::raw::c_char;
use std::process::Command;
use std::time::{Duration, Instant};

use mpi::collective::SystemOperation;
use mpi::ffi;
use mpi::topology::{InterCommunicator, MergeOrder};
use mpi::traits::*;
use ntbring_mpi_tests::ports::{disconnect, meet};
use ntbring_mpi_tests::{raw, status, verify, Job, Usage};

const CHILDREN: i32 = 2;
/// Number of rounds before the first count of resources, and between two counts.
const FIRST: usize = 6;
const MORE: usize = 18;
/// Maximum number of pairs of counts, of which one must be equal.
const BLOCKS: usize = 4;
/// Bytes by which the heap may differ from round to round, whatever their number: tables and lists keep the capacity
/// that they once needed.
const HEAP_SLACK: usize = 24 << 10;
/// Time within which the resources of children must be released.
const SOON: Duration = Duration::from_secs(5);
const TAG: i32 = 3;
const BYTES: usize = 20_000;
const NAME: usize = ffi::MPI_MAX_PORT_NAME as usize;

type Name = [c_char; NAME];

/// Opens a port at rank 0, whose name all ranks get.
fn open_port(job: &Job) -> Name {
    let mut name = [0; NAME];
    if job.rank == 0 {
        // SAFETY: the buffer has room for the longest name.
        raw::ok(unsafe { ffi::MPI_Open_port(ffi::RSMPI_INFO_NULL, name.as_mut_ptr()) }, "MPI_Open_port");
    }
    job.world.process_at_rank(0).broadcast_into(&mut name[..]);
    name
}

fn text(name: &Name) -> &CStr {
    // SAFETY: MPI terminates the name with NUL, and the rest of the buffer is zeroed.
    unsafe { CStr::from_ptr(name.as_ptr()) }
}

/// Exchanges messages between parents and children.
fn talk(inter: &InterCommunicator, order: MergeOrder, total: i32) {
    let all = inter.merge(order);
    assert_eq!(all.size(), total);
    let mut ranks = vec![0; total as usize];
    all.all_gather_into(&all.rank(), &mut ranks[..]);
    assert!((0..total).eq(ranks), "all are there");
}

fn child(job: &Job, parent: InterCommunicator) {
    talk(&parent, MergeOrder::High, parent.remote_size() + job.size);
    let (name, _) = parent.process_at_rank(0).receive_vec_with_tag::<c_char>(TAG);
    let name: Name = name.try_into().expect("a name of the usual length");
    let again = meet(job, text(&name), false);
    again.process_at_rank(0).send_with_tag(&ntbring_mpi_tests::filled(job.rank, 0, TAG, BYTES)[..], TAG);
    disconnect(again);
    disconnect(parent);
}

fn round(job: &Job) {
    let command = Command::new(std::env::current_exe().expect("a program has a path"));
    let inter = job.world.process_at_rank(0).spawn(&command, CHILDREN).expect("children are born");
    talk(&inter, MergeOrder::Low, job.size + CHILDREN);
    let mut name = open_port(job);
    if job.rank == 0 {
        (0..CHILDREN).for_each(|rank| inter.process_at_rank(rank).send_with_tag(&name[..], TAG));
    }
    let again = meet(job, text(&name), true);
    if job.rank == 0 {
        for rank in 0..CHILDREN {
            let (bytes, _) = again.process_at_rank(rank).receive_vec_with_tag::<u8>(TAG);
            verify(&bytes, rank, 0, TAG);
        }
        // SAFETY: the argument is the name of a port of this process.
        raw::ok(unsafe { ffi::MPI_Close_port(name.as_mut_ptr()) }, "MPI_Close_port");
    }
    disconnect(again);
    disconnect(inter);
}

/// Returns the resources in use, once they do not exceed `before`, or after some time.
fn settled(job: &Job, before: Option<Usage>) -> Usage {
    let start = Instant::now();
    loop {
        let _ = job.world.any_process().immediate_probe_with_tag(TAG);
        let now = Usage::now();
        let more = before.is_none_or(|b| now.descriptors > b.descriptors || now.mappings > b.mappings);
        if !more || start.elapsed() > SOON {
            return now;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Resources that mpiexec uses.
struct Launcher {
    /// Its memory, in KiB.
    memory: usize,
    /// Its children that are zombies, and those that run.
    ended: usize,
    running: usize,
}

/// Returns the resources of mpiexec, if it is the parent of this process's parent.
fn launcher() -> Option<Launcher> {
    let pid = status(status(std::process::id(), "PPid:") as u32, "PPid:") as u32;
    let name = fs::read_to_string(format!("/proc/{pid}/comm")).ok()?;
    let parent = format!("PPid:\t{pid}\n");
    let processes = fs::read_dir("/proc").ok()?.flatten();
    let children = processes.filter_map(|process| fs::read_to_string(process.path().join("status")).ok());
    let (ended, running): (Vec<_>, Vec<_>) =
        children.filter(|status| status.contains(&parent)).partition(|status| status.contains("State:\tZ"));
    let is_it = name.starts_with("mpiexec");
    is_it.then(|| Launcher { memory: status(pid, "RssAnon:"), ended: ended.len(), running: running.len() })
}

/// Runs a round, after which mpiexec has no more children than at first: no two rounds are in its memory at once.
fn whole_round(job: &Job, first: Option<&Launcher>) {
    round(job);
    let start = Instant::now();
    while job.rank == 0 && start.elapsed() < SOON && launcher().zip(first).is_some_and(|(now, first)| now.running > first.running) {
        std::thread::sleep(Duration::from_millis(5));
    }
    job.world.barrier();
}

/// Returns true if the condition is true for any rank.
fn any(job: &Job, condition: bool) -> bool {
    let mut any = false;
    job.world.all_reduce_into(&condition, &mut any, SystemOperation::logical_or());
    any
}

/// Runs some rounds. Returns the resources of which there are more afterwards, as text; empty if there are none.
fn block(job: &Job, first: Option<&Launcher>) -> String {
    let (before, old) = (settled(job, None), launcher());
    for _ in 0..MORE {
        whole_round(job, first);
        // Counts the children of this round only.
        let now = Usage::now().descriptors;
        assert!(now <= before.descriptors + 2 * CHILDREN as usize, "{now} descriptors, {} before", before.descriptors);
    }
    let after = settled(job, Some(before));
    let heap = after.heap.saturating_sub(before.heap);
    let mut grown = Vec::new();
    if after.descriptors > before.descriptors || after.mappings > before.mappings {
        grown.push(format!("{before:?}, then {after:?}"));
    }
    if heap >= HEAP_SLACK + 200 * CHILDREN as usize * MORE {
        grown.push(format!("{heap} bytes of heap"));
    }
    if let (Some(old), Some(new)) = (old, launcher()) {
        let memory = new.memory.saturating_sub(old.memory);
        if memory >= 8 * MORE {
            grown.push(format!("{memory} KiB in mpiexec"));
        }
        assert!(new.ended <= 2 * CHILDREN as usize, "{} processes have ended that mpiexec does not wait for", new.ended);
    }
    grown.join("; ")
}

fn main() {
    let job = Job::start("spawn_loop");
    if let Some(parent) = job.world.parent() {
        return child(&job, parent);
    }
    let first = launcher();
    (0..FIRST).for_each(|_| whole_round(&job, first.as_ref()));
    // Pools of objects and lists grow to the size that they once need, at any time, and then stay: only resources that
    // are kept after every round grow again and again.
    let mut grown = String::new();
    for _ in 0..BLOCKS {
        grown = block(&job, first.as_ref());
        if !any(&job, !grown.is_empty()) {
            break;
        }
    }
    assert!(grown.is_empty(), "{BLOCKS} times more after {MORE} rounds: {grown}");
    job.world.barrier();
    job.finish();
}
