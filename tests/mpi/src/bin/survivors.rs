//! Some ranks die at a random moment, and the others continue: `survivors pairs|collectives|calls|vectors|alltoalls
//! ROUNDS SEED VICTIM...`, under `mpiexec -disable-auto-cleanup`.
//!
//! `pairs`: every rank exchanges ROUNDS messages of mixed sizes with every other, each pair at its own pace.
//! `collectives`: all call ROUNDS collectives on the world, even after failures; then the survivors make a communicator
//! of their own and call as many there, which must all succeed. `calls`: the survivors make every call that waits for
//! another rank, with the (first) victim, some of them before it dies; all of them must end with an error. `vectors`:
//! of these only the collectives whose failure all ranks detect, including ranks that share a host. `alltoalls`: all
//! call up to ROUNDS alltoalls; after a failed one a survivor may reuse its buffers. Errors are counted and must be
//! those of failed processes; received data must be correct. Each survivor prints, before MPI_Finalize,
//! {"rank":1,"rounds":[..one per rank..],"failed":{"2":"rank 2 on ..."}}, or {"rank":1,"good":17,"bad":3,"alone":20},
//! or {"rank":1,"good":17}, or {"rank":1,"calls":20}; and after it {"over":1}.

use std::collections::BTreeMap;
use std::os::raw::c_void;
use std::time::Duration;

use mpi::ffi;
use mpi::traits::*;
use ntbring_mpi_tests::{arg, fail, fill, filled, raw, verify, Job, Rng};

/// The value of MPIX_ERR_PROC_FAILED.
const PROC_FAILED: i32 = 101;
/// The value of MPIX_ERR_PROC_FAILED_PENDING, for several requests that are waited for together.
const PENDING: i32 = 102;
/// Longest life of a victim in ms, if the others take as long.
const LIFE: u64 = 400;

/// Returns true if the code is an error, which must be that of a failed process.
fn failed(code: i32) -> bool {
    if code != ffi::MPI_SUCCESS as i32 && ![PROC_FAILED, PENDING].contains(&raw::class(code)) {
        fail(format!("an error of class {}: {}", raw::class(code), raw::text(code)));
    }
    code != ffi::MPI_SUCCESS as i32
}

fn size(a: i32, b: i32, round: i32) -> usize {
    let pair = (a.min(b) as u64) << 32 | a.max(b) as u64;
    Rng::new(pair << 20 ^ round as u64).size(20)
}

/// The exchange with one rank.
struct Partner {
    rank: i32,
    round: i32,
    sent: Vec<u8>,
    received: Vec<u8>,
    open: u8,
    failure: Option<String>,
}

impl Partner {
    /// Begins the next round, if there is one, and returns its two requests.
    fn begin(&mut self, job: &Job, rounds: i32) -> Option<[ffi::MPI_Request; 2]> {
        if self.round == rounds || self.failure.is_some() {
            return None;
        }
        let (len, world) = (size(job.rank, self.rank, self.round), job.world.as_raw());
        self.sent.resize(len, 0);
        fill(&mut self.sent, job.rank, self.rank, self.round);
        self.received = vec![0; len];
        self.open = 2;
        let mut requests = [raw::no_request(); 2];
        let (count, tag) = (len as i32, self.round);
        // SAFETY: the buffers are not accessed before both requests are complete.
        let codes = unsafe {
            [
                ffi::MPI_Irecv(self.received.as_mut_ptr().cast(), count, raw::byte(), self.rank, tag, world, &mut requests[0]),
                ffi::MPI_Isend(self.sent.as_ptr().cast(), count, raw::byte(), self.rank, tag, world, &mut requests[1]),
            ]
        };
        codes.iter().for_each(|code| raw::ok(*code, "MPI_Irecv or MPI_Isend"));
        Some(requests)
    }
}

