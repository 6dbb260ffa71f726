//! Checked lanes over links that lose, corrupt, duplicate and delay writes, in virtual time.

use crate::{Consumer, Corrupt, Producer, Reliability, LINE};
use fastrand::Rng;
use ntbring_memory::{InWindow, OutWindow, Region, WriteSink};
use proptest::prelude::*;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Probability of each fault, per write.
#[derive(Clone, Copy, Debug, Default)]
struct Faults {
    lost: f64,
    flipped: f64,
    /// The write arrives once more, later, when the lines may be used for another entry.
    doubled: f64,
}

struct State {
    rng: Rng,
    faults: Faults,
    late: Vec<(usize, Vec<u8>)>,
    done: u64,
}

/// A link with faults. Each line of a longer write is a separate write.
#[derive(Clone)]
struct Link(Arc<Mutex<State>>, OutWindow);

impl Link {
    fn over(window: OutWindow, faults: Faults, seed: u64) -> OutWindow {
        let state = State { rng: Rng::with_seed(seed), faults, late: Vec::new(), done: 0 };
        window.with_sink(|plain| Arc::new(Link(Arc::new(Mutex::new(state)), plain)))
    }

    fn post(&self, offset: usize, mut bytes: Vec<u8>) {
        let State { rng, faults, late, done } = &mut *self.0.lock().unwrap();
        if rng.f64() < faults.lost {
            *done += 1;
            return;
        }
        if rng.f64() < faults.flipped {
            let bit = rng.usize(..8 * bytes.len());
            bytes[bit / 8] ^= 1 << (bit % 8);
            *done += 1;
        }
        if rng.f64() < faults.doubled {
            late.push((offset, bytes.clone()));
            *done += 1;
        }
        self.1.write_bytes(offset, &bytes);
        if rng.u8(..) < 8 && !late.is_empty() {
            let (offset, bytes) = late.swap_remove(rng.usize(..late.len()));
            self.1.write_bytes(offset, &bytes);
        }
    }
}

impl WriteSink for Link {
    fn write(&self, offset: usize, bytes: &[u8]) {
        let mut at = 0;
        while at < bytes.len() {
            let n = (LINE - (offset + at) % LINE).min(bytes.len() - at);
            self.post(offset + at, bytes[at..at + n].to_vec());
            at += n;
        }
    }
    fn store(&self, offset: usize, value: u64) {
        self.post(offset, value.to_le_bytes().to_vec());
    }
    fn fence(&self) {}
}

fn message(i: usize, max: usize) -> Vec<u8> {
    let mut rng = Rng::with_seed(i as u64);
    let len = if rng.bool() { rng.usize(..=max) } else { rng.usize(..=60).min(max) };
    std::iter::repeat_with(|| rng.u8(..)).take(len).collect()
}

struct Outcome {
    /// Number of messages that arrived, all of them correct and in order.
    arrived: usize,
    error: Option<Corrupt>,
    resent: u64,
    damaged: u64,
}

/// Sends this many messages and takes them, until all are acknowledged or an error occurs.
fn exchange(mode: Reliability, lines: usize, messages: usize, faults: Faults, seed: u64) -> Outcome {
    // Layout: the announced tail is behind the lane; the credits are head and complaint.
    let (memory, credits) = (Region::anonymous((lines + 1) * LINE), Region::anonymous(16));
    let outgoing = Link::over(OutWindow::new(memory.clone()), faults, seed);
    let returning = Link::over(OutWindow::new(credits.clone()), faults, !seed);
    let incoming = InWindow::new(memory);
    let (lane, tail) = (outgoing.part(0, lines * LINE), outgoing.part(lines * LINE, 8));
    let mut producer = Producer::new(lane, InWindow::new(credits)).checked(mode, tail);
    let (lane, tail) = (incoming.part(0, lines * LINE), incoming.part(lines * LINE, 8));
    let mut consumer = Consumer::new(lane, returning).checked(mode, tail);

    let max = producer.entry_max();
    let mut rng = Rng::with_seed(seed ^ 99);
    let mut now = Instant::now();
    let (mut sent, mut arrived) = (0, 0);
    for _ in 0..400_000 {
        if arrived == messages && producer.is_settled() {
            while consumer.held() > 0 {
                consumer.release();
            }
            assert!(matches!(consumer.take(), Ok(None)));
            let (resent, damaged) = (producer.resent(), consumer.damaged());
            return Outcome { arrived, error: None, resent, damaged };
        }
        now += Duration::from_micros(rng.u64(..50));
        match rng.u8(..4) {
            0 if sent < messages => {
                let bytes = message(sent, max);
                if let Some(mut slot) = producer.reserve(bytes.len()) {
                    slot.write_bytes(0, &bytes);
                    slot.commit(1, bytes.len(), sent as u16 & 0x7fff);
                    sent += 1;
                }
            }
            1 => drop(producer.look_after(now).expect("a link that is that bad is another test")),
            2 if consumer.held() > 0 && rng.bool() => drop(consumer.release()),
            _ => match consumer.take() {
                Ok(None) => {
                    while consumer.held() > 0 {
                        consumer.release();
                    }
                }
                Ok(Some(entry)) => {
                    let mut bytes = vec![0; entry.len];
                    consumer.window().read(entry.offset, &mut bytes);
                    assert_eq!((entry.kind, entry.meta), (1, arrived as u16 & 0x7fff));
                    assert_eq!(bytes, message(arrived, max), "message {arrived}");
                    arrived += 1;
                }
                Err(error) => {
                    return Outcome { arrived, error: Some(error), resent: 0, damaged: 0 };
                }
            },
        }
    }
    panic!("{arrived} of {sent} have arrived, and nothing moves");
}

