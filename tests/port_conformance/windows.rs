//! Tests of windows: contents and order of writes, and their bounds.

use super::*;
use ntbring_memory::Mapping;
use ntbring_ntb::Shortcuts;

pub fn sides_and_links(bench: &Bench) {
    for host in [0, 1] {
        for side in Side::BOTH {
            let port = bench.port(host, side);
            assert_eq!(port.index(), bench.index(host, side));
            assert_eq!(port.link(), LinkState::Up);
            assert_eq!(port.incoming().len(), WINDOW);
            assert!(!port.incoming().is_empty());
        }
        let [left, right] = Side::BOTH.map(|side| bench.port(host, side).incoming_offset());
        // Each adapter has memory of its own.
        let is_apart = bench.dress.model().is_some() || left.abs_diff(right) >= WINDOW as u64;
        assert!(is_apart, "the windows overlap");
    }
}

pub fn outages_are_counted_whoever_looks(bench: &Bench) {
    let count = &|host, side| {
        let port = bench.port(host, side);
        let before = port.outages();
        for outages in before..before + 3 {
            assert_eq!((port.link(), port.outages()), (LinkState::Up, outages));
            bench.set_link(host, side, LinkState::Down);
            assert_eq!((port.link(), port.outages()), (LinkState::Down, outages + 1));
            bench.set_link(host, side, LinkState::Up);
        }
    };
    // Both cables at once: the driver of ivshmem takes a link for lost after seconds of silence only.
    std::thread::scope(|scope| {
        for host in [0, 1] {
            scope.spawn(move || {
                count(host, Side::Right);
                count(1 - host, Side::Left);
            });
        }
    });
}

pub fn only_memory_is_coherent_and_has_shortcuts(bench: &Bench) {
    let memory = matches!(
        bench.dress,
        Dress::Emu | Dress::EmuPorts2And3 | Dress::Loopback | Dress::LoopbackPorts2And3 | Dress::Trace
    );
    for (port, _) in bench.cables() {
        assert_eq!(port.caps().mapping == Mapping::Coherent, memory);
        let granted = match (memory, bench.dress.model()) {
            (true, _) => Shortcuts::ALL,
            (false, None) => Shortcuts::ALL.past_links(),
            (false, Some(_)) => Shortcuts::NONE,
        };
        assert_eq!(port.shortcuts(), granted);
    }
}

pub fn what_is_written_before_a_fence_is_there_after_it(bench: &Bench) {
    let mut rng = fastrand::Rng::with_seed(1);
    for (from, to) in bench.cables() {
        let (out, incoming) = (aim(from.as_ref(), to.as_ref()), to.incoming());
        assert_eq!(out.len(), WINDOW);
        let (mut model, mut found) = (vec![0u8; WINDOW], vec![0u8; WINDOW]);
        for _ in 0..30 {
            // Between two fences the order is undefined, so no address is written twice.
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

pub fn writing_reaches_all_kinds_of_places(bench: &Bench) {
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
    // The same bytes without a copy, at their address in the window.
    let foreign = incoming.foreign(8, 5);
    assert_eq!(foreign.len(), 5);
    let back = aim(bench.port(1, Side::Left).as_ref(), bench.port(0, Side::Right).as_ref());
    back.write(40, foreign);
    back.fence();
    let mut bytes = [0; 5];
    bench.port(0, Side::Right).incoming().read(40, &mut bytes);
    assert_eq!(&bytes, b"first");
}

pub fn windows_do_not_mix(bench: &Bench) {
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
}

pub fn an_outgoing_window_shows_what_was_asked_for(bench: &Bench) {
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

pub fn a_window_beyond_the_neighbours_memory_is_refused(bench: &Bench) {
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

pub fn nothing_reaches_beyond_a_window(bench: &Bench) {
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

pub fn words_are_never_torn(bench: &Bench) {
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

pub fn bytes_are_there_when_the_word_after_the_fence_is(bench: &Bench) {
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
