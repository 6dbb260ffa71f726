//! Tests with a host that has faulty ports, cabled to a host that observes the arriving writes.

use super::*;
use crate::fabric::Fabric;
use crate::loopback::LoopbackHost;
use crate::software::SoftPort;
use crate::{PortIndex, Side};
use ntbring_memory::{InWindow, Region, WriteSink};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

const WINDOW: u64 = 64 << 10;

struct Bench {
    hosts: [LoopbackHost; 2],
    injector: Arc<Injector>,
    /// The faulty ports of host 0, left and right.
    from: [Faulty; 2],
    /// The ports of host 1 at the other ends of the links.
    to: [SoftPort; 2],
}

/// Returns the port that leads in a direction.
fn on(side: Side) -> PortIndex {
    PortIndex::ALL[side as usize]
}

/// Returns the port of host 0 or 1 on `side`, cabled to the other host.
fn port(hosts: &[LoopbackHost; 2], host: usize, side: Side) -> SoftPort {
    hosts[host].port(on(side), (&hosts[1 - host], on(side.opposite()))).unwrap()
}

impl Bench {
    /// Returns a bench on which faults have not begun.
    fn quiet(text: &str) -> Bench {
        let hosts = [(); 2].map(|()| LoopbackHost::new(WINDOW as usize));
        let pair = Side::BOTH.map(|side| port(&hosts, 0, side));
        let place = Place { host: 0, process: 0, neighbours: [1, 1] };
        let starts = [pair[0].faults_since(false), pair[1].faults_since(true)];
        let injector = Injector::new(Faults::parse(text).unwrap().unwrap(), place, starts);
        let [left, right] = pair;
        let from = [(left, Side::Left), (right, Side::Right)]
            .map(|(port, side)| Faulty::new(port, side, injector.clone()).unwrap());
        let to = Side::BOTH.map(|side| port(&hosts, 1, side.opposite()));
        Bench { hosts, injector, from, to }
    }

    fn new(text: &str) -> Bench {
        let bench = Bench::quiet(text);
        bench.injector.begin();
        bench
    }

    fn out(&self, side: Side) -> OutWindow {
        self.from[side as usize].outgoing(self.to[side as usize].incoming_offset(), WINDOW).unwrap()
    }

    fn incoming(&self, side: Side) -> InWindow {
        self.to[side as usize].incoming()
    }

    fn count(&self, of: fn(&Injected) -> &AtomicU64) -> u64 {
        of(self.injector.injected()).load(Ordering::Relaxed)
    }
}

fn until(mut look: impl FnMut() -> bool) {
    let start = Instant::now();
    while !look() {
        assert!(start.elapsed() < Duration::from_secs(30), "it never comes");
        std::thread::yield_now();
    }
}

/// Returns for each of 2000 words whether it arrives.
fn arrivals(text: &str, side: Side) -> Vec<bool> {
    let bench = Bench::new(text);
    let out = bench.out(side);
    (0..2000).for_each(|n| out.store(8 * n, 1));
    out.fence();
    (0..2000).map(|n| bench.incoming(side).load(8 * n) == 1).collect()
}

#[test]
fn faults_begin_when_the_ring_is_joined() {
    let bench = Bench::quiet("drop=1,bell=1");
    let (out, port) = (bench.out(Side::Right), &bench.from[1]);
    let send = |n: u64| {
        out.store(0, n);
        out.fence();
        port.peer_scratchpad(2, n as u32);
        port.ring(n as usize);
    };
    let seen = || (bench.incoming(Side::Right).load(0), bench.to[1].scratchpad(2), bench.to[1].doorbells());
    send(7);
    assert_eq!(seen(), (7, 7, 1 << 7));
    bench.injector.begin();
    send(8);
    assert_eq!(seen(), (7, 7, 1 << 7));
    assert_eq!((bench.count(|i| &i.drops), bench.count(|i| &i.bells)), (2, 1));
    assert!(port.shortcuts() == Shortcuts::ALL.past_links() && port.link() == LinkState::Up);
    // Faults may also begin at once, or later.
    assert!(Bench::quiet("drop=1,from=start").injector.since(Side::Left).is_some());
    assert!(Bench::new("drop=1,from=join:1000s").injector.since(Side::Left).is_none());
}

