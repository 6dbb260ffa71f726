//! Tests of scratchpads and doorbells.

use super::*;

pub fn scratchpads_hold_a_value_each_in_each_direction(bench: &Bench) {
    let value = |cable: usize, register: usize| 0x8000_0001 + 0x0101_0000 * cable as u32 + register as u32;
    for (_, to) in bench.cables() {
        assert!((0..SCRATCHPADS).all(|r| to.scratchpad(r) == 0));
    }
    for (i, (from, _)) in bench.cables().into_iter().enumerate() {
        for r in 0..SCRATCHPADS {
            from.peer_scratchpad(r, value(i, r));
        }
    }
    for (i, (_, to)) in bench.cables().into_iter().enumerate() {
        for r in 0..SCRATCHPADS {
            assert_eq!(to.scratchpad(r), value(i, r));
            assert_eq!(to.scratchpad(r), value(i, r), "reading changes nothing");
        }
    }
    let (from, to) = (bench.port(1, Side::Left), bench.port(0, Side::Right));
    from.peer_scratchpad(3, u32::MAX);
    from.peer_scratchpad(4, 0);
    assert_eq!([2, 3, 4, 5].map(|r| to.scratchpad(r))[1..3], [u32::MAX, 0]);
}

pub fn registers_that_do_not_exist_are_refused(bench: &Bench) {
    let port = bench.port(0, Side::Right);
    for r in [SCRATCHPADS, SCRATCHPADS + 8, usize::MAX] {
        panics("a scratchpad that does not exist", || port.scratchpad(r));
        panics("a scratchpad that does not exist", || port.peer_scratchpad(r, 1));
    }
    for bell in [DOORBELLS, 31, 32, 64, usize::MAX] {
        panics("a doorbell that does not exist", || port.ring(bell));
        panics("a doorbell that does not exist", || port.vector(bell).arm());
        panics("a doorbell that does not exist", || port.wait(bell, SHORT));
    }
    for (_, to) in bench.cables() {
        assert_eq!(to.doorbells(), 0);
    }
}

pub fn a_doorbell_is_pending_until_it_is_cleared(bench: &Bench) {
    for (from, to) in bench.cables() {
        for bell in 0..DOORBELLS {
            let bit = 1 << bell;
            assert_eq!(to.doorbells(), 0);
            from.ring(bell);
            from.ring(bell);
            bench.settle();
            assert_eq!(to.doorbells(), bit);
            assert_eq!(to.doorbells(), bit, "looking changes nothing");
            to.clear_doorbells(!bit);
            assert_eq!(to.doorbells(), bit, "clearing others changes nothing");
            to.clear_doorbells(bit);
            assert_eq!(to.doorbells(), 0, "two rings are one");
            from.ring(bell);
            bench.settle();
            assert_eq!(to.doorbells(), bit, "a doorbell that was cleared rings again");
            to.clear_doorbells(bit);
        }
        from.ring(0);
        from.ring(15);
        from.ring(7);
        bench.settle();
        assert_eq!(to.doorbells(), 0x8081);
        to.clear_doorbells(0x8001);
        assert_eq!(to.doorbells(), 0x0080);
        to.clear_doorbells(u16::MAX);
    }
}

pub fn doorbells_of_different_links_do_not_mix(bench: &Bench) {
    for (i, (from, _)) in bench.cables().into_iter().enumerate() {
        from.ring(i);
    }
    bench.settle();
    for (i, (_, to)) in bench.cables().into_iter().enumerate() {
        assert_eq!(to.doorbells(), 1 << i);
    }
    // A wait on one link does not consume doorbells of the other.
    let (left, right) = (bench.port(0, Side::Left), bench.port(0, Side::Right));
    left.clear_doorbells(u16::MAX);
    right.clear_doorbells(u16::MAX);
    bench.port(1, Side::Left).ring(9);
    assert!(!left.wait(9, SHORT));
    assert!(right.wait(9, SHORT));
}

pub fn getting_ready_to_sleep_clears_no_doorbell(bench: &Bench) {
    let (from, to) = (bench.port(0, Side::Right), bench.port(1, Side::Left));
    from.ring(5);
    bench.settle();
    let vector = to.vector(5);
    let ticket = vector.arm();
    assert_eq!(to.doorbells(), 1 << 5);
    vector.sleep(ticket, SHORT);
    vector.disarm();
    assert_eq!(to.doorbells(), 1 << 5);
    assert!(to.wait(5, SHORT));
    assert_eq!(to.doorbells(), 0);
}
