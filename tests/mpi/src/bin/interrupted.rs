//! A program with a timer and a signal handler of its own, which may interrupt every system call: nothing is lost, and
//! the handler is called in the thread that calls MPI.

use std::mem::zeroed;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};

use mpi::traits::*;
use ntbring_mpi_tests::{arg, exchange, shifts, Job, Rng};

const EVERY_US: i64 = 1000;

static TICKS: AtomicU32 = AtomicU32::new(0);
static ELSEWHERE: AtomicU32 = AtomicU32::new(0);
static MAIN: AtomicI32 = AtomicI32::new(0);

extern "C" fn tick(_signal: i32) {
    TICKS.fetch_add(1, Ordering::Relaxed);
    // SAFETY: gettid has no preconditions and may be called in a signal handler.
    if unsafe { libc::gettid() } != MAIN.load(Ordering::Relaxed) {
        ELSEWHERE.fetch_add(1, Ordering::Relaxed);
    }
}

fn start_timer() {
    // SAFETY: the structures are initialized, and the handler is async-signal-safe.
    unsafe {
        MAIN.store(libc::gettid(), Ordering::Relaxed);
        let mut action: libc::sigaction = zeroed();
        action.sa_sigaction = tick as extern "C" fn(i32) as usize;
        // Without SA_RESTART, so that system calls are interrupted.
        assert_eq!(libc::sigaction(libc::SIGALRM, &action, null_mut()), 0);
        let every = libc::timeval { tv_sec: 0, tv_usec: EVERY_US };
        let timer = libc::itimerval { it_interval: every, it_value: every };
        assert_eq!(libc::setitimer(libc::ITIMER_REAL, &timer, null_mut()), 0);
    }
}

fn main() {
    // Before MPI_Init, so that joining the ring is interrupted, too.
    start_timer();
    let job = Job::start("interrupted");
    let rounds = arg(1, 60);
    let mut rng = Rng::new(5);
    let distances = shifts(job.size);
    for round in 0..rounds {
        let shift = distances[rng.below(distances.len() as u64) as usize];
        exchange(&job.world, shift, round % 7, rng.size(21));
        if round % 10 == 0 {
            // All ranks but one wait long enough to sleep.
            if job.rank == round % job.size {
                let start = std::time::Instant::now();
                while start.elapsed().as_millis() < 30 {
                    std::hint::spin_loop();
                }
            }
            job.world.barrier();
        }
    }
    assert!(TICKS.load(Ordering::Relaxed) > 0, "the timer has never expired");
    assert_eq!(ELSEWHERE.load(Ordering::Relaxed), 0, "signals were handled by threads that are not the application's");
    job.finish();
}
