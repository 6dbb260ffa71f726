//! Reductions, scans and reduce-scatters of derived types: with gaps in and around their elements, with data far from
//! where a buffer begins, with elements that interleave, and with elements larger than a cell of shared memory. With an
//! operation that commutes and one that does not, in place and not, blocking and nonblocking. Nothing but the results
//! may be written.

use std::os::raw::{c_int, c_void};
use std::sync::atomic::{AtomicIsize, Ordering};

use mpi::ffi;
use mpi::traits::*;
use ntbring_mpi_tests::raw::{self, no_request, ok};
use ntbring_mpi_tests::Job;

const HOLE: u8 = 0x5a;
const MODULUS: u64 = 10_007;
const FAR: isize = 1 << 20;
/// The most elements of a buffer.
const MOST: usize = 8 * 300;

/// Places of the four words of an element, and the distance of elements: an operation is not told.
static PLACES: [AtomicIsize; 4] = [const { AtomicIsize::new(0) }; 4];
static EXTENT: AtomicIsize = AtomicIsize::new(0);

type Cell = [u32; 4];

/// The product of matrices of 2 by 2, which does not commute.
fn product(x: Cell, y: Cell) -> Cell {
    let entry = |row: usize, column: usize| {
        let [a, b] = [u64::from(x[2 * row]) * u64::from(y[column]), u64::from(x[2 * row + 1]) * u64::from(y[2 + column])];
        ((a + b) % MODULUS) as u32
    };
    [entry(0, 0), entry(0, 1), entry(1, 0), entry(1, 1)]
}

fn sum(x: Cell, y: Cell) -> Cell {
    std::array::from_fn(|i| x[i].wrapping_add(y[i]))
}

/// Combines the elements of two arrays of `len` elements.
///
/// # Safety
/// The arrays must have that many elements of the current shape.
unsafe fn combine(x: *mut c_void, y: *mut c_void, len: c_int, op: fn(Cell, Cell) -> Cell) {
    let extent = EXTENT.load(Ordering::Relaxed);
    for i in 0..len as isize {
        let place = |base: *mut c_void, k: usize| {
            let at = i * extent + PLACES[k].load(Ordering::Relaxed);
            base.cast::<u8>().wrapping_offset(at).cast::<u32>()
        };
        // SAFETY: the caller guarantees the elements; their words may lie anywhere.
        unsafe {
            let load = |base| std::array::from_fn(|k| place(base, k).read_unaligned());
            let result = op(load(x), load(y));
            (0..4).for_each(|k| place(y, k).write_unaligned(result[k]));
        }
    }
}

unsafe extern "C" fn multiply(x: *mut c_void, y: *mut c_void, len: *mut c_int, _: *mut ffi::MPI_Datatype) {
    // SAFETY: MPI passes arrays of that many elements of the datatype that it was given.
    unsafe { combine(x, y, *len, product) }
}

unsafe extern "C" fn add(x: *mut c_void, y: *mut c_void, len: *mut c_int, _: *mut ffi::MPI_Datatype) {
    // SAFETY: as above.
    unsafe { combine(x, y, *len, sum) }
}

struct Shape {
    name: &'static str,
    places: [isize; 4],
    lb: isize,
    extent: isize,
    sizes: &'static [usize],
}

const SIZES: &[usize] = &[1, 7, 300];

fn shapes() -> Vec<Shape> {
    let words = |at: isize, apart: isize| [at, at + apart, at + 2 * apart, at + 3 * apart];
    let row = 4 * MOST as isize;
    vec![
        Shape { name: "tight", places: words(0, 4), lb: 0, extent: 16, sizes: SIZES },
        Shape { name: "gaps at both ends", places: words(4, 4), lb: 0, extent: 24, sizes: SIZES },
        Shape { name: "gaps within", places: words(8, 12), lb: 0, extent: 64, sizes: SIZES },
        Shape { name: "far behind", places: words(FAR, 4), lb: FAR, extent: 16, sizes: &[1, 50] },
        Shape { name: "far before", places: words(-FAR, 4), lb: -FAR, extent: 24, sizes: &[1, 50] },
        Shape { name: "behind a gap", places: words(FAR, 4), lb: 0, extent: 24, sizes: &[50] },
        Shape { name: "a lower bound", places: words(-4096, 8), lb: -5000, extent: 40, sizes: &[1, 300] },
        Shape { name: "interleaved", places: words(0, row), lb: 0, extent: 4, sizes: SIZES },
        Shape { name: "large elements", places: words(12, 30_000), lb: 0, extent: 120_000, sizes: &[1, 3] },
    ]
}

