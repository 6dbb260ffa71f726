//! Random traffic through a lane, checked against a plain `VecDeque`.
//!
//! Everything runs in one thread, step by step: the producer reserves, writes, drops, commits; a part of one posted
//! write arrives at the other side; the consumer looks, holds, releases; a head that it has returned arrives. So the
//! consumer looks between any two writes, and everything that a link may do between two fences happens: writes wait,
//! are split, and overtake each other.

use super::faults::Fault;
use super::link::Link;
use crate::{entry_max, lines_for, Consumer, Entry, Producer, LINE, LINES_MAX, META_MAX, PAD};
use fastrand::Rng;
use ntbring_memory::{ForeignBytes, InWindow, OutWindow, Region};
use proptest::prelude::*;
use std::collections::VecDeque;

/// Kind of link between the two sides.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Way {
    /// Writes arrive at once, as in the emulated port.
    Direct,
    /// Writes arrive when the simulation lets them.
    Delayed,
    /// Writes arrive as `ntbring_ntb::weak` delivers them.
    Weak,
}

#[derive(Clone, Copy, Debug)]
struct Plan {
    lines: usize,
    messages: usize,
    /// Largest number of entries held at once.
    hold: usize,
    /// Largest message in bytes; limited to the largest possible one.
    largest: usize,
    way: Way,
    fault: Option<Fault>,
    seed: u64,
}

struct Message {
    kind: u8,
    meta: u16,
    bytes: Vec<u8>,
}

struct Simulation {
    plan: Plan,
    rng: Rng,
    lane: OutWindow,
    credit: OutWindow,
    lane_link: Option<Link>,
    credit_link: Option<Link>,
    producer: Producer,
    consumer: Consumer,
    /// Messages that must arrive, in order.
    sent: VecDeque<Message>,
    held: Vec<(Entry, Message)>,
    pushed: usize,
    heads: usize,
    /// Line at which the entry after the latest one begins if it is not in the next lap.
    next_line: usize,
    /// Number of lines that have been taken.
    passed: usize,
}

type Verdict = Result<(), String>;

impl Simulation {
    fn new(plan: Plan) -> Simulation {
        let mut rng = Rng::with_seed(plan.seed);
        let (lane, credit) = (Region::anonymous(plan.lines * LINE), Region::anonymous(8));
        let (plain_lane, plain_credit) = (OutWindow::new(lane.clone()), OutWindow::new(credit.clone()));
        let mut cable = |window: OutWindow| match plan.way {
            Way::Direct => (window, None),
            Way::Weak => (ntbring_ntb::weak::disorder(window, rng.u64(..)), None),
            Way::Delayed => {
                let (window, link) = Link::between(window);
                (window, Some(link))
            }
        };
        let (to_lane, lane_link) = cable(plain_lane.clone());
        let (to_credit, credit_link) = cable(plain_credit.clone());
        let (to_lane, to_credit) = Fault::inject(plan.fault, to_lane, to_credit);
        Simulation {
            plan,
            rng,
            lane: plain_lane,
            credit: plain_credit,
            lane_link,
            credit_link,
            producer: Producer::new(to_lane, InWindow::new(credit)),
            consumer: Consumer::new(InWindow::new(lane), to_credit),
            sent: VecDeque::new(),
            held: Vec::new(),
            pushed: 0,
            heads: 0,
            next_line: 0,
            passed: 0,
        }
    }

    fn message(&mut self) -> Message {
        let max = entry_max(self.plan.lines).min(self.plan.largest);
        let rng = &mut self.rng;
        let len = match rng.u8(..8) {
            0 => 0,
            1 => max,
            2..=4 => rng.usize(..=max.min(200)),
            _ => rng.usize(..=max),
        };
        // Some bytes look like a possible tag, or are zero.
        let bytes = match rng.u8(..4) {
            0 => vec![rng.u8(..); len],
            _ => std::iter::repeat_with(|| rng.u8(..)).take(len).collect(),
        };
        Message { kind: rng.u8(..PAD), meta: rng.u16(..=META_MAX), bytes }
    }