fn pairs(job: &Job, rounds: i32) {
    let others = (0..job.size).filter(|rank| *rank != job.rank);
    let new = |rank| Partner { rank, round: 0, sent: vec![], received: vec![], open: 0, failure: None };
    let mut partners: Vec<Partner> = others.map(new).collect();
    let mut requests: Vec<_> = partners.iter_mut().flat_map(|p| p.begin(job, rounds).unwrap_or([raw::no_request(); 2])).collect();
    loop {
        let (mut index, mut status) = (0, raw::status());
        // SAFETY: the requests are valid, and the partners keep their buffers allocated.
        let code = unsafe { ffi::MPI_Waitany(requests.len() as i32, requests.as_mut_ptr(), &mut index, &mut status) };
        if index < 0 {
            raw::ok(code, "MPI_Waitany");
            break;
        }
        let partner = &mut partners[index as usize / 2];
        if failed(code) {
            partner.failure.get_or_insert(raw::text(code));
        } else if index % 2 == 0 {
            verify(&partner.received, partner.rank, job.rank, partner.round);
        }
        partner.open -= 1;
        if partner.open == 0 {
            partner.round += i32::from(partner.failure.is_none());
            if let Some(next) = partner.begin(job, rounds) {
                requests[index as usize / 2 * 2..][..2].copy_from_slice(&next);
            }
        }
    }
    let mut done = vec![rounds; job.size as usize];
    partners.iter().for_each(|p| done[p.rank as usize] = p.round);
    let failures: BTreeMap<_, _> = partners.iter().filter_map(|p| Some((p.rank.to_string(), p.failure.clone()?))).collect();
    println!("{}", serde_json::json!({"rank": job.rank, "rounds": done, "failed": failures}));
}

/// Calls collectives and returns the number of those that have succeeded.
fn collectives(comm: ffi::MPI_Comm, rounds: i32) -> i32 {
    let (mut rank, mut size) = (0, 0);
    // SAFETY: the pointers are valid for writes of one int each; the communicator is valid.
    unsafe {
        raw::ok(ffi::MPI_Comm_rank(comm, &mut rank), "MPI_Comm_rank");
        raw::ok(ffi::MPI_Comm_size(comm, &mut size), "MPI_Comm_size");
    }
    let mut good = 0;
    for round in 0..rounds {
        let len = Rng::new(round as u64).size(14).max(1);
        let (root, count) = (round % size, len as i32);
        let code = match round % 4 {
            // SAFETY: all buffers have the sizes given in the call, here and below.
            0 => unsafe { ffi::MPI_Barrier(comm) },
            1 => {
                let mut bytes = if rank == root { filled(root, root, round, len) } else { vec![0; len] };
                // SAFETY: as above.
                let code = unsafe { ffi::MPI_Bcast(bytes.as_mut_ptr().cast(), count, raw::byte(), root, comm) };
                if code == ffi::MPI_SUCCESS as i32 {
                    verify(&bytes, root, root, round);
                }
                code
            }
            2 => {
                let (mine, mut all) = (vec![1u8; len], vec![0u8; len]);
                // SAFETY: the constant is initialized by the C side at load time and never written.
                let op = unsafe { ffi::RSMPI_SUM };
                // SAFETY: as above.
                let code = unsafe { ffi::MPI_Allreduce(mine.as_ptr().cast(), all.as_mut_ptr().cast(), count, raw::byte(), op, comm) };
                assert!(failed(code) || all.iter().all(|&sum| i32::from(sum) == size), "a sum of {size} ones is {all:?}");
                code
            }
            _ => {
                let mine: Vec<u8> = (0..size).flat_map(|to| filled(rank, to, round, len)).collect();
                let mut all = vec![0; mine.len()];
                let (from, to) = (mine.as_ptr().cast(), all.as_mut_ptr().cast());
                // SAFETY: as above.
                let code = unsafe { ffi::MPI_Alltoall(from, count, raw::byte(), to, count, raw::byte(), comm) };
                for (from, part) in all.chunks(len).enumerate().filter(|_| code == ffi::MPI_SUCCESS as i32) {
                    verify(part, from as i32, rank, round);
                }
                code
            }
        };
        good += i32::from(!failed(code));
    }
    good
}

