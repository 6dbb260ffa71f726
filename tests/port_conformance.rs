//! What every [`Port`] must do, written once and run on the emulated one, bare and in each
//! decorator. A new backend or decorator becomes a variant of `Dress` in `common::ports`.

mod common;

use common::ports::{aim, Bench, Dress, WINDOW};
use ntbring::ntb::{ForeignBytes, LinkState, NtbError, Port, Side, DOORBELLS, SCRATCHPADS};
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{mpsc, Arc};
use std::time::{Duration, Instant};

/// Longer than any wait that is meant to end because of a ring.
const LONG: Duration = Duration::from_secs(60);
const SHORT: Duration = Duration::from_millis(20);

macro_rules! run_on_every_port {
    ($($test:ident)*) => {
        run_on_every_port!(emu Dress::Emu, $($test)*);
        run_on_every_port!(weak Dress::Weak, $($test)*);
        run_on_every_port!(trace Dress::Trace, $($test)*);
        run_on_every_port!(trace_of_weak Dress::TraceWeak, $($test)*);
        run_on_every_port!(timing Dress::Timing, $($test)*);
        run_on_every_port!(trace_of_weak_of_timing Dress::TraceWeakTiming, $($test)*);
    };
    ($name:ident $dress:expr, $($test:ident)*) => {
        mod $name {
            use super::{Bench, Dress};
            $(#[test] fn $test() { super::$test(&Bench::new($dress)); })*
        }
    };
}

run_on_every_port! {
    sides_and_links
    only_memory_is_coherent
    what_is_written_before_a_fence_is_there_after_it
    writing_reaches_all_kinds_of_places
    windows_do_not_mix
    an_outgoing_window_shows_what_was_asked_for
    a_window_beyond_the_neighbours_memory_is_refused
    nothing_reaches_beyond_a_window
    words_are_never_torn
    bytes_are_there_when_the_word_after_the_fence_is
    scratchpads_hold_a_value_each_in_each_direction
    registers_that_do_not_exist_are_refused
    a_doorbell_is_pending_until_it_is_cleared
    doorbells_of_different_links_do_not_mix
    getting_ready_to_sleep_clears_no_doorbell
    waiting_ends_with_the_time
    a_ring_before_the_wait_is_not_lost
    a_ring_wakes_a_sleeper
    a_signal_loses_no_ring
    a_ring_between_arming_and_sleeping_ends_the_sleep
    sleepers_of_one_vector_all_wake
    a_vector_hears_both_links_and_its_own_host
    no_deposit_is_slept_over
}

fn panics<T>(what: &str, action: impl FnOnce() -> T) {
    assert!(catch_unwind(AssertUnwindSafe(action)).is_err(), "{what} is accepted");
}

fn sides_and_links(bench: &Bench) {
    for host in [0, 1] {
        for side in Side::BOTH {
            let port = bench.port(host, side);
            assert_eq!(port.side(), side);
            assert_eq!(port.link(), LinkState::Up);
            assert_eq!(port.incoming().len(), WINDOW);
            assert!(!port.incoming().is_empty());
        }
        let [left, right] = Side::BOTH.map(|side| bench.port(host, side).incoming_offset());
        assert!(left.abs_diff(right) >= WINDOW as u64, "the windows overlap");
    }
}

fn only_memory_is_coherent(bench: &Bench) {
    let memory = matches!(bench.dress, Dress::Emu | Dress::Trace);
    for (port, _) in bench.cables() {
        assert_eq!(port.coherent(), memory);
    }
}

fn what_is_written_before_a_fence_is_there_after_it(bench: &Bench) {
    let mut rng = fastrand::Rng::with_seed(1);
    for (from, to) in bench.cables() {
        let (out, incoming) = (aim(from.as_ref(), to.as_ref()), to.incoming());
        assert_eq!(out.len(), WINDOW);
        let (mut model, mut found) = (vec![0u8; WINDOW], vec![0u8; WINDOW]);
        for _ in 0..30 {
            // Between two fences the order is open, so no place is written twice.
            let mut at = rng.usize(..100);
            while at < WINDOW {
                let most = if rng.u8(..4) == 0 { 9000 } else { 200 };
                let len = rng.usize(..=most).min(WINDOW - at);
                let bytes: Vec<u8> = std::iter::repeat_with(|| rng.u8(..)).take(len).collect();
                out.write_bytes(at, &bytes);
                model[at..at + len].copy_from_slice(&bytes);
                at += len + rng.usize(..3000);
            }
            out.fence();
            incoming.read(0, &mut found);
            assert!(found == model, "the window is not what was written");
        }
    }
}

fn writing_reaches_all_kinds_of_places(bench: &Bench) {
    let (from, to) = (bench.port(0, Side::Right), bench.port(1, Side::Left));
    let (out, incoming) = (aim(from.as_ref(), to.as_ref()), to.incoming());
    out.store(0, u64::from_le_bytes(*b"the word"));
    out.store(WINDOW - 8, 7);
    out.write_bytes(8, b"first");
    // SAFETY: the bytes are static.
    out.write(13, unsafe { ForeignBytes::new(b"xsecond".as_ptr(), 7) }.part(1, 6));
    out.write_bytes(19, b"");
    out.write(19, ForeignBytes::EMPTY);
    let filled = out.fill(100, 10, |room| {
        assert!(room.len() == 10 && !room.is_empty());
        // SAFETY: there is room for 10 bytes.
        unsafe { room.address().copy_from_nonoverlapping(b"packed____".as_ptr(), 10) };
        6
    });
    assert_eq!(filled, 6);
    assert_eq!(out.fill(120, 4, |_| 5), 4, "a packer that claims more than there is room for");
    let part = out.part(4096, 64).part(8, 16);
    assert_eq!((part.len(), part.is_empty()), (16, false));
    part.store(8, 99);
    part.write_bytes(1, b"part");
    out.fence();
    bench.settle();
    assert_eq!(incoming.load(0), u64::from_le_bytes(*b"the word"));
    assert_eq!(incoming.load(WINDOW - 8), 7);
    assert_eq!(incoming.part(4096, 64).load(16), 99);
    let read = |at: usize, len: usize| {
        let mut bytes = vec![0; len];
        incoming.read(at, &mut bytes);
        bytes
    };
    assert_eq!(read(0, 19), b"the wordfirstsecond");
    assert_eq!(read(100, 6), b"packed");
    assert_eq!(incoming.part(4096, 64).part(8, 16).load(0), u64::from_le_bytes(*b"\0part\0\0\0"));
    // The same bytes where they lie.
    let foreign = incoming.foreign(8, 5);
    assert_eq!(foreign.len(), 5);
    let back = aim(bench.port(1, Side::Left).as_ref(), bench.port(0, Side::Right).as_ref());
    back.write(40, foreign);
    back.fence();
    let mut bytes = [0; 5];
    bench.port(0, Side::Right).incoming().read(40, &mut bytes);
    assert_eq!(&bytes, b"first");
}

fn windows_do_not_mix(bench: &Bench) {
    for (i, (from, to)) in bench.cables().into_iter().enumerate() {
        let out = aim(from.as_ref(), to.as_ref());
        out.write_bytes(0, &vec![i as u8 + 1; WINDOW]);
        out.fence();
    }
    for (i, (_, to)) in bench.cables().into_iter().enumerate() {
        let mut bytes = vec![0; WINDOW];
        to.incoming().read(0, &mut bytes);
        assert!(bytes.iter().all(|&b| b == i as u8 + 1), "window {i} holds what belongs to another");
    }
    // Not into what is beside the windows either.
    for host in &bench.hosts {
        let local = ntbring::ntb::InWindow::new(host.local());
        assert!((0..local.len()).step_by(8).all(|at| local.load(at) == 0));
    }
}

fn an_outgoing_window_shows_what_was_asked_for(bench: &Bench) {
    let (from, to) = (bench.port(0, Side::Left), bench.port(1, Side::Right));
    for shift in [4096, 8192, WINDOW - 4096] {
        let out = from.outgoing(to.incoming_offset() + shift as u64, 4096).unwrap();
        assert_eq!(out.len(), 4096);
        out.store(16, shift as u64);
        out.fence();
        bench.settle();
        assert_eq!(to.incoming().load(shift + 16), shift as u64);
    }
}

fn a_window_beyond_the_neighbours_memory_is_refused(bench: &Bench) {
    let (from, to) = (bench.port(0, Side::Right), bench.port(1, Side::Left));
    let everything = from.incoming_offset() + 2 * WINDOW as u64 + 4096;
    for (offset, len) in [
        (0, everything + 4096),
        (to.incoming_offset(), u64::MAX),
        (u64::MAX, 1),
        (u64::MAX - 4095, 4096),
        (1 << 40, 4096),
    ] {
        match from.outgoing(offset, len) {
            Err(NtbError::Aperture { offset: o, len: l, .. }) => assert_eq!((o, l), (offset, len)),
            Err(other) => panic!("{offset}, {len}: {other}"),
            Ok(_) => panic!("a window of {len} bytes at {offset} is granted"),
        }
    }
}

fn nothing_reaches_beyond_a_window(bench: &Bench) {
    let (from, to) = (bench.port(0, Side::Right), bench.port(1, Side::Left));
    let (out, incoming) = (aim(from.as_ref(), to.as_ref()), to.incoming());
    let (small_out, small_in) = (out.part(64, 64), incoming.part(64, 64));
    for (at, len) in [(0, 65), (64, 1), (65, 0), (usize::MAX, 1), (usize::MAX - 7, 8), (1, usize::MAX)] {
        let what = format!("{len} bytes at {at} of 64");
        panics(&what, || small_out.part(at, len));
        panics(&what, || small_in.part(at, len));
        panics(&what, || small_in.address(at, len));
        panics(&what, || small_in.foreign(at, len));
        panics(&what, || small_out.fill(at, len, |_| 0));
        if len < 100 {
            panics(&what, || small_out.write_bytes(at, &vec![1; len]));
            panics(&what, || small_in.read(at, &mut vec![0; len]));
        }
    }
    for at in [57, 60, 64, 4, 1, usize::MAX, usize::MAX - 7] {
        panics("a word that is not inside or not aligned", || small_out.store(at, 1));
        panics("a word that is not inside or not aligned", || small_in.load(at));
    }
    panics("a part that is not aligned", || small_out.part(4, 8));
    panics("a part that is not aligned", || small_in.part(4, 8));
    out.fence();
    bench.settle();
    assert!((0..WINDOW).step_by(8).all(|at| incoming.load(at) == 0), "what was refused has been written");
}

fn words_are_never_torn(bench: &Bench) {
    let (from, to) = (bench.port(0, Side::Right), bench.port(1, Side::Left));
    let (out, incoming) = (aim(from.as_ref(), to.as_ref()), to.incoming());
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for n in 1..=20_000u64 {
                out.store(64, n << 32 | n);
                out.fence();
            }
        });
        let mut last = 0;
        while last < 20_000 {
            let word = incoming.load(64);
            assert_eq!(word >> 32, word & 0xffff_ffff, "torn");
            assert!(word >> 32 >= last, "back in time");
            if word >> 32 == last {
                std::thread::yield_now();
            }
            last = word >> 32;
        }
    });
}

