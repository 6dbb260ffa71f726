//! Datatypes without data: as parts of others by every constructor, alone and beside real data, in messages, packed, in
//! collectives and in one-sided operations to every distance. Each is compared with its type map. Arguments: number of
//! random types, seed.

use std::os::raw::{c_int, c_void};

use mpi::ffi;
use mpi::traits::*;
use ntbring_mpi_tests::raw::{self, ok};
use ntbring_mpi_tests::typemap::{Block, Typed};
use ntbring_mpi_tests::{arg, filled, Job, Rng};

/// Size of every buffer in bytes; `ORIGIN` is the offset at which an element begins.
const ROOM: usize = 1 << 15;
const ORIGIN: isize = 1 << 14;
/// Number of elements of a message.
const COUNT: usize = 3;
const HOLE: u8 = 0xa5;

/// Returns types without data: without any bounds, and with bounds.
fn empties() -> Vec<Typed> {
    let (int, double) = (Typed::int(), Typed::double());
    let nothing = int.contiguous(0);
    vec![
        nothing.resized(0, 16),
        nothing.resized(-8, 24),
        int.vector(3, 0, 5, false),
        double.indexed(&[(0, 0), (30, 0), (7, 0)], false),
        double.blocks(&[3, 1], 0, true),
        Typed::structure(&[]),
        Typed::structure(&[((8, 2), &nothing), ((64, 1), &nothing.resized(4, 8)), ((0, 0), &double)]),
        int.subarray([4, 6], [2, 0], [1, 3]),
        double.darray(4, 3, 3, None),
        nothing,
    ]
}

/// Returns the types that the constructors make of one type.
fn derived(of: &Typed) -> Vec<Typed> {
    let places = [(0, 1), (3, 2), (6, 0), (9, 3), (15, 1)];
    vec![
        of.contiguous(5),
        of.vector(4, 3, 7, false),
        of.vector(3, 2, -5, false),
        of.vector(4, 2, 100, true),
        of.indexed(&places, false),
        of.indexed(&places.map(|(at, len)| (at * 40, len)), true),
        of.indexed(&[(2, 0), (4, 2), (0, 2)], false),
        of.blocks(&[0, 3, 6, 12], 2, false),
        of.blocks(&[240, 0, 120], 2, true),
        of.dup(),
        of.subarray([5, 6], [3, 2], [1, 2]),
        of.darray(3, 1, 7, None),
        of.darray(2, 1, 9, Some(2)),
        of.resized(-4, 200),
    ]
}

/// Returns types with data beside, before and after one without data.
fn beside(empty: &Typed) -> Vec<Typed> {
    let (int, double) = (Typed::int(), Typed::double());
    let pair = Typed::structure(&[((0, 1), &int), ((8, 1), &double)]);
    let mixed = |members: &[(Block, &Typed)]| Typed::structure(members);
    vec![
        mixed(&[((8, 2), &int), ((0, 1), empty), ((32, 4), &int)]),
        mixed(&[((0, 3), empty), ((4, 1), &int), ((200, 1), empty), ((16, 1), &double)]),
        mixed(&[((0, 2), &pair), ((0, 1), empty), ((-40, 1), &pair)]),
        mixed(&[((12, 1), &int), ((12, 5), empty)]).indexed(&[(0, 2), (4, 1)], false),
        mixed(&[((0, 2), empty), ((0, 1), &double)]).resized(0, 24).vector(3, 2, 3, false),
    ]
}

/// Returns a random type of several levels.
fn random(rng: &mut Rng, empties: &[Typed], depth: usize) -> Typed {
    if depth == 0 {
        return match rng.below(5) {
            0 => Typed::int(),
            1 => Typed::double(),
            _ => empties[rng.below(empties.len() as u64) as usize].dup(),
        };
    }
    let of = random(rng, empties, depth - 1);
    let mut block = |wide: u64| ((rng.below(wide) * 8) as isize, rng.below(3) as usize);
    let blocks: Vec<Block> = (0..4).map(|i| (i * 160 + block(8).0, block(8).1)).collect();
    match rng.below(7) {
        0 => of.contiguous(rng.below(4) as usize),
        1 => of.vector(3, rng.below(3) as usize, 4, false),
        2 => of.indexed(&blocks, true),
        3 => of.blocks(&[0, 4, 9], rng.below(3) as usize, false),
        4 => of.subarray([3, 4], [rng.below(3) as usize, 2], [1, 1]),
        5 => of.resized(-8, 8 * rng.below(30) as isize),
        _ => {
            let others: Vec<Typed> = (0..3).map(|_| random(rng, empties, depth - 1)).collect();
            let members = [(blocks[0], &of), (blocks[1], &others[0]), (blocks[2], &others[1]), (blocks[3], &others[2])];
            Typed::structure(&members)
        }
    }
}

