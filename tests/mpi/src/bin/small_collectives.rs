//! Barriers, reductions, all-reduces and all-gathers of up to 2 KiB, mixed and with late ranks, while messages are in
//! transit; on the world, on temporary duplicates of it, and on parts of it. No rank may leave a barrier before the
//! last has entered it; floating point sums are bitwise identical at all ranks.

use std::os::raw::c_int;
use std::time::{Duration, Instant};

use mpi::collective::SystemOperation;
use mpi::ffi;
use mpi::topology::{Color, SimpleCommunicator};
use mpi::traits::*;
use ntbring_mpi_tests::counters::Session;
use ntbring_mpi_tests::window::coherent;
use ntbring_mpi_tests::{raw, Hosts, Job, Rng};

const TURNS: u64 = 60;
/// Counts of 64-bit numbers: below and above the capacity of mailboxes, on rings of up to 16 hosts.
const SIZES: [usize; 13] = [0, 1, 5, 6, 7, 31, 32, 63, 64, 127, 128, 255, 256];

/// Returns the value of an element: different in each turn.
fn element(turn: u64, rank: i32, i: usize) -> u64 {
    (turn << 32 | (rank as u64) << 16 | i as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

fn sums(comm: &SimpleCommunicator, turn: u64, len: usize) {
    let mine: Vec<u64> = (0..len).map(|i| element(turn, comm.rank(), i)).collect();
    let mut all = vec![0; len];
    comm.all_reduce_into(&mine[..], &mut all[..], SystemOperation::sum());
    let sum = |i| (0..comm.size()).map(|rank| element(turn, rank, i)).fold(0, u64::wrapping_add);
    assert_eq!(all, (0..len).map(sum).collect::<Vec<_>>(), "sum of {len}, turn {turn}");
}

/// Returns the sums of all vectors at `root`, whose own vector is in the receive buffer if `in_place`; all other ranks
/// get their own vector back.
fn reduce<T: Equivalence + Clone>(comm: &SimpleCommunicator, mine: &[T], in_place: bool, root: i32) -> Vec<T> {
    let mut sums = mine.to_vec();
    let from = if comm.rank() == root && in_place { raw::in_place() } else { mine.as_ptr().cast() };
    let to = if comm.rank() == root { sums.as_mut_ptr().cast() } else { std::ptr::null_mut() };
    // SAFETY: both buffers have that many numbers, and only the root receives; MPI_IN_PLACE is valid as the send
    // buffer.
    let code: c_int = unsafe {
        let (op, datatype) = (ffi::RSMPI_SUM, T::equivalent_datatype().as_raw());
        ffi::MPI_Reduce(from, to, mine.len() as c_int, datatype, op, root, comm.as_raw())
    };
    assert_eq!(code, 0);
    sums
}

/// Reduces to another root in each turn.
fn sums_of_one(comm: &SimpleCommunicator, turn: u64, len: usize, in_place: bool) {
    let (root, me) = ((turn % comm.size() as u64) as i32, comm.rank());
    let mine: Vec<u64> = (0..len).map(|i| element(turn, me, i)).collect();
    let sums = reduce(comm, &mine, in_place, root);
    let sum = |i| (0..comm.size()).map(|rank| element(turn, rank, i)).fold(0, u64::wrapping_add);
    let expected = if me == root { (0..len).map(sum).collect() } else { mine };
    assert_eq!(sums, expected, "sum of {len} at rank {root}, turn {turn}");
}

fn gather(comm: &SimpleCommunicator, turn: u64, len: usize) {
    let mine: Vec<u64> = (0..len).map(|i| element(turn, comm.rank(), i)).collect();
    let mut all = vec![0; len * comm.size() as usize];
    comm.all_gather_into(&mine[..], &mut all[..]);
    let expected: Vec<u64> = (0..comm.size()).flat_map(|rank| (0..len).map(move |i| element(turn, rank, i))).collect();
    assert_eq!(all, expected, "gathering {len}, turn {turn}");
}

/// The sent data is contiguous, the received data has gaps: both have the same signature.
fn gather_with_gaps(comm: &SimpleCommunicator, turn: u64) {
    let (me, size) = (comm.rank(), comm.size() as usize);
    let mine: Vec<i32> = (0..6).map(|i| (element(turn, me, i) >> 32) as i32).collect();
    let mut all = vec![-1i32; 12 * size];
    // SAFETY: 6 numbers are sent, and from each rank a vector of 6 numbers with gaps is received, 12 numbers in its
    // extent.
    unsafe {
        let (mut vector, mut spaced) = (std::mem::zeroed(), std::mem::zeroed());
        ffi::MPI_Type_vector(6, 1, 2, ffi::RSMPI_INT32_T, &mut vector);
        ffi::MPI_Type_create_resized(vector, 0, 48, &mut spaced);
        ffi::MPI_Type_commit(&mut spaced);
        let (from, to) = (mine.as_ptr().cast(), all.as_mut_ptr().cast());
        ffi::MPI_Allgather(from, 6, ffi::RSMPI_INT32_T, to, 1, spaced, comm.as_raw());
        ffi::MPI_Type_free(&mut spaced);
        ffi::MPI_Type_free(&mut vector);
    }
    for (i, got) in all.iter().enumerate() {
        let expected = if i % 2 == 1 { -1 } else { (element(turn, (i / 12) as i32, i % 12 / 2) >> 32) as i32 };
        assert_eq!(*got, expected, "gap or number {i}, turn {turn}");
    }
}

/// A sum whose value depends on the order of the summands, in place.
fn floats(comm: &SimpleCommunicator, turn: u64) {
    let mut sum = [1.0 / (1.0 + (element(turn, comm.rank(), 0) >> 20) as f64), 1e16 * f64::from(1 - 2 * (comm.rank() % 2))];
    // SAFETY: the buffer holds two doubles; MPI_IN_PLACE is valid as the send buffer.
    let code: c_int = unsafe {
        let op = ffi::RSMPI_SUM;
        ffi::MPI_Allreduce(raw::in_place(), sum.as_mut_ptr().cast(), 2, ffi::RSMPI_DOUBLE, op, comm.as_raw())
    };
    assert_eq!(code, 0);
    let mine = sum.map(f64::to_bits);
    let mut all = vec![0u64; 2 * comm.size() as usize];
    comm.all_gather_into(&mine[..], &mut all[..]);
    assert!(all.chunks(2).all(|bits| bits == mine), "ranks got different sums: {all:x?}");
}

/// One rank is late: no rank may leave the barrier before that one has entered it.
fn barrier_holds_everybody(comm: &SimpleCommunicator, last: i32) {
    const LATE: Duration = Duration::from_millis(50);
    let begin = Instant::now();
    // The last rank sleeps after this barrier, so after all ranks have begun.
    comm.barrier();
    if comm.rank() == last {
        std::thread::sleep(LATE);
    }
    comm.barrier();
    assert!(begin.elapsed() >= LATE, "rank {last} was not waited for: {:?}", begin.elapsed());
}

fn mixed(comm: &SimpleCommunicator, rng: &mut Rng, turn: u64) {
    if rng.below(12) == 0 {
        std::thread::sleep(Duration::from_micros(500));
    }
    let len = SIZES[turn as usize % SIZES.len()];
    match turn % 7 {
        0 => comm.barrier(),
        1 => sums(comm, turn, len),
        2 => sums_of_one(comm, turn, len, false),
        3 => gather(comm, turn, len),
        4 => gather_with_gaps(comm, turn),
        5 => sums_of_one(comm, turn, len, true),
        _ => floats(comm, turn),
    }
}

/// Rank 0 enters a blocking collective while a nonblocking one is incomplete at all ranks: it must make progress with
/// both.
fn beside_nonblocking(job: &Job) {
    for turn in 0..TURNS {
        // SAFETY: the request is waited for before it is dropped.
        unsafe {
            let mut request = raw::no_request();
            ffi::MPI_Ibarrier(job.world.as_raw(), &mut request);
            if job.rank == 0 {
                mixed(&job.world, &mut Rng::new(1), turn);
            }
            raw::wait(&mut request);
            if job.rank != 0 {
                mixed(&job.world, &mut Rng::new(1), turn);
            }
        }
    }
}

/// A rank that cannot pack its data gets an error, and so do all others: no rank waits for ever. The next call
/// succeeds.
fn a_failure_is_everybodys(job: &Job, len: usize) {
    let comm = job.world.duplicate();
    raw::errors_return(&comm);
    // Without shared buffers, which a communicator gets at its fourth collective, an error may let others wait.
    (0..4).for_each(|_| comm.barrier());
    let (mine, mut all) = (vec![0u8; 2 * len], vec![0u8; len * job.size as usize]);
    // SAFETY: all buffers have the sizes that MPI accesses.
    let code = unsafe {
        let room = len as c_int;
        let count = if job.rank == job.size - 1 { 2 * room } else { room };
        let (from, to) = (mine.as_ptr().cast(), all.as_mut_ptr().cast());
        ffi::MPI_Allgather(from, count, ffi::RSMPI_UINT8_T, to, room, ffi::RSMPI_UINT8_T, comm.as_raw())
    };
    assert_ne!(code, ffi::MPI_SUCCESS as c_int, "rank {} has sent too much, without an error", job.size - 1);
    sums(&comm, 1, 5);
    comm.barrier();
}

/// Returns the count of numbers for which mailboxes have room with the default window: every host has a part of 8 KiB.
fn shared_numbers(job: &Job) -> usize {
    (1 << (8192 / job.size as usize).ilog2()).min(2048) / 8 - 1
}

/// Reductions use mailboxes up to their capacity where ranks cannot share buffers, and give the root the same result as an
/// allreduce gives all ranks.
fn reductions_are_shared(job: &Job) {
    let tool = Session::new();
    let shared = tool.counter("small_allgathers");
    let most = shared_numbers(job);
    for (len, count) in [(most, 1), (most + 1, 0)] {
        let before = tool.read(&[shared]);
        sums_of_one(&job.world, 1, len, false);
        let count = if coherent() { 0 } else { count };
        assert_eq!(tool.read(&[shared]) - before, count, "{len} numbers");
    }
    let mine: [f64; 2] = [1.0 / f64::from(3 + job.rank), 1e16 * f64::from(1 - 2 * (job.rank % 2))];
    let mut all = [0.0_f64; 2];
    job.world.all_reduce_into(&mine[..], &mut all[..], SystemOperation::sum());
    let root = job.size - 1;
    let sums = reduce(&job.world, &mine, false, root);
    assert!(job.rank != root || sums.iter().zip(all).all(|(sum, of_all)| sum.to_bits() == of_all.to_bits()), "{sums:?}, not {all:?}");
}

/// Runs collectives while a message to every rank is in transit.
fn among_messages(job: &Job, rng: &mut Rng) {
    let (right, left) = (job.ahead(1), job.ahead(-1));
    let large = vec![job.rank as u8; 300_000];
    mpi::request::scope(|scope| {
        let mut came = vec![0u8; 300_000];
        let sending = job.world.process_at_rank(right).immediate_send(scope, &large[..]);
        for turn in 0..TURNS {
            mixed(&job.world, rng, turn);
        }
        job.world.process_at_rank(left).receive_into(&mut came[..]);
        sending.wait();
        assert!(came.iter().all(|&byte| byte == left as u8));
    });
}

fn main() {
    let job = Job::start("small_collectives");
    let mut rng = Rng::new(job.rank as u64);
    for turn in 0..5 * TURNS {
        mixed(&job.world, &mut rng, turn);
    }
    for last in 0..job.size.min(4) {
        barrier_holds_everybody(&job.world, last);
    }
    among_messages(&job, &mut rng);
    beside_nonblocking(&job);
    // Otherwise MPICH's own algorithms report the error only to the ranks that receive too much.
    let per_host = Hosts::discover(&job.world).ranks_on(0) as i32;
    let checked = std::env::var("NTBRING_RELIABILITY").is_ok_and(|how| how != "off");
    if per_host == 1 && !checked {
        reductions_are_shared(&job);
        a_failure_is_everybodys(&job, 8);
    }
    // Collectives that are passed on by messages.
    if per_host == 1 && job.size >= 4 {
        a_failure_is_everybodys(&job, 8 * shared_numbers(&job) + 1);
    }
    // Context ids are reused; some duplicates are used at the same time.
    for turn in 0..TURNS {
        let (first, second) = (job.world.duplicate(), job.world.duplicate());
        mixed(&second, &mut rng, turn);
        mixed(&first, &mut rng, turn + 1);
        drop(first);
        mixed(&second, &mut rng, turn + 2);
    }
    // More communicators than there are mailboxes, freed in another order.
    let mut many: Vec<SimpleCommunicator> = (0..7).map(|_| job.world.duplicate()).collect();
    for turn in 0..TURNS {
        mixed(&many[turn as usize % many.len()], &mut rng, turn);
        if turn % 10 == 9 {
            many.remove(turn as usize / 10 % many.len());
            many.push(job.world.duplicate());
        }
    }
    drop(many);
    let parts = [Color::with_value(job.rank % 2), Color::with_value(job.rank / 2), Color::with_value(i32::from(job.rank == 0))];
    for color in parts {
        let Some(part) = job.world.split_by_color(color) else { continue };
        for turn in 0..TURNS {
            mixed(&part, &mut rng, turn);
        }
    }
    // One rank per host, in different combinations.
    let (local, host) = (job.rank % per_host, job.rank / per_host);
    let lines: Vec<SimpleCommunicator> = [local, (local + host) % per_host, (local + 2 * host) % per_host]
        .into_iter()
        .filter_map(|line| job.world.split_by_color(Color::with_value(line)))
        .collect();
    for turn in 0..TURNS {
        let line = &lines[turn as usize % lines.len()];
        mixed(line, &mut rng, turn);
    }
    drop(lines);
    // The same ranks in another order.
    if let Some(turned) = job.world.split_by_color_with_key(Color::with_value(0), -job.rank) {
        for turn in 0..TURNS {
            mixed(&turned, &mut rng, turn);
        }
    }
    job.finish();
}