fn bytes_are_there_when_the_word_after_the_fence_is(bench: &Bench) {
    const ROUNDS: u64 = 300;
    let (a, b) = (bench.port(0, Side::Right), bench.port(1, Side::Left));
    let (there, back) = (aim(a.as_ref(), b.as_ref()), aim(b.as_ref(), a.as_ref()));
    let until = |look: &dyn Fn() -> bool| {
        while !look() {
            std::thread::yield_now();
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for round in 1..=ROUNDS {
                there.write_bytes(64, &[round as u8; 3000]);
                there.fence();
                there.store(0, round);
                there.fence();
                until(&|| a.incoming().load(0) == round);
            }
        });
        let incoming = b.incoming();
        for round in 1..=ROUNDS {
            until(&|| incoming.load(0) == round);
            let mut bytes = [0; 3000];
            incoming.read(64, &mut bytes);
            assert!(bytes.iter().all(|&b| b == round as u8), "round {round}: the word has overtaken its bytes");
            back.store(0, round);
            back.fence();
        }
    });
}

fn scratchpads_hold_a_value_each_in_each_direction(bench: &Bench) {
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

fn registers_that_do_not_exist_are_refused(bench: &Bench) {
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

fn a_doorbell_is_pending_until_it_is_cleared(bench: &Bench) {
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

fn doorbells_of_different_links_do_not_mix(bench: &Bench) {
    for (i, (from, _)) in bench.cables().into_iter().enumerate() {
        from.ring(i);
    }
    bench.settle();
    for (i, (_, to)) in bench.cables().into_iter().enumerate() {
        assert_eq!(to.doorbells(), 1 << i);
    }
    // A wait on one link takes nothing from the other.
    let (left, right) = (bench.port(0, Side::Left), bench.port(0, Side::Right));
    left.clear_doorbells(u16::MAX);
    right.clear_doorbells(u16::MAX);
    bench.port(1, Side::Left).ring(9);
    assert!(!left.wait(9, SHORT));
    assert!(right.wait(9, SHORT));
}

fn getting_ready_to_sleep_clears_no_doorbell(bench: &Bench) {
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

fn waiting_ends_with_the_time(bench: &Bench) {
    let port = bench.port(0, Side::Left);
    for time in [Duration::ZERO, SHORT] {
        let start = Instant::now();
        assert!(!port.wait(2, time));
        assert!(start.elapsed() >= time && start.elapsed() < LONG);
    }
    let vector = port.vector(2);
    let ticket = vector.arm();
    let start = Instant::now();
    assert!(!vector.sleep(ticket, SHORT));
    assert!(start.elapsed() < LONG);
    vector.disarm();
}

fn a_ring_before_the_wait_is_not_lost(bench: &Bench) {
    for (from, to) in bench.cables() {
        for _ in 0..3 {
            from.ring(4);
            assert!(to.wait(4, SHORT));
            assert!(!to.wait(4, Duration::ZERO), "waiting clears the doorbell");
        }
        from.ring(4);
        bench.settle();
        assert!(to.wait(4, Duration::ZERO), "even without any time to wait");
    }
}

fn a_ring_wakes_a_sleeper(bench: &Bench) {
    for (from, to) in bench.cables() {
        let (tell, told) = mpsc::channel();
        std::thread::scope(|scope| {
            let sleeping = scope.spawn(move || {
                for _ in 0..5 {
                    tell.send(()).unwrap();
                    if !to.wait(11, LONG) {
                        return false;
                    }
                }
                true
            });
            for _ in 0..5 {
                told.recv().unwrap();
                // Most likely it sleeps by then; it must be right in any case.
                std::thread::sleep(Duration::from_millis(3));
                from.ring(10);
                from.ring(11);
            }
            assert!(sleeping.join().unwrap(), "the sleeper was not woken");
        });
    }
}

fn a_signal_loses_no_ring(bench: &Bench) {
    extern "C" fn nothing(_: libc::c_int) {}
    // SAFETY: the handler does nothing; without SA_RESTART, so that system calls are interrupted.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = nothing as extern "C" fn(libc::c_int) as usize;
        libc::sigaction(libc::SIGUSR1, &action, std::ptr::null_mut());
    }
    let (from, to) = (bench.port(0, Side::Right), bench.port(1, Side::Left));
    let (tell, told) = mpsc::channel();
    let done = Arc::new(AtomicBool::new(false));
    std::thread::scope(|scope| {
        let over = done.clone();
        let sleeping = scope.spawn(move || {
            // SAFETY: a plain call.
            let me = unsafe { libc::pthread_self() };
            tell.send(me).unwrap();
            let rung = to.wait(6, LONG);
            over.store(true, Ordering::SeqCst);
            // Until the other side has stopped sending signals here.
            tell.send(me).unwrap();
            rung
        });
        let thread = told.recv().unwrap();
        for _ in 0..20 {
            std::thread::sleep(Duration::from_millis(1));
            // SAFETY: the thread lives until it has been joined below.
            unsafe { libc::pthread_kill(thread, libc::SIGUSR1) };
        }
        assert!(!done.load(Ordering::SeqCst), "a signal has ended the wait");
        from.ring(6);
        told.recv().unwrap();
        assert!(sleeping.join().unwrap());
    });
}

fn a_ring_between_arming_and_sleeping_ends_the_sleep(bench: &Bench) {
    for (from, to) in bench.cables() {
        let vector = to.vector(8);
        for rung_before in [false, true, true] {
            if rung_before {
                from.ring(8);
            }
            let ticket = vector.arm();
            from.ring(8);
            from.ring(8);
            let start = Instant::now();
            assert!(vector.sleep(ticket, LONG));
            assert!(start.elapsed() < LONG);
            vector.disarm();
        }
        // Others' doorbells do not.
        bench.settle();
        let ticket = vector.arm();
        from.ring(7);
        assert!(!vector.sleep(ticket, SHORT));
        vector.disarm();
    }
}

fn sleepers_of_one_vector_all_wake(bench: &Bench) {
    let (from, to) = (bench.port(0, Side::Right), bench.port(1, Side::Left));
    // Armed at different times, with others coming and going in between.
    let vectors = [to.vector(3), to.vector(3), bench.port(1, Side::Right).vector(3)];
    let first = vectors[0].arm();
    vectors[1].arm();
    vectors[1].disarm();
    let third = vectors[2].arm();
    from.ring(3);
    assert!(vectors[0].sleep(first, LONG) && vectors[2].sleep(third, LONG));
    vectors[2].disarm();
    // One that gets ready later hears the next ring, and so does one that is still ready.
    let (again, second) = (vectors[0].arm(), vectors[1].arm());
    from.ring(3);
    from.ring(3);
    assert!(vectors[0].sleep(again, LONG) && vectors[1].sleep(second, LONG));
    for vector in [&vectors[0], &vectors[0], &vectors[1]] {
        vector.disarm();
    }
    // For real.
    let (tell, told) = mpsc::channel();
    std::thread::scope(|scope| {
        let sleeping = [0, 1, 2].map(|i| {
            let (vector, tell) = (vectors[i].clone(), tell.clone());
            scope.spawn(move || {
                let ticket = vector.arm();
                tell.send(()).unwrap();
                let rung = vector.sleep(ticket, LONG);
                vector.disarm();
                rung
            })
        });
        for _ in 0..3 {
            told.recv().unwrap();
        }
        from.ring(3);
        for thread in sleeping {
            assert!(thread.join().unwrap(), "a sleeper was not woken");
        }
    });
}

fn a_vector_hears_both_links_and_its_own_host(bench: &Bench) {
    for host in [0, 1] {
        let others = [bench.port(1 - host, Side::Left), bench.port(1 - host, Side::Right)];
        for side in Side::BOTH {
            let vector = bench.port(host, side).vector(12);
            for ringing in 0..3 {
                let ticket = vector.arm();
                match others.get(ringing) {
                    Some(port) => port.ring(12),
                    None => bench.hosts[host].ring(12),
                }
                assert!(vector.sleep(ticket, LONG));
                vector.disarm();
            }
        }
    }
}

/// The protocol as ranks and forwarders use it: look for work, arm, look once more, sleep. Whatever
/// the moment at which something is deposited and rung for, the sleep ends.
fn no_deposit_is_slept_over(bench: &Bench) {
    const DEPOSITS: u64 = 1500;
    let sleeper = bench.port(1, Side::Left);
    let senders = [Side::Left, Side::Right].map(|side| {
        let (from, to) = (bench.port(0, side), bench.port(1, side.opposite()));
        (aim(from.as_ref(), to.as_ref()), from, to.incoming())
    });
    std::thread::scope(|scope| {
        for (i, (out, port, _)) in senders.iter().enumerate() {
            scope.spawn(move || {
                let mut rng = fastrand::Rng::with_seed(i as u64);
                for n in 1..=DEPOSITS {
                    out.store(0, n);
                    out.fence();
                    port.ring(1);
                    // The moments vary.
                    match rng.u8(..8) {
                        0 => std::thread::sleep(Duration::from_micros(rng.u64(..60))),
                        1..4 => std::thread::yield_now(),
                        _ => {}
                    }
                }
            });
        }
        let found = || senders.iter().map(|(_, _, incoming)| incoming.load(0)).sum::<u64>();
        let (vector, mut seen) = (sleeper.vector(1), 0);
        while seen < 2 * DEPOSITS {
            let ticket = vector.arm();
            if found() == seen {
                let woken = vector.sleep(ticket, LONG);
                assert!(woken || found() == seen, "deposit {} was slept over", found());
            }
            vector.disarm();
            seen = found();
        }
    });
}

#[test]
fn a_record_agrees_with_what_was_done() {
    for dress in [Dress::Trace, Dress::TraceWeak] {
        let bench = Bench::new(dress);
        let (from, to) = (bench.port(0, Side::Right), bench.port(1, Side::Left));
        let out = aim(from.as_ref(), to.as_ref());
        out.write_bytes(100, b"0123456789");
        let part = out.part(4096, 128);
        part.store(8, 77);
        assert_eq!(part.fill(64, 40, |_| 24), 24);
        out.fence();
        from.peer_scratchpad(5, 1234);
        from.ring(15);
        // What is only read, or done to the own side, crosses no link.
        from.scratchpad(1);
        to.incoming().load(0);
        to.clear_doorbells(1);
        from.vector(2).arm();
        panics("a write beyond the window", || part.store(128, 1));
        aim(to.as_ref(), from.as_ref()).store(0, u64::MAX);
        let expected = [
            serde_json::json!({"side": "right", "op": "write", "offset": 100, "len": 10}),
            serde_json::json!({"side": "right", "op": "store", "offset": 4104, "value": 77}),
            serde_json::json!({"side": "right", "op": "write", "offset": 4160, "len": 24}),
            serde_json::json!({"side": "right", "op": "fence"}),
            serde_json::json!({"side": "right", "op": "scratchpad", "register": 5, "value": 1234}),
            serde_json::json!({"side": "right", "op": "ring", "doorbell": 15}),
            serde_json::json!({"side": "left", "op": "store", "offset": 0, "value": u64::MAX}),
        ];
        assert_eq!(bench.record(), expected);
    }
}

/// Two ports are no more in each other's way under the decorators than bare; and disorder there is.
#[test]
fn weak_windows_are_disordered_between_fences() {
    let bench = Bench::new(Dress::Weak);
    let (from, to) = (bench.port(0, Side::Right), bench.port(1, Side::Left));
    let (out, incoming) = (aim(from.as_ref(), to.as_ref()), to.incoming());
    let (mut late, mut overtaken, mut split) = (false, false, false);
    for n in 1..200u64 {
        out.write_bytes(64, &[n as u8; 64]);
        out.store(0, n);
        let mut bytes = [0; 64];
        incoming.read(64, &mut bytes);
        let arrived = bytes.iter().filter(|&&b| b == n as u8).count();
        late |= arrived < 64 && incoming.load(0) != n;
        overtaken |= arrived < 64 && incoming.load(0) == n;
        split |= arrived > 0 && arrived < 64;
        out.fence();
        incoming.read(64, &mut bytes);
        assert_eq!((bytes, incoming.load(0)), ([n as u8; 64], n));
    }
    assert!(late && overtaken && split);
}

#[test]
fn every_error_names_its_cause() {
    let window = NtbError::Aperture { offset: 1, len: 2, size: 3 };
    assert_eq!(window.to_string(), "a window of 2 bytes at 1 does not fit into the neighbour's 3 bytes");
}

/// Statically: a port can be shared between the threads of a process.
#[test]
fn ports_are_shared_between_threads() {
    fn shared<T: Send + Sync + ?Sized>() {}
    shared::<dyn Port>();
    shared::<ntbring::ntb::InWindow>();
    shared::<ntbring::ntb::OutWindow>();
}
