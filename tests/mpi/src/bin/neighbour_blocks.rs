//! Neighbourhood alltoalls where several edges join the same two processes: small periodic grids, and graphs with
//! several edges between two ranks and from a rank to itself; blocking, nonblocking and persistent.

use std::os::raw::c_int;

use mpi::ffi;
use mpi::traits::*;
use ntbring_mpi_tests::raw::{self, no_request, ok};
use ntbring_mpi_tests::Job;

/// A communicator, and for each block of this rank which block of which rank it gets; none from MPI_PROC_NULL.
struct Topology {
    name: &'static str,
    comm: ffi::MPI_Comm,
    wanted: Vec<Option<(i32, usize)>>,
}

impl Topology {
    fn grid(job: &Job, name: &'static str, dims: &[(c_int, c_int)]) -> Self {
        let (sizes, periods): (Vec<c_int>, Vec<c_int>) = dims.iter().copied().unzip();
        let mut wanted = Vec::new();
        // SAFETY: all arrays have an element for each dimension, and all results valid destinations.
        let comm = unsafe {
            let mut comm = std::mem::zeroed();
            let (world, n) = (job.world.as_raw(), dims.len() as c_int);
            ok(ffi::MPI_Cart_create(world, n, sizes.as_ptr(), periods.as_ptr(), 0, &mut comm), "MPI_Cart_create");
            for dim in 0..dims.len() {
                let (mut below, mut above) = (-1, -1);
                ok(ffi::MPI_Cart_shift(comm, dim as c_int, 1, &mut below, &mut above), "MPI_Cart_shift");
                // What the rank below has sent upwards arrives from below, and the other way round.
                for (from, block) in [(below, 2 * dim + 1), (above, 2 * dim)] {
                    wanted.push((from != ffi::MPI_PROC_NULL).then_some((from, block)));
                }
            }
            comm
        };
        Self { name, comm, wanted }
    }

    /// Three edges to the next rank and two to itself: the k-th edge to a rank is its k-th edge from it.
    fn graph(job: &Job) -> Self {
        let (me, next, last) = (job.rank, job.ahead(1), job.ahead(-1));
        let (to, from) = ([next, me, next, me, next], [me, last, last, me, last]);
        // SAFETY: the arrays have as many elements as the counts say, and the result has a valid destination.
        let comm = unsafe {
            let mut comm = std::mem::zeroed();
            let (info, none) = (ffi::RSMPI_INFO_NULL, ffi::RSMPI_UNWEIGHTED());
            let code =
                ffi::MPI_Dist_graph_create_adjacent(job.world.as_raw(), 5, from.as_ptr(), none, 5, to.as_ptr(), none, info, 0, &mut comm);
            ok(code, "MPI_Dist_graph_create_adjacent");
            comm
        };
        let mut wanted = vec![Some((me, 1)), Some((last, 0)), Some((last, 2)), Some((me, 3)), Some((last, 4))];
        if job.size == 1 {
            // All edges join the same two.
            wanted = (0..5).map(|block| Some((me, block))).collect();
        }
        Self { name: "graph", comm, wanted }
    }
}

impl Drop for Topology {
    fn drop(&mut self) {
        // SAFETY: the communicator is valid, and nothing is pending on it.
        ok(unsafe { ffi::MPI_Comm_free(&mut self.comm) }, "MPI_Comm_free");
    }
}

const CALLS: [&str; 9] =
    ["alltoall", "ialltoall", "alltoall_init", "alltoallv", "ialltoallv", "alltoallv_init", "alltoallw", "ialltoallw", "alltoallw_init"];

fn run(job: &Job, topology: &Topology, call: usize, len: usize) {
    let (blocks, n, int) = (topology.wanted.len(), len as c_int, i32::equivalent_datatype().as_raw());
    let value = |rank: i32, block: usize| rank * 1000 + block as i32;
    let out: Vec<i32> = (0..blocks * len).map(|at| value(job.rank, at / len)).collect();
    let mut into = vec![-1; blocks * len];
    let (counts, types) = (vec![n; blocks], vec![int; blocks]);
    let places: Vec<c_int> = (0..blocks).map(|block| (block * len) as c_int).collect();
    let bytes: Vec<ffi::MPI_Aint> = places.iter().map(|place| ffi::MPI_Aint::from(*place) * 4).collect();
    let (a, b, comm, mut request) = (out.as_ptr().cast(), into.as_mut_ptr().cast(), topology.comm, no_request());
    let (c, p, d, t) = (counts.as_ptr(), places.as_ptr(), bytes.as_ptr(), types.as_ptr());
    // SAFETY: the buffers have a block for each neighbour, and live until the request is over.
    unsafe {
        let (r, info) = (&mut request, ffi::RSMPI_INFO_NULL);
        let code = match call {
            0 => ffi::MPI_Neighbor_alltoall(a, n, int, b, n, int, comm),
            1 => ffi::MPI_Ineighbor_alltoall(a, n, int, b, n, int, comm, r),
            2 => ffi::MPI_Neighbor_alltoall_init(a, n, int, b, n, int, comm, info, r),
            3 => ffi::MPI_Neighbor_alltoallv(a, c, p, int, b, c, p, int, comm),
            4 => ffi::MPI_Ineighbor_alltoallv(a, c, p, int, b, c, p, int, comm, r),
            5 => ffi::MPI_Neighbor_alltoallv_init(a, c, p, int, b, c, p, int, comm, info, r),
            6 => ffi::MPI_Neighbor_alltoallw(a, c, d, t, b, c, d, t, comm),
            7 => ffi::MPI_Ineighbor_alltoallw(a, c, d, t, b, c, d, t, comm, r),
            _ => ffi::MPI_Neighbor_alltoallw_init(a, c, d, t, b, c, d, t, comm, info, r),
        };
        ok(code, CALLS[call]);
        if call % 3 == 2 {
            ok(ffi::MPI_Start(&mut request), "MPI_Start");
        }
        ok(raw::wait(&mut request).0, "MPI_Wait");
        if call % 3 == 2 {
            ok(ffi::MPI_Request_free(&mut request), "MPI_Request_free");
        }
    }
    for (block, wanted) in topology.wanted.iter().enumerate() {
        let wanted = wanted.map_or(-1, |(rank, block)| value(rank, block));
        for got in &into[block * len..(block + 1) * len] {
            assert_eq!(*got, wanted, "{} of {len} on {}: block {block}", CALLS[call], topology.name);
        }
    }
}

fn main() {
    let job = Job::start("neighbour_blocks");
    let n = job.size;
    let mut topologies = vec![
        Topology::grid(&job, "a ring", &[(n, 1)]),
        Topology::grid(&job, "a line of rings of one", &[(n, 0), (1, 1), (1, 1)]),
        Topology::grid(&job, "a ring beside rings of one", &[(1, 1), (n, 1), (1, 0)]),
        Topology::graph(&job),
    ];
    if n % 2 == 0 {
        topologies.push(Topology::grid(&job, "rings of two", &[(2, 1), (n / 2, 1)]));
    }
    for topology in &topologies {
        for len in [1, 1000, 30_000] {
            for call in 0..CALLS.len() {
                run(&job, topology, call, len);
            }
        }
    }
    drop(topologies);
    job.finish();
}
