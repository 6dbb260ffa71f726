//! Properties of the link model: data arrives no earlier than on the real link, nothing is lost, and no long stream is
//! faster than the link. An upper bound of the time depends on the machine, so only gross slowness is a failure; the
//! figures are printed.

mod common;

use common::ports::{aim, Bench, Dress, MODEL};
use common::ring::{run, Layout};
use common::traffic::{crossing, exchange, Plan, Shape};
use ntbring_emu::EmuHost;
use ntbring_endpoint::Settings;
use ntbring_memory::OutWindow;
use ntbring_ntb::fabric::{PortAddress, Windows};
use ntbring_ntb::split::split;
use ntbring_ntb::timing::model::NAMED;
use ntbring_ntb::timing::{Model, Timing};
use ntbring_ntb::{PortList, Side};
use ntbring_queue::{Consumer, Producer};
use std::sync::Mutex;
use std::time::{Duration, Instant};

const LATENCY: Duration = Duration::from_nanos(MODEL.latency);

/// Returns the time that bytes take on the link of the test bench.
fn transfer(bytes: usize) -> Duration {
    Duration::from_nanos(bytes as u64 * 1_000_000_000 / MODEL.bandwidth)
}

fn until(mut look: impl FnMut() -> bool) {
    while !look() {
        std::thread::yield_now();
    }
}

#[test]
fn a_deposit_is_not_seen_before_it_arrives() {
    for dress in [Dress::Timing, Dress::TraceWeakTiming] {
        let bench = Bench::new(dress);
        let mut shortest = Duration::MAX;
        for (from, to) in bench.cables() {
            let (out, incoming) = (aim(from.as_ref(), to.as_ref()), to.incoming());
            for round in 1..=50u64 {
                for len in [0, 8, 30_000] {
                    let word = round << 32 | len as u64;
                    let start = Instant::now();
                    out.write_bytes(64, &vec![round as u8; len]);
                    out.fence();
                    out.store(0, word);
                    out.fence();
                    until(|| incoming.load(0) == word);
                    let took = start.elapsed();
                    assert!(took >= LATENCY + transfer(len), "{len} bytes in {took:?}");
                    if len == 0 {
                        shortest = shortest.min(took);
                    }
                }
            }
        }
        println!("{dress:?}: a word takes {shortest:?} of {LATENCY:?}");
        assert!(shortest < 20 * LATENCY);
    }
}

#[test]
fn until_then_a_word_is_what_it_was() {
    let bench = Bench::new(Dress::Timing);
    let (from, to) = (bench.port(0, Side::Right), bench.port(1, Side::Left));
    let (out, incoming) = (aim(from.as_ref(), to.as_ref()), to.incoming());
    let mut old = 0;
    let mut seen = 0;
    for new in 1..200 {
        let start = Instant::now();
        out.store(128, new);
        let value = incoming.load(128);
        if start.elapsed() < LATENCY {
            assert_eq!(value, old);
            seen += 1;
        }
        until(|| incoming.load(128) == new);
        old = new;
    }
    assert!(seen > 0);
}

#[test]
fn words_arrive_in_the_order_in_which_they_were_sent() {
    const WORDS: usize = 500;
    let bench = Bench::new(Dress::Timing);
    let (from, to) = (bench.port(0, Side::Right), bench.port(1, Side::Left));
    let (out, incoming) = (aim(from.as_ref(), to.as_ref()), to.incoming());
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for i in 0..WORDS {
                out.write_bytes(64 * i + 8, &[1; 40]);
                out.fence();
                out.store(64 * i, 1);
                out.fence();
            }
        });
        let mut arrived = 0;
        while arrived < WORDS {
            // From the last word to the first: a word that has arrived implies that all earlier ones have.
            let newest = (arrived..WORDS).rev().find(|i| incoming.load(64 * i) != 0);
            if let Some(newest) = newest {
                assert!((arrived..newest).all(|i| incoming.load(64 * i) == 1), "{newest} has overtaken another");
                arrived = newest + 1;
            }
        }
    });
}

