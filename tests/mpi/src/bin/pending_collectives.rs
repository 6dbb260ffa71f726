//! Nonblocking collectives complete while each of their ranks is in another MPI call. Among them are duplications of
//! communicators, which agree on context ids that other calls request at the same time.

use std::os::raw::{c_int, c_void};
use std::time::Duration;

use mpi::ffi;
use mpi::topology::{Color, SimpleCommunicator};
use mpi::traits::*;
use ntbring_mpi_tests::raw::{byte, in_place, no_request, ok, status};
use ntbring_mpi_tests::{fail, window, Job};

/// Delay of the rank that begins a barrier last: by then all others wait.
const LATE: Duration = Duration::from_millis(3);
/// Upper limit of the number of times that a rank polls before it duplicates its MPI_COMM_SELF; the number depends on
/// the round.
const POLLS: i32 = 24;

fn int() -> ffi::MPI_Datatype {
    i32::equivalent_datatype().as_raw()
}

fn null() -> ffi::MPI_Comm {
    // SAFETY: the constant is initialized by the C side at load time and never written.
    unsafe { ffi::RSMPI_COMM_NULL }
}

/// A pending duplication: its handle, which MPI writes on completion, and its request.
struct Coming {
    comm: Box<ffi::MPI_Comm>,
    request: ffi::MPI_Request,
}

/// Begins to duplicate a communicator.
fn idup(of: ffi::MPI_Comm) -> Coming {
    let mut coming = Coming { comm: Box::new(null()), request: no_request() };
    // SAFETY: the communicator is valid; the destinations of the results live until the request is complete.
    ok(unsafe { ffi::MPI_Comm_idup(of, &mut *coming.comm, &mut coming.request) }, "MPI_Comm_idup");
    coming
}

impl Coming {
    fn wait(&mut self) {
        wait(&mut self.request);
    }

    fn free(mut self) {
        free(&mut self.comm);
    }
}

fn free(comm: &mut ffi::MPI_Comm) {
    // SAFETY: the communicator is valid, and no operation is pending.
    ok(unsafe { ffi::MPI_Comm_free(comm) }, "MPI_Comm_free");
}

fn wait(request: &mut ffi::MPI_Request) {
    // SAFETY: the request is valid or null; the memory that it writes to is not borrowed.
    ok(unsafe { ffi::MPI_Wait(request, &mut status()) }, "MPI_Wait");
}

/// Returns true if a request is complete or null.
fn test(request: &mut ffi::MPI_Request) -> bool {
    let mut flag = 0;
    // SAFETY: as in `wait`.
    ok(unsafe { ffi::MPI_Test(request, &mut flag, &mut status()) }, "MPI_Test");
    flag != 0
}

/// Makes progress by probing that many times for a message that no rank sends.
fn poll(comm: &SimpleCommunicator, times: i32) {
    for _ in 0..times {
        assert!(comm.any_process().immediate_probe_with_tag(999).is_none(), "a message that was not sent");
    }
}

/// Returns a communicator of the ranks of the same parity in reverse order, so that the first rank of one communicator
/// is the last of another.
fn parity(job: &Job) -> SimpleCommunicator {
    let half = job.world.split_by_color_with_key(Color::with_value(job.rank % 2), -job.rank);
    half.unwrap_or_else(|| fail("a rank with a colour got no communicator"))
}

/// Returns an intercommunicator of the even and the odd ranks.
fn between(job: &Job, half: &SimpleCommunicator) -> ffi::MPI_Comm {
    let mut inter = null();
    // The last rank of each parity is the first of its half.
    let last_of = |parity: i32| (job.size - 1) - (job.size - 1 - parity) % 2;
    let other = last_of(1 - job.rank % 2);
    // SAFETY: communicators and ranks are valid, and the last argument is valid for writes.
    ok(unsafe { ffi::MPI_Intercomm_create(half.as_raw(), 0, job.world.as_raw(), other, 7, &mut inter) }, "MPI_Intercomm_create");
    inter
}

