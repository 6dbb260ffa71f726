//! Broadcasts, reductions, all-gathers and all-to-alls of all sizes, mixed, with ranks that are late: those that are
//! passed on from neighbour to neighbour on rings, in segments if they are large, and those that are not; from all
//! roots, in place, and of types with gaps at some ranks only.

use std::os::raw::{c_int, c_void};
use std::time::Duration;

use mpi::collective::SystemOperation;
use mpi::ffi;
use mpi::topology::{Color, SimpleCommunicator};
use mpi::traits::*;
use ntbring_mpi_tests::{raw, Job, Rng};

const TURNS: u64 = 180;
/// Counts of 32-bit numbers: below and above the sizes of small collectives (on 8 hosts and on 4), of packed and of
/// eager messages, and of a segment.
const SIZES: [usize; 19] = [0, 1, 2, 3, 15, 16, 62, 63, 254, 255, 510, 511, 2050, 4097, 16_384, 16_385, 40_000, 70_001, 300_000];
/// Fill value of places that must not be written.
const GAP: u32 = 0xdead_beef;

/// Returns the value of a number that a rank has for another one, or for all: different in each turn.
fn number(turn: u64, from: i32, to: i32, i: usize) -> u32 {
    let seed = turn << 40 ^ (from as u64) << 32 ^ (to as u64) << 24 ^ i as u64;
    (seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as u32
}

/// Numbers side by side, or in every second place: a buffer and its MPI datatype.
struct Numbers {
    places: Vec<u32>,
    step: usize,
    len: usize,
    datatype: ffi::MPI_Datatype,
}

impl Numbers {
    /// Returns `blocks` of `len` numbers each, filled with [`GAP`].
    fn new(len: usize, blocks: usize, gaps: bool) -> Numbers {
        let step = 1 + usize::from(gaps);
        // SAFETY: the datatype has `len` numbers, and its extent is that of a block.
        let datatype = unsafe {
            let (mut vector, mut block) = (std::mem::zeroed(), std::mem::zeroed());
            raw::ok(ffi::MPI_Type_vector(len as c_int, 1, step as c_int, ffi::RSMPI_UINT32_T, &mut vector), "MPI_Type_vector");
            raw::ok(ffi::MPI_Type_create_resized(vector, 0, (4 * step * len) as ffi::MPI_Aint, &mut block), "MPI_Type_create_resized");
            raw::ok(ffi::MPI_Type_commit(&mut block), "MPI_Type_commit");
            ffi::MPI_Type_free(&mut vector);
            block
        };
        Numbers { places: vec![GAP; len * blocks * step], step, len, datatype }
    }

    fn set(&mut self, block: usize, value: impl Fn(usize) -> u32) {
        for i in 0..self.len {
            self.places[(block * self.len + i) * self.step] = value(i);
        }
    }

    fn verify(&self, block: usize, value: impl Fn(usize) -> u32, what: &str) {
        for i in 0..self.len {
            let at = (block * self.len + i) * self.step;
            assert_eq!(self.places[at], value(i), "{what}: number {i} of block {block}, {} in all", self.len);
            assert!(self.step == 1 || self.places[at + 1] == GAP, "{what}: the gap behind number {i} of block {block}");
        }
    }

    fn at(&mut self) -> *mut c_void {
        self.places.as_mut_ptr().cast()
    }
}

impl Drop for Numbers {
    fn drop(&mut self) {
        // SAFETY: `new` has committed the datatype, and it is not in use.
        unsafe { ffi::MPI_Type_free(&mut self.datatype) };
    }
}

fn broadcast(comm: &SimpleCommunicator, turn: u64, len: usize, gaps: bool) {
    let root = (turn / 4) as i32 % comm.size();
    let mut numbers = Numbers::new(len, 1, gaps);
    if comm.rank() == root {
        numbers.set(0, |i| number(turn, root, 0, i));
    }
    // SAFETY: the buffer holds one block.
    raw::ok(unsafe { ffi::MPI_Bcast(numbers.at(), 1, numbers.datatype, root, comm.as_raw()) }, "MPI_Bcast");
    numbers.verify(0, |i| number(turn, root, 0, i), &format!("broadcast of rank {root}, turn {turn}"));
}

/// Reduces to all ranks, or to a root only: then the others have no receive buffer.
fn reduce(comm: &SimpleCommunicator, turn: u64, len: usize, to_all: bool, in_place: bool) {
    let root = (turn / 4) as i32 % comm.size();
    let is_there = to_all || comm.rank() == root;
    let in_place = in_place && is_there;
    let mine: Vec<u32> = (0..len).map(|i| number(turn, comm.rank(), 0, i)).collect();
    let mut all = if in_place { mine.clone() } else { vec![GAP; if is_there { len } else { 0 }] };
    let greatest = turn.is_multiple_of(3);
    // SAFETY: the buffers that are accessed hold `len` numbers each.
    let code = unsafe {
        let from = if in_place { raw::in_place() } else { mine.as_ptr().cast() };
        let op = if greatest { ffi::RSMPI_MAX } else { ffi::RSMPI_SUM };
        let (into, len, datatype) = (all.as_mut_ptr().cast(), len as c_int, ffi::RSMPI_UINT32_T);
        match to_all {
            true => ffi::MPI_Allreduce(from, into, len, datatype, op, comm.as_raw()),
            false => ffi::MPI_Reduce(from, into, len, datatype, op, root, comm.as_raw()),
        }
    };
    raw::ok(code, if to_all { "MPI_Allreduce" } else { "MPI_Reduce" });
    for (i, got) in all.iter().enumerate() {
        let each = (0..comm.size()).map(|rank| number(turn, rank, 0, i));
        let expected = if greatest { each.max().unwrap() } else { each.fold(0, u32::wrapping_add) };
        assert_eq!(*got, expected, "number {i} of {len}, turn {turn}, to all: {to_all}, root {root}");
    }
}

fn gather(comm: &SimpleCommunicator, turn: u64, len: usize, gaps: bool, in_place: bool) {
    let (me, ranks) = (comm.rank(), comm.size() as usize);
    let mut mine = Numbers::new(len, 1, turn.is_multiple_of(2));
    mine.set(0, |i| number(turn, me, 0, i));
    let mut all = Numbers::new(len, ranks, gaps);
    if in_place {
        all.set(me as usize, |i| number(turn, me, 0, i));
    }
    // SAFETY: the buffers hold one block, and one block for each rank.
    let code = unsafe {
        let from = if in_place { raw::in_place() } else { mine.at().cast_const() };
        ffi::MPI_Allgather(from, 1, mine.datatype, all.at(), 1, all.datatype, comm.as_raw())
    };
    raw::ok(code, "MPI_Allgather");
    for rank in 0..ranks {
        all.verify(rank, |i| number(turn, rank as i32, 0, i), &format!("gathering, turn {turn}"));
    }
}

fn exchange(comm: &SimpleCommunicator, turn: u64, len: usize, gaps: bool, in_place: bool) {
    let (me, ranks) = (comm.rank(), comm.size() as usize);
    let (mut out, mut into) = (Numbers::new(len, ranks, turn.is_multiple_of(2)), Numbers::new(len, ranks, gaps));
    for to in 0..ranks {
        let numbers = if in_place { &mut into } else { &mut out };
        numbers.set(to, |i| number(turn, me, to as i32, i));
    }
    // SAFETY: the buffers hold a block for each rank.
    let code = unsafe {
        let from = if in_place { raw::in_place() } else { out.at().cast_const() };
        ffi::MPI_Alltoall(from, 1, out.datatype, into.at(), 1, into.datatype, comm.as_raw())
    };
    raw::ok(code, "MPI_Alltoall");
    for from in 0..ranks {
        into.verify(from, |i| number(turn, from as i32, me, i), &format!("exchanging, turn {turn}"));
    }
}

/// Sums with rounding errors: nearly correct with any algorithm, and bitwise identical at all ranks; of so many
/// segments that buffers are reused.
fn rounded(comm: &SimpleCommunicator) {
    const LEN: usize = 200_000;
    let value = |rank: i32, i: usize| 1.0 / f64::from(rank + 1 + (i % 1000) as i32);
    let mine: Vec<f64> = (0..LEN).map(|i| value(comm.rank(), i)).collect();
    let verify = |sums: &[f64], what: &str| {
        for (i, sum) in sums.iter().enumerate() {
            let expected: f64 = (0..comm.size()).map(|rank| value(rank, i)).sum();
            assert!((sum - expected).abs() < 1e-12 * expected, "{what}: number {i} is {sum}, not {expected}");
        }
    };
    for root in 0..comm.size() {
        let mut sums = vec![0.0; LEN];
        let process = comm.process_at_rank(root);
        if comm.rank() == root {
            process.reduce_into_root(&mine, &mut sums, SystemOperation::sum());
            verify(&sums, "MPI_Reduce");
        } else {
            process.reduce_into(&mine, SystemOperation::sum());
        }
    }
    let mut sums = vec![0.0; LEN];
    comm.all_reduce_into(&mine, &mut sums, SystemOperation::sum());
    verify(&sums, "MPI_Allreduce");
    let mut first = sums.clone();
    comm.process_at_rank(0).broadcast_into(&mut first);
    assert!(sums.iter().map(|sum| sum.to_bits()).eq(first.iter().map(|sum| sum.to_bits())), "not the same at all ranks");
}

/// Choices that must be the same on all ranks are drawn from `common`, others from `own`.
fn mixed(comm: &SimpleCommunicator, common: &mut Rng, own: &mut Rng, turn: u64) {
    if own.below(12) == 0 {
        std::thread::sleep(Duration::from_micros(500));
    }
    let small = if common.below(4) == 0 { SIZES.len() } else { 12 };
    let len = SIZES[common.below(small as u64) as usize];
    let (kind, in_place, gaps) = (common.below(5), common.below(4) == 0, own.below(3) == 0);
    match kind {
        0 => broadcast(comm, turn, len, gaps),
        1 => reduce(comm, turn, len, true, in_place),
        2 => reduce(comm, turn, len, false, in_place),
        3 => gather(comm, turn, len / 4, gaps, in_place),
        _ => exchange(comm, turn, len / 4, gaps, in_place),
    }
}

fn main() {
    let job = Job::start("ring_collectives");
    let mut own = Rng::new(job.rank as u64);
    let turned = job.world.split_by_color_with_key(Color::with_value(0), -job.rank).expect("every rank is a member");
    let part = job.world.split_by_color(Color::with_value(job.rank % 2)).expect("every rank is a member");
    for (comm, seed) in [(&job.world, 1), (&turned, 2), (&part, 3), (&job.world, 4)] {
        let mut common = Rng::new(seed);
        for turn in 0..TURNS {
            mixed(comm, &mut common, &mut own, seed << 8 | turn);
        }
    }
    rounded(&job.world);
    rounded(&turned);
    drop((turned, part));
    job.finish();
}
