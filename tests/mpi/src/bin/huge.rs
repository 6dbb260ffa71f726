//! More than 2^31 bytes at once between the ranks that are furthest from each other: as one message, as one of a type
//! with gaps, which is packed on its way, broadcast without blocking, and put into a window. Skipped if there is not
//! enough memory.

use std::os::raw::{c_int, c_void};

use mpi::ffi;
use mpi::traits::*;
use ntbring_mpi_tests::raw::{byte, bytes, class, no_request, ok, status, text, wait};
use ntbring_mpi_tests::{fail, Job};

/// Words of a block, and blocks of a message: 2^31 bytes and 1 MiB in all.
const BLOCK: usize = 1 << 17;
const BLOCKS: usize = 2049;
const WORDS: usize = BLOCK * BLOCKS;

/// Memory in bytes for the sender and the receiver, which may be on one machine, and for a window.
const NEEDED: u64 = 8 << 30;

fn main() {
    let job = Job::start("huge");
    // The same result on all ranks.
    let mut enough = job.rank == 0 && available() >= NEEDED && room("/dev/shm") >= NEEDED / 2;
    job.world.process_at_rank(0).broadcast_into(&mut enough);
    if !enough {
        eprintln!("not run: it needs {} GiB of memory, half of it in /dev/shm", NEEDED >> 30);
        return job.finish();
    }
    let (sender, receiver) = (0, job.size / 2);
    let (tight, loose) = (Datatype::new(BLOCK), Datatype::new(BLOCK - 1));
    let mut memory = vec![0_u64; if [sender, receiver].contains(&job.rank) { WORDS } else { 0 }];
    for (turn, datatype) in [&tight, &loose].into_iter().enumerate() {
        let at: *mut c_void = memory.as_mut_ptr().cast();
        if job.rank == sender {
            fill(&mut memory, turn);
            let world = job.world.as_raw();
            // SAFETY: the buffer has that many blocks.
            ok(unsafe { ffi::MPI_Send(at, BLOCKS as c_int, datatype.0, receiver, 0, world) }, "MPI_Send");
        } else if job.rank == receiver {
            memory.fill(0);
            let mut status = status();
            let (world, count) = (job.world.as_raw(), BLOCKS as c_int);
            // SAFETY: the buffer has that many blocks, and it is not borrowed.
            ok(unsafe { ffi::MPI_Recv(at, count, datatype.0, sender, 0, world, &mut status) }, "MPI_Recv");
            let mut elements: ffi::MPI_Count = 0;
            // SAFETY: all pointers are valid for the call.
            ok(unsafe { ffi::MPI_Get_elements_x(&status, u64::equivalent_datatype().as_raw(), &mut elements) }, "MPI_Get_elements_x");
            assert_eq!(elements as usize, BLOCKS * datatype.1, "words received");
            assert_eq!(bytes(&status), ffi::MPI_UNDEFINED as usize, "MPI_Get_count of what no int can tell");
            verify(&memory, turn, datatype.1);
        }
        job.world.barrier();
    }
    broadcast(&job, (sender, receiver), &mut memory);
    put(&job, (sender, receiver), &tight, &mut memory);
    drop((tight, loose));
    job.finish();
}

/// Broadcasts from the sender to the receiver alone, in a communicator of these two.
fn broadcast(job: &Job, (sender, receiver): (i32, i32), memory: &mut [u64]) {
    let member = [sender, receiver].contains(&job.rank);
    if job.rank == sender {
        fill(memory, 3);
    } else {
        memory.fill(0);
    }
    let (at, color): (*mut c_void, _) = (memory.as_mut_ptr().cast(), if member { 0 } else { ffi::MPI_UNDEFINED });
    // SAFETY: the results have valid destinations; members have that many bytes, which are not borrowed.
    unsafe {
        let (mut pair, mut request) = (std::mem::zeroed(), no_request());
        ok(ffi::MPI_Comm_split(job.world.as_raw(), color, job.rank, &mut pair), "MPI_Comm_split");
        if member {
            ok(ffi::MPI_Ibcast_c(at, WORDS as ffi::MPI_Count * 8, byte(), 0, pair, &mut request), "MPI_Ibcast_c");
            ok(wait(&mut request).0, "MPI_Wait");
            ok(ffi::MPI_Comm_free(&mut pair), "MPI_Comm_free");
            verify(memory, 3, BLOCK);
        }
    }
    job.world.barrier();
}

