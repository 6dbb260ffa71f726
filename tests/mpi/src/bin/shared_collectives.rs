//! Collectives with blocks of different sizes, scans and reductions to slices: of all sizes, mixed, with ranks that are
//! late, in place, of types with gaps at some ranks only, and with operations that a library has to look up.

use std::os::raw::{c_int, c_void};
use std::time::Duration;

use mpi::ffi;
use mpi::topology::{Color, SimpleCommunicator};
use mpi::traits::*;
use ntbring_mpi_tests::{raw, Job, Rng};

const TURNS: u64 = 120;
/// Counts of 64-bit numbers: below and above those of a cache line, of a post, and of all cells of a buffer.
const SIZES: [usize; 13] = [0, 1, 4, 5, 7, 64, 500, 513, 4096, 4097, 20_000, 70_001, 150_000];
/// Fill value of places that must not be written.
const GAP: u64 = 0xdead_beef_dead_beef;

/// Returns the value of a number that a rank has for another one, or for all: different in each turn.
fn number(turn: u64, from: usize, to: usize, i: usize) -> u64 {
    let seed = turn << 40 ^ (from as u64) << 32 ^ (to as u64) << 24 ^ i as u64;
    seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 30
}

/// Blocks of numbers with places between them; each number has a gap behind it if `step` is 2.
struct Blocks {
    places: Vec<u64>,
    step: usize,
    counts: Vec<c_int>,
    displs: Vec<c_int>,
    datatype: ffi::MPI_Datatype,
}

impl Blocks {
    fn new(counts: impl Iterator<Item = usize>, gaps: bool, backwards: bool) -> Blocks {
        let step = 1 + usize::from(gaps);
        let counts: Vec<c_int> = counts.map(|n| n as c_int).collect();
        let mut displs = vec![0; counts.len()];
        let mut at = 0;
        let mut order: Vec<usize> = (0..counts.len()).collect();
        if backwards {
            order.reverse();
        }
        for block in order {
            displs[block] = at;
            at += counts[block] + 1;
        }
        // SAFETY: the datatype is one number, and its extent that of `step` numbers.
        let datatype = unsafe {
            let mut datatype = std::mem::zeroed();
            raw::ok(
                ffi::MPI_Type_create_resized(ffi::RSMPI_UINT64_T, 0, 8 * step as ffi::MPI_Aint, &mut datatype),
                "MPI_Type_create_resized",
            );
            raw::ok(ffi::MPI_Type_commit(&mut datatype), "MPI_Type_commit");
            datatype
        };
        Blocks { places: vec![GAP; at as usize * step], step, counts, displs, datatype }
    }

    fn place(&self, block: usize, i: usize) -> usize {
        (self.displs[block] as usize + i) * self.step
    }

    fn set(&mut self, block: usize, value: impl Fn(usize) -> u64) {
        for i in 0..self.counts[block] as usize {
            let at = self.place(block, i);
            self.places[at] = value(i);
        }
    }

    fn verify(&self, block: usize, value: impl Fn(usize) -> u64, what: &str) {
        let count = self.counts[block] as usize;
        for i in 0..count {
            let at = self.place(block, i);
            assert_eq!(self.places[at], value(i), "{what}: number {i} of block {block}, {count} in all");
            assert!(self.step == 1 || self.places[at + 1] == GAP, "{what}: the gap behind number {i} of block {block}");
        }
        assert_eq!(self.places[self.place(block, count)], GAP, "{what}: the place behind block {block}");
    }

    fn at(&mut self) -> *mut c_void {
        self.places.as_mut_ptr().cast()
    }
}

impl Drop for Blocks {
    fn drop(&mut self) {
        // SAFETY: `new` has committed the datatype, and it is not in use.
        unsafe { ffi::MPI_Type_free(&mut self.datatype) };
    }
}

/// Choices of one call: those of the first row are the same at all ranks.
struct Call<'a> {
    comm: &'a SimpleCommunicator,
    turn: u64,
    len: usize,
    in_place: bool,
    gaps: bool,
    backwards: bool,
}