#[test]
fn the_same_seed_does_the_same() {
    let lost = arrivals("drop=0.3,seed=5", Side::Right);
    assert_eq!(lost, arrivals("drop=0.3,seed=5", Side::Right));
    assert_ne!(lost, arrivals("drop=0.3,seed=6", Side::Right));
    assert_ne!(lost, arrivals("drop=0.3,seed=5", Side::Left));
    let arrived = lost.iter().filter(|&&arrived| arrived).count();
    assert!((1300..1500).contains(&arrived), "{arrived} of 2000 have arrived");
    // Other links have no faults.
    assert!(arrivals("drop=1,link=left", Side::Right).iter().all(|&arrived| arrived));
    assert!(arrivals("drop=1,link=0-1", Side::Left).iter().all(|&arrived| arrived));
    assert!(arrivals("drop=1,link=0-1", Side::Right).iter().all(|&arrived| !arrived));
}

#[test]
fn a_flip_is_one_bit_of_each_line() {
    let bench = Bench::new("flip=1");
    let out = bench.out(Side::Right);
    out.write_bytes(32, &[0; 256]);
    out.store(640, 0);
    out.fence();
    let mut bytes = [0u8; 704];
    bench.incoming(Side::Right).read(0, &mut bytes);
    let bits = |range: std::ops::Range<usize>| bytes[range].iter().map(|b| b.count_ones()).sum::<u32>();
    let pieces = [32..64, 64..128, 128..192, 192..256, 256..288, 640..648];
    assert_eq!(pieces.map(bits), [1; 6]);
    assert_eq!((bits(0..704), bench.count(|i| &i.flips)), (6, 6));
    bench.from[1].peer_scratchpad(0, 0);
    assert_eq!(bench.to[1].scratchpad(0).count_ones(), 1);
}

#[test]
fn lines_are_lost_whole_and_the_rest_arrives() {
    let bench = Bench::new("drop=0.5");
    let out = bench.out(Side::Left);
    out.write_bytes(0, &[7; 64 * 100]);
    assert_eq!(out.fill(64 * 100, 640, |room| room.len()), 640);
    out.fence();
    let mut bytes = [0u8; 64 * 100];
    bench.incoming(Side::Left).read(0, &mut bytes);
    let lines: Vec<_> = bytes.chunks(64).collect();
    assert!(lines.iter().all(|line| *line == [0; 64] || *line == [7; 64]));
    let lost = lines.iter().filter(|line| line[0] == 0).count();
    assert!((20..80).contains(&lost));
    assert!(bench.count(|i| &i.drops) >= lost as u64);
}

#[test]
fn what_is_doubled_arrives_again_before_the_next_fence() {
    let bench = Bench::new("double=1");
    let out = bench.out(Side::Right);
    let plain = port(&bench.hosts, 0, Side::Right);
    let plain = plain.outgoing(bench.to[1].incoming_offset(), WINDOW).unwrap();
    out.store(0, 5);
    out.write_bytes(64, &[6; 8]);
    plain.store(0, 1);
    plain.store(64, 1);
    let seen = || [0, 64].map(|at| bench.incoming(Side::Right).load(at));
    assert_eq!(seen(), [1, 1]);
    out.fence();
    assert_eq!(seen(), [5, 0x0606_0606_0606_0606]);
    plain.store(0, 2);
    out.fence();
    assert_eq!((seen()[0], bench.count(|i| &i.doubles)), (2, 2));
}

