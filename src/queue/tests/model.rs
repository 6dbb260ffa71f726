//! Every interleaving of a small lane, and every value that a weakly ordered load may return:
//! no message is lost, doubled, torn or out of order, and neither side waits for ever.
//!
//! The lane has 8 lines (`LINES_MIN` is lower here than in production), so an entry has one or two.
//! A prologue that runs before the threads start moves both ends to where it becomes interesting:
//! the wrap with its filling, lines that hold bytes of the lap before, a head that must be returned
//! before the producer can go on. The models marked `complete` have no bound; the longer ones have
//! at most three preemptions (switches away from a thread that could go on).

use super::faults::Fault;
use crate::ntb::{InWindow, OutWindow, Region};
use crate::queue::{lines_for, Consumer, Producer, LINE, TAG};

const LINES: usize = 8;
/// Where the second line of an entry begins, counted from its first byte.
const SECOND: usize = LINE - TAG;

struct Traffic {
    /// Lines of the messages that go through before the threads start.
    prologue: &'static [usize],
    /// Lines of those that race.
    messages: &'static [usize],
    /// Entries that the consumer holds at once.
    hold: usize,
}

/// Length of an entry that takes so many lines and has a word in the last one.
fn len(lines: usize) -> usize {
    SECOND * (lines - 1) + 8
}

fn word(message: usize, line: usize) -> [u8; 8] {
    (10 * message as u64 + line as u64 + 1).to_le_bytes()
}

fn push(producer: &mut Producer, message: usize, lines: usize) -> bool {
    assert_eq!(lines_for(len(lines)), lines);
    let Some(mut slot) = producer.reserve(len(lines)) else { return false };
    for line in 0..lines {
        slot.write_bytes(SECOND * line, &word(message, line));
    }
    slot.commit(message as u8, len(lines), message as u16);
    true
}

/// Takes the next entry if it is there, and checks that it is this one.
fn pull(consumer: &mut Consumer, message: usize, lines: usize) -> bool {
    let Some(entry) = consumer.take().expect("a correct lane") else { return false };
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
        let Traffic { prologue, messages, hold } = traffic;
        for (i, &lines) in prologue.iter().enumerate() {
            assert!(push(&mut producer, i, lines) && pull(&mut consumer, i, lines));
            consumer.release();
        }
        let first = prologue.len();
        let sending = loom::thread::spawn(move || {
            for (i, &lines) in messages.iter().enumerate() {
                while !push(&mut producer, first + i, lines) {
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
        assert_eq!(consumer.take(), Ok(None), "a message that nobody sent");
    });
    eprintln!("{} interleavings", rounds.load(std::sync::atomic::Ordering::Relaxed));
}

/// From the start of a lane.
const FRESH: Traffic = Traffic { prologue: &[], messages: &[2, 1, 2], hold: 1 };
/// Filling before the wrap; then a line that held bytes is where an entry begins.
const WRAP: Traffic = Traffic { prologue: &[2, 2, 1], messages: &[2, 2, 1, 1], hold: 1 };
/// The producer finds the lane full and must wait for the head.
const FULL: Traffic = Traffic { prologue: &[2], messages: &[2, 2, 2, 1], hold: 1 };
/// More than a lap, with all of that.
const LAP: Traffic = Traffic { prologue: &[2, 2, 1], messages: &[2, 2, 1, 1, 2, 1, 2, 2], hold: 1 };
/// The same with entries held while later ones are taken.
const HELD: Traffic = Traffic { prologue: &[2, 2, 1], messages: &[2, 2, 1, 1, 2, 1], hold: 2 };

#[test]
fn fresh_lane_complete() {
    check(FRESH, None, None);
}

#[test]
fn wrap_complete() {
    check(WRAP, None, None);
}

#[test]
fn full_lane_complete() {
    check(FULL, None, None);
}

#[test]
fn lap_with_three_preemptions() {
    check(LAP, None, None);
}

#[test]
fn held_entries_with_three_preemptions() {
    check(HELD, None, None);
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
    check(LAP, None, Some(Fault::EarlyHead));
}