struct Handles {
    datatype: ffi::MPI_Datatype,
    op: ffi::MPI_Op,
}

impl Handles {
    fn new(shape: &Shape, commutes: bool) -> Self {
        let word = u32::equivalent_datatype().as_raw();
        PLACES.iter().zip(shape.places).for_each(|(to, place)| to.store(place, Ordering::Relaxed));
        EXTENT.store(shape.extent, Ordering::Relaxed);
        let places = shape.places.map(|place| place as ffi::MPI_Aint);
        let (lb, extent) = (shape.lb as ffi::MPI_Aint, shape.extent as ffi::MPI_Aint);
        let function: ffi::MPI_User_function = if commutes { Some(add) } else { Some(multiply) };
        // SAFETY: all results have valid destinations; the first type is not used after it is freed.
        unsafe {
            let (mut words, mut datatype, mut op) = (std::mem::zeroed(), std::mem::zeroed(), std::mem::zeroed());
            ok(ffi::MPI_Type_create_hindexed_block(4, 1, places.as_ptr(), word, &mut words), "MPI_Type_create_hindexed_block");
            ok(ffi::MPI_Type_create_resized(words, lb, extent, &mut datatype), "MPI_Type_create_resized");
            ok(ffi::MPI_Type_commit(&mut datatype), "MPI_Type_commit");
            ok(ffi::MPI_Type_free(&mut words), "MPI_Type_free");
            ok(ffi::MPI_Op_create(function, c_int::from(commutes), &mut op), "MPI_Op_create");
            Self { datatype, op }
        }
    }
}

impl Drop for Handles {
    fn drop(&mut self) {
        // SAFETY: both are valid, and nothing that uses them is pending.
        unsafe {
            ok(ffi::MPI_Op_free(&mut self.op), "MPI_Op_free");
            ok(ffi::MPI_Type_free(&mut self.datatype), "MPI_Type_free");
        }
    }
}

/// Memory for elements of a shape, with room around them.
#[derive(Clone, PartialEq)]
struct Memory {
    bytes: Vec<u8>,
    origin: isize,
}

impl Memory {
    fn new(shape: &Shape, len: usize) -> Self {
        let (low, high) = (shape.places[0].min(0), shape.places[3].max(0));
        let room = 128;
        Self { bytes: vec![HOLE; (high - low + len as isize * shape.extent + 2 * room) as usize], origin: room - low }
    }

    fn put(&mut self, shape: &Shape, i: usize, cell: Cell) {
        for (place, word) in shape.places.iter().zip(cell) {
            let at = (self.origin + i as isize * shape.extent + place) as usize;
            self.bytes[at..at + 4].copy_from_slice(&word.to_ne_bytes());
        }
    }

    fn start(&mut self) -> *mut c_void {
        self.bytes.as_mut_ptr().wrapping_offset(self.origin).cast()
    }
}