#[test]
fn what_is_late_holds_up_what_comes_after_the_fence() {
    // The first write is late, the others are not: found by its seed, as a user would.
    let seed = (1..).find(|&seed| {
        let faults = Faults::parse(&format!("delay=0.5:1us,seed={seed}")).unwrap().unwrap();
        let dice = dice::Dice::new(&faults, &Place { host: 0, process: 0, neighbours: [1, 1] }, Side::Right);
        let late: Vec<bool> = (0..4).map(|n| dice.write(n, 64).late).collect();
        late == [true, false, false, false] && !dice.ring(0).late
    });
    let bench = Bench::new(&format!("delay=0.5:200ms,seed={}", seed.unwrap()));
    let (out, incoming) = (bench.out(Side::Right), bench.incoming(Side::Right));
    let start = Instant::now();
    out.store(0, 1);
    out.store(64, 2);
    assert_eq!(incoming.load(64), 2, "what is not behind a fence may pass");
    out.fence();
    out.store(128, 3);
    out.fence();
    out.write_bytes(192, &4u64.to_le_bytes());
    out.fence();
    bench.from[1].ring(3);
    let seen = || ([0, 128, 192].map(|at| incoming.load(at)), bench.to[1].doorbells());
    let before = seen();
    // If the machine has paused for longer than the delay, the result proves nothing.
    assert!(before == ([0, 0, 0], 0) || start.elapsed() > Duration::from_millis(200), "{before:?}");
    until(|| bench.to[1].doorbells() != 0);
    assert_eq!(seen(), ([1, 3, 4], 1 << 3));
    assert!(start.elapsed() >= Duration::from_millis(200));
    assert_eq!(bench.count(|i| &i.delays), 1);
    // The queue of delayed writes is empty again.
    out.store(0, 9);
    out.fence();
    until(|| incoming.load(0) == 9);
}

#[test]
fn what_is_held_up_arrives_when_the_port_goes() {
    let bench = Bench::new("delay=1:1000s");
    let incoming = bench.incoming(Side::Right);
    {
        let out = bench.out(Side::Right);
        out.store(8, 1);
        out.fence();
        out.store(0, 1);
        out.fence();
    }
    assert_eq!([0, 8].map(|at| incoming.load(at)), [0, 0]);
    drop(bench.from);
    assert_eq!([0, 8].map(|at| incoming.load(at)), [1, 1]);
}

#[test]
fn writes_of_many_threads_keep_their_order_however_late_they_are() {
    let bench = Bench::new("delay=0.2:100us,double=0.2,seed=3");
    let (out, incoming) = (bench.out(Side::Right), bench.incoming(Side::Right));
    std::thread::scope(|scope| {
        for thread in 0..3 {
            let out = out.part(4096 * thread, 4096);
            scope.spawn(move || {
                for n in 1..=120u64 {
                    out.write_bytes(64, &[n as u8; 200]);
                    out.fence();
                    out.store(0, n);
                    out.fence();
                }
            });
        }
        let mut last = [0; 3];
        until(|| {
            for (thread, last) in last.iter_mut().enumerate() {
                let at = 4096 * thread;
                let word = incoming.load(at);
                assert!(word >= *last, "back in time");
                *last = word;
                let mut bytes = [0; 200];
                incoming.read(at + 64, &mut bytes);
                // The bytes belong to the word's message or to a newer one, never to an older one.
                let newer = |b: u8| u64::from(b) >= word;
                assert!(bytes.iter().all(|&b| newer(b)), "{word}: {bytes:?}");
            }
            last == [120; 3]
        });
    });
}

#[test]
fn a_link_is_down_at_its_times_for_both_ends() {
    let bench = Bench::quiet("down=at:0s:for:300ms+left:at:0s");
    let peer = port(&bench.hosts, 1, Side::Left);
    let place = Place { host: 1, process: 0, neighbours: [0, 0] };
    let starts = [peer.faults_since(false), Region::anonymous(8)];
    let other = Injector::new(bench.injector.faults().clone(), place, starts);
    let peer = Faulty::new(peer, Side::Left, other.clone()).unwrap();
    let (out, incoming, port) = (bench.out(Side::Right), bench.incoming(Side::Right), &bench.from[1]);
    let start = Instant::now();
    bench.injector.begin();
    out.store(0, 1);
    out.write_bytes(64, &[1; 65]);
    out.fence();
    port.ring(1);
    let down = (port.link(), incoming.load(0), incoming.load(64), bench.to[1].doorbells());
    let in_time = start.elapsed() < Duration::from_millis(300);
    assert!(down == (LinkState::Down, 0, 0, 0) || !in_time);
    assert!(bench.count(|i| &i.outages) == 4 || !in_time);
    // The other end has joined later, but the schedule is that of the link: this one's is the left
    // port, whose link never comes up again.
    std::thread::sleep(Duration::from_millis(310));
    other.begin();
    assert_eq!((port.link(), peer.link()), (LinkState::Up, LinkState::Down));
    assert_eq!((port.outages(), peer.outages()), (1, 2));
    assert!(other.since(Side::Left).unwrap() >= Duration::from_millis(300));
    out.store(0, 2);
    out.fence();
    port.ring(1);
    assert_eq!((incoming.load(0), bench.to[1].doorbells()), (2, 2));
}

