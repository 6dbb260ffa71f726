//! Two jobs that know of each other by the name of a port only, which one leaves in a file: they connect again and again, exchange
//! messages of all sizes, merge, and part; in the end the one that has connected is gone before the other has read its last words.
//!
//! `strangers accept|connect FILE`; `... doomed`: the one that has connected is killed instead, when both know each other, and the
//! other leaves with a message that nobody will take.

use std::ffi::{CStr, CString};
use std::os::raw::c_char;
use std::time::{Duration, Instant};

use mpi::ffi;
use mpi::topology::{InterCommunicator, MergeOrder};
use mpi::traits::*;
use ntbring_mpi_tests::raw::{byte, no_request, ok};
use ntbring_mpi_tests::{arg, exchange, fail, filled, shifts, verify, Job};

const SIZES: [usize; 6] = [0, 8, 1000, 20_000, 300_000, 3_000_000];
const MEETINGS: i32 = 3;
const LIMIT: Duration = Duration::from_secs(30);

fn main() {
    let (part, file): (String, String) = (arg(1, String::new()), arg(2, String::new()));
    let job = Job::start("strangers");
    let accepts = part == "accept";
    let port = if accepts { open(&job, &file) } else { look_for(&file) };
    if arg(3, String::new()) == "doomed" {
        return doomed(job, &port, accepts);
    }
    for meeting in 0..MEETINGS {
        let other = meet(&job, &port, accepts);
        let all = other.merge(if accepts { MergeOrder::Low } else { MergeOrder::High });
        assert_eq!(all.size(), job.size + other.remote_size());
        for shift in shifts(all.size()) {
            SIZES.into_iter().for_each(|size| exchange(&all, shift, meeting, size));
        }
        let mut sum = 0;
        all.all_reduce_into(&all.rank(), &mut sum, mpi::collective::SystemOperation::sum());
        assert_eq!(sum, all.size() * (all.size() - 1) / 2);
        if meeting == MEETINGS - 1 {
            last_words(&job, &other, accepts);
        }
        drop(all);
        disconnect(other);
    }
    // What is left are two jobs that know nothing of each other.
    shifts(job.size).into_iter().for_each(|shift| exchange(&job.world, shift, 9, 100_000));
    job.finish();
}

fn doomed(job: Job, port: &CStr, accepts: bool) {
    let other = meet(&job, port, accepts);
    if !accepts {
        if job.rank == 0 {
            other.process_at_rank(0).send(&1_u8);
        }
        std::thread::sleep(Duration::from_millis(300));
        // SAFETY: takes no memory; nothing comes after it.
        unsafe { libc::kill(libc::getpid(), libc::SIGKILL) };
    }
    if job.rank == 0 {
        other.process_at_rank(0).receive::<u8>();
        let (payload, mut request) = (filled(0, 0, 0, 8 << 20).leak(), no_request());
        // SAFETY: so many bytes, which live as long as the process; the request is not used any more.
        unsafe {
            let (at, len, comm) = (payload.as_ptr().cast(), payload.len() as i32, other.as_raw());
            ok(ffi::MPI_Isend(at, len, byte(), 0, 0, comm, &mut request), "MPI_Isend");
            ok(ffi::MPI_Request_free(&mut request), "MPI_Request_free");
        }
    }
    std::mem::forget(other);
    job.finish();
}

fn open(job: &Job, file: &str) -> CString {
    let mut name = [0 as c_char; ffi::MPI_MAX_PORT_NAME as usize];
    if job.rank == 0 {
        // SAFETY: room for the longest name, which the call ends with a zero.
        let name = unsafe {
            ok(ffi::MPI_Open_port(ffi::RSMPI_INFO_NULL, name.as_mut_ptr()), "MPI_Open_port");
            CStr::from_ptr(name.as_ptr())
        };
        // Whoever sees it sees all of it.
        let draft = format!("{file}.draft");
        let written = std::fs::write(&draft, name.to_bytes()).and_then(|()| std::fs::rename(&draft, file));
        written.unwrap_or_else(|error| fail(format!("{file}: {error}")));
    }
    // SAFETY: written to its end by the call, or zeros.
    unsafe { CStr::from_ptr(name.as_ptr()) }.to_owned()
}

fn look_for(file: &str) -> CString {
    let start = Instant::now();
    loop {
        match std::fs::read(file) {
            Ok(name) => return CString::new(name).expect("a port's name has no zeros"),
            Err(error) if start.elapsed() > LIMIT => fail(format!("{file}: {error}")),
            Err(_) => std::thread::sleep(Duration::from_millis(20)),
        }
    }
}

fn meet(job: &Job, port: &CStr, accepts: bool) -> InterCommunicator {
    let (world, mut inter) = (job.world.as_raw(), no_comm());
    // SAFETY: a port's name, which matters at the root only, and a place for a communicator.
    unsafe {
        let info = ffi::RSMPI_INFO_NULL;
        match accepts {
            true => ok(ffi::MPI_Comm_accept(port.as_ptr(), info, 0, world, &mut inter), "MPI_Comm_accept"),
            false => ok(ffi::MPI_Comm_connect(port.as_ptr(), info, 0, world, &mut inter), "MPI_Comm_connect"),
        }
        InterCommunicator::from_raw(inter)
    }
}

fn no_comm() -> ffi::MPI_Comm {
    // SAFETY: the constant is initialized by the C side at load time and never written.
    unsafe { ffi::RSMPI_COMM_NULL }
}

fn disconnect(inter: InterCommunicator) {
    let mut comm = inter.as_raw();
    std::mem::forget(inter);
    // SAFETY: a communicator of ours that is not used any more.
    ok(unsafe { ffi::MPI_Comm_disconnect(&mut comm) }, "MPI_Comm_disconnect");
}

/// Small enough to need nobody's answer.
fn last_words(job: &Job, other: &InterCommunicator, accepts: bool) {
    const WORDS: usize = 500;
    if job.rank > 0 {
        return;
    }
    if accepts {
        std::thread::sleep(Duration::from_millis(300));
        let mut words = [0; WORDS];
        other.process_at_rank(0).receive_into(&mut words[..]);
        verify(&words, 1, 2, 3);
    } else {
        other.process_at_rank(0).send(&filled(1, 2, 3, WORDS)[..]);
    }
}