/// Calls alltoalls until one fails, after which its buffers must not be written any more. Returns the number of those
/// that have succeeded.
fn alltoalls(job: &Job, rounds: i32) -> i32 {
    // Blocks of this size go through shared buffers from the first call on.
    const LEN: usize = 200_000;
    const MINE: u8 = 0xa5;
    let (size, world) = (job.size as usize, job.world.as_raw());
    let mut all = vec![0; LEN * size];
    for round in 0..rounds {
        let mine: Vec<u8> = (0..job.size).flat_map(|to| filled(job.rank, to, round % 100, LEN)).collect();
        let (from, to, count) = (mine.as_ptr().cast(), all.as_mut_ptr().cast(), LEN as i32);
        // SAFETY: both buffers have the sizes given in the call.
        if failed(unsafe { ffi::MPI_Alltoall(from, count, raw::byte(), to, count, raw::byte(), world) }) {
            all.fill(MINE);
            std::thread::sleep(Duration::from_millis(30));
            assert!(all.iter().all(|&byte| std::hint::black_box(byte) == MINE), "another rank has written here, round {round}");
            return round;
        }
        all.chunks(LEN).zip(0..).for_each(|(part, from)| verify(part, from, job.rank, round % 100));
    }
    rounds
}

/// Returns a communicator of the survivors.
fn alone(job: &Job, victims: &[i32]) -> ffi::MPI_Comm {
    // SAFETY: all handles are valid, and all results have valid destinations.
    unsafe {
        let (mut all, mut living, mut comm) = (ffi::RSMPI_GROUP_NULL, ffi::RSMPI_GROUP_NULL, ffi::RSMPI_COMM_NULL);
        raw::ok(ffi::MPI_Comm_group(job.world.as_raw(), &mut all), "MPI_Comm_group");
        raw::ok(ffi::MPI_Group_excl(all, victims.len() as i32, victims.as_ptr(), &mut living), "MPI_Group_excl");
        raw::ok(ffi::MPI_Comm_create_group(job.world.as_raw(), living, 7, &mut comm), "MPI_Comm_create_group");
        comm
    }
}

