//! Persistent collectives, started several times with other data: alone and all at once, by MPI_Start and
//! MPI_Startall.

use std::os::raw::{c_int, c_void};

use mpi::ffi;
use mpi::traits::*;
use ntbring_mpi_tests::raw::{self, no_request, ok};
use ntbring_mpi_tests::Job;

const STARTS: i32 = 4;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Bcast,
    Gather,
    Scatter,
    Allgather,
    Alltoall,
    Allreduce,
    AllreduceInPlace,
    Reduce,
    Scan,
    Exscan,
    ReduceScatterBlock,
    ReduceScatter,
    Gatherv,
    Scatterv,
    Allgatherv,
    Alltoallv,
}

use Kind::*;

const KINDS: [Kind; 16] = [
    Bcast,
    Gather,
    Scatter,
    Allgather,
    Alltoall,
    Allreduce,
    AllreduceInPlace,
    Reduce,
    Scan,
    Exscan,
    ReduceScatterBlock,
    ReduceScatter,
    Gatherv,
    Scatterv,
    Allgatherv,
    Alltoallv,
];

fn value(rank: i32, kind: Kind, at: usize, start: i32) -> i32 {
    rank * 1_000_003 + kind as i32 * 10_007 + at as i32 + start * 77
}

/// A persistent collective of `len` numbers a rank. Blocks of the vector forms lie in reverse order.
struct Collective {
    kind: Kind,
    root: i32,
    len: usize,
    out: Vec<i32>,
    into: Vec<i32>,
    counts: Vec<c_int>,
    places: Vec<c_int>,
    request: ffi::MPI_Request,
}

impl Collective {
    fn new(job: &Job, kind: Kind, root: i32, len: usize) -> Self {
        let (ranks, n) = (job.size as usize, len as c_int);
        let places = (0..job.size).rev().map(|block| block * n).collect();
        let (out, into) = (vec![-5; ranks * len], vec![-5; ranks * len]);
        let mut this = Self { kind, root, len, out, into, counts: vec![n; ranks], places, request: no_request() };
        this.init(job);
        this
    }

    fn init(&mut self, job: &Job) {
        let int = i32::equivalent_datatype().as_raw();
        let (out, into): (*const c_void, *mut c_void) = (self.out.as_ptr().cast(), self.into.as_mut_ptr().cast());
        let (n, root, comm) = (self.len as c_int, self.root, job.world.as_raw());
        let (counts, places, request) = (self.counts.as_ptr(), self.places.as_ptr(), &mut self.request);
        // SAFETY: all buffers have a block for each rank; they are on the heap, and live until the request is freed.
        let code = unsafe {
            let (sum, info) = (ffi::RSMPI_SUM, ffi::RSMPI_INFO_NULL);
            match self.kind {
                Bcast => ffi::MPI_Bcast_init(into, n, int, root, comm, info, request),
                Gather => ffi::MPI_Gather_init(out, n, int, into, n, int, root, comm, info, request),
                Scatter => ffi::MPI_Scatter_init(out, n, int, into, n, int, root, comm, info, request),
                Allgather => ffi::MPI_Allgather_init(out, n, int, into, n, int, comm, info, request),
                Alltoall => ffi::MPI_Alltoall_init(out, n, int, into, n, int, comm, info, request),
                Allreduce => ffi::MPI_Allreduce_init(out, into, n, int, sum, comm, info, request),
                AllreduceInPlace => ffi::MPI_Allreduce_init(raw::in_place(), into, n, int, sum, comm, info, request),
                Reduce => ffi::MPI_Reduce_init(out, into, n, int, sum, root, comm, info, request),
                Scan => ffi::MPI_Scan_init(out, into, n, int, sum, comm, info, request),
                Exscan => ffi::MPI_Exscan_init(out, into, n, int, sum, comm, info, request),
                ReduceScatterBlock => ffi::MPI_Reduce_scatter_block_init(out, into, n, int, sum, comm, info, request),
                ReduceScatter => ffi::MPI_Reduce_scatter_init(out, into, counts, int, sum, comm, info, request),
                Gatherv => ffi::MPI_Gatherv_init(out, n, int, into, counts, places, int, root, comm, info, request),
                Scatterv => ffi::MPI_Scatterv_init(out, counts, places, int, into, n, int, root, comm, info, request),
                Allgatherv => ffi::MPI_Allgatherv_init(out, n, int, into, counts, places, int, comm, info, request),
                Alltoallv => ffi::MPI_Alltoallv_init(out, counts, places, int, into, counts, places, int, comm, info, request),
            }
        };
        ok(code, "the init call");
    }