/// Senders in different processes of a host share the link.
#[test]
fn all_senders_of_a_host_share_the_link() {
    const EACH: usize = 4 << 20;
    let bench = Bench::new(Dress::Timing);
    let windows = Windows { bytes: common::ports::WINDOW as u64, accounts: true, ports: PortList::DEFAULT };
    let [a, b] = &bench.hosts[..] else { panic!("two hosts") };
    let process = || {
        let host = EmuHost::attach(&a.fabric().address(), windows, None).unwrap();
        let pair = Side::BOTH.map(|side| {
            let opposite = PortAddress { host: b.fabric().address(), port: bench.index(1, side.opposite()) };
            host.soft_port(bench.index(0, side), &opposite).unwrap()
        });
        Timing::pair(pair, MODEL).unwrap()
    };
    let processes = [process(), process()];
    let to = bench.port(1, Side::Left);
    let start = Instant::now();
    std::thread::scope(|scope| {
        for (i, [_, from]) in processes.iter().enumerate() {
            let out: OutWindow = aim(from, to.as_ref());
            scope.spawn(move || {
                let bytes = vec![1; 16 << 10];
                for _ in 0..EACH / bytes.len() {
                    out.write_bytes(1024 + 20_000 * i, &bytes);
                    out.fence();
                }
                out.store(64 * i, 1);
            });
        }
    });
    until(|| to.incoming().load(0) == 1 && to.incoming().load(64) == 1);
    let took = start.elapsed();
    println!("two senders: {took:?} of {:?}", transfer(2 * EACH));
    assert!(took >= transfer(2 * EACH) + LATENCY);
    // The other direction and the other cable have been idle all the time.
    let [_, right] = &processes[0];
    for (from, to) in [
        (bench.port(1, Side::Left), bench.port(0, Side::Right)),
        (bench.port(0, Side::Left), bench.port(1, Side::Right)),
    ] {
        let out = aim(from.as_ref(), to.as_ref());
        aim(right, bench.port(1, Side::Left).as_ref()).write_bytes(0, &[0; 60_000]);
        let start = Instant::now();
        out.store(4096, 5);
        until(|| to.incoming().load(4096) == 5);
        println!("beside a busy link: {:?}", start.elapsed());
    }
}

/// Streams through one lane, with one thread as both ends. Each stream is so short that the scheduler does not
/// interrupt the best of them.
#[test]
fn a_lane_comes_close_to_the_link() {
    const CHUNK: usize = 8 << 10;
    const CHUNKS: usize = 256;
    for (name, model) in NAMED {
        let bench = Bench::with_model(Dress::Timing, model);
        let (a, b) = (bench.port(0, Side::Right), bench.port(1, Side::Left));
        let lane = (4096, 48 << 10);
        let (there, back) = (aim(a.as_ref(), b.as_ref()), aim(b.as_ref(), a.as_ref()));
        let mut producer = Producer::new(there.part(lane.0, lane.1), a.incoming().part(0, 8));
        let mut consumer = Consumer::new(b.incoming().part(lane.0, lane.1), back.part(0, 8));
        let (bytes, mut taken) = (vec![7; CHUNK], vec![0; CHUNK]);
        let least = Duration::from_nanos((CHUNK * CHUNKS) as u64 * 1_000_000_000 / model.bandwidth + model.latency);
        let mut best = Duration::MAX;
        for _ in 0..30 {
            let (start, mut sent, mut got) = (Instant::now(), 0, 0);
            while got < CHUNKS {
                if sent < CHUNKS {
                    if let Some(mut slot) = producer.reserve(CHUNK) {
                        slot.write_bytes(0, &bytes);
                        slot.commit(1, CHUNK, 0);
                        sent += 1;
                    }
                }
                if let Some(entry) = consumer.take().unwrap() {
                    consumer.window().read(entry.offset, &mut taken);
                    consumer.release();
                    got += 1;
                }
            }
            let took = start.elapsed();
            assert!(took >= least, "{name}: {took:?} instead of at least {least:?}");
            best = best.min(took);
        }
        println!("{name}: a lane reaches {:.1} % of the link", 100.0 * least.as_secs_f64() / best.as_secs_f64());
        assert!(best < 20 * least);
    }
}

#[test]
fn a_ring_takes_effect_when_it_arrives() {
    let bench = Bench::new(Dress::Timing);
    let (from, to) = (bench.port(0, Side::Right), bench.port(1, Side::Left));
    let least = LATENCY + Duration::from_nanos(MODEL.doorbell);
    for sleep_first in [false, true].repeat(20) {
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| {
                let rung = to.wait(3, Duration::from_secs(30));
                (rung, Instant::now())
            });
            if sleep_first {
                std::thread::sleep(Duration::from_millis(2));
            }
            let start = Instant::now();
            from.ring(3);
            let (rung, end) = waiting.join().unwrap();
            assert!(rung && end - start >= least, "{:?}", end - start);
        });
    }
}

#[test]
fn registers_cost_their_time() {
    let bench = Bench::new(Dress::Timing);
    let port = bench.port(0, Side::Left);
    let start = Instant::now();
    for _ in 0..100 {
        port.scratchpad(0);
        port.peer_scratchpad(1, 2);
        port.doorbells();
        port.clear_doorbells(0);
    }
    assert!(start.elapsed() >= Duration::from_nanos(400 * MODEL.register));
}

/// Sends `messages` of `size` bytes through a whole ring from rank 0 to `dst`. Returns the time from the first send to
/// the last receive.
fn stream(layout: &Layout, settings: &Settings, dst: u32, messages: usize, size: usize) -> Duration {
    let plan: Box<Plan> = Box::new(move |from, to| match (from, to) {
        (0, to) if to == dst => vec![Shape::contiguous(48, size); messages],
        _ => vec![],
    });
    let (start, end) = (Mutex::new(None), Mutex::new(None));
    run(layout, settings, |rank| {
        rank.barrier()?;
        if rank.rank == 0 {
            *start.lock().unwrap() = Some(Instant::now());
        }
        exchange(rank, 1, plan.as_ref())?;
        if rank.rank == dst {
            *end.lock().unwrap() = Some(Instant::now());
        }
        Ok(())
    });
    let (start, end) = (start.into_inner().unwrap().unwrap(), end.into_inner().unwrap().unwrap());
    end - start
}

