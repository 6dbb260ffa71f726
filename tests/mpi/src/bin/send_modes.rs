//! Synchronous, buffered and ready sends, blocking and not, to the same host and to others, with receives posted early
//! and late.

use mpi::topology::Process;
use mpi::traits::*;
use ntbring_mpi_tests::{fill, filled, received_bytes, shifts, verify, Job};

const SIZES: [usize; 7] = [0, 8, 100, 10_000, 40_000, 100_000, 1 << 20];
/// Tags: data, permission to receive, notice that the receive is posted.
const DATA: i32 = 1;
const GO: i32 = 2;
const READY: i32 = 3;

/// The call with which the late receiver gets the message.
#[derive(Clone, Copy, Debug)]
enum Way {
    Named,
    AnySource,
    Matched,
    PostedAnySource,
}

fn late_receive(job: &Job, from: &Process, way: Way, buf: &mut [u8]) {
    let status = match way {
        Way::Named => from.receive_into_with_tag(buf, DATA),
        Way::AnySource => job.world.any_process().receive_into_with_tag(buf, DATA),
        Way::Matched => loop {
            if let Some((message, _)) = job.world.any_process().immediate_matched_probe_with_tag(DATA) {
                break message.matched_receive_into(buf);
            }
        },
        Way::PostedAnySource => {
            mpi::request::scope(|scope| job.world.any_process().immediate_receive_into_with_tag(scope, buf, DATA).wait())
        }
    };
    assert_eq!((received_bytes(&status), status.source_rank()), (buf.len(), from.rank()), "size and sender, received by {way:?}");
}

/// An Issend must not complete before its receive has begun, and must complete then.
fn synchronous(job: &Job, shift: i32, size: usize, way: Way) {
    let (to, from) = (job.world.process_at_rank(job.ahead(shift)), job.world.process_at_rank(job.ahead(-shift)));
    let (out, mut into) = (filled(job.rank, to.rank(), DATA, size), vec![0; size]);
    mpi::request::scope(|scope| {
        let mut sending = to.immediate_synchronous_send_with_tag(scope, &out[..], DATA);
        for _ in 0..200 {
            sending = match sending.test() {
                Ok(_) => panic!("a synchronous send of {size} bytes to {} was complete before its receive began", to.rank()),
                Err(request) => request,
            };
        }
        to.send_with_tag::<[u8]>(&[], GO);
        from.receive_into_with_tag::<[u8]>(&mut [], GO);
        late_receive(job, &from, way, &mut into);
        sending.wait();
    });
    verify(&into, from.rank(), job.rank, DATA);
    // Receives from any source must not match a faster rank's message of the next round.
    job.world.barrier();
}

/// Blocking Ssend: half of the ranks send first while the others are late, then the reverse; and with the receive
/// posted in time.
fn synchronous_blocking(job: &Job, size: usize) {
    let (to, from) = (job.world.process_at_rank(job.ahead(1)), job.world.process_at_rank(job.ahead(-1)));
    let (out, mut into) = (filled(job.rank, to.rank(), 9, size), vec![0; size]);
    // Rank 0 receives first, which ends the chain of waiting senders.
    if job.rank == 0 {
        std::thread::sleep(std::time::Duration::from_millis(2));
        from.receive_into(&mut into[..]);
        to.synchronous_send(&out[..]);
    } else {
        to.synchronous_send(&out[..]);
        from.receive_into(&mut into[..]);
    }
    verify(&into, from.rank(), job.rank, 9);
    into.fill(0);
    mpi::request::scope(|scope| {
        let receiving = from.immediate_receive_into(scope, &mut into[..]);
        to.synchronous_send(&out[..]);
        receiving.wait();
    });
    verify(&into, from.rank(), job.rank, 9);
}

/// Buffered sends return at once, although the receiver waits for a message that the sender sends only afterwards.
fn buffered(job: &mut Job, shift: i32) {
    let total: usize = SIZES.iter().map(|size| size + 1024).sum();
    job.universe.set_buffer_size(2 * total);
    let (to, from) = (job.world.process_at_rank(job.ahead(shift)), job.world.process_at_rank(job.ahead(-shift)));
    let mut out = vec![0; SIZES[SIZES.len() - 1]];
    for (number, size) in SIZES.iter().enumerate() {
        fill(&mut out[..*size], job.rank, to.rank(), number as i32);
        to.buffered_send_with_tag(&out[..*size], DATA);
        out.fill(0xee);
        fill(&mut out[..*size], job.rank, to.rank(), 20 + number as i32);
        mpi::request::scope(|scope| to.immediate_buffered_send_with_tag(scope, &out[..*size], DATA).wait());
        out.fill(0xee);
    }
    to.send_with_tag::<[u8]>(&[], GO);
    from.receive_into_with_tag::<[u8]>(&mut [], GO);
    for (number, size) in SIZES.iter().enumerate() {
        for tag in [number as i32, 20 + number as i32] {
            let mut into = vec![0; *size];
            from.receive_into_with_tag(&mut into[..], DATA);
            verify(&into, from.rank(), job.rank, tag);
        }
    }
    job.universe.detach_buffer();
}

/// Ready sends, after the receiver has reported that its receive is posted.
fn ready(job: &Job, shift: i32, size: usize, immediate: bool) {
    let (to, from) = (job.world.process_at_rank(job.ahead(shift)), job.world.process_at_rank(job.ahead(-shift)));
    let (out, mut into) = (filled(job.rank, to.rank(), DATA, size), vec![0; size]);
    mpi::request::scope(|scope| {
        let receiving = from.immediate_receive_into_with_tag(scope, &mut into[..], DATA);
        // This message is so small that it is sent eagerly: it cannot wait for the other side.
        from.send_with_tag::<[u8]>(&[], READY);
        to.receive_into_with_tag::<[u8]>(&mut [], READY);
        if immediate {
            // SAFETY: the receiver's READY guarantees that the matching receive is posted.
            unsafe { to.immediate_ready_send_with_tag(scope, &out[..], DATA) }.wait();
        } else {
            // SAFETY: as above.
            unsafe { to.ready_send_with_tag(&out[..], DATA) };
        }
        receiving.wait();
    });
    verify(&into, from.rank(), job.rank, DATA);
}

fn main() {
    let mut job = Job::start("send_modes");
    job.needs_ranks(2);
    for shift in shifts(job.size) {
        for size in SIZES {
            for way in [Way::Named, Way::AnySource, Way::Matched, Way::PostedAnySource] {
                synchronous(&job, shift, size, way);
            }
            ready(&job, shift, size, false);
            ready(&job, shift, size, true);
        }
        buffered(&mut job, shift);
    }
    SIZES.iter().for_each(|size| synchronous_blocking(&job, *size));
    job.world.barrier();
    job.finish();
}