    /// Attempts to send a message; returns true if it was sent.
    fn push(&mut self) -> bool {
        let message = self.message();
        let len = message.bytes.len();
        // Sometimes more room is reserved than needed, as for elements that cannot be split.
        let room = if self.rng.u8(..4) == 0 { self.rng.usize(len..=self.producer.entry_max()) } else { len };
        let rng = &mut self.rng;
        let Some(mut slot) = self.producer.reserve(room) else { return false };
        let give_up = rng.u8(..8) == 0;
        if (give_up || rng.u8(..4) == 0) && self.plan.way != Way::Delayed {
            // A pack function may use all of the room, even if it reports a smaller length.
            slot.fill(0, room, |room| {
                // SAFETY: the room is valid for writes for as long as it is lent.
                unsafe { std::ptr::write_bytes(room.address(), 0x5a, room.len()) };
                0
            });
        }
        if give_up {
            slot.write_bytes(0, &vec![0xa5; rng.usize(..=room)]);
            return true;
        }
        let mut at = 0;
        while at < len {
            let n = rng.usize(1..=len - at);
            let part = &message.bytes[at..at + n];
            match rng.u8(..3) {
                0 => slot.write_bytes(at, part),
                // SAFETY: the source outlives the call; it lives until the end of the block.
                1 => slot.write(at, unsafe { ForeignBytes::new(part.as_ptr(), n) }),
                _ => {
                    let filled = slot.fill(at, n, |room| {
                        // SAFETY: both buffers have n bytes.
                        unsafe { std::ptr::copy_nonoverlapping(part.as_ptr(), room.address(), n) };
                        n
                    });
                    assert_eq!(filled, n);
                }
            }
            at += n;
        }
        slot.commit(message.kind, len, message.meta);
        self.sent.push_back(message);
        self.pushed += 1;
        true
    }

    fn take(&mut self) -> Result<bool, String> {
        if self.held.len() >= self.plan.hold {
            return Ok(false);
        }
        let there = !self.consumer.is_empty();
        let Some(entry) = self.consumer.take().map_err(|e| e.to_string())? else { return Ok(false) };
        if !there {
            return Err("an empty lane had an entry".into());
        }
        let Some(message) = self.sent.pop_front() else { return Err("an entry that was never sent".into()) };
        self.compare(&entry, &message)?;
        let (line, lines) = (entry.offset / LINE, lines_for(entry.len));
        if line != self.next_line % self.plan.lines {
            self.passed += self.plan.lines - self.next_line;
        }
        self.passed += lines;
        self.next_line = line + lines;
        self.held.push((entry, message));
        Ok(true)
    }

    fn compare(&self, entry: &Entry, message: &Message) -> Verdict {
        if (entry.kind, entry.meta, entry.len) != (message.kind, message.meta, message.bytes.len()) {
            return Err(format!("{entry:?} is not what was sent"));
        }
        let mut bytes = vec![0; entry.len];
        self.consumer.window().read(entry.offset, &mut bytes);
        if bytes == message.bytes {
            Ok(())
        } else {
            Err(format!("{entry:?} is torn"))
        }
    }

    /// Releases any one of the entries that are held, whose bytes must be unchanged.
    fn release(&mut self) -> Result<bool, String> {
        if self.held.is_empty() {
            return Ok(false);
        }
        let i = self.rng.usize(..self.held.len());
        let (entry, message) = self.held.swap_remove(i);
        self.compare(&entry, &message)?;
        self.heads += usize::from(self.consumer.release());
        Ok(true)
    }

    fn arrive(&mut self) {
        if let Some(link) = &self.lane_link {
            link.drain(&self.lane, &mut self.rng);
        }
        if let Some(link) = &self.credit_link {
            link.drain(&self.credit, &mut self.rng);
        }
    }

    /// Lets everything arrive, takes and releases it; the producer must then find room for any entry.
    fn settle(&mut self) -> Verdict {
        self.arrive();
        while self.take()? || self.release()? {}
        self.arrive();
        if !self.sent.is_empty() {
            return Err(format!("{} messages are lost", self.sent.len()));
        }
        let len = self.rng.usize(..=self.producer.entry_max());
        if self.producer.reserve(len).is_none() {
            return Err(format!("no room for {len} bytes though nothing is left to be taken"));
        }
        Ok(())
    }