    /// Fills the buffers for a start.
    fn prepare(&mut self, job: &Job, start: i32) {
        let kind = self.kind;
        for (at, word) in self.out.iter_mut().enumerate() {
            *word = value(job.rank, kind, at, start);
        }
        self.into.fill(-7);
        if kind == AllreduceInPlace || (kind == Bcast && job.rank == self.root) {
            self.into.copy_from_slice(&self.out);
        }
    }

    /// Returns what has to be at a place of a block, or nothing if nothing is defined there.
    fn wanted(&self, job: &Job, block: usize, i: usize, start: i32) -> Option<i32> {
        let (kind, me, last) = (self.kind, job.rank, job.size - 1 - block as i32);
        let from = |rank: i32, block: i32| value(rank, kind, block as usize * self.len + i, start);
        let sum = |ranks: std::ops::Range<i32>, block: i32| Some(ranks.map(|rank| from(rank, block)).sum());
        match kind {
            Gather | Reduce | Gatherv if me != self.root => None,
            Allgather | Alltoall | Gather => Some(from(block as i32, if kind == Alltoall { me } else { 0 })),
            Gatherv | Allgatherv => Some(from(last, 0)),
            Alltoallv => Some(from(last, job.size - 1 - me)),
            _ if block > 0 => None,
            Bcast => Some(from(self.root, 0)),
            Scatter => Some(from(self.root, me)),
            Scatterv => Some(from(self.root, job.size - 1 - me)),
            Allreduce | AllreduceInPlace | Reduce => sum(0..job.size, 0),
            Scan => sum(0..me + 1, 0),
            Exscan if me == 0 => None,
            Exscan => sum(0..me, 0),
            ReduceScatterBlock | ReduceScatter => sum(0..job.size, me),
        }
    }

    fn verify(&self, job: &Job, start: i32) {
        for (at, got) in self.into.iter().enumerate() {
            let (block, i) = (at / self.len, at % self.len);
            if let Some(wanted) = self.wanted(job, block, i, start) {
                let (kind, len, root) = (self.kind, self.len, self.root);
                assert_eq!(*got, wanted, "{kind:?} of {len}, root {root}, start {start}: place {i} of block {block}");
            }
        }
    }
}

impl Drop for Collective {
    fn drop(&mut self) {
        // SAFETY: the request is valid and inactive.
        ok(unsafe { ffi::MPI_Request_free(&mut self.request) }, "MPI_Request_free");
    }
}

fn run(job: &Job, collectives: &mut [Collective]) {
    for start in 0..STARTS {
        collectives.iter_mut().for_each(|collective| collective.prepare(job, start));
        let mut requests: Vec<ffi::MPI_Request> = collectives.iter().map(|collective| collective.request).collect();
        let n = requests.len() as c_int;
        // SAFETY: the requests are inactive; their buffers are not borrowed until all have been waited for.
        unsafe {
            if start % 2 == 0 {
                ok(ffi::MPI_Startall(n, requests.as_mut_ptr()), "MPI_Startall");
            } else {
                requests.iter_mut().for_each(|request| ok(ffi::MPI_Start(request), "MPI_Start"));
            }
            for request in requests.iter_mut().rev() {
                ok(raw::wait(request).0, "MPI_Wait");
            }
        }
        collectives.iter().for_each(|collective| collective.verify(job, start));
    }
}

fn main() {
    let job = Job::start("persistent_collectives");
    for len in [1, 100, 3000, 20_000] {
        for root in [0, job.size - 1] {
            for kind in KINDS {
                run(&job, &mut [Collective::new(&job, kind, root, len)]);
            }
            let mut all: Vec<Collective> = KINDS.iter().map(|kind| Collective::new(&job, *kind, root, len)).collect();
            run(&job, &mut all);
        }
    }
    job.finish();
}
