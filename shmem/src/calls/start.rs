//! Initialisation and finalisation. The library may be initialised several times, and again after its end.

use crate::collectives;
use crate::fail;
use crate::reach;
use crate::start::{join, leave};
use crate::world;
use std::ffi::{c_int, c_void};
use std::ptr;
use std::sync::{Mutex, MutexGuard, Once, PoisonError};

use ntbring_shmem_api::constants::*;

/// State of the library in this process.
struct Started {
    /// Number of initialisations that have not been finalised.
    count: u32,
    /// Number of jobs that this process has joined.
    jobs: u32,
    /// Thread level; -1 before the first initialisation.
    level: c_int,
    /// The process that has initialised the library: children by `fork` are no PEs.
    process: u32,
}

static STARTED: Mutex<Started> = Mutex::new(Started { count: 0, jobs: 0, level: -1, process: 0 });

fn started() -> MutexGuard<'static, Started> {
    STARTED.lock().unwrap_or_else(PoisonError::into_inner)
}

pub unsafe fn init(name: &'static str) {
    begin(name, SHMEM_THREAD_SINGLE);
}

/// The deprecated name; the number of PEs is that of the launcher.
pub unsafe fn start_pes(name: &'static str, _npes: c_int) {
    if started().count == 0 {
        begin(name, SHMEM_THREAD_SINGLE);
    }
}

pub unsafe fn init_thread(name: &'static str, requested: c_int, provided: *mut c_int) -> c_int {
    if !(SHMEM_THREAD_SINGLE..=SHMEM_THREAD_MULTIPLE).contains(&requested) {
        fail::call(name, format_args!("requested: {requested} is none of the constants SHMEM_THREAD_..."));
    }
    let level = begin(name, requested);
    if !provided.is_null() {
        // SAFETY: the program guarantees writable memory.
        unsafe { provided.write(level) };
    }
    0
}

/// Initialises the library, unless it is. Returns the thread level. All levels are the same inside.
fn begin(name: &'static str, level: c_int) -> c_int {
    let mut started = started();
    started.count += 1;
    started.level = started.level.max(level);
    if started.count == 1 {
        started.jobs += 1;
        started.process = std::process::id();
        join(name, started.jobs);
        static HOOK: Once = Once::new();
        HOOK.call_once(|| {
            // SAFETY: the function is valid for the rest of the process.
            unsafe { on_exit(at_exit, ptr::null_mut()) };
        });
    }
    started.level
}

pub unsafe fn finalize(name: &'static str) {
    if started().count == 0 {
        fail::call(name, "the library is not initialised, or was finalised");
    }
    if started().process != std::process::id() {
        fail::call(name, "this process is a child of a PE, and no PE itself");
    }
    let world = world::world(name);
    reach::quiet_all(&world.pes);
    collectives::synchronise(&world.pes, world.teams.world());
    let mut started = started();
    started.count -= 1;
    if started.count == 0 {
        leave();
    }
}

extern "C" {
    fn on_exit(function: unsafe extern "C" fn(c_int, *mut c_void), argument: *mut c_void) -> c_int;
}

/// Finalises the library if the program has not done so before its end. After a failure other PEs may never get there:
/// the launcher ends them.
unsafe extern "C" fn at_exit(status: c_int, _: *mut c_void) {
    let is_running = {
        let mut started = started();
        let is_running = started.count > 0 && started.process == std::process::id();
        started.count = started.count.min(1);
        is_running
    };
    if is_running && status == 0 {
        // SAFETY: the library is initialised.
        unsafe { finalize("exit") };
    }
}

pub unsafe fn query_thread(name: &'static str, provided: *mut c_int) {
    world::world(name);
    // SAFETY: the program guarantees writable memory.
    unsafe { provided.write(started().level) };
}

pub unsafe fn query_initialized(_name: &'static str, initialized: *mut c_int) {
    // SAFETY: the program guarantees writable memory.
    unsafe { initialized.write((started().count > 0).into()) };
}

/// Ends all PEs with an exit status.
pub unsafe fn global_exit(_name: &'static str, status: c_int) {
    // SAFETY: writes out all streams of the C library.
    unsafe { libc::fflush(ptr::null_mut()) };
    fail::leave(status)
}
