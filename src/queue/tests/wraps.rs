//! Chunks that wrap early.

use crate::{Consumer, Entry, Producer, LINE};
use ntbring_memory::{InWindow, OutWindow, Region};

const LINES: usize = 1000;
const LAP: usize = 208;
const CHUNK: usize = 4096;

struct Lane {
    producer: Producer,
    consumer: Consumer,
    put: u8,
    taken: u8,
}

impl Lane {
    fn new(wrap: impl FnOnce(Producer) -> Producer) -> Lane {
        let (lane, credit) = (Region::anonymous(LINES * LINE), Region::anonymous(8));
        let producer = Producer::new(OutWindow::new(lane.clone()), InWindow::new(credit.clone()));
        let consumer = Consumer::new(InWindow::new(lane), OutWindow::new(credit));
        Lane { producer: wrap(producer), consumer, put: 0, taken: 0 }
    }

    fn put(&mut self, len: usize) -> bool {
        let Some(mut slot) = self.producer.reserve_chunk(len) else { return false };
        slot.write_bytes(0, &vec![self.put; len]);
        slot.commit(1, len, 0);
        self.put = self.put.wrapping_add(1);
        true
    }

    /// Takes the next entry, which must be complete; the flag is true if the head was returned for it.
    fn take(&mut self) -> Option<(Entry, bool)> {
        let entry = self.consumer.take().unwrap()?;
        let mut bytes = vec![0; entry.len];
        self.consumer.window().read(entry.offset, &mut bytes);
        assert!(bytes.iter().all(|byte| *byte == self.taken), "entry {} is not whole", self.taken);
        self.taken = self.taken.wrapping_add(1);
        Some((entry, self.consumer.release()))
    }
}

fn short_laps(producer: Producer) -> Producer {
    producer.with_wrap_after(LAP)
}

#[test]
fn while_the_consumer_keeps_up_chunks_use_the_first_lines_only() {
    let mut lane = Lane::new(short_laps);
    assert_eq!(lane.producer.chunk_max(), CHUNK);
    // Beyond the range of sequence numbers, in laps as in a real stream: small entries between some chunks.
    for number in 0..70_000 {
        let len = if number % 17 == 0 { 60 } else { CHUNK };
        assert!(lane.put(len), "there is room");
        // One entry is in flight.
        if number == 0 {
            continue;
        }
        let (entry, returned) = lane.take().unwrap();
        assert!(entry.offset + entry.len <= LAP * LINE, "entry {number} is at {}", entry.offset);
        assert!(returned, "a chunk asks for the head");
    }
}

#[test]
fn a_consumer_that_does_not_keep_up_has_all_of_the_lane() {
    let fill = |lane: &mut Lane| (0..).take_while(|_| lane.put(CHUNK)).count();
    let (mut short, mut long) = (Lane::new(short_laps), Lane::new(|producer| producer));
    let most = fill(&mut long);
    assert_eq!((fill(&mut short), most), (most, LINES / 65));
    // Once the consumer has caught up, chunks wrap early again, and the words beyond are as old as they can be.
    for behind in [most, 1, 3, 7, most, 2] {
        while lane_len(&short) > behind {
            short.take().unwrap();
        }
        for _ in 0..10_000 {
            while lane_len(&short) < behind && short.put(CHUNK) {}
            short.take().unwrap();
        }
        fill(&mut short);
    }
    while short.take().is_some() {}
    assert_eq!(short.put, short.taken);
}

/// Entries that were produced and not taken.
fn lane_len(lane: &Lane) -> usize {
    usize::from(lane.put.wrapping_sub(lane.taken))
}

#[test]
fn laps_that_are_chosen_on_the_way_lose_nothing() {
    let mut lane = Lane::new(Producer::cached);
    let mut seen = [false; 2];
    for number in 0..100_000 {
        let len = lane.producer.chunk_max().min(2 * CHUNK);
        seen[usize::from(len == CHUNK)] = true;
        // The consumer is behind at times.
        let behind = if number % 1000 < 100 { LINES / 129 - 1 } else { 1 };
        while lane_len(&lane) < behind && lane.put(len) {}
        lane.take().unwrap();
    }
    while lane.take().is_some() {}
    assert_eq!((lane.put, seen), (lane.taken, [true; 2]));
}

#[test]
fn room_for_a_turn_that_is_given_up_changes_nothing() {
    let mut lane = Lane::new(|producer| producer.with_wrap_after(8));
    for _ in 0..3 {
        assert!(lane.put(300));
        lane.take().unwrap();
    }
    // The reserved entry would have been small; the one that begins the new lap is as large as possible.
    for _ in 0..1000 {
        drop(lane.producer.reserve_chunk(1));
        assert_eq!(lane.consumer.take(), Ok(None), "a turn is not seen before the entry behind it");
        let len = lane.producer.entry_max();
        assert!(lane.put(len), "an empty lane is full");
        lane.take().unwrap();
    }
}