const FINE: Faults = Faults { lost: 0.0, flipped: 0.0, doubled: 0.0 };

#[test]
fn a_good_link_needs_no_retries() {
    for mode in [Reliability::Detect, Reliability::Retry] {
        let outcome = exchange(mode, 64, 2000, FINE, 1);
        assert_eq!((outcome.arrived, outcome.error, outcome.resent, outcome.damaged), (2000, None, 0, 0));
    }
}

#[test]
fn whatever_a_bad_link_does_is_mended_or_noticed() {
    let bad = Faults { lost: 0.05, flipped: 0.05, doubled: 0.05 };
    let outcome = exchange(Reliability::Retry, 64, 2000, bad, 5);
    assert_eq!((outcome.arrived, outcome.error), (2000, None));
    assert!(outcome.resent > 100 && outcome.damaged > 100, "{} {}", outcome.resent, outcome.damaged);
    let outcome = exchange(Reliability::Detect, 64, 2000, bad, 5);
    assert!(matches!(outcome.error, Some(Corrupt::Damaged { .. })) && outcome.arrived < 2000);
}

#[test]
fn a_link_that_damages_everything_is_given_up() {
    let lines = 16;
    let (memory, credits) = (Region::anonymous((lines + 1) * LINE), Region::anonymous(16));
    let dead = Faults { flipped: 1.0, ..FINE };
    let lane = Link::over(OutWindow::new(memory.clone()), dead, 1).part(0, lines * LINE);
    let tail = OutWindow::new(memory.clone()).part(lines * LINE, 8);
    let mut producer = Producer::new(lane, InWindow::new(credits.clone())).checked(Reliability::Retry, tail);
    let incoming = InWindow::new(memory);
    let (lane, tail) = (incoming.part(0, lines * LINE), incoming.part(lines * LINE, 8));
    let mut consumer = Consumer::new(lane, OutWindow::new(credits)).checked(Reliability::Retry, tail);
    producer.reserve(8).unwrap().commit(1, 8, 0);
    let mut now = Instant::now();
    for _ in 0..1_000_000 {
        assert_eq!(consumer.take(), Ok(None));
        now += Duration::from_millis(1);
        if let Err(error) = producer.look_after(now) {
            assert!(error.to_string().contains("after 1001 transmissions"), "{error}");
            return;
        }
    }
    panic!("it was never given up");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn every_message_arrives_once_and_in_order(
        lines in 16usize..200,
        (lost, flipped, doubled) in (0.0..0.02, 0.0..0.02, 0.0..0.02),
        seed: u64,
    ) {
        let faults = Faults { lost, flipped, doubled };
        let outcome = exchange(Reliability::Retry, lines, 300, faults, seed);
        prop_assert_eq!((outcome.arrived, outcome.error), (300, None));
    }

    #[test]
    fn what_is_wrong_is_never_handed_out(
        (lost, flipped, doubled) in (0.0..0.02, 0.0..0.02, 0.0..0.02),
        seed: u64,
    ) {
        // The messages that arrive are compared with those that were sent.
        exchange(Reliability::Detect, 64, 300, Faults { lost, flipped, doubled }, seed);
    }
}