/// Duplicates several communicators and runs other collectives at once; ranks wait for them in different orders.
/// Messages in each new communicator must stay separate from those of the others.
fn duplications(job: &Job, base: &SimpleCommunicator, half: &SimpleCommunicator, inter: ffi::MPI_Comm, round: i32) {
    let (me, n) = (job.rank, job.size);
    let all = base.as_raw();
    // A context id that only some ranks use makes the free ids of ranks differ.
    let alone = (round % 2 == me % 2).then(|| SimpleCommunicator::self_comm().duplicate());
    let root = round % n;
    let (mut word, one, mut sum) = (if me == root { round } else { -1 }, me + 1, -1);
    let (mut gathered, mut exchanged) = (vec![-1; n as usize], vec![0; n as usize]);
    let mut calls = [no_request(); 5];
    let [bcast, allreduce, allgather, barrier, alltoall] = &mut calls;
    let mut coming = vec![idup(all)];
    // SAFETY: the buffers are large enough and do not move until all requests are complete.
    unsafe {
        ok(ffi::MPI_Ibcast((&raw mut word).cast(), 1, int(), root, all, bcast), "MPI_Ibcast");
        coming.push(idup(all));
        let op = ffi::RSMPI_SUM;
        ok(ffi::MPI_Iallreduce((&raw const one).cast(), (&raw mut sum).cast(), 1, int(), op, all, allreduce), "MPI_Iallreduce");
        coming.push(idup(half.as_raw()));
        let into = gathered.as_mut_ptr().cast();
        ok(ffi::MPI_Iallgather((&raw const one).cast(), 1, int(), into, 1, int(), all, allgather), "MPI_Iallgather");
        ok(ffi::MPI_Ibarrier(all, barrier), "MPI_Ibarrier");
        coming.push(idup(inter));
        coming.push(idup(all));
        let into: *mut c_void = exchanged.as_mut_ptr().cast();
        ok(ffi::MPI_Ialltoall(in_place(), 0, int(), into, 1, int(), all, alltoall), "MPI_Ialltoall");
    }
    let mut pending: Vec<&mut ffi::MPI_Request> = coming.iter_mut().map(|c| &mut c.request).chain(&mut calls).collect();
    let first = (me * 5 + round) as usize % pending.len();
    pending.rotate_left(first);
    match round % 3 {
        0 => pending.into_iter().for_each(wait),
        _ => {
            wait(pending.swap_remove(0));
            while !pending.is_empty() {
                pending.retain_mut(|request| !test(request));
            }
        }
    }
    assert_eq!((word, sum), (round, n * (n + 1) / 2), "broadcast and sum of round {round}");
    assert!(gathered.iter().zip(1..).all(|(a, b)| *a == b), "gathered in round {round}: {gathered:?}");
    let duplicates = [0, 1, 4].map(|i| *coming[i].comm);
    apart(job, &duplicates);
    for duplicate in coming.into_iter().rev() {
        duplicate.free();
    }
    drop(alone);
}

/// Sends messages with the same tag and receives them in the reverse order of communicators.
fn apart(job: &Job, comms: &[ffi::MPI_Comm]) {
    let (to, from) = (job.ahead(1), job.ahead(-1));
    let out: Vec<i32> = (0..comms.len() as i32).map(|i| job.rank * 10 + i).collect();
    let mut sends = vec![no_request(); comms.len()];
    for ((comm, number), send) in comms.iter().zip(&out).zip(&mut sends) {
        // SAFETY: the number does not move until the request is complete.
        ok(unsafe { ffi::MPI_Isend(std::ptr::from_ref(number).cast(), 1, int(), to, 0, *comm, send) }, "MPI_Isend");
    }
    for (i, comm) in comms.iter().enumerate().rev() {
        let mut number = -1;
        // SAFETY: the buffer has room for one number.
        ok(unsafe { ffi::MPI_Recv((&raw mut number).cast(), 1, int(), from, 0, *comm, &mut status()) }, "MPI_Recv");
        assert_eq!(number, from * 10 + i as i32, "what came in duplicate {i}");
    }
    sends.iter_mut().for_each(wait);
}

