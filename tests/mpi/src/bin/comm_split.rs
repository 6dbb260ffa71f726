//! Communicators made by splitting, duplicating and from groups, traffic in them at the same time, and
//! intercommunicators.

use mpi::collective::SystemOperation;
use mpi::ffi;
use mpi::topology::{Color, Group, InterCommunicator, MergeOrder, SimpleCommunicator};
use mpi::traits::*;
use ntbring_mpi_tests::{exchange, fail, filled, raw, verify, Job};
use std::ffi::CString;

/// Exchanges messages within one communicator.
fn use_it(comm: &SimpleCommunicator, tag: i32) {
    for size in [0, 10, 3000, 100_000] {
        exchange(comm, 1, tag, size);
        exchange(comm, comm.size() / 2, tag, size);
    }
    let mut sum = 0;
    comm.all_reduce_into(&comm.rank(), &mut sum, SystemOperation::sum());
    assert_eq!(sum, comm.size() * (comm.size() - 1) / 2, "sum of the ranks of a communicator");
}

fn split(job: &Job) {
    // By parity, in the order opposite to the world's.
    let half = job.world.split_by_color_with_key(Color::with_value(job.rank % 2), -job.rank);
    let Some(half) = half else { fail("a rank with a colour got no communicator") };
    let members = (job.size + 1 - job.rank % 2) / 2;
    assert_eq!((half.size(), half.rank()), (members, members - 1 - job.rank / 2), "size and rank after a split in opposite order");
    use_it(&half, 1);
    // Some ranks are not members.
    let colour = if job.rank == 0 { Color::undefined() } else { Color::with_value(3) };
    match job.world.split_by_color(colour) {
        None => assert_eq!(job.rank, 0, "only rank 0 gave no colour"),
        Some(rest) => {
            assert_eq!((rest.size(), rest.rank()), (job.size - 1, job.rank - 1), "size and rank without rank 0");
            use_it(&rest, 1);
        }
    }
    // From a group: the first half of the world.
    let first = job.world.group().include(&(0..(job.size + 1) / 2).collect::<Vec<_>>());
    if let Some(comm) = job.world.split_by_subgroup_collective(&first) {
        use_it(&comm, 2);
    }
}

/// Uses the same tags and partners in three communicators at once: each message stays in its own communicator.
fn apart(job: &Job) {
    let comms = [job.world.duplicate(), job.world.duplicate(), job.world.duplicate()];
    let (to, from) = (job.ahead(1), job.ahead(-1));
    let out: Vec<Vec<u8>> = (0..3).map(|number| filled(job.rank, to, number, 2000)).collect();
    mpi::request::scope(|scope| {
        let sending: Vec<_> =
            comms.iter().zip(&out).map(|(comm, buf)| comm.process_at_rank(to).immediate_send_with_tag(scope, &buf[..], 4)).collect();
        for (number, comm) in comms.iter().enumerate().rev() {
            let mut into = vec![0; 2000];
            let status = comm.any_process().receive_into_with_tag(&mut into[..], 4);
            assert_eq!(status.source_rank(), from, "the sender in communicator {number}");
            verify(&into, from, job.rank, number as i32);
        }
        sending.into_iter().for_each(|request| request.wait_without_status());
    });
}

/// Makes many communicators one after the other, so that context ids must be reused.
fn many(job: &Job) {
    for round in 0..60 {
        let comm = job.world.split_by_color_with_key(Color::with_value((job.rank + round) % 2), job.rank).map(|half| half.duplicate());
        if let (Some(comm), 0) = (comm, round % 20) {
            exchange(&comm, 1, round, 100);
        }
    }
}