fn value(rank: i32, i: usize) -> Cell {
    let mix = |k: u64| {
        let x = (rank as u64 * 1_000_003 + i as u64 * 4 + k + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        ((x >> 33) % MODULUS) as u32
    };
    [mix(0), mix(1), mix(2), mix(3)]
}

fn reduced(ranks: std::ops::Range<i32>, i: usize, op: fn(Cell, Cell) -> Cell) -> Option<Cell> {
    ranks.map(|rank| value(rank, i)).reduce(op)
}

const CALLS: [&str; 6] = ["reduce", "allreduce", "reduce_scatter", "reduce_scatter_block", "scan", "exscan"];

#[derive(Clone, Copy)]
struct Way {
    call: usize,
    root: i32,
    nonblocking: bool,
    in_place: bool,
    commutes: bool,
}

fn run(job: &Job, shape: &Shape, handles: &Handles, n: usize, way: Way) {
    let (me, ranks) = (job.rank, job.size as usize);
    // Parts of a reduce-scatter are uneven, and some are empty.
    let counts: Vec<c_int> = (0..ranks).map(|rank| if rank % 3 == 1 { 0 } else { n as c_int - (rank % 2) as c_int }).collect();
    let before: c_int = counts[..me as usize].iter().sum();
    let (len, part, first) = match way.call {
        2 => (counts.iter().sum::<c_int>() as usize, counts[me as usize] as usize, before as usize),
        3 => (n * ranks, n, n * me as usize),
        _ => (n, n, 0),
    };
    let (mut out, mut into) = (Memory::new(shape, len), Memory::new(shape, len));
    let in_place = way.in_place && (way.call != 0 || me == way.root);
    for i in 0..len {
        let data = if in_place { &mut into } else { &mut out };
        data.put(shape, i, value(me, i));
    }
    let mut wanted = into.clone();
    let (from, to) = (if in_place { raw::in_place() } else { out.start().cast_const() }, into.start());
    let (count, datatype, op, root, comm) = (n as c_int, handles.datatype, handles.op, way.root, job.world.as_raw());
    let (parts, mut request) = (counts.as_ptr(), no_request());
    // SAFETY: both buffers have the elements that the call uses, and live until it is over.
    let code = unsafe {
        let r = &mut request;
        match (way.call, way.nonblocking) {
            (0, false) => ffi::MPI_Reduce(from, to, count, datatype, op, root, comm),
            (0, true) => ffi::MPI_Ireduce(from, to, count, datatype, op, root, comm, r),
            (1, false) => ffi::MPI_Allreduce(from, to, count, datatype, op, comm),
            (1, true) => ffi::MPI_Iallreduce(from, to, count, datatype, op, comm, r),
            (2, false) => ffi::MPI_Reduce_scatter(from, to, parts, datatype, op, comm),
            (2, true) => ffi::MPI_Ireduce_scatter(from, to, parts, datatype, op, comm, r),
            (3, false) => ffi::MPI_Reduce_scatter_block(from, to, count, datatype, op, comm),
            (3, true) => ffi::MPI_Ireduce_scatter_block(from, to, count, datatype, op, comm, r),
            (4, false) => ffi::MPI_Scan(from, to, count, datatype, op, comm),
            (4, true) => ffi::MPI_Iscan(from, to, count, datatype, op, comm, r),
            (_, false) => ffi::MPI_Exscan(from, to, count, datatype, op, comm),
            (_, true) => ffi::MPI_Iexscan(from, to, count, datatype, op, comm, r),
        }
    };
    ok(code, CALLS[way.call]);
    // SAFETY: the request is valid or MPI_REQUEST_NULL, and its buffers are not borrowed.
    ok(unsafe { raw::wait(&mut request) }.0, "MPI_Wait");
    let members = match way.call {
        0 if me != way.root => 0..0,
        4 => 0..me + 1,
        5 => 0..me,
        _ => 0..job.size,
    };
    let op = if way.commutes { sum } else { product };
    for i in 0..part {
        if let Some(cell) = reduced(members.clone(), first + i, op) {
            wanted.put(shape, i, cell);
        }
    }
    if members.is_empty() && way.call == 5 {
        return; // undefined
    }
    // Behind its part, a reduce-scatter in place may leave anything.
    let end = if way.call == 2 || way.call == 3 { part } else { len };
    if in_place && end < len {
        let mut rest = Memory::new(shape, len);
        (end..len).for_each(|i| rest.put(shape, i, [0; 4]));
        (into.bytes.iter_mut().zip(&mut wanted.bytes).zip(rest.bytes)).filter(|(_, rest)| *rest == 0).for_each(|((a, b), _)| *a = *b);
    }
    let wrong = into.bytes.iter().zip(&wanted.bytes).position(|(a, b)| a != b);
    let name = CALLS[way.call];
    let Way { root, nonblocking, in_place, commutes, .. } = way;
    let wrong = wrong.map(|at| at as isize - into.origin);
    assert_eq!(
        wrong, None,
        "first wrong byte of {name}, {}, {n} elements, root {root}, nonblocking {nonblocking}, in place {in_place}, commutes {commutes}",
        shape.name
    );
}

fn main() {
    let job = Job::start("reduce_gaps");
    for (number, shape) in shapes().iter().enumerate() {
        for commutes in [false, true] {
            let handles = Handles::new(shape, commutes);
            for &n in shape.sizes {
                for call in 0..CALLS.len() {
                    for (nonblocking, in_place) in [(false, false), (false, true), (true, false), (true, true)] {
                        let root = (number as i32 + n as i32 + i32::from(nonblocking)) % job.size;
                        run(&job, shape, &handles, n, Way { call, root, nonblocking, in_place, commutes });
                    }
                }
            }
        }
    }
    job.finish();
}