/// Each rank duplicates MPI_COMM_SELF, blocking or nonblocking, which must not depend on other ranks. Meanwhile, a
/// duplication that the last rank has not begun holds the first part of the context ids, and another one holds the rest
/// for some time.
fn alone(job: &Job, base: &SimpleCommunicator, rest: Option<&SimpleCommunicator>, round: i32) {
    let last = job.size - 1;
    if job.rank == last {
        base.process_at_rank(0).receive_vec_with_tag::<u8>(5);
    }
    let mut coming = vec![idup(base.as_raw())];
    coming.extend(rest.map(|rest| idup(rest.as_raw())));
    poll(base, round % POLLS);
    let me = SimpleCommunicator::self_comm();
    match round % 2 {
        0 => drop(me.duplicate()),
        _ => coming.push(idup(me.as_raw())),
    }
    if job.rank == 0 {
        base.process_at_rank(last).send_with_tag(&[0_u8; 0], 5);
    }
    for mut duplicate in coming {
        duplicate.wait();
        duplicate.free();
    }
}

/// The call in which a rank waits for another one.
#[derive(Clone, Copy)]
enum Place {
    /// Waits for the other rank's MPI_Win_post.
    Access,
    /// Waits for the other rank's MPI_Win_complete.
    Exposure,
    /// Waits for the other rank's MPI_Win_unlock.
    Lock,
    /// Waits for a partition of a partitioned message.
    Part,
}

/// The operation at which the two ranks of a round meet.
struct Meeting {
    waiter: i32,
    awaited: i32,
    win: ffi::MPI_Win,
    /// The group of the other rank, at each of the two.
    other: ffi::MPI_Group,
    /// A partitioned message to the waiting rank: the request at each of the two.
    part: ffi::MPI_Request,
    memory: Box<[u8; 8]>,
}

impl Meeting {
    fn new(job: &Job, win: ffi::MPI_Win, round: i32) -> Meeting {
        // In the second step of a barrier a rank sends to the rank at distance two.
        let (waiter, awaited) = (round, (round + 2.min(job.size - 1)) % job.size);
        // SAFETY: the constants are initialized by the C side at load time and never written.
        let (other, info) = unsafe { (ffi::RSMPI_GROUP_NULL, ffi::RSMPI_INFO_NULL) };
        let mut meeting = Meeting { waiter, awaited, win, other, part: no_request(), memory: Box::new([0; 8]) };
        let (world, at) = (job.world.as_raw(), meeting.memory.as_mut_ptr().cast());
        // SAFETY: all handles are valid; the memory does not move until the request is freed.
        unsafe {
            let mut all = other;
            ok(ffi::MPI_Comm_group(world, &mut all), "MPI_Comm_group");
            let partner = if job.rank == waiter { awaited } else { waiter };
            ok(ffi::MPI_Group_incl(all, 1, &partner, &mut meeting.other), "MPI_Group_incl");
            ok(ffi::MPI_Group_free(&mut all), "MPI_Group_free");
            if job.rank == waiter {
                ok(ffi::MPI_Precv_init(at, 1, 8, byte(), awaited, round, world, info, &mut meeting.part), "MPI_Precv_init");
            } else if job.rank == awaited {
                ok(ffi::MPI_Psend_init(at, 1, 8, byte(), waiter, round, world, info, &mut meeting.part), "MPI_Psend_init");
            }
        }
        meeting
    }

    fn lock(&self) {
        // SAFETY: the window is valid and not locked at that rank.
        ok(unsafe { ffi::MPI_Win_lock(ffi::MPI_LOCK_EXCLUSIVE as c_int, self.awaited, 0, self.win) }, "MPI_Win_lock");
    }

    fn unlock(&self) {
        // SAFETY: the window is valid and locked at that rank.
        ok(unsafe { ffi::MPI_Win_unlock(self.awaited, self.win) }, "MPI_Win_unlock");
    }