/// Returns true if `COUNT` elements lie in a buffer and no two of their bytes overlap.
fn is_transferable(t: &Typed) -> bool {
    let mut places: Vec<isize> = t.places(COUNT).collect();
    places.sort_unstable();
    places.windows(2).all(|pair| pair[0] < pair[1]) && places.iter().all(|at| (0..ROOM as isize).contains(&(ORIGIN + at)))
}

fn packed(t: &Typed, buf: &[u8], count: usize) -> Vec<u8> {
    t.places(count).map(|at| buf[(ORIGIN + at) as usize]).collect()
}

/// Returns a buffer of holes into which these bytes have been unpacked.
fn unpacked(t: &Typed, bytes: &[u8], count: usize) -> Vec<u8> {
    let mut buf = vec![HOLE; ROOM];
    t.places(count).zip(bytes).for_each(|(at, byte)| buf[(ORIGIN + at) as usize] = *byte);
    buf
}

fn element(buf: &[u8]) -> *const c_void {
    buf[ORIGIN as usize..].as_ptr().cast()
}

fn element_mut(buf: &mut [u8]) -> *mut c_void {
    // The pointer is derived from the whole buffer, since elements may extend to both sides of the origin.
    buf.as_mut_ptr().wrapping_add(ORIGIN as usize).cast()
}

fn expect(t: &Typed, what: &str, found: &[u8], wanted: &[u8]) {
    let wrong = found.iter().zip(wanted).position(|(a, b)| a != b);
    assert_eq!((found.len(), wrong), (wanted.len(), None), "{what} of {}: first wrong byte", t.name);
}

/// Checks size and bounds, and that MPI can return the arguments of the constructor.
fn check_bounds(t: &Typed) {
    let (mut size, mut lb, mut extent) = (-1, -1, -1);
    // SAFETY: the datatype is valid, and all results have valid destinations.
    unsafe {
        ok(ffi::MPI_Type_size(t.handle, &mut size), "MPI_Type_size");
        ok(ffi::MPI_Type_get_extent(t.handle, &mut lb, &mut extent), "MPI_Type_get_extent");
    }
    let (lower, upper) = t.bounds.unwrap_or((0, 0));
    assert_eq!((size as usize, lb as isize, extent as isize), (t.size(), lower, upper - lower), "size, lb and extent of {}", t.name);
    // SAFETY: as above.
    ok(unsafe { ffi::MPI_Type_get_true_extent(t.handle, &mut lb, &mut extent) }, "MPI_Type_get_true_extent");
    if t.size() > 0 {
        let first = t.map.iter().map(|(at, _)| *at).min().unwrap_or(0);
        let last = t.map.iter().map(|(at, len)| at + *len as isize).max().unwrap_or(0);
        assert_eq!((lb as isize, extent as isize), (first, last - first), "true lb and extent of {}", t.name);
    }
    let [mut i, mut a, mut d, mut how] = [0; 4];
    // SAFETY: as above; the arrays then have the sizes that MPI has returned.
    unsafe {
        ok(ffi::MPI_Type_get_envelope(t.handle, &mut i, &mut a, &mut d, &mut how), "MPI_Type_get_envelope");
        let (mut ints, mut addresses) = (vec![0; i as usize + 1], vec![0; a as usize + 1]);
        let mut parts = vec![ffi::RSMPI_DATATYPE_NULL; d as usize + 1];
        let (to, at, of) = (ints.as_mut_ptr(), addresses.as_mut_ptr(), parts.as_mut_ptr());
        ok(ffi::MPI_Type_get_contents(t.handle, i, a, d, to, at, of), "MPI_Type_get_contents");
        let is_basic = |part: ffi::MPI_Datatype| [Typed::int().handle, Typed::double().handle].contains(&part);
        for part in parts.iter_mut().take(d as usize).filter(|part| !is_basic(**part)) {
            ok(ffi::MPI_Type_free(part), "MPI_Type_free");
        }
    }
}

