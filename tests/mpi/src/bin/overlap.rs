//! Large messages between ranks that are not in MPI: once both sides know of each other's calls, the whole payload
//! arrives without further MPI calls. Every rank sends to the one at a fixed distance and only reads its memory: all
//! the time, as if it computed, if there are more cores than ranks; otherwise once a millisecond, since the
//! async-progress thread needs a core.
//!
//! With `bound` each rank has a core of its own, as if mpiexec had bound it.

use std::time::{Duration, Instant};

use mpi::collective::SystemOperation;
use mpi::traits::*;
use ntbring_mpi_tests::counters::Session;
use ntbring_mpi_tests::{arg, fail, filled, verify, Job};

const LIMIT: Duration = Duration::from_secs(40);
/// Distance in bytes of the words that are read.
const STRIDE: usize = 4096;
const PAYLOAD: i32 = 1;
const SENT: i32 = 2;

fn main() {
    let (size, shift): (usize, i32) = (arg(1, 16 << 20), arg(2, 1));
    let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get());
    if arg(3, String::new()) == "bound" {
        bind(cores);
    }
    let session = Session::new();
    let job = Job::start("overlap");
    if std::env::var("NTBRING_OVERLAP").is_ok_and(|on| on == "auto") && cores < job.size as usize {
        // Ranks that share cores have no async-progress threads.
        return job.finish();
    }
    let steps = [session.counter("overlaps")];
    let before = session.read(&steps);
    let (to, from) = (job.ahead(shift), job.ahead(-shift));
    for _ in 0..3 {
        let out = filled(job.rank, to, PAYLOAD, size);
        let expected = filled(from, job.rank, PAYLOAD, size);
        let mut into = vec![0; size];
        let at = into.as_ptr();
        let has_come = |offset: usize| {
            // SAFETY: the address is within `into`, and any bytes are a valid value; the read is volatile, since MPI
            // writes to it.
            let word = unsafe { at.add(offset).cast::<u64>().read_volatile() };
            word.to_ne_bytes() == expected[offset..][..8]
        };
        mpi::request::scope(|scope| {
            let (ahead, behind) = (job.world.process_at_rank(to), job.world.process_at_rank(from));
            let receiving = behind.immediate_receive_into_with_tag(scope, &mut into[..], PAYLOAD);
            let sending = ahead.immediate_send_with_tag(scope, &out[..], PAYLOAD);
            // A receiver of this message has matched the payload with its receive.
            let told = ahead.immediate_send_with_tag(scope, &0u8, SENT);
            behind.receive_with_tag::<u8>(SENT);
            told.wait();
            let start = Instant::now();
            while !(0..size - 8).step_by(STRIDE).chain([size - 8]).all(has_come) {
                if start.elapsed() > LIMIT {
                    let come = (0..size - 8).step_by(STRIDE).filter(|&offset| has_come(offset)).count() * STRIDE;
                    fail(format!("about {come} of {size} bytes have come by themselves"));
                }
                if cores > job.size as usize {
                    std::hint::spin_loop();
                } else {
                    std::thread::sleep(Duration::from_millis(1));
                }
            }
            // A rank that has its whole payload is still needed by others, so all ranks stay out of MPI for this time.
            std::thread::sleep(Duration::from_millis(100));
            receiving.wait();
            sending.wait();
        });
        verify(&into, from, job.rank, PAYLOAD);
        job.world.barrier();
    }
    // Where the kernel copies, one side of each pair has no steps to make.
    let (mine, mut all) = (session.read(&steps) - before, 0);
    job.world.all_reduce_into(&mine, &mut all, SystemOperation::sum());
    if all == 0 {
        fail("it has come, but no progress thread has counted anything");
    }
    job.finish();
}

/// Binds this process to one core, a different one for each rank as far as there are enough.
fn bind(cores: usize) {
    let rank: usize = std::env::var("PMI_RANK").map_or(0, |rank| rank.parse().unwrap());
    // SAFETY: an all-zero set is valid and has that size, and 0 means this process.
    let done = unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(rank % cores, &mut set);
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &set)
    };
    assert_eq!(done, 0, "{}", std::io::Error::last_os_error());
}
