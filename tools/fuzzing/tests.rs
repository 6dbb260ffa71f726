//! Short runs of all fuzzers, with fixed seeds.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, Once, PoisonError};

/// Number of panics in all threads of the program.
static PANICS: AtomicUsize = AtomicUsize::new(0);

/// Runs a fuzzer on `rounds` inputs of random bytes, and of a few values that are often special.
fn run(target: fn(&[u8]), rounds: usize, most: usize) {
    // One after the other: a fuzzer may count the descriptors and threads of the process.
    static RUNNING: Mutex<()> = Mutex::new(());
    let _running = RUNNING.lock().unwrap_or_else(PoisonError::into_inner);
    static COUNT: Once = Once::new();
    COUNT.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            PANICS.fetch_add(1, Ordering::SeqCst);
            before(info);
        }));
    });
    for seed in 0..rounds as u64 {
        let mut random = fastrand::Rng::with_seed(seed);
        let special = [0, 1, 2, 3, 4, 8, 0x7f, 0x80, 0xff];
        let byte =
            |random: &mut fastrand::Rng| if random.bool() { random.u8(..) } else { *random.choice(&special).unwrap() };
        let len = random.usize(..most);
        let data: Vec<u8> = (0..len).map(|_| byte(&mut random)).collect();
        target(&data);
        assert_eq!(PANICS.load(Ordering::SeqCst), 0, "a panic in a thread; seed {seed}");
    }
}

macro_rules! short_runs {
    ($($target:ident $rounds:literal $most:literal)*) => {
        $(#[test] fn $target() { run(crate::$target::run, $rounds, $most) })*
    };
}

short_runs! {
    addresses 2000 200
    agent_socket 100 300
    board 2000 400
    configuration 2000 200
    datagrams 500 600
    handshake 500 400
    lane 500 600
    link_setup 2000 400
    liveness 500 400
    manager 500 600
    neighbour 40 400
    network 1000 400
    packet 2000 100
    requests 2000 400
    settings 300 300
    tunnels 1000 400
    window 20 500
}