fn put(job: &Job, (sender, receiver): (i32, i32), datatype: &Datatype, memory: &mut [u64]) {
    let size = if job.rank == receiver { WORDS * 8 } else { 0 };
    let mut base: *mut u64 = std::ptr::null_mut();
    // SAFETY: all results have valid destinations; between the fences only the sender uses the memory, and none of it
    // is borrowed when the window is freed.
    unsafe {
        let mut win = std::mem::zeroed();
        let (info, world) = (ffi::RSMPI_INFO_NULL, job.world.as_raw());
        let place: *mut *mut u64 = &mut base;
        ok(ffi::MPI_Win_allocate(size as ffi::MPI_Aint, 1, info, world, place.cast(), &mut win), "MPI_Win_allocate");
        ok(ffi::MPI_Win_fence(0, win), "MPI_Win_fence");
        if job.rank == sender {
            fill(memory, 2);
            let (from, count) = (memory.as_ptr().cast(), BLOCKS as ffi::MPI_Count);
            ok(ffi::MPI_Put_c(from, count, datatype.0, receiver, 0, count, datatype.0, win), "MPI_Put_c");
            // A count that MPICH's device cannot represent must be refused, not truncated.
            ok(ffi::MPI_Win_set_errhandler(win, ffi::RSMPI_ERRORS_RETURN), "MPI_Win_set_errhandler");
            let (many, byte) = (1 << 32 | 5, byte());
            let refused = ffi::MPI_Put_c(from, many, byte, receiver, 0, many, byte, win);
            assert_eq!(class(refused), ffi::MPI_ERR_COUNT as c_int, "{}", text(refused));
        }
        ok(ffi::MPI_Win_fence(0, win), "MPI_Win_fence");
        if job.rank == receiver {
            verify(std::slice::from_raw_parts(base, WORDS), 2, BLOCK);
        }
        ok(ffi::MPI_Win_free(&mut win), "MPI_Win_free");
    }
}

/// A type of that many words at the beginning of a block.
struct Datatype(ffi::MPI_Datatype, usize);

impl Datatype {
    fn new(words: usize) -> Datatype {
        let word = u64::equivalent_datatype().as_raw();
        // SAFETY: the types are valid for writes; the first is not used after it is freed.
        unsafe {
            let (mut tight, mut block) = (std::mem::zeroed(), std::mem::zeroed());
            ok(ffi::MPI_Type_contiguous(words as c_int, word, &mut tight), "MPI_Type_contiguous");
            ok(ffi::MPI_Type_create_resized(tight, 0, BLOCK as i64 * 8, &mut block), "MPI_Type_create_resized");
            ok(ffi::MPI_Type_commit(&mut block), "MPI_Type_commit");
            ok(ffi::MPI_Type_free(&mut tight), "MPI_Type_free");
            Datatype(block, words)
        }
    }
}

impl Drop for Datatype {
    fn drop(&mut self) {
        // SAFETY: the datatype is valid and not used afterwards.
        ok(unsafe { ffi::MPI_Type_free(&mut self.0) }, "MPI_Type_free");
    }
}

fn word(index: usize, turn: usize) -> u64 {
    (index as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15 + 2 * turn as u64)
}

fn fill(memory: &mut [u64], turn: usize) {
    memory.iter_mut().enumerate().for_each(|(index, place)| *place = word(index, turn));
}

/// Checks that only the first words of each block have arrived.
fn verify(memory: &[u64], turn: usize, words: usize) {
    for (number, block) in memory.chunks(BLOCK).enumerate() {
        let wrong = (0..words).find(|&i| block[i] != word(number * BLOCK + i, turn));
        let wrong = wrong.or_else(|| (words..BLOCK).find(|&i| block[i] != 0));
        if let Some(at) = wrong {
            fail(format!("turn {turn}: word {at} of block {number} is {:x}", block[at]));
        }
    }
}

/// Returns the number of bytes that are available without swapping.
fn available() -> u64 {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok()).map_or(0, |kib| kib << 10)
}

/// Returns the number of free bytes in a file system.
fn room(path: &str) -> u64 {
    let path = std::ffi::CString::new(path).expect("a path without zeros");
    // SAFETY: the path is a C string, and the result is read only if the call has written it.
    unsafe {
        let mut found: libc::statvfs = std::mem::zeroed();
        match libc::statvfs(path.as_ptr(), &mut found) {
            0 => found.f_bavail * found.f_frsize,
            _ => 0,
        }
    }
}