#[test]
fn a_link_goes_down_and_up_on_command() {
    let bench = Bench::new("command");
    let (out, incoming, port) = (bench.out(Side::Right), bench.incoming(Side::Right), &bench.from[1]);
    let host = &bench.hosts[0];
    for (n, state) in [(1, LinkState::Up), (2, LinkState::Down), (3, LinkState::Up)] {
        host.set_link(on(Side::Right), state);
        // Setting the same state again changes nothing.
        host.set_link(on(Side::Right), state);
        assert_eq!((port.link(), bench.from[0].link()), (state, LinkState::Up));
        assert_eq!((port.outages(), bench.from[0].outages()), (u64::from(n > 1), 0));
        out.store(0, n);
        out.fence();
        port.ring(n as usize);
        assert_eq!(incoming.load(0), if state == LinkState::Up { n } else { 1 });
    }
    assert_eq!(bench.to[1].doorbells(), 1 << 1 | 1 << 3);
    assert_eq!(bench.count(|i| &i.outages), 2);
}

#[test]
fn stuck_doorbells_never_ring_and_others_do() {
    let bench = Bench::new("stuck=0+5");
    for bell in 0..8 {
        bench.from[0].ring(bell);
    }
    assert_eq!(bench.to[0].doorbells(), 0xff & !(1 | 1 << 5));
    assert_eq!(bench.count(|i| &i.bells), 2);
    assert!(bench.injector.injected().to_string().contains("2 rings lost"));
}

/// A sink that blocks writes while it is closed.
struct Gate {
    plain: OutWindow,
    closed: AtomicBool,
    waiting: AtomicBool,
}

impl WriteSink for Gate {
    fn write(&self, offset: usize, bytes: &[u8]) {
        while self.closed.load(Ordering::Acquire) {
            self.waiting.store(true, Ordering::Release);
            std::thread::yield_now();
        }
        self.plain.write_bytes(offset, bytes);
    }
    fn store(&self, offset: usize, value: u64) {
        self.plain.store(offset, value);
    }
    fn fence(&self) {
        self.plain.fence();
    }
}

/// Ranks and forwarder threads share a window: the fence of one thread may be about to deliver a write that another
/// thread has doubled, while that other thread continues.
#[test]
fn no_double_arrives_after_a_fence_of_its_own_thread_because_another_thread_delivers_it() {
    let bench = Bench::new("double=1");
    let plain = OutWindow::new(Region::anonymous(4096));
    let gate = Arc::new(Gate { plain: plain.clone(), closed: AtomicBool::new(false), waiting: AtomicBool::new(false) });
    let behind = gate.clone();
    let plain = plain.with_sink(move |_| behind);
    let sink = Sink::new(plain, bench.from[1].wire.clone());
    sink.write(64, &[1; 8]);
    gate.closed.store(true, Ordering::Release);
    std::thread::scope(|scope| {
        scope.spawn(|| sink.fence());
        until(|| gate.waiting.load(Ordering::Acquire));
        let own = scope.spawn(|| sink.fence());
        std::thread::sleep(Duration::from_millis(30));
        let passed = own.is_finished();
        gate.closed.store(false, Ordering::Release);
        assert!(!passed, "a fence has passed a write before it");
    });
}