fn check_packing(t: &Typed) {
    let source = filled(0, 1, 2, ROOM);
    let wanted = packed(t, &source, COUNT);
    let (mut room, n) = (0, COUNT as c_int);
    // SAFETY: the datatype is valid, and the result has a valid destination.
    unsafe {
        ok(ffi::MPI_Pack_size(n, t.handle, ffi::RSMPI_COMM_SELF, &mut room), "MPI_Pack_size");
        let (mut bytes, mut at) = (vec![HOLE; room as usize], 0);
        let to = bytes.as_mut_ptr().cast();
        ok(ffi::MPI_Pack(element(&source), n, t.handle, to, room, &mut at, ffi::RSMPI_COMM_SELF), "MPI_Pack");
        expect(t, "what was packed", &bytes[..at as usize], &wanted);
        let (mut into, from, len) = (vec![HOLE; ROOM], bytes.as_ptr().cast(), at);
        at = 0;
        ok(ffi::MPI_Unpack(from, len, &mut at, element_mut(&mut into), n, t.handle, ffi::RSMPI_COMM_SELF), "MPI_Unpack");
        expect(t, "what was unpacked", &into, &unpacked(t, &wanted, COUNT));
        let (kind, mut size, mut at) = (c"external32".as_ptr(), 0, 0);
        ok(ffi::MPI_Pack_external_size(kind, n, t.handle, &mut size), "MPI_Pack_external_size");
        let mut bytes = vec![HOLE; size as usize];
        ok(ffi::MPI_Pack_external(kind, element(&source), n, t.handle, bytes.as_mut_ptr().cast(), size, &mut at), "MPI_Pack_external");
        assert_eq!((size, at), (wanted.len() as ffi::MPI_Aint, size), "bytes in external32 of {}", t.name);
        let (mut into, mut at) = (vec![HOLE; ROOM], 0);
        let from = bytes.as_ptr().cast();
        ok(ffi::MPI_Unpack_external(kind, from, size, &mut at, element_mut(&mut into), n, t.handle), "MPI_Unpack_external");
        expect(t, "what was unpacked from external32", &into, &unpacked(t, &wanted, COUNT));
    }
}

/// Exchanges a message of one element less than the receive has room for, and a broadcast.
fn check_messages(job: &Job, t: &Typed, shift: i32) {
    let (to, from, comm) = (job.ahead(shift), job.ahead(-shift), job.world.as_raw());
    let (source, mut into, mut status) = (filled(job.rank, to, 3, ROOM), vec![HOLE; ROOM], raw::status());
    let (n, of) = (COUNT as c_int, t.handle);
    // SAFETY: both buffers hold that many elements.
    unsafe {
        let (out, room) = (element(&source), element_mut(&mut into));
        ok(ffi::MPI_Sendrecv(out, n - 1, of, to, 3, room, n, of, from, 3, comm, &mut status), "MPI_Sendrecv");
    }
    let sent = packed(t, &filled(from, job.rank, 3, ROOM), COUNT - 1);
    expect(t, "a message", &into, &unpacked(t, &sent, COUNT - 1));
    let mut count = -1;
    // SAFETY: the status is initialized, and `count` is valid for writes.
    ok(unsafe { ffi::MPI_Get_count(&status, t.handle, &mut count) }, "MPI_Get_count");
    assert_eq!(count, if t.size() == 0 { 0 } else { n - 1 }, "elements of {}", t.name);
    let root = shift % job.size;
    let mut all = if job.rank == root { filled(0, 0, 4, ROOM) } else { vec![HOLE; ROOM] };
    // SAFETY: the buffer holds that many elements.
    ok(unsafe { ffi::MPI_Bcast(element_mut(&mut all), n, of, root, comm) }, "MPI_Bcast");
    if job.rank != root {
        expect(t, "a broadcast", &all, &unpacked(t, &packed(t, &filled(0, 0, 4, ROOM), COUNT), COUNT));
    }
}

/// A window at every rank, as large as a buffer.
struct Window {
    win: ffi::MPI_Win,
    base: *mut u8,
}

impl Window {
    fn new(job: &Job) -> Self {
        let (mut base, size) = (std::ptr::null_mut::<u8>(), ROOM as ffi::MPI_Aint);
        // SAFETY: reading the constant is safe: the C side initializes it at load time. The call overwrites the handle.
        let mut win = unsafe { ffi::RSMPI_WIN_NULL };
        let place = std::ptr::from_mut(&mut base).cast();
        // SAFETY: `base` and `win` are valid for writes.
        let code = unsafe { ffi::MPI_Win_allocate(size, 1, ffi::RSMPI_INFO_NULL, job.world.as_raw(), place, &mut win) };
        ok(code, "MPI_Win_allocate");
        Self { win, base }
    }

    fn free(mut self) {
        // SAFETY: the window is valid, and no rank accesses it afterwards.
        ok(unsafe { ffi::MPI_Win_free(&mut self.win) }, "MPI_Win_free");
    }
}

