//! Lanes over links with faults (`ntbring_ntb::fault`): duplicates and delays do no harm. Lost or damaged data is
//! delivered wrong, refused or missing, but breaks neither end.

use crate::{entry_max, Consumer, Producer, LINE, META_MAX, PAD};
use fastrand::Rng;
use ntbring_ntb::fault::{Faults, Faulty, Injector, Place};
use ntbring_ntb::loopback::LoopbackHost;
use ntbring_ntb::{Port, PortIndex, Side};
use std::time::{Duration, Instant};

/// Offset of the lane in its window; the credit is at the start of the other window.
const LANE: usize = 4096;

/// Both ends of a lane between two hosts, over a link with faults.
struct Cabled {
    producer: Producer,
    consumer: Consumer,
    _hosts: [LoopbackHost; 2],
}

impl Cabled {
    fn new(lines: usize, text: &str) -> Cabled {
        let window = (LANE + lines * LINE).next_multiple_of(4096) as u64;
        let hosts = [(); 2].map(|()| LoopbackHost::new(window as usize));
        let faulty = |host: usize, side| {
            let [left, right] = Side::BOTH.map(|side| {
                let on = |side: Side| PortIndex::ALL[side as usize];
                hosts[host].port(on(side), (&hosts[1 - host], on(side.opposite()))).unwrap()
            });
            let starts = [left.faults_since(false), right.faults_since(true)];
            let place = Place { host, process: 0, neighbours: [1 - host; 2] };
            let injector = Injector::new(Faults::parse(text).unwrap().unwrap(), place, starts);
            injector.begin();
            let port = if side == Side::Left { left } else { right };
            Faulty::new(port, side, injector).unwrap()
        };
        let (a, b) = (faulty(0, Side::Right), faulty(1, Side::Left));
        let to_b = a.outgoing(b.incoming_offset(), window).unwrap();
        let to_a = b.outgoing(a.incoming_offset(), window).unwrap();
        let producer = Producer::new(to_b.part(LANE, lines * LINE), a.incoming().part(0, 8));
        let consumer = Consumer::new(b.incoming().part(LANE, lines * LINE), to_a.part(0, 8));
        Cabled { producer, consumer, _hosts: hosts }
    }
}

/// Outcome of a transfer.
#[derive(Debug, PartialEq)]
enum End {
    /// All messages arrived as they were sent.
    Right,
    /// All messages arrived, but this many differ from those that were sent.
    Wrong(usize),
    /// The consumer refuses to continue, for this reason.
    Refused(String),
    /// There is no progress. The flags tell if the consumer sees that an entry is missing, and if the producer has no
    /// room.
    Stuck { gap: bool, full: bool },
}

struct Message {
    kind: u8,
    meta: u16,
    bytes: Vec<u8>,
}

fn message(rng: &mut Rng, max: usize) -> Message {
    let len = if rng.u8(..4) == 0 { rng.usize(..=max) } else { rng.usize(..=100) };
    let bytes = std::iter::repeat_with(|| rng.u8(..)).take(len).collect();
    Message { kind: rng.u8(..PAD), meta: rng.u16(..=META_MAX), bytes }
}