    fn run(mut self) -> Verdict {
        while self.pushed < self.plan.messages {
            match self.rng.u8(..8) {
                0 | 1 => {
                    self.push();
                }
                2 => {
                    self.take()?;
                }
                3 => {
                    self.release()?;
                }
                4 | 5 => {
                    if let Some(link) = &self.lane_link {
                        link.arrive(&self.lane, &mut self.rng);
                    }
                }
                6 => {
                    if let Some(link) = &self.credit_link {
                        link.arrive(&self.credit, &mut self.rng);
                    }
                }
                _ if self.rng.u8(..64) == 0 => self.settle()?,
                // A burst, which fills the lane.
                _ if self.rng.u8(..8) == 0 => while self.pushed < self.plan.messages && self.push() {},
                _ => {}
            }
        }
        self.settle()?;
        // Padding at the very end is not visible from here.
        let (lines, passed) = (self.plan.lines, self.passed + self.plan.lines / 4);
        if self.heads > passed / (lines / 2) {
            return Err(format!("{} heads returned for {passed} lines of a lane of {lines}", self.heads));
        }
        Ok(())
    }
}

fn plans() -> impl Strategy<Value = Plan> {
    let way = prop_oneof![Just(Way::Direct), Just(Way::Delayed), Just(Way::Weak)];
    let hold = prop_oneof![Just(1usize), 2usize..20];
    (16usize..=600, 1usize..400, hold, way, any::<u64>()).prop_map(|(lines, messages, hold, way, seed)| Plan {
        lines,
        messages,
        hold,
        way,
        seed,
        largest: usize::MAX,
        fault: None,
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn a_lane_is_a_queue(plan in plans()) {
        prop_assert_eq!(Simulation::new(plan).run(), Ok(()));
    }
}

#[test]
fn sequence_numbers_wrap() {
    for (lines, way) in [(16, Way::Direct), (17, Way::Delayed), (600, Way::Weak), (LINES_MAX, Way::Direct)] {
        let plan = Plan { lines, messages: 140_000, hold: 3, largest: 56, way, fault: None, seed: 1 };
        assert_eq!(Simulation::new(plan).run(), Ok(()), "{plan:?}");
    }
}

#[test]
fn entries_may_be_as_large_as_a_quarter_of_the_lane() {
    for lines in [16, 63, 64, 65, 600, LINES_MAX] {
        let mut s = Simulation::new(Plan {
            lines,
            messages: 0,
            hold: 1,
            largest: usize::MAX,
            way: Way::Direct,
            fault: None,
            seed: 0,
        });
        assert_eq!(lines_for(s.producer.entry_max()), lines / 4);
        for _ in 0..20 {
            let len = s.producer.entry_max();
            s.producer.reserve(len).expect("room").commit(1, len, 0);
            assert_eq!(s.consumer.take().unwrap().unwrap().len, len);
            s.consumer.release();
        }
    }
}

#[test]
fn a_ping_pong_returns_a_head_once_in_half_a_lap() {
    let plan = Plan { lines: 64, messages: 0, hold: 1, largest: 0, way: Way::Direct, fault: None, seed: 0 };
    let mut s = Simulation::new(plan);
    let mut heads = 0;
    for _ in 0..64 * 100 {
        s.producer.reserve(56).expect("room").commit(1, 56, 0);
        s.consumer.take().unwrap().unwrap();
        heads += usize::from(s.consumer.release());
    }
    assert_eq!(heads, 200);
}

/// Shows that the simulation can fail: it detects each fault, over a link that reorders.
#[test]
fn every_fault_is_noticed() {
    for fault in Fault::ALL {
        let found = (0..200).find_map(|seed| {
            let plan = Plan {
                lines: 32,
                messages: 200,
                hold: 2,
                largest: usize::MAX,
                way: Way::Delayed,
                fault: Some(fault),
                seed,
            };
            Simulation::new(plan).run().err()
        });
        assert!(found.is_some(), "{fault:?} has passed");
    }
}