/// A model that is slower than any machine that checks every byte on the way.
const SLOW: Model = Model { bandwidth: 100_000_000, latency: 20_000, doorbell: 5_000, register: 1_000, transfer: None };

#[test]
fn no_stream_is_faster_than_the_link() {
    for (hosts, dst) in [(2, 1), (4, 2), (5, 3)] {
        for (messages, size) in [(40, 100_000), (400, 5_000), (3000, 8)] {
            for spin in [None, Some(0)] {
                let settings = Settings::default().with(|s| {
                    s.links.model = Some(SLOW);
                    s.endpoint.spin = spin;
                });
                let took = stream(&Layout::blocks(&vec![1; hosts]), &settings, dst, messages, size);
                let shape = Shape::contiguous(48, size);
                let bytes: u64 = (0..messages).map(|n| crossing(n, shape) as u64).sum();
                let least = Duration::from_nanos(bytes * 1_000_000_000 / SLOW.bandwidth + SLOW.latency);
                let share = least.as_secs_f64() / took.as_secs_f64();
                println!("{hosts} hosts, to {dst}: {messages} x {size} bytes: {:.0} % of the link", 100.0 * share);
                assert!(took >= least, "{took:?} instead of at least {least:?}");
                assert!(size < 1000 || share > 0.02, "{took:?} instead of {least:?}");
            }
        }
    }
}

/// Adds all complications: weak ordering, ranks that sleep at once, full lanes.
#[test]
fn everything_arrives_under_a_model() {
    for (ranks, weak) in [(&[1, 1][..], None), (&[2, 1, 2], None), (&[1, 2, 1, 1], None), (&[1, 1, 1, 1, 1], Some(5))] {
        let layout = Layout::blocks(ranks);
        let plan = |src: u32, dst: u32| {
            let mut rng = fastrand::Rng::with_seed(u64::from(src * 100 + dst));
            (0..20).map(|i| Shape::contiguous(48, rng.usize(..if i % 7 == 0 { 60_000 } else { 900 }))).collect()
        };
        for (spin, model) in
            [(None, "gen3x8"), (Some(0), "bandwidth=500M,latency=30us"), (Some(0), "latency=0ns,doorbell=0ns")]
        {
            let link_model = Model::parse(model).unwrap();
            let settings = Settings::default().with(|s| {
                s.links.model = link_model;
                s.links.weak = weak;
                s.endpoint.spin = spin;
                s.endpoint.yields = 0;
                s.ring.window = Some(128 << 10);
            });
            run(&layout, &settings, |rank| exchange(rank, 9, &plan).map(drop));
        }
    }
}

#[test]
fn what_is_too_long_for_the_device_breaks_off() {
    let bench = Bench::with_model(Dress::Timing, Model { transfer: Some(1024), ..MODEL });
    let (from, to) = bench.cables().remove(0);
    assert_eq!(from.caps().max_transfer, Some(1024));
    let out = aim(from.as_ref(), to.as_ref());
    for (window, expected) in [(out.clone(), 1024), (split(out, 1024), 5000)] {
        window.write_bytes(64, &[0; 5000]);
        window.write_bytes(64, &[1; 5000]);
        window.fence();
        let mut bytes = [0; 5000];
        to.incoming().read(64, &mut bytes);
        assert_eq!(bytes.iter().filter(|&&byte| byte == 1).count(), expected);
    }
}

#[test]
fn decorators_tell_the_limit_of_the_device() {
    for (dress, limit) in [(Dress::TraceWeakTiming, Some(2048)), (Dress::TraceWeakDoubled, None), (Dress::Emu, None)] {
        let bench = Bench::with_model(dress, Model { transfer: Some(2048), ..MODEL });
        assert_eq!(bench.port(0, Side::Left).caps().max_transfer, limit, "{dress:?}");
    }
}

#[test]
fn messages_are_whole_over_devices_that_take_little_at_once() {
    let model = Model { transfer: Some(1024), bandwidth: 6_000_000_000, latency: 0, doorbell: 0, register: 0 };
    let plan = |_: u32, _: u32| [8, 1000, 8_000, 8_192, 100_000].map(|size| Shape::contiguous(48, size)).to_vec();
    for layout in [Layout::blocks(&[1, 1]), Layout::blocks(&[1; 4])] {
        for weak in [None, Some(3)] {
            let settings = Settings::default().with(|s| {
                s.links.model = Some(model);
                s.links.weak = weak;
                s.ring.chunk = Some(8 << 10);
            });
            run(&layout, &settings, |rank| exchange(rank, 5, &plan).map(drop));
        }
    }
}
