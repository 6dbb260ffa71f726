//! Every interleaving of a small lane, and every value that a weakly ordered load may return: no message is lost,
//! duplicated, torn or out of order, and neither side waits for ever.
//!
//! The lane has 8 lines (`LINES_MIN` is lower here than in production), so an entry has one or two. A prologue that
//! runs before the threads start moves both ends to an interesting state: the wrap with its padding, lines that hold
//! bytes of the previous lap, a head that must be returned before the producer can continue. All models are
//! exhaustive except the long one, which is bounded to three preemptions (switches away from a thread that could
//! continue).

use super::faults::Fault;
use super::take_by_kind;
use crate::{lines_for, Consumer, Producer, LINE, TAG};
use ntbring_memory::{InWindow, OutWindow, Region};

const LINES: usize = 8;
/// Offset of an entry's second line, counted from its first byte.
const SECOND: usize = LINE - TAG;

struct Traffic {
    /// Lines of each message that is transferred before the threads start.
    prologue: &'static [usize],
    /// Lines of each message that is transferred concurrently.
    messages: &'static [usize],
    /// Number of entries that the consumer holds at once.
    hold: usize,
    /// True if the producer drops a slot that it has written to before each message, and writes more than it commits.
    careless: bool,
}

/// Length of an entry that takes this many lines and has a word in the last one.
fn len(lines: usize) -> usize {
    SECOND * (lines - 1) + 8
}

fn word(message: usize, line: usize) -> [u8; 8] {
    (10 * message as u64 + line as u64 + 1).to_le_bytes()
}

fn push(producer: &mut Producer, message: usize, lines: usize, careless: bool) -> bool {
    assert_eq!(lines_for(len(lines)), lines);
    if careless {
        let Some(mut slot) = producer.reserve(len(2)) else { return false };
        slot.write_bytes(SECOND, b"given up");
    }
    let Some(mut slot) = producer.reserve(len(if careless { 2 } else { lines })) else { return false };
    if careless {
        slot.write_bytes(SECOND, b"not used");
    }
    for line in 0..lines {
        slot.write_bytes(SECOND * line, &word(message, line));
    }
    slot.commit(message as u8, len(lines), message as u16);
    true
}

/// Takes the next entry if it is there, and checks that it is this one.
fn pull(consumer: &mut Consumer, message: usize, lines: usize) -> bool {
    // Half of the entries are taken by the fast path.
    let taken = if message % 2 == 0 { take_by_kind(consumer, message as u8) } else { consumer.take() };
    let Some(entry) = taken.expect("a correct lane") else { return false };
    assert_eq!((entry.kind, entry.meta, entry.len), (message as u8, message as u16, len(lines)), "another message");
    for line in 0..lines {
        let mut bytes = [0; 8];
        consumer.window().read(entry.offset + SECOND * line, &mut bytes);
        assert_eq!(bytes, word(message, line), "message {message} is torn");
    }
    true
}

fn check(traffic: Traffic, bound: Option<usize>, fault: Option<Fault>) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = bound;
    builder.max_branches = 20_000;
    let rounds = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let count = rounds.clone();
    builder.check(move || {
        count.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let (lane, credit) = (Region::anonymous(LINES * LINE), Region::anonymous(8));
        let (to_lane, to_credit) = Fault::inject(fault, OutWindow::new(lane.clone()), OutWindow::new(credit.clone()));
        let mut producer = Producer::new(to_lane, InWindow::new(credit));
        let mut consumer = Consumer::new(InWindow::new(lane), to_credit);
        let Traffic { prologue, messages, hold, careless } = traffic;
        for (i, &lines) in prologue.iter().enumerate() {
            assert!(push(&mut producer, i, lines, false) && pull(&mut consumer, i, lines));
            consumer.release();
        }
        let first = prologue.len();
        let sending = loom::thread::spawn(move || {
            for (i, &lines) in messages.iter().enumerate() {
                while !push(&mut producer, first + i, lines, careless) {
                    loom::thread::yield_now();
                }
            }
        });
        for (i, &lines) in messages.iter().enumerate() {
            while !pull(&mut consumer, first + i, lines) {
                loom::thread::yield_now();
            }
            if consumer.held() as usize == hold || i + 1 == messages.len() {
                while consumer.held() > 0 {
                    consumer.release();
                }
            }
        }
        sending.join().unwrap();
        assert_eq!(consumer.take(), Ok(None), "a message that was never sent");
    });
    eprintln!("{} interleavings", rounds.load(std::sync::atomic::Ordering::Relaxed));
}

const fn traffic(prologue: &'static [usize], messages: &'static [usize]) -> Traffic {
    Traffic { prologue, messages, hold: 1, careless: false }
}

/// The beginning of a lane.
const FRESH: Traffic = traffic(&[], &[2, 1, 2]);
/// Padding before the wrap; afterwards an entry begins at a line that held bytes.
const WRAP: Traffic = traffic(&[2, 2, 1], &[2, 2, 1, 1]);
/// The producer finds the lane full and must wait for the head.
const FULL: Traffic = traffic(&[2], &[2, 2, 2, 1]);
/// More than a lap, with all of the above.
const LAP: Traffic = traffic(&[2, 2, 1], &[2, 2, 1, 1, 2, 1, 2, 2]);

#[test]
fn fresh_lane() {
    check(FRESH, None, None);
}

#[test]
fn wrap() {
    check(WRAP, None, None);
}

#[test]
fn full_lane() {
    check(FULL, None, None);
}

#[test]
fn more_than_a_lap_with_three_preemptions() {
    check(LAP, Some(3), None);
}

#[test]
fn held_entries() {
    check(Traffic { hold: 2, ..traffic(&[2, 2, 1], &[2, 2, 1, 1, 2]) }, None, None);
}

#[test]
fn slots_given_up_or_not_used_in_full() {
    check(Traffic { careless: true, ..traffic(&[2], &[1, 2, 1, 1]) }, None, None);
}

// The same models must fail when a rule is broken.

#[test]
#[should_panic(expected = "is torn")]
fn a_tag_before_its_bytes_is_noticed() {
    check(FRESH, None, Some(Fault::TagFirst));
}

#[test]
#[should_panic(expected = "a correct lane: NoTag")]
fn bytes_left_where_a_tag_belongs_are_noticed() {
    check(WRAP, None, Some(Fault::KeepStale));
}

#[test]
#[should_panic(expected = "a correct lane: NoTag")]
fn clearing_too_late_is_noticed() {
    check(WRAP, None, Some(Fault::LateClear));
}

#[test]
#[should_panic(expected = "is torn")]
fn a_missing_fence_is_noticed() {
    check(FRESH, None, Some(Fault::Unfenced));
}

#[test]
#[should_panic]
fn a_head_returned_too_early_is_noticed() {
    check(LAP, Some(3), Some(Fault::EarlyHead));
}