    fn access(&self) {
        // SAFETY: the other rank exposes the window.
        unsafe {
            ok(ffi::MPI_Win_start(self.other, 0, self.win), "MPI_Win_start");
            ok(ffi::MPI_Win_complete(self.win), "MPI_Win_complete");
        }
    }

    fn expose(&self) {
        // SAFETY: the other rank accesses the window.
        unsafe {
            ok(ffi::MPI_Win_post(self.other, 0, self.win), "MPI_Win_post");
            ok(ffi::MPI_Win_wait(self.win), "MPI_Win_wait");
        }
    }

    /// One rank waits for another one, which first waits for a barrier. All ranks have begun the barrier, which can
    /// complete only if the first rank makes progress. The rank before that one begins the barrier last.
    fn hold(&mut self, job: &Job, place: Place) {
        let (waits, is_awaited) = (job.rank == self.waiter, job.rank == self.awaited);
        match place {
            Place::Lock if is_awaited => self.lock(),
            // SAFETY: the request is valid and inactive.
            Place::Part if waits || is_awaited => ok(unsafe { ffi::MPI_Start(&mut self.part) }, "MPI_Start"),
            _ => {}
        }
        job.world.barrier();
        if job.rank == (self.waiter + job.size - 1) % job.size {
            std::thread::sleep(LATE);
        }
        let mut barrier = no_request();
        // SAFETY: the communicator is valid, and `barrier` is valid for writes.
        ok(unsafe { ffi::MPI_Ibarrier(job.world.as_raw(), &mut barrier) }, "MPI_Ibarrier");
        match place {
            _ if !waits => {}
            Place::Access => self.access(),
            Place::Exposure => self.expose(),
            Place::Lock => {
                self.lock();
                self.unlock();
            }
            Place::Part => {
                let mut flag = 0;
                while flag == 0 {
                    // SAFETY: the request is valid and active, and has one partition.
                    ok(unsafe { ffi::MPI_Parrived(self.part, 0, &mut flag) }, "MPI_Parrived");
                }
                wait(&mut self.part);
            }
        }
        wait(&mut barrier);
        match place {
            _ if !is_awaited => {}
            Place::Access => self.expose(),
            Place::Exposure => self.access(),
            Place::Lock => self.unlock(),
            Place::Part => {
                // SAFETY: the request is valid and active, and has one partition.
                ok(unsafe { ffi::MPI_Pready(0, self.part) }, "MPI_Pready");
                wait(&mut self.part);
            }
        }
    }

    fn end(mut self) {
        // SAFETY: group and request are valid, and no operation is pending.
        unsafe {
            ok(ffi::MPI_Group_free(&mut self.other), "MPI_Group_free");
            if self.part != no_request() {
                ok(ffi::MPI_Request_free(&mut self.part), "MPI_Request_free");
            }
        }
    }
}

fn run(job: &Job) {
    let (base, half) = (job.world.duplicate(), parity(job));
    let mut inter = between(job, &half);
    for round in 0..90 {
        duplications(job, &base, &half, inter, round);
    }
    free(&mut inter);
    let colour = if job.rank == job.size - 1 { Color::undefined() } else { Color::with_value(0) };
    let rest = job.world.split_by_color(colour);
    for round in 0..2 * POLLS {
        alone(job, &base, rest.as_ref(), round);
    }
    let (code, mut win, _) = window::allocate(&job.world, 64);
    ok(code, "MPI_Win_allocate");
    for round in 0..job.size.min(4) {
        let mut meeting = Meeting::new(job, win, round);
        for place in [Place::Access, Place::Exposure, Place::Lock, Place::Part] {
            meeting.hold(job, place);
        }
        meeting.end();
    }
    // SAFETY: the window is valid, and no operation is pending.
    ok(unsafe { ffi::MPI_Win_free(&mut win) }, "MPI_Win_free");
}

fn main() {
    let job = Job::start("pending_collectives");
    job.needs_ranks(2);
    run(&job);
    job.finish();
}
