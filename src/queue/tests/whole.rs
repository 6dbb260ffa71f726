//! Entries that are produced in one call (`put`), among others.

use super::take_by_kind;
use crate::{Consumer, Producer, Tag, LINE, LINES_MIN, TAG};
use ntbring_memory::{ForeignBytes, InWindow, OutWindow, Region, WriteSink};
use std::collections::VecDeque;
use std::sync::Arc;

const KIND: u8 = 5;

fn lane(lines: usize, wrap: impl FnOnce(OutWindow) -> OutWindow) -> (Producer, Consumer, Region) {
    let (lane, credit) = (Region::anonymous(lines * LINE), Region::anonymous(8));
    let producer = Producer::new(wrap(OutWindow::new(lane.clone())), InWindow::new(credit.clone()));
    (producer, Consumer::new(InWindow::new(lane.clone()), OutWindow::new(credit)), lane)
}

/// Produces an entry in one call, with its bytes divided at some offset.
fn put(producer: &mut Producer, bytes: &[u8], cut: usize) -> bool {
    let (first, then) = bytes.split_at(cut);
    // SAFETY: the slice outlives the call.
    producer.put(KIND, 7, first, unsafe { ForeignBytes::new(then.as_ptr(), then.len()) })
}

/// Bytes that look, at the start of every line, like the tag of an entry that comes within a lap. `last` has been
/// taken.
fn tags(random: &mut fastrand::Rng, producer: &Producer, last: u16) -> Vec<u8> {
    let len = random.usize(..producer.entry_max());
    let sequence = last.wrapping_add(random.u16(1..producer.lines() as u16));
    Tag { sequence, kind: KIND, len: 1, meta: 7 }.word().to_le_bytes().into_iter().cycle().take(len).collect()
}

#[test]
fn what_is_put_at_once_and_otherwise_comes_in_order() {
    [LINES_MIN, 150, 192].into_iter().for_each(comes_in_order);
}

fn comes_in_order(lines: usize) {
    let (mut producer, mut consumer, lane) = lane(lines, |window| window);
    let (mut random, mut waiting, mut ways) = (fastrand::Rng::with_seed(5), VecDeque::new(), [0; 2]);
    let mut last = 0;
    for number in 0..20_000 {
        let bytes = tags(&mut random, &producer, last);
        // Half of the entries are short.
        let bytes = if random.bool() { bytes } else { bytes[..bytes.len().min(LINE - TAG)].to_vec() };
        let at_once = random.bool() && put(&mut producer, &bytes, random.usize(..=bytes.len()));
        let is_put = at_once
            || match producer.reserve(bytes.len()) {
                None => false,
                Some(mut slot) => {
                    slot.write_bytes(0, &bytes);
                    slot.commit(KIND, bytes.len(), 7);
                    true
                }
            };
        if is_put {
            ways[usize::from(at_once)] += 1;
            waiting.push_back(bytes);
        }
        while waiting.len() > random.usize(..4) {
            let expected = waiting.pop_front().unwrap();
            let entry = take_by_kind(&mut consumer, KIND).unwrap().unwrap_or_else(|| panic!("{number} is not there"));
            let mut found = vec![0; entry.len];
            InWindow::new(lane.clone()).read(entry.offset, &mut found);
            assert_eq!((found, entry.meta), (expected, 7));
            last = InWindow::new(lane.clone()).load(entry.offset - TAG) as u16;
            consumer.release();
        }
        if waiting.is_empty() {
            assert!(take_by_kind(&mut consumer, KIND).unwrap().is_none(), "after {number} something is there");
        }
    }
    assert!(!put(&mut producer, &vec![0; lines * LINE], 0));
    assert!(ways.iter().all(|count| *count > 1000), "{ways:?}");
}

#[test]
fn a_window_that_sees_its_writes_gets_none_at_once() {
    struct Through(OutWindow);
    impl WriteSink for Through {
        fn write(&self, offset: usize, bytes: &[u8]) {
            self.0.write_bytes(offset, bytes);
        }
        fn store(&self, offset: usize, value: u64) {
            self.0.store(offset, value);
        }
        fn fence(&self) {
            self.0.fence();
        }
    }
    let (mut producer, mut consumer, lane) =
        lane(LINES_MIN, |window| window.with_sink(|plain| Arc::new(Through(plain))));
    assert!(!put(&mut producer, b"short", 2));
    assert_eq!(InWindow::new(lane).load(0), 0);
    assert!(take_by_kind(&mut consumer, KIND).unwrap().is_none());
}