impl Call<'_> {
    fn ranks(&self) -> usize {
        self.comm.size() as usize
    }

    fn me(&self) -> usize {
        self.comm.rank() as usize
    }

    fn allgatherv(&self) {
        let (turn, me) = (self.turn, self.me());
        let count = |rank: usize| self.len * ((rank + turn as usize) % 4) / 3;
        let mut all = Blocks::new((0..self.ranks()).map(count), self.gaps, self.backwards);
        let mut mine = Blocks::new(std::iter::once(count(me)), turn % 2 == 0, false);
        mine.set(0, |i| number(turn, me, 0, i));
        if self.in_place {
            all.set(me, |i| number(turn, me, 0, i));
        }
        // SAFETY: the buffers hold the blocks that the counts describe.
        let code = unsafe {
            let from = if self.in_place { raw::in_place() } else { mine.at().cast_const() };
            let (counts, displs) = (all.counts.clone(), all.displs.clone());
            let to = all.at();
            ffi::MPI_Allgatherv(from, mine.counts[0], mine.datatype, to, counts.as_ptr(), displs.as_ptr(), all.datatype, self.comm.as_raw())
        };
        raw::ok(code, "MPI_Allgatherv");
        (0..self.ranks()).for_each(|rank| all.verify(rank, |i| number(turn, rank, 0, i), "MPI_Allgatherv"));
    }

    fn alltoallv(&self) {
        let (turn, me) = (self.turn, self.me());
        let count = |from: usize, to: usize| match self.in_place {
            // In place, what is sent to a rank is as large as what it sends.
            true => self.len * ((from + to + turn as usize) % 3) / 4,
            false => self.len * ((2 * from + to + turn as usize) % 4) / 4,
        };
        let mut out = Blocks::new((0..self.ranks()).map(|to| count(me, to)), turn % 2 == 0, self.backwards);
        let mut into = Blocks::new((0..self.ranks()).map(|from| count(from, me)), self.gaps, !self.backwards);
        for to in 0..self.ranks() {
            let blocks = if self.in_place { &mut into } else { &mut out };
            blocks.set(to, |i| number(turn, me, to, i));
        }
        // SAFETY: the buffers hold the blocks that the counts describe.
        let code = unsafe {
            let from = if self.in_place { raw::in_place() } else { out.at().cast_const() };
            let to = into.at();
            ffi::MPI_Alltoallv(
                from,
                out.counts.as_ptr(),
                out.displs.as_ptr(),
                out.datatype,
                to,
                into.counts.as_ptr(),
                into.displs.as_ptr(),
                into.datatype,
                self.comm.as_raw(),
            )
        };
        raw::ok(code, "MPI_Alltoallv");
        (0..self.ranks()).for_each(|from| into.verify(from, |i| number(turn, from, me, i), "MPI_Alltoallv"));
    }

    /// Returns the operation of this turn and its result for numbers in the order of ranks.
    fn operation(&self) -> (ffi::MPI_Op, fn(u64, u64) -> u64) {
        // SAFETY: the constants are initialized by the C side at load time and never written.
        unsafe {
            match self.turn % 5 {
                0 => (ffi::RSMPI_MAX, u64::max),
                1 => (ffi::RSMPI_BXOR, |a, b| a ^ b),
                2 => (ffi::RSMPI_LAND, |a, b| u64::from(a != 0 && b != 0)),
                _ => (ffi::RSMPI_SUM, u64::wrapping_add),
            }
        }
    }

    fn result(&self, ranks: std::ops::Range<usize>, to: usize, i: usize) -> u64 {
        let numbers = ranks.map(|rank| number(self.turn, rank, to, i));
        numbers.reduce(self.operation().1).expect("at least one rank")
    }

    /// Reduces to slices that are equal, or not.
    fn reduce_scatter(&self, equal: bool) {
        let (turn, me) = (self.turn, self.me());
        let count = |rank: usize| if equal { self.len / 2 } else { self.len * ((rank + turn as usize) % 3) / 3 };
        let counts: Vec<c_int> = (0..self.ranks()).map(|rank| count(rank) as c_int).collect();
        let mine: Vec<u64> = (0..self.ranks()).flat_map(|to| (0..count(to)).map(move |i| number(turn, me, to, i))).collect();
        let mut sums = if self.in_place { mine.clone() } else { vec![GAP; count(me)] };
        // SAFETY: the buffers hold the slices that the counts describe.
        let code = unsafe {
            let from = if self.in_place { raw::in_place() } else { mine.as_ptr().cast() };
            let (to, datatype, op, comm) = (sums.as_mut_ptr().cast(), ffi::RSMPI_UINT64_T, self.operation().0, self.comm.as_raw());
            match equal {
                true => ffi::MPI_Reduce_scatter_block(from, to, count(me) as c_int, datatype, op, comm),
                false => ffi::MPI_Reduce_scatter(from, to, counts.as_ptr(), datatype, op, comm),
            }
        };
        raw::ok(code, "MPI_Reduce_scatter");
        for (i, &sum) in sums[..count(me)].iter().enumerate() {
            assert_eq!(sum, self.result(0..self.ranks(), me, i), "number {i} of a slice of {}, turn {turn}", count(me));
        }
    }

    fn scan(&self, inclusive: bool) {
        let (turn, me) = (self.turn, self.me());
        let mine: Vec<u64> = (0..self.len).map(|i| number(turn, me, 0, i)).collect();
        let mut sums = if self.in_place { mine.clone() } else { vec![GAP; self.len] };
        // SAFETY: the buffers hold `len` numbers each.
        let code = unsafe {
            let from = if self.in_place { raw::in_place() } else { mine.as_ptr().cast() };
            let (to, len, datatype) = (sums.as_mut_ptr().cast(), self.len as c_int, ffi::RSMPI_UINT64_T);
            match inclusive {
                true => ffi::MPI_Scan(from, to, len, datatype, self.operation().0, self.comm.as_raw()),
                false => ffi::MPI_Exscan(from, to, len, datatype, self.operation().0, self.comm.as_raw()),
            }
        };
        raw::ok(code, if inclusive { "MPI_Scan" } else { "MPI_Exscan" });
        let before = me + usize::from(inclusive);
        if before > 0 {
            for (i, &sum) in sums.iter().enumerate() {
                assert_eq!(sum, self.result(0..before, 0, i), "number {i} of {}, turn {turn}", self.len);
            }
        }
    }
}

