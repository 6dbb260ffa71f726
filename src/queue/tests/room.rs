//! All states that the smallest lane can come into by entries of one line and of as many as there can be: how full it is, where
//! in its lap, and which heads were returned. Each is reached with the real ends of a lane, by a shortest way to it.

use crate::ntb::{InWindow, OutWindow, Region};
use crate::queue::{entry_max, Consumer, Producer, LINE, LINES_MIN, TAG};
use std::collections::{HashSet, VecDeque};

/// What can happen.
#[derive(Clone, Copy, Debug)]
enum Move {
    /// An entry of so many lines is put in, if there is room.
    Put(usize),
    /// One is taken out, and its space given back.
    Take,
}

/// What matters of a state: where the next entry begins, lines that are not known to be free, the entries that are there.
type Key = (u64, u64, Vec<usize>);

struct Lane {
    producer: Producer,
    consumer: Consumer,
    credit: InWindow,
    /// Lines and number of each entry that is there.
    entries: VecDeque<(usize, u64)>,
    put: u64,
}

impl Lane {
    fn new() -> Lane {
        let (lane, credit) = (Region::anonymous(LINES_MIN * LINE), Region::anonymous(8));
        Lane {
            producer: Producer::new(OutWindow::new(lane.clone()), InWindow::new(credit.clone())),
            consumer: Consumer::new(InWindow::new(lane), OutWindow::new(credit.clone())),
            credit: InWindow::new(credit),
            entries: VecDeque::new(),
            put: 0,
        }
    }

    fn key(&self) -> Key {
        let tail = self.producer.produced() / LINE as u64;
        let lines = self.entries.iter().map(|entry| entry.0).collect();
        (tail % LINES_MIN as u64, tail - self.credit.load(0), lines)
    }

    /// False if it cannot happen now.
    fn apply(&mut self, next: Move) -> bool {
        match next {
            Move::Put(lines) => {
                let len = lines * LINE - TAG;
                let Some(mut slot) = self.producer.reserve(len) else { return false };
                slot.write_bytes(0, &vec![self.put as u8; len]);
                slot.commit(1, len, 0);
                self.entries.push_back((lines, self.put));
                self.put += 1;
                assert!(self.producer.taken() < LINES_MIN, "no line is left that the consumer could stop at");
            }
            Move::Take => {
                let Some((lines, number)) = self.entries.pop_front() else {
                    assert_eq!(self.consumer.take(), Ok(None));
                    return false;
                };
                let entry = self.consumer.take().unwrap().expect("an entry");
                let mut bytes = vec![0; entry.len];
                self.consumer.window().read(entry.offset, &mut bytes);
                assert_eq!(bytes, vec![number as u8; lines * LINE - TAG], "something was written over it");
                self.consumer.release();
            }
        }
        true
    }
}

#[test]
fn the_smallest_lane_never_overflows_and_takes_anything_when_it_is_empty() {
    let largest = (entry_max(LINES_MIN) + TAG) / LINE;
    let moves = [Move::Put(1), Move::Put(largest), Move::Take];
    let (mut seen, mut open) = (HashSet::from([Lane::new().key()]), VecDeque::from([Vec::<Move>::new()]));
    while let Some(way) = open.pop_front() {
        for next in &moves {
            let mut lane = Lane::new();
            way.iter().for_each(|next| assert!(lane.apply(*next)));
            if lane.entries.is_empty() {
                assert!(lane.producer.reserve(entry_max(LINES_MIN)).is_some(), "an empty lane is full: {way:?}");
            }
            if lane.apply(*next) && seen.insert(lane.key()) {
                open.push_back([&way[..], &[*next]].concat());
            }
        }
    }
    eprintln!("{} states", seen.len());
}
