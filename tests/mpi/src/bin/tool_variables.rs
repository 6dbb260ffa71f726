//! The variables of ntbring in MPI_T: settings as control variables, counters as performance variables, readable while
//! another thread communicates and after MPI_Finalize.

use std::ffi::CString;
use std::os::raw::c_int;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, Ordering};

use mpi::ffi::*;
use mpi::Threading;
use ntbring_mpi_tests::counters::Session;
use ntbring_mpi_tests::raw::ok;
use ntbring_mpi_tests::{exchange, Job};

const MESSAGES: u64 = 10;
const SIZE: usize = 100;

/// Returns the value of a control variable.
fn setting(name: &str) -> String {
    let (name, mut index, mut count) = (CString::new(name).unwrap(), 0, 0);
    let mut text = vec![0_u8; 4096];
    // SAFETY: all pointers are valid for writes; the value has `count` characters, less than the size of its buffer.
    unsafe {
        ok(MPI_T_cvar_get_index(name.as_ptr(), &mut index), "MPI_T_cvar_get_index");
        let mut handle = std::mem::zeroed();
        ok(MPI_T_cvar_handle_alloc(index, null_mut(), &mut handle, &mut count), "MPI_T_cvar_handle_alloc");
        assert!((1..text.len() as c_int).contains(&count), "{name:?} has {count} characters");
        ok(MPI_T_cvar_read(handle, text.as_mut_ptr().cast()), "MPI_T_cvar_read");
        ok(MPI_T_cvar_handle_free(&mut handle), "MPI_T_cvar_handle_free");
    }
    text.truncate(count as usize - 1);
    String::from_utf8(text).unwrap()
}

/// Returns the numbers of control and performance variables in the category.
fn in_category(name: &str) -> (c_int, c_int) {
    let (name, mut index) = (CString::new(name).unwrap(), 0);
    let (mut lens, mut settings, mut counters, mut others) = ([0, 0], 0, 0, 0);
    // SAFETY: the text buffers have length 0, so no text is written; all other pointers are valid.
    unsafe {
        ok(MPI_T_category_get_index(name.as_ptr(), &mut index), "MPI_T_category_get_index");
        let [name, text] = &mut lens;
        let call = MPI_T_category_get_info(index, null_mut(), name, null_mut(), text, &mut settings, &mut counters, &mut others);
        ok(call, "MPI_T_category_get_info");
    }
    (settings, counters)
}

fn main() {
    let session = Session::new();
    let job = Job::start_threaded("tool_variables", Threading::Multiple);
    job.needs_ranks(2);

    assert_eq!(setting("NTBRING_CHUNK"), "4K");
    assert_eq!(setting("NTBRING_WINDOW"), "auto");
    let (settings, counters) = in_category("NTBRING");
    assert!(settings >= 15 && counters >= 20, "{settings} settings and {counters} counters");

    let names = |session: &Session, of: &str| ["direct", "relayed"].map(|to| session.counter(&format!("{of}_{to}")));
    let (msgs, bytes) = (names(&session, "msgs"), names(&session, "bytes"));
    let received = [session.counter("msgs_received")];
    let before = (session.read(&msgs), session.read(&bytes), session.read(&received));
    let over = AtomicBool::new(false);
    std::thread::scope(|threads| {
        threads.spawn(|| {
            // Another session, as another tool would open it.
            let session = Session::new();
            let counter = [session.counter("msgs_received")];
            let mut last = 0;
            while !over.load(Ordering::Relaxed) {
                let now = session.read(&counter);
                assert!(now >= last, "a counter went from {last} to {now}");
                last = now;
            }
        });
        // The rank at half the distance round the ring is on another host.
        for message in 0..MESSAGES {
            exchange(&job.world, job.size / 2, message as i32, SIZE);
        }
        over.store(true, Ordering::Relaxed);
    });
    let after = (session.read(&msgs), session.read(&bytes), session.read(&received));
    assert!(after.0 >= before.0 + MESSAGES, "{before:?}, then {after:?}");
    assert!(after.1 >= before.1 + MESSAGES * SIZE as u64, "{before:?}, then {after:?}");
    assert!(after.2 >= before.2 + MESSAGES, "{before:?}, then {after:?}");

    let rank = job.rank;
    job.finish();
    let last = session.read(&msgs);
    assert!(last >= after.0, "{after:?}, and {last} after MPI_Finalize on rank {rank}");
    // A tool that starts when all others have ended.
    drop(session);
    let session = Session::new();
    assert_eq!(session.read(&names(&session, "msgs")), last);
    assert_eq!(setting("NTBRING_CHUNK"), "4K");
}