/// Executes a random collective. Choices that must be the same on all ranks are drawn from `common`, others from `own`.
fn mixed(comm: &SimpleCommunicator, common: &mut Rng, own: &mut Rng, turn: u64) {
    if own.below(12) == 0 {
        std::thread::sleep(Duration::from_micros(500));
    }
    let small = if common.below(4) == 0 { SIZES.len() } else { 9 };
    let len = SIZES[common.below(small as u64) as usize];
    let in_place = common.below(4) == 0;
    let kind = common.below(7);
    let call = Call { comm, turn, len, in_place, gaps: own.below(3) == 0, backwards: own.below(2) == 0 };
    match kind {
        0 => call.allgatherv(),
        1 => call.alltoallv(),
        2 => call.reduce_scatter(true),
        3 => call.reduce_scatter(false),
        4 => call.scan(true),
        5 => call.scan(false),
        _ => comm.barrier(),
    }
}

fn main() {
    let job = Job::start("shared_collectives");
    let mut own = Rng::new(job.rank as u64);
    let turned = job.world.split_by_color_with_key(Color::with_value(0), -job.rank).expect("every rank is a member");
    let part = job.world.split_by_color(Color::with_value(job.rank % 2)).expect("every rank is a member");
    for (comm, seed) in [(&job.world, 1), (&turned, 2), (&part, 3), (&job.world, 4)] {
        let mut common = Rng::new(seed);
        for turn in 0..TURNS {
            mixed(comm, &mut common, &mut own, seed << 8 | turn);
        }
    }
    // More groups than a rank has shared buffers for, one after the other and at the same time.
    let mut kept = Vec::new();
    for turn in 0..40 {
        let copy = job.world.duplicate();
        let (mut common, mut own) = (Rng::new(turn), Rng::new(job.rank as u64));
        (0..8).for_each(|i| mixed(&copy, &mut common, &mut own, turn << 12 | i));
        if turn % 2 == 0 {
            kept.push(copy);
        }
    }
    drop((kept, turned, part));
    // From here on the kernel lets nobody copy from rank 0, unless root has started the job.
    if job.rank == 0 {
        // SAFETY: the call has no memory.
        assert_eq!(unsafe { libc::prctl(libc::PR_SET_DUMPABLE, 0) }, 0);
    }
    let mut common = Rng::new(5);
    (0..TURNS).for_each(|turn| mixed(&job.world, &mut common, &mut own, 5 << 8 | turn));
    job.finish();
}
