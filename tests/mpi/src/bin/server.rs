//! A job that serves others, one after another, some of which end in an orderly way and some do not: `server serve FILE
//! CLIENTS`, and then, CLIENTS times, `server client FILE parts|leaves|dies|drops`; also `vanishes`, which does not
//! count, and, after the server has ended, `late`.
//!
//! `parts`: disconnects. `leaves`: calls MPI_Finalize instead, after some last messages. `dies`: is killed while the
//! server waits for a message. `drops`: is killed while the server sends to it. The server gets an error, continues,
//! and keeps no resources of the clients. `vanishes`: is killed while it connects and the server is busy. `late`: gets
//! an error because the server has ended.

use std::time::{Duration, Instant};

use mpi::ffi;
use mpi::topology::InterCommunicator;
use mpi::traits::*;
use ntbring_mpi_tests::ports::{disconnect, look_for, meet, open, try_to_meet};
use ntbring_mpi_tests::{arg, exchange, fail, filled, raw, verify, Job};

/// The value of MPIX_ERR_PROC_FAILED.
const PROC_FAILED: i32 = 101;
const WORDS: usize = 500;
const LARGE: usize = 8 << 20;
const FATES: [&str; 4] = ["parts", "leaves", "dies", "drops"];

fn main() {
    let (part, file): (String, String) = (arg(1, String::new()), arg(2, String::new()));
    let job = Job::start("server");
    match part.as_str() {
        "serve" => serve(job, &file, arg(3, 1)),
        _ => client(job, &file, &arg(3, String::new())),
    }
}

fn serve(job: Job, file: &str, clients: usize) {
    let port = open(&job, file);
    let mut kept = Vec::new();
    for client in 1..=clients {
        let other = meet(&job, &port, true);
        raw::errors_return(&other);
        let mut fate = [0u8];
        if job.rank == 0 {
            other.process_at_rank(0).receive_into(&mut fate);
            attend(&other, FATES[usize::from(fate[0])]);
        }
        job.world.process_at_rank(0).broadcast_into(&mut fate);
        match FATES[usize::from(fate[0])] {
            "parts" => disconnect(other),
            // The client does not exist any more, so the communicator cannot be disconnected.
            _ => std::mem::forget(other),
        }
        // It takes seconds to be sure, so not after each client.
        if client % 2 == 0 || client == clients {
            job.world.barrier();
            kept.push(settled(&job));
            job.world.barrier();
        }
    }
    // Not every client needed all lanes; but resources kept for each client would add up.
    let (first, last) = kept.split_at(kept.len() / 2);
    assert!(last.iter().min() <= first.iter().max(), "descriptors and mappings after every second client: {kept:?}");
    [1, 100_000].into_iter().for_each(|size| exchange(&job.world, 1, 9, size));
    job.finish();
}

/// Communicates with the client according to its mode.
fn attend(other: &InterCommunicator, fate: &str) {
    let (mut words, large) = (vec![0u8; WORDS], filled(0, 0, 1, LARGE));
    let client = other.process_at_rank(0);
    let receive = |words: &mut Vec<u8>| {
        let (into, mut status) = (words.as_mut_ptr().cast(), raw::status());
        // SAFETY: the buffer has the given size.
        unsafe { ffi::MPI_Recv(into, WORDS as i32, raw::byte(), 0, 0, other.as_raw(), &mut status) }
    };
    match fate {
        "parts" => client.send(&large[..]),
        "leaves" => {
            std::thread::sleep(Duration::from_millis(200));
            raw::ok(receive(&mut words), "MPI_Recv of last words");
            verify(&words, 1, 2, 3);
            expect(receive(&mut words), "MPI_Finalize");
        }
        "dies" => expect(receive(&mut words), "has died"),
        _ => {
            // SAFETY: the buffer has the given size.
            expect(unsafe { ffi::MPI_Send(large.as_ptr().cast(), LARGE as i32, raw::byte(), 0, 0, other.as_raw()) }, "has died");
            expect(receive(&mut words), "has died");
        }
    }
}

fn expect(code: i32, why: &str) {
    assert_eq!(raw::class(code), PROC_FAILED, "{}", raw::text(code));
    let text = raw::text(code);
    assert!(text.contains("A process has failed") && text.contains(why), "{text}");
}

/// Returns the number of descriptors and mappings of the process, once it does not change any more.
fn settled(job: &Job) -> usize {
    let count = || {
        let descriptors = std::fs::read_dir("/proc/self/fd").expect("a folder of descriptors").count();
        let maps = std::fs::read_to_string("/proc/self/maps").expect("a list of mappings");
        descriptors + maps.lines().filter(|line| line.contains("(deleted)")).count()
    };
    let (start, mut since, mut now) = (Instant::now(), Instant::now(), count());
    while since.elapsed() < Duration::from_millis(2500) && start.elapsed() < Duration::from_secs(10) {
        for _ in 0..1000 {
            if job.world.any_process().immediate_probe().is_some() {
                fail("a message without a sender");
            }
        }
        if count() != now {
            (since, now) = (Instant::now(), count());
        }
    }
    now
}

fn client(job: Job, file: &str, fate: &str) {
    let port = look_for(file);
    match fate {
        "vanishes" => die_in(Duration::from_millis(400)),
        "late" => {
            raw::errors_return(&job.world);
            let code = try_to_meet(&job, &port, false).1;
            assert_ne!(code, ffi::MPI_SUCCESS as i32, "connected to no job");
            let text = raw::text(code);
            // Of a job on other hosts it cannot be known whether it has ended.
            assert!(["has died", "cannot reach"].iter().any(|said| text.contains(said)), "{text}");
            return job.finish();
        }
        _ => {}
    }
    let number = FATES.into_iter().position(|known| known == fate).unwrap_or_default();
    let other = meet(&job, &port, false);
    let server = other.process_at_rank(0);
    server.send(&(number as u8));
    match fate {
        "parts" => {
            let mut large = vec![0; LARGE];
            server.receive_into(&mut large[..]);
            verify(&large, 0, 0, 1);
            disconnect(other);
        }
        "leaves" => {
            server.send(&filled(1, 2, 3, WORDS)[..]);
            std::mem::forget(other);
        }
        _ => {
            die_in(Duration::from_millis(300));
            std::thread::sleep(Duration::from_secs(30));
            fail("it lives");
        }
    }
    job.finish();
}

fn die_in(life: Duration) {
    std::thread::spawn(move || {
        std::thread::sleep(life);
        // SAFETY: the call has no memory-safety preconditions.
        unsafe { libc::kill(libc::getpid(), libc::SIGKILL) };
    });
}
