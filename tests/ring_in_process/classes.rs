//! Priority classes (urgent and bulk) in forwarders that are stepped one by one: the test acts for the ranks.

use super::healing::{packet, put, took, Ring, KIND};
use super::*;
use ntbring_queue::{Consumer, Producer, Reliability};
use ntbring_ring::layout::End;

/// Number of chunks that one input may pass on in one step of a forwarder.
const ROUNDS: usize = 8;

/// Returns the bulk lane from rank 0 to the right, and that to a rank from the left.
fn bulk_lanes(ring: &Ring, to: usize) -> (Producer, Consumer) {
    let link = |host: usize, side: Side| ring.members[host].links().unwrap()[side as usize];
    let from = link(0, Side::Right).bulk_producer(End::Rank(0), End::Forwarder, false).unwrap();
    (from, link(to, Side::Left).bulk_consumer(End::Forwarder, End::Rank(0), false).unwrap())
}

/// Returns the largest chunk that fits every lane.
fn piece(ring: &Ring, dst: u32) -> Vec<u8> {
    let mut piece = packet(0, dst);
    piece.resize(ring.members[0].packet_max(), 7);
    piece
}

/// Receives a chunk if there is one.
fn take(lane: &mut Consumer, len: usize) -> bool {
    let Some(entry) = lane.take().unwrap() else { return false };
    assert_eq!((entry.kind, entry.len), (KIND, len));
    lane.release();
    true
}

#[test]
fn what_is_urgent_passes_bulk_that_cannot_go_on() {
    for (hosts, dst) in [(4, 2), (6, 3)] {
        let mut ring = Ring::new(hosts, Reliability::Off);
        let ((mut bulk, mut arrived), piece) = (bulk_lanes(&ring, dst), piece(&ring, dst as u32));
        let (mut out, mut inbox) = (ring.out(0, Side::Right), ring.inbox(dst, Side::Left));
        // Its rank receives nothing, until all lanes are full.
        let mut sent = 0;
        loop {
            let before = sent;
            while put(&mut bulk, KIND, &piece) {
                sent += 1;
            }
            (0..100).for_each(|_| ring.step());
            if sent == before {
                break;
            }
        }
        assert!(put(&mut out, KIND, &packet(0, dst as u32)));
        ring.step();
        assert!(took(&mut inbox, &packet(0, dst as u32)), "it waits behind bulk");
        // Bulk arrives nevertheless.
        for _ in 0..sent {
            ring.until("a chunk arrives", |_| take(&mut arrived, piece.len()));
        }
        assert!(!take(&mut arrived, piece.len()));
    }
}

/// An urgent packet overtakes bulk: the number of chunks that a forwarder passes on between the packet's arrival and
/// its departure is bounded, however many are queued before it.
#[test]
fn what_is_urgent_passes_a_transfer_of_64_mib() {
    const TOTAL: usize = 64 << 20;
    let mut ring = Ring::with(6, settings().with(|s| s.ring.window = Some(4 << 20)));
    let mut piece = packet(0, 3);
    piece.resize(8 << 10, 7);
    let ((mut bulk, mut arrived), urgent) = (bulk_lanes(&ring, 3), packet(0, 3));
    let (mut out, mut inbox) = (ring.out(0, Side::Right), ring.inbox(3, Side::Left));
    let (pieces, mut sent, mut taken, mut passed) = (TOTAL.div_ceil(piece.len()), 0, 0, 0);
    let mut under_way = 0;
    while taken < pieces {
        while sent < pieces && put(&mut bulk, KIND, &piece) {
            sent += 1;
        }
        // The rank is slower than the links, so that lanes fill up.
        (0..ROUNDS / 2).for_each(|_| taken += usize::from(take(&mut arrived, piece.len())));
        if passed == 0 && sent < pieces && taken < pieces / 2 {
            ring.step();
            under_way = under_way.max(sent - taken);
            continue;
        }
        assert!(put(&mut out, KIND, &urgent));
        // Steps both forwarders on the route in turn.
        ring.step();
        assert!(took(&mut inbox, &urgent), "it waits behind some of {under_way} chunks");
        passed += 1;
    }
    // Checks that many chunks were in transit.
    assert!(under_way > 4 * ROUNDS, "{under_way}");
    assert!(passed > 100, "{passed}");
    assert_eq!((sent, taken), (pieces, pieces));
}