/// Sends messages through a lane; gives up after `timeout` without progress.
fn exchange(lines: usize, messages: usize, text: &str, timeout: Duration) -> End {
    let Cabled { mut producer, mut consumer, _hosts } = Cabled::new(lines, text);
    let (mut rng, mut sent, mut got, mut wrong) = (Rng::with_seed(1), Vec::new(), 0, 0);
    let max = producer.entry_max();
    let mut next = message(&mut rng, max);
    let mut moved = Instant::now();
    while got < messages {
        if sent.len() < messages {
            if let Some(mut slot) = producer.reserve(next.bytes.len()) {
                slot.write_bytes(0, &next.bytes);
                slot.commit(next.kind, next.bytes.len(), next.meta);
                sent.push(std::mem::replace(&mut next, message(&mut rng, max)));
                moved = Instant::now();
            }
        }
        match consumer.take() {
            Err(error) => return End::Refused(error.to_string()),
            Ok(Some(entry)) => {
                assert!(entry.len <= entry_max(lines) && entry.offset + entry.len <= lines * LINE);
                let mut bytes = vec![0; entry.len];
                consumer.window().read(entry.offset, &mut bytes);
                // A message that was never sent is wrong, too.
                let right = sent
                    .get(got)
                    .is_some_and(|m: &Message| (m.kind, m.meta, &m.bytes) == (entry.kind, entry.meta, &bytes));
                wrong += usize::from(!right);
                got += 1;
                consumer.release();
                moved = Instant::now();
            }
            Ok(None) if moved.elapsed() > timeout => {
                let full = sent.len() < messages && producer.reserve(next.bytes.len()).is_none();
                return End::Stuck { gap: consumer.gap().is_some(), full };
            }
            Ok(None) => std::thread::yield_now(),
        }
    }
    match wrong {
        0 => End::Right,
        _ => End::Wrong(wrong),
    }
}

#[test]
fn what_is_doubled_or_late_does_no_harm() {
    let timeout = Duration::from_secs(30);
    for (lines, messages) in [(16, 400), (40, 600), (600, 300)] {
        for text in ["double=0.5", "delay=0.02:100us", "double=0.3,delay=0.02:50us", "double=1,delay=0.3:5us"] {
            for seed in 1..=3 {
                let text = format!("{text},seed={seed}");
                assert_eq!(exchange(lines, messages, &text, timeout), End::Right, "{lines} lines, {text}");
            }
        }
    }
}

/// All outcomes of these faults, over many seeds. Nothing is delayed, so nothing has to be waited for.
fn ends(text: &str) -> Vec<End> {
    let timeout = Duration::from_millis(1);
    let one = |seed: usize| exchange([16, 33, 100][seed % 3], 300, &format!("{text},seed={seed}"), timeout);
    (0..150).map(one).collect()
}

#[test]
fn what_is_flipped_is_wrong_or_refused_or_missing_and_breaks_nothing() {
    let ends = ends("flip=0.002");
    for (what, found) in [
        ("wrong", ends.iter().any(|end| matches!(end, End::Wrong(_)))),
        ("refused", ends.iter().any(|end| matches!(end, End::Refused(_)))),
    ] {
        assert!(found, "no run in which something is {what}: {ends:?}");
    }
    // All faults at once, until hardly any data is unchanged.
    for text in ["flip=0.1", "flip=1", "flip=0.5,double=0.5"] {
        assert!(self::ends(text).iter().all(|end| *end != End::Right), "{text}");
    }
}

#[test]
fn what_is_lost_is_missing_and_the_consumer_can_tell() {
    let ends = ends("drop=0.002");
    let any = |wanted: fn(&End) -> bool| ends.iter().any(wanted);
    assert!(any(|end| matches!(end, End::Stuck { gap: true, .. })), "{ends:?}");
    // A lost head or a lost last tag leaves no gap; lost bytes are not noticed at all.
    assert!(any(|end| matches!(end, End::Wrong(_))), "{ends:?}");
    for text in ["drop=0.1", "drop=1", "drop=0.1,flip=0.1,double=0.5"] {
        assert!(self::ends(text).iter().all(|end| *end != End::Right), "{text}");
    }
}

/// Only heads are lost: the producer runs out of room, and nothing else is wrong.
#[test]
fn heads_that_are_lost_leave_the_lane_full() {
    let end = exchange(16, 300, "drop=1,link=1-0", Duration::from_millis(1));
    assert_eq!(end, End::Right, "that is the other link");
    let end = exchange(16, 300, "drop=1,link=left", Duration::from_millis(1));
    assert_eq!(end, End::Stuck { gap: false, full: true });
}
