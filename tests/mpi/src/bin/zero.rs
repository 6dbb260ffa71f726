//! Empty messages and collectives, and MPI_PROC_NULL.

use mpi::collective::SystemOperation;
use mpi::ffi;
use mpi::traits::*;
use ntbring_mpi_tests::{raw, received_bytes, shifts, Job};

const NOTHING: [u8; 0] = [];

fn point_to_point(job: &Job, shift: i32) {
    let (to, from) = (job.world.process_at_rank(job.ahead(shift)), job.world.process_at_rank(job.ahead(-shift)));
    for tag in 0..200 {
        mpi::request::scope(|scope| {
            let sending = match tag % 3 {
                0 => to.immediate_synchronous_send_with_tag(scope, &NOTHING[..], tag),
                _ => to.immediate_send_with_tag(scope, &NOTHING[..], tag),
            };
            if tag % 2 == 0 {
                let seen = from.probe_with_tag(tag);
                assert_eq!((received_bytes(&seen), seen.source_rank()), (0, from.rank()), "what a probe saw");
            }
            // Into a buffer with room, which must stay unchanged; or without a buffer.
            let mut room = [0x5a_u8; 16];
            let len = if tag % 4 < 2 { 16 } else { 0 };
            let status = from.receive_into_with_tag(&mut room[..len], tag);
            assert_eq!((received_bytes(&status), status.source_rank(), status.tag()), (0, from.rank(), tag), "the status");
            assert_eq!(room, [0x5a; 16], "an empty message wrote into the buffer");
            sending.wait();
        });
    }
    // Elements of zero bytes.
    let empty = mpi::datatype::UserDatatype::contiguous(0, &u32::equivalent_datatype());
    // SAFETY: 1000 elements of zero bytes fit in any buffer.
    let view = unsafe { mpi::datatype::View::with_count_and_datatype(&NOTHING[..], 1000, &empty) };
    mpi::request::scope(|scope| {
        let sending = to.immediate_send(scope, &view);
        let status = from.receive_into(&mut [0_u8; 4][..]);
        assert_eq!(received_bytes(&status), 0, "bytes of elements without bytes");
        sending.wait();
    });
}

fn collectives(job: &Job) {
    let (world, n) = (&job.world, job.size as usize);
    let none: [u64; 0] = [];
    for root in 0..job.size {
        let root_process = world.process_at_rank(root);
        root_process.broadcast_into(&mut [0_u64; 0][..]);
        if job.rank == root {
            root_process.gather_into_root(&none[..], &mut [0_u64; 0][..]);
            root_process.scatter_into_root(&none[..], &mut [0_u64; 0][..]);
            root_process.reduce_into_root(&none[..], &mut [0_u64; 0][..], SystemOperation::sum());
        } else {
            root_process.gather_into(&none[..]);
            root_process.scatter_into(&mut [0_u64; 0][..]);
            root_process.reduce_into(&none[..], SystemOperation::sum());
        }
    }
    world.all_reduce_into(&none[..], &mut [0_u64; 0][..], SystemOperation::max());
    world.all_gather_into(&none[..], &mut [0_u64; 0][..]);
    world.all_to_all_into(&none[..], &mut [0_u64; 0][..]);
    let zeros = vec![0; n];
    world.all_to_all_varcount_into(
        &mpi::datatype::Partition::new(&none[..], &zeros[..], &zeros[..]),
        &mut mpi::datatype::PartitionMut::new(&mut [0_u64; 0][..], &zeros[..], &zeros[..]),
    );
    mpi::request::scope(|scope| world.immediate_all_reduce_into(scope, &none[..], &mut [0_u64; 0][..], SystemOperation::sum()).wait());
    world.barrier();
}

/// Checks that sends to and receives from MPI_PROC_NULL complete at once.
fn no_process(job: &Job) {
    let mut buf = [0x33_u8; 8];
    let mut status = raw::status();
    // SAFETY: the communicator is valid, the buffers have the given sizes, and MPI_PROC_NULL is a legal partner for
    // both.
    unsafe {
        let (comm, nobody) = (job.world.as_raw(), ffi::RSMPI_PROC_NULL);
        raw::ok(ffi::MPI_Send(buf.as_ptr().cast(), 8, raw::byte(), nobody, 1, comm), "MPI_Send");
        raw::ok(ffi::MPI_Ssend(buf.as_ptr().cast(), 8, raw::byte(), nobody, 1, comm), "MPI_Ssend");
        raw::ok(ffi::MPI_Recv(buf.as_mut_ptr().cast(), 8, raw::byte(), nobody, 1, comm, &mut status), "MPI_Recv");
        assert_eq!(status.MPI_SOURCE, nobody, "the source of a message from no process");
    }
    assert_eq!(raw::bytes(&status), 0, "bytes from no process");
    assert_eq!(buf, [0x33; 8], "a receive from no process wrote into the buffer");
}

fn main() {
    let job = Job::start("zero");
    for shift in shifts(job.size) {
        point_to_point(&job, shift);
    }
    collectives(&job);
    no_process(&job);
    job.finish();
}