/// An engine copies chunks late and in any order; they arrive in the order in which they were sent, and the forwarder
/// forwards urgent packets meanwhile.
#[test]
fn bulk_that_an_engine_copies_keeps_its_order() {
    const PIECES: usize = 300;
    let mut ring = Ring::with(6, settings().with(|s| s.links.weak = Some(5)));
    let (mut bulk, mut arrived) = bulk_lanes(&ring, 3);
    let (mut out, mut inbox) = (ring.out(0, Side::Right), ring.inbox(3, Side::Left));
    let urgent = packet(0, 3);
    let piece = |number: usize| {
        let mut piece = packet(0, 3);
        piece.resize(2000 + number, number as u8);
        piece
    };
    let (mut sent, mut taken, mut passed) = (0, 0, 0);
    while taken < PIECES {
        while sent < PIECES && put(&mut bulk, KIND, &piece(sent)) {
            sent += 1;
        }
        ring.step();
        if ring.forwarders[1].is_copying() && put(&mut out, KIND, &urgent) {
            ring.step();
            assert!(took(&mut inbox, &urgent), "it waits for copies of bulk");
            passed += 1;
        }
        while let Some(entry) = arrived.take().unwrap() {
            let mut bytes = vec![0; entry.len];
            arrived.window().read(entry.offset, &mut bytes);
            assert_eq!(bytes, piece(taken));
            arrived.release();
            taken += 1;
        }
    }
    assert!(passed > 20, "an engine was seen at work {passed} times");
    assert!(!ring.forwarders.iter().any(|forwarder| forwarder.is_copying()));
}

/// Bulk does not starve under a constant load of urgent packets: every step forwards some of it.
#[test]
fn bulk_is_not_left_to_wait() {
    let mut ring = Ring::new(4, Reliability::Off);
    let ((mut bulk, mut arrived), piece) = (bulk_lanes(&ring, 2), piece(&ring, 2));
    let (mut out, mut inbox) = (ring.out(0, Side::Right), ring.inbox(2, Side::Left));
    let urgent = packet(0, 2);
    for _ in 0..200 {
        while put(&mut out, KIND, &urgent) {}
        assert!(put(&mut bulk, KIND, &piece));
        ring.forwarders[1].step().unwrap();
        assert!(take(&mut arrived, piece.len()), "a chunk waits behind urgent packets");
        while took(&mut inbox, &urgent) {}
    }
}

/// Small messages across the whole ring while large payloads stream, in both directions and between all pairs.
#[test]
fn messages_of_both_classes_between_everybody() {
    for layout in [Layout::blocks(&[1; 5]), Layout::blocks(&[2, 1, 1, 2])] {
        // Ports with weak ordering have an engine, which copies bulk.
        let weak = |s: Settings| s.with(|s| s.links.weak = Some(11));
        for settings in [settings(), tiny(&layout), weak(settings()), weak(tiny(&layout))] {
            let settings = settings.with(|s| {
                s.limits.single_copy = SingleCopy::Never;
                s.limits.eager_max = 1000;
            });
            let plan = |src: u32, dst: u32| {
                let small = |n: u32| Shape::contiguous(HEADER, ((src + dst + n) % 7 * 100) as usize);
                let large = |n: u32| Shape::contiguous(HEADER, 30_000 + (src * 7 + dst * 3 + n) as usize);
                // More streams than may be open at once, with rendezvous payloads, between chunked messages.
                (0..40).map(|n| if n % 3 == 0 { large(n) } else { small(n) }).collect()
            };
            run(&layout, &settings, |rank| exchange(rank, 9, &plan).map(drop));
        }
    }
}
