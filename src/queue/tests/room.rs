//! All states that the smallest lane can reach with entries of one line and of the largest size: fill level, position
//! in the lap, and heads that were returned. Each state is reached with the real ends of a lane, by a shortest
//! sequence.

use crate::{entry_max, Consumer, Producer, LINE, LINES_MIN, TAG};
use ntbring_memory::{InWindow, OutWindow, Region};
use std::collections::{HashSet, VecDeque};

/// A possible step.
#[derive(Clone, Copy, Debug)]
enum Move {
    /// An entry of this many lines is produced, if there is room.
    Put(usize),
    /// An entry is taken and released.
    Take,
}

/// The relevant part of a state: the line of the next entry, the number of lines that are not known to be free, and
/// the lines of the entries in the lane.
type Key = (u64, u64, Vec<usize>);

struct Lane {
    producer: Producer,
    consumer: Consumer,
    credit: InWindow,
    /// Lines and number of each entry in the lane.
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

    /// Applies a step; returns false if it is not possible now.
    fn apply(&mut self, next: Move) -> bool {
        match next {
            Move::Put(lines) => {
                if !put(&mut self.producer, &vec![self.put as u8; lines * LINE - TAG]) {
                    return false;
                }
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

fn put(producer: &mut Producer, bytes: &[u8]) -> bool {
    let Some(mut slot) = producer.reserve(bytes.len()) else { return false };
    slot.write_bytes(0, bytes);
    slot.commit(1, bytes.len(), 0);
    true
}

#[test]
fn the_smallest_lane_never_overflows_and_takes_anything_when_it_is_empty() {
    let largest = (entry_max(LINES_MIN) + TAG) / LINE;
    explore(&[Move::Put(1), Move::Put(largest), Move::Take]);
}

fn explore(moves: &[Move]) {
    let fresh = Lane::new;
    let (mut seen, mut open) = (HashSet::from([fresh().key()]), VecDeque::from([Vec::<Move>::new()]));
    while let Some(way) = open.pop_front() {
        for next in moves {
            let filled = || {
                let mut lane = fresh();
                way.iter().for_each(|next| assert!(lane.apply(*next)));
                lane
            };
            let mut lane = filled();
            if lane.entries.is_empty() {
                // Dropping a reservation gives the room back, to this and all other reservations.
                drop(lane.producer.reserve(1));
                assert_eq!(lane.consumer.take(), Ok(None));
                let room = lane.producer.reserve(entry_max(LINES_MIN));
                assert!(room.is_some(), "an empty lane is full: {way:?}");
            }
            for entries in 1..=LINES_MIN {
                let (mut lane, Move::Put(lines)) = (filled(), *next) else { break };
                if !lane.producer.has_room(1 + entries * lines, lines) {
                    break;
                }
                let puts = std::iter::once(Move::Put(1)).chain(vec![*next; entries]);
                puts.for_each(|put| assert!(lane.apply(put), "there was room for {entries} entries: {way:?}"));
            }
            if lane.apply(*next) && seen.insert(lane.key()) {
                open.push_back([&way[..], &[*next]].concat());
            }
        }
    }
    eprintln!("{} states", seen.len());
}