/// Makes the collective calls that must not succeed at any survivor.
///
/// # Safety
/// There must be room for 200 000 bytes each.
unsafe fn vectors(job: &Job, victim: i32, from: *mut c_void, to: *mut c_void, check: &mut dyn FnMut(&'static str, i32)) {
    let (world, byte) = (job.world.as_raw(), raw::byte());
    // SAFETY: the caller guarantees the sizes of both buffers.
    unsafe {
        let max = ffi::RSMPI_MAX;
        check("MPI_Bcast", ffi::MPI_Bcast(to, 8, byte, victim, world));
        check("MPI_Bcast of segments", ffi::MPI_Bcast(to, 200_000, byte, victim, world));
        check("MPI_Allreduce", ffi::MPI_Allreduce(from, to, 1000, byte, max, world));
        check("MPI_Allreduce of parts", ffi::MPI_Allreduce(from, to, 200_000, byte, max, world));
        for root in (0..job.size).filter(|&root| root != victim) {
            // The contributions of others may have gone to a survivor.
            let code = ffi::MPI_Reduce(from, to, 200_000, byte, max, root, world);
            if root == job.rank {
                check("MPI_Reduce", code);
            }
        }
        check("MPI_Allgather", ffi::MPI_Allgather(from, 1000, byte, to, 1000, byte, world));
        check("MPI_Alltoall", ffi::MPI_Alltoall(from, 1000, byte, to, 1000, byte, world));
        check("MPI_Alltoall of much", ffi::MPI_Alltoall(from, 10_000, byte, to, 10_000, byte, world));
        check("MPI_Alltoall of little", ffi::MPI_Alltoall(from, 8, byte, to, 8, byte, world));
    }
}

/// Counts calls that fail as required.
fn count(names: &mut Vec<&'static str>, name: &'static str, code: i32) {
    match failed(code) {
        true => names.push(name),
        false => fail(format!("{name} has succeeded with a rank that is dead")),
    }
}

/// Makes all calls that wait for a rank that dies meanwhile, or is dead. Returns the number of calls.
fn calls(job: &Job, victim: i32) -> usize {
    const LARGE: usize = 1 << 22;
    let (world, byte, large) = (job.world.as_raw(), raw::byte(), LARGE as i32);
    let (mut out, mut into) = (vec![1u8; LARGE], vec![0u8; LARGE]);
    let (from, to) = (out.as_mut_ptr().cast(), into.as_mut_ptr().cast());
    let mut begun = vec![raw::no_request(); 4];
    let window = window(job);
    let any = ffi::MPI_ANY_SOURCE;
    // SAFETY: buffers have the sizes given in the calls, and buffers and handles outlive all requests.
    unsafe {
        raw::ok(ffi::MPI_Irecv(to, 8, byte, victim, 1, world, &mut begun[0]), "MPI_Irecv");
        raw::ok(ffi::MPI_Irecv(to, 8, byte, any, 2, world, &mut begun[1]), "MPI_Irecv");
        raw::ok(ffi::MPI_Issend(from, 8, byte, victim, 3, world, &mut begun[2]), "MPI_Issend");
        raw::ok(ffi::MPI_Isend(from, large, byte, victim, 4, world, &mut begun[3]), "MPI_Isend");
    }
    let mut names = Vec::new();
    let mut check = |name, code| count(&mut names, name, code);
    let names_begun = ["a receive", "a receive from any", "a synchronous send", "a large send"];
    for (name, mut request) in names_begun.into_iter().zip(begun) {
        // SAFETY: as above.
        check(name, unsafe { raw::wait(&mut request).0 });
    }
    // SAFETY: as above.
    unsafe {
        let (mut status, mut request, mut message) = (raw::status(), raw::no_request(), ffi::RSMPI_MESSAGE_NULL);
        check("MPI_Recv", ffi::MPI_Recv(to, 8, byte, victim, 1, world, &mut status));
        check("MPI_Recv of any", ffi::MPI_Recv(to, 8, byte, any, 2, world, &mut status));
        check("MPI_Ssend", ffi::MPI_Ssend(from, 8, byte, victim, 3, world));
        check("MPI_Send", ffi::MPI_Send(from, large, byte, victim, 4, world));
        check("MPI_Sendrecv", ffi::MPI_Sendrecv(from, 8, byte, victim, 5, to, 8, byte, victim, 5, world, &mut status));
        check("MPI_Probe", ffi::MPI_Probe(victim, 6, world, &mut status));
        check("MPI_Mprobe", ffi::MPI_Mprobe(victim, 6, world, &mut message, &mut status));
        let mut flag = 0;
        check("MPI_Iprobe", ffi::MPI_Iprobe(victim, 6, world, &mut flag, &mut status));
        raw::ok(ffi::MPI_Recv_init(to, 8, byte, victim, 7, world, &mut request), "MPI_Recv_init");
        raw::ok(ffi::MPI_Start(&mut request), "MPI_Start");
        check("a persistent receive", raw::wait(&mut request).0);
        raw::ok(ffi::MPI_Request_free(&mut request), "MPI_Request_free");
        raw::ok(ffi::MPI_Irecv(to, 8, byte, victim, 8, world, &mut request), "MPI_Irecv");
        let mut code = ffi::MPI_SUCCESS as i32;
        while flag == 0 && code == ffi::MPI_SUCCESS as i32 {
            code = ffi::MPI_Test(&mut request, &mut flag, &mut status);
        }
        check("MPI_Test", code);
        raw::ok(ffi::MPI_Precv_init(to, 2, 8, byte, victim, 9, world, ffi::RSMPI_INFO_NULL, &mut request), "MPI_Precv_init");
        raw::ok(ffi::MPI_Start(&mut request), "MPI_Start");
        check("a partitioned receive", raw::wait(&mut request).0);
        vectors(job, victim, from, to, &mut check);
        check("MPI_Barrier", ffi::MPI_Barrier(world));
        raw::ok(ffi::MPI_Ibarrier(world, &mut request), "MPI_Ibarrier");
        check("MPI_Ibarrier", raw::wait(&mut request).0);
        let mut comm = ffi::RSMPI_COMM_NULL;
        check("MPI_Comm_dup", ffi::MPI_Comm_dup(world, &mut comm));
        check("MPI_Win_fence", ffi::MPI_Win_fence(0, window));
    }
    names.len()
}

/// Returns a window of all ranks, with errors returned as codes. It is never freed, since that is collective.
fn window(job: &Job) -> ffi::MPI_Win {
    let (mut base, mut window) = (std::ptr::null_mut::<u8>(), std::mem::MaybeUninit::uninit());
    // SAFETY: the handles are valid for writes; all ranks make the collective calls.
    unsafe {
        let info = ffi::RSMPI_INFO_NULL;
        let base = std::ptr::from_mut(&mut base).cast();
        raw::ok(ffi::MPI_Win_allocate(4096, 1, info, job.world.as_raw(), base, window.as_mut_ptr()), "MPI_Win_allocate");
        let window = window.assume_init();
        raw::ok(ffi::MPI_Win_set_errhandler(window, ffi::RSMPI_ERRORS_RETURN), "MPI_Win_set_errhandler");
        raw::ok(ffi::MPI_Win_fence(0, window), "MPI_Win_fence");
        window
    }
}

fn main() {
    let job = Job::start("survivors");
    let (mode, rounds, seed) = (arg(1, String::from("pairs")), arg(2, 100), arg(3, 1));
    let victims: Vec<i32> = (4..std::env::args().count()).map(|i| arg(i, 0)).collect();
    raw::errors_return(&job.world);
    job.world.barrier();
    let is_victim = victims.contains(&job.rank);
    if is_victim {
        let life = Duration::from_millis(Rng::new(seed ^ (job.rank as u64) << 32).below(LIFE));
        std::thread::spawn(move || {
            std::thread::sleep(life);
            // SAFETY: the call has no memory-safety preconditions.
            unsafe { libc::kill(libc::getpid(), libc::SIGKILL) };
        });
    }
    match mode.as_str() {
        "pairs" => pairs(&job, rounds),
        "calls" if is_victim => _ = window(&job),
        "calls" => println!("{}", serde_json::json!({"rank": job.rank, "calls": calls(&job, victims[0])})),
        "alltoalls" if is_victim => _ = alltoalls(&job, rounds),
        "alltoalls" => println!("{}", serde_json::json!({"rank": job.rank, "good": alltoalls(&job, rounds)})),
        "vectors" if is_victim => {}
        "vectors" => {
            let (mut out, mut into, mut names) = (vec![1u8; 200_000], vec![0u8; 200_000], Vec::new());
            let (from, to) = (out.as_mut_ptr().cast(), into.as_mut_ptr().cast());
            // SAFETY: both buffers have the required size.
            unsafe { vectors(&job, victims[0], from, to, &mut |name, code| count(&mut names, name, code)) };
            println!("{}", serde_json::json!({"rank": job.rank, "calls": names.len()}));
        }
        _ => {
            let good = collectives(job.world.as_raw(), rounds);
            if !is_victim {
                let again = collectives(alone(&job, &victims), rounds);
                println!("{}", serde_json::json!({"rank": job.rank, "good": good, "bad": rounds - good, "alone": again}));
            }
        }
    }
    if is_victim {
        std::thread::sleep(Duration::from_secs(30));
        fail("a victim lives");
    }
    let rank = job.rank;
    drop(job);
    println!("{}", serde_json::json!({"over": rank}));
}