/// Checks puts to a rank and gets from it.
fn check_window(job: &Job, window: &Window, t: &Typed, shift: i32) {
    let (to, from, n, of) = (job.ahead(shift), job.ahead(-shift), COUNT as c_int, t.handle);
    let (source, mut into, win) = (filled(job.rank, to, 5, ROOM), vec![HOLE; ROOM], window.win);
    // SAFETY: both buffers, and the window at each rank, hold that many elements; fences separate the accesses.
    let memory = unsafe {
        ok(ffi::MPI_Win_fence(0, win), "MPI_Win_fence");
        window.base.write_bytes(HOLE, ROOM);
        ok(ffi::MPI_Win_fence(0, win), "MPI_Win_fence");
        ok(ffi::MPI_Put(element(&source), n, of, to, ORIGIN as ffi::MPI_Aint, n, of, win), "MPI_Put");
        ok(ffi::MPI_Win_fence(0, win), "MPI_Win_fence");
        let memory = std::slice::from_raw_parts(window.base, ROOM).to_vec();
        ok(ffi::MPI_Get(element_mut(&mut into), n, of, to, ORIGIN as ffi::MPI_Aint, n, of, win), "MPI_Get");
        ok(ffi::MPI_Win_fence(0, win), "MPI_Win_fence");
        memory
    };
    let put = packed(t, &filled(from, job.rank, 5, ROOM), COUNT);
    expect(t, "what was put", &memory, &unpacked(t, &put, COUNT));
    expect(t, "what was gotten", &into, &unpacked(t, &packed(t, &source, COUNT), COUNT));
}

/// Checks the number of basic elements of structs that contain types without data.
fn check_elements() {
    let (int, double, nothing) = (Typed::int(), Typed::double(), Typed::int().contiguous(0));
    let t =
        Typed::structure(&[((0, 1), &int), ((500, 2), &nothing), ((8, 1), &double), ((900, 1), &nothing.resized(0, 0)), ((16, 2), &int)]);
    let (out, mut into, mut status) = (vec![1_u8; ROOM], vec![HOLE; ROOM], raw::status());
    for bytes in [4, 12, 20, 24, 40] {
        let mut elements = -1;
        // SAFETY: the buffers are large enough, the communicator has one rank, and status and number are valid for
        // writes.
        unsafe {
            let (comm, from, to) = (ffi::RSMPI_COMM_SELF, element(&out), element_mut(&mut into));
            ok(ffi::MPI_Sendrecv(from, bytes, raw::byte(), 0, 1, to, 9, t.handle, 0, 1, comm, &mut status), "MPI_Sendrecv");
            ok(ffi::MPI_Get_elements(&status, t.handle, &mut elements), "MPI_Get_elements");
        }
        let wanted = [(4, 1), (12, 2), (20, 4), (24, 5), (40, 8)].into_iter().find(|(len, _)| *len == bytes);
        assert_eq!(Some((bytes, elements)), wanted, "elements of {bytes} bytes");
    }
}

/// Checks that elements without data beyond the end of a window are not accessed.
fn check_kernel_copies(job: &Job, window: &Window) {
    let (int, nothing) = (Typed::int(), Typed::int().contiguous(0));
    let t = Typed::structure(&[((0, 1), &int), ((2 * ROOM as isize, 3), &nothing)]).resized(0, 4);
    check_window(job, window, &t, 1);
    check_window(job, window, &t, job.size / 2);
}

fn main() {
    let job = Job::start("empty_types");
    let window = Window::new(&job);
    let (empties, mut rng) = (empties(), Rng::new(arg(2, 5)));
    let mut types: Vec<Typed> = empties.iter().flat_map(|empty| derived(empty).into_iter().chain(beside(empty))).collect();
    let twice: Vec<Typed> = types.iter().step_by(3).flat_map(|t| [t.indexed(&[(0, 1), (70, 2)], false), t.contiguous(2)]).collect();
    types.extend(twice);
    types.extend((0..arg(1, 150)).map(|i| random(&mut rng, &empties, 1 + i % 3)));
    let mut transferred = 0;
    for (i, t) in types.iter().enumerate() {
        check_bounds(t);
        if is_transferable(t) {
            transferred += 1;
            check_packing(t);
            let shift = 1 + (i as i32) % (job.size - 1).max(1);
            check_messages(&job, t, shift);
            check_window(&job, &window, t, shift);
        }
    }
    assert!(transferred > types.len() / 2, "only {transferred} of {} types could be sent", types.len());
    check_elements();
    check_kernel_copies(&job, &window);
    window.free();
    drop((types, empties));
    job.finish();
}
