//! Starting, ending and aborting a test job.

use std::fmt::Display;
use std::str::FromStr;
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::Duration;

use mpi::environment::Universe;
use mpi::ffi;
use mpi::topology::SimpleCommunicator;
use mpi::traits::*;
use mpi::Threading;

/// This process's rank in the world, for messages; -1 before it is known.
static RANK: AtomicI32 = AtomicI32::new(-1);

/// A running test program: MPI is initialized as long as this value lives.
pub struct Job {
    /// The communicator of all ranks.
    pub world: SimpleCommunicator,
    /// This process's rank in `world`.
    pub rank: i32,
    /// The number of ranks.
    pub size: i32,
    /// The MPI environment, which is finalized when dropped; so it is declared after `world`.
    pub universe: Universe,
    name: &'static str,
}

impl Job {
    /// Initializes MPI for a program with one thread. From now on a panic in any thread is a failure of the whole job.
    pub fn start(name: &'static str) -> Self {
        Self::start_threaded(name, Threading::Single)
    }

    /// Like [`Job::start`], with thread support `level`; less than that is a failure.
    pub fn start_threaded(name: &'static str, level: Threading) -> Self {
        std::panic::set_hook(Box::new(|info| {
            let payload = info.payload();
            let text = payload
                .downcast_ref::<String>()
                .map(String::as_str)
                .or_else(|| payload.downcast_ref::<&str>().copied())
                .unwrap_or("a panic without a text");
            match info.location() {
                Some(place) => fail(format!("{}:{}: {text}", place.file(), place.line())),
                None => fail(text),
            }
        }));
        let Some((universe, provided)) = mpi::initialize_with_threading(level) else {
            fail("MPI was initialized already");
        };
        let world = universe.world();
        let (rank, size) = (world.rank(), world.size());
        RANK.store(rank, Ordering::Relaxed);
        assert!(provided >= level, "MPI provides {provided:?} where {level:?} was asked for");
        Self { world, rank, size, universe, name }
    }

    /// Returns the rank `shift` places further round the ring of ranks.
    pub fn ahead(&self, shift: i32) -> i32 {
        (self.rank + shift).rem_euclid(self.size)
    }

    /// Ends the program with a failure (on rank 0 only, so that the text appears once) unless there are at least
    /// `ranks` ranks.
    pub fn needs_ranks(&self, ranks: i32) {
        if self.size < ranks {
            if self.rank == 0 {
                fail(format!("{} needs at least {ranks} ranks and has {}", self.name, self.size));
            }
            self.world.barrier();
        }
    }

    /// Prints `ok` on rank 0 and finalizes MPI. It sends no messages: programs whose statistics are read rely on that.
    pub fn finish(self) {
        if self.rank == 0 {
            println!("ok {}", self.name);
        }
    }
}

/// Prints `FAIL rank R: what` and ends the job. It never returns and never hangs, not even if MPI_Abort does.
pub fn fail(what: impl Display) -> ! {
    eprintln!("FAIL rank {}: {what}", RANK.load(Ordering::Relaxed));
    // A second way to end, in case MPI_Abort hangs: without MPI and exit handlers.
    std::thread::spawn(|| {
        std::thread::sleep(Duration::from_secs(3));
        // SAFETY: _exit takes no pointers and may be called from any thread at any time.
        unsafe { libc::_exit(1) }
    });
    if mpi::is_initialized() && !mpi::is_finalized() {
        // SAFETY: MPI is initialized and not finalized, so the world communicator is valid.
        unsafe { ffi::MPI_Abort(ffi::RSMPI_COMM_WORLD, 1) };
    }
    // SAFETY: as above.
    unsafe { libc::_exit(1) }
}

/// Returns the program's argument number `index` (from 1), or `default` if there are fewer.
pub fn arg<T: FromStr>(index: usize, default: T) -> T {
    match std::env::args().nth(index) {
        None => default,
        Some(text) => match text.parse() {
            Ok(value) => value,
            Err(_) => fail(format!("argument {index}: '{text}' cannot be used here")),
        },
    }
}
