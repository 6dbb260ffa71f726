//! Tests of doorbell vectors: sleeping and waking up.

use super::*;

pub fn waiting_ends_with_the_time(bench: &Bench) {
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

pub fn a_ring_before_the_wait_is_not_lost(bench: &Bench) {
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

pub fn a_ring_wakes_a_sleeper(bench: &Bench) {
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
                // Most likely the thread sleeps by then; the result must be correct in any case.
                std::thread::sleep(Duration::from_millis(3));
                from.ring(10);
                from.ring(11);
            }
            assert!(sleeping.join().unwrap(), "the sleeper was not woken");
        });
    }
}

pub fn a_signal_loses_no_ring(bench: &Bench) {
    extern "C" fn nothing(_: libc::c_int) {}
    // SAFETY: the handler does nothing, so it is async-signal-safe; SA_RESTART is not set, so that system calls are
    // interrupted.
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
            // SAFETY: the call has no preconditions.
            let me = unsafe { libc::pthread_self() };
            tell.send(me).unwrap();
            let rung = to.wait(6, LONG);
            over.store(true, Ordering::SeqCst);
            // Wait until the other thread has stopped sending signals to this one.
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

pub fn a_ring_between_arming_and_sleeping_ends_the_sleep(bench: &Bench) {
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
        // Doorbells of other vectors do not wake it.
        bench.settle();
        let ticket = vector.arm();
        from.ring(7);
        assert!(!vector.sleep(ticket, SHORT));
        vector.disarm();
    }
}

pub fn sleepers_of_one_vector_all_wake(bench: &Bench) {
    let (from, to) = (bench.port(0, Side::Right), bench.port(1, Side::Left));
    // Armed at different times, with other arms and disarms in between.
    let vectors = [to.vector(3), to.vector(3), bench.port(1, Side::Right).vector(3)];
    let first = vectors[0].arm();
    vectors[1].arm();
    vectors[1].disarm();
    let third = vectors[2].arm();
    from.ring(3);
    assert!(vectors[0].sleep(first, LONG) && vectors[2].sleep(third, LONG));
    vectors[2].disarm();
    // A vector that is armed later is woken by the next ring, and so is one that is still armed.
    let (again, second) = (vectors[0].arm(), vectors[1].arm());
    from.ring(3);
    from.ring(3);
    assert!(vectors[0].sleep(again, LONG) && vectors[1].sleep(second, LONG));
    for vector in [&vectors[0], &vectors[0], &vectors[1]] {
        vector.disarm();
    }
    // The same with threads that really sleep.
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

pub fn a_vector_hears_both_links_and_its_own_host(bench: &Bench) {
    for host in [0, 1] {
        let others = [bench.port(1 - host, Side::Left), bench.port(1 - host, Side::Right)];
        for side in Side::BOTH {
            let vector = bench.port(host, side).vector(12);
            for ringing in 0..3 {
                let ticket = vector.arm();
                match others.get(ringing) {
                    Some(port) => port.ring(12),
                    None => bench.interrupt(host, 12),
                }
                assert!(vector.sleep(ticket, LONG));
                vector.disarm();
            }
        }
    }
}

/// The protocol of ranks and forwarders: look for work, arm, look once more, sleep. At any moment at which work is
/// deposited and the doorbell rung, the sleep ends.
pub fn no_deposit_is_slept_over(bench: &Bench) {
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
                    // The times vary.
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
                let start = Instant::now();
                let woken = vector.sleep(ticket, LONG);
                // The sleep may end early, and a deposit may be found whose doorbell has not been rung yet.
                let early = start.elapsed() < LONG;
                assert!(woken || early || found() == seen, "deposit {} was slept over", found());
            }
            vector.disarm();
            seen = found();
        }
    });
}