/// Uses an intercommunicator of the even and the odd ranks.
fn between(job: &Job) {
    let Some(half) = job.world.split_by_color(Color::with_value(job.rank % 2)) else { fail("a rank with a colour got no communicator") };
    // SAFETY: reading the constant is safe: the C side initializes it at load time. The call overwrites the handle.
    let mut inter = unsafe { ffi::RSMPI_COMM_NULL };
    // SAFETY: the communicators are valid; the leaders are rank 0 of each half, which are ranks 0 and 1 of the world.
    let code = unsafe { ffi::MPI_Intercomm_create(half.as_raw(), 0, job.world.as_raw(), 1 - job.rank % 2, 11, &mut inter) };
    raw::ok(code, "MPI_Intercomm_create");
    // SAFETY: the communicator is new, and this is its only owner.
    let Some(inter) = (unsafe { InterCommunicator::try_from_raw(inter) }) else { fail("MPI_Intercomm_create made no intercommunicator") };
    let world_rank = |remote: i32| 2 * remote + 1 - job.rank % 2;
    assert_eq!((inter.size(), inter.remote_size()), (half.size(), job.size - half.size()), "local and remote size");

    // Every rank sends to every rank on the other side.
    for size in [0, 24, 5000, 200_000] {
        let out: Vec<Vec<u8>> = (0..inter.remote_size()).map(|remote| filled(job.rank, world_rank(remote), 6, size)).collect();
        mpi::request::scope(|scope| {
            let sending: Vec<_> = out
                .iter()
                .zip(0..)
                .map(|(buf, remote)| inter.process_at_rank(remote).immediate_send_with_tag(scope, &buf[..], 6))
                .collect();
            for expected in 0..inter.remote_size() {
                let mut into = vec![0; size];
                let named = inter.process_at_rank(expected);
                // Messages of the last size are received from any source.
                let status = match size {
                    200_000 => inter.any_process().receive_into_with_tag(&mut into[..], 6),
                    _ => named.receive_into_with_tag(&mut into[..], 6),
                };
                verify(&into, world_rank(status.source_rank()), job.rank, 6);
            }
            sending.into_iter().for_each(|request| request.wait_without_status());
        });
    }
    // A reduction gives each side the sum of the other.
    let (mut sum, one) = (0, job.rank);
    inter.all_reduce_into(&one, &mut sum, SystemOperation::sum());
    assert_eq!(sum, (0..inter.remote_size()).map(world_rank).sum::<i32>(), "all-reduce over an intercommunicator");

    // A rank without ranks of the other side on its host gets no communicator; no rank crashes.
    // SAFETY: the communicator is valid; the call overwrites the null handle.
    unsafe {
        let mut shared = ffi::RSMPI_COMM_NULL;
        let kind = ffi::MPI_COMM_TYPE_SHARED as i32;
        raw::ok(ffi::MPI_Comm_split_type(inter.as_raw(), kind, 0, ffi::RSMPI_INFO_NULL, &mut shared), "MPI_Comm_split_type");
        if shared != ffi::RSMPI_COMM_NULL {
            raw::ok(ffi::MPI_Comm_free(&mut shared), "MPI_Comm_free");
        }
    }

    let merged = inter.merge(if job.rank % 2 == 0 { MergeOrder::Low } else { MergeOrder::High });
    let place = if job.rank % 2 == 0 { job.rank / 2 } else { (job.size + 1) / 2 + job.rank / 2 };
    assert_eq!((merged.size(), merged.rank()), (job.size, place), "size and rank in the merged communicator");
    use_it(&merged, 5);
}

/// Splits by where the machine's devices are, for which MPICH reads them. The ranks of a host may run on all its cores, so
/// they stay together.
fn by_device(job: &Job) {
    let shared = |info| {
        let kind = ffi::MPI_COMM_TYPE_SHARED as i32;
        // SAFETY: the communicator and the info are valid; the calls overwrite what they are given, and free it.
        unsafe {
            let mut shared = ffi::RSMPI_COMM_NULL;
            raw::ok(ffi::MPI_Comm_split_type(job.world.as_raw(), kind, 0, info, &mut shared), "MPI_Comm_split_type");
            let mut ranks = 0;
            raw::ok(ffi::MPI_Comm_size(shared, &mut ranks), "MPI_Comm_size");
            raw::ok(ffi::MPI_Comm_free(&mut shared), "MPI_Comm_free");
            ranks
        }
    };
    let first_of = |folder: &str| {
        let names = std::fs::read_dir(folder).into_iter().flatten().flatten();
        names.filter_map(|entry| entry.file_name().into_string().ok()).min()
    };
    let pci = first_of("/sys/bus/pci/devices").map(|device| format!("pci:{device}"));
    let network = first_of("/sys/class/net");
    // SAFETY: a constant of MPI's.
    let no_info = unsafe { ffi::RSMPI_INFO_NULL };
    let all = shared(no_info);
    for device in ["gpu", "eth"].map(String::from).into_iter().chain(pci).chain(network) {
        let value = CString::new(device.as_str()).unwrap();
        let mut info = no_info;
        // SAFETY: the handle is overwritten, and freed once; the strings end with a zero byte.
        unsafe {
            raw::ok(ffi::MPI_Info_create(&mut info), "MPI_Info_create");
            raw::ok(ffi::MPI_Info_set(info, c"shmem_topo".as_ptr(), value.as_ptr()), "MPI_Info_set");
        }
        assert_eq!(shared(info), all, "ranks of a host that are together at {device}");
        // SAFETY: as above.
        raw::ok(unsafe { ffi::MPI_Info_free(&mut info) }, "MPI_Info_free");
    }
}

fn main() {
    let job = Job::start("comm_split");
    job.needs_ranks(2);
    split(&job);
    apart(&job);
    many(&job);
    between(&job);
    by_device(&job);
    job.finish();
}
