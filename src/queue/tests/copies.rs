//! Entries whose bytes an engine copies, among entries of all other kinds, step by step in one thread: copies complete
//! late and in any order, posted writes wait in the link, and sources are overwritten as soon as they are given back.

use super::link::Link;
use crate::{entry_max, Consumer, Entry, Producer, LINE, LINES_MIN, META_MAX, PAD};
use fastrand::Rng;
use ntbring_memory::{CopyEngine, CopySource, CopyTicket, ForeignBytes, InWindow, OutWindow, Region};
use ntbring_ntb::deferred::{Deferred, Order};
use proptest::prelude::*;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

/// Longest wait for the engine: no test should need it.
const LIMIT: Duration = Duration::from_secs(60);

/// Smallest copy by the engine, bytes.
const MIN: usize = 100;

#[derive(Clone, Copy, Debug)]
struct Plan {
    lines: usize,
    messages: usize,
    order: Order,
    /// Largest number of copies in flight.
    most: usize,
    /// True if the engine reports copies as complete before it has made them.
    hasty: bool,
    seed: u64,
}

/// An engine that reports completion too early.
struct Hasty(Deferred);

impl CopyEngine for Hasty {
    fn submit(&self, from: CopySource, offset: usize) -> Result<CopyTicket, CopySource> {
        self.0.submit(from, offset)
    }
    fn is_complete(&self, copy: CopyTicket) -> bool {
        self.0.is_complete(copy);
        true
    }
}

struct Message {
    kind: u8,
    meta: u16,
    bytes: Vec<u8>,
}

/// A source that the producer may still read.
enum Lent {
    Application(Vec<u8>),
    Window(Region),
}

impl Lent {
    /// Lends bytes from the application's memory, or from a window like a forwarder's.
    fn new(bytes: &[u8], is_window: bool) -> (Lent, CopySource) {
        if is_window {
            let region = Region::anonymous(bytes.len() + 8);
            OutWindow::new(region.clone()).write_bytes(3, bytes);
            let source = CopySource::of_window(&InWindow::new(region.clone()), 3, bytes.len());
            return (Lent::Window(region), source);
        }
        let bytes = bytes.to_vec();
        // SAFETY: the simulation keeps the vector until the producer has reported the copy.
        let source = unsafe { ForeignBytes::new(bytes.as_ptr(), bytes.len()) };
        (Lent::Application(bytes), source.into())
    }

    /// Overwrites the source, so that a later read of it is noticed.
    fn spoil(&mut self) {
        match self {
            Lent::Application(bytes) => bytes.fill(0xdd),
            Lent::Window(region) => OutWindow::new(region.clone()).write_bytes(0, &vec![0xdd; region.len()]),
        }
    }
}

struct Simulation {
    plan: Plan,
    rng: Rng,
    lane: OutWindow,
    credit: OutWindow,
    links: [Link; 2],
    producer: Producer,
    consumer: Consumer,
    /// Messages that must arrive, in order.
    sent: VecDeque<Message>,
    lent: VecDeque<(u64, Lent)>,
    /// Sources that were given back and overwritten, kept so that reads of them are reads of allocated memory.
    spoilt: Vec<Lent>,
    held: Vec<(Entry, Message)>,
    pushed: usize,
    /// Number of entries that an engine has copied.
    copies: u64,
}

impl Simulation {
    fn new(plan: Plan) -> Simulation {
        let (lane, credit) = (Region::anonymous(plan.lines * LINE), Region::anonymous(8));
        let (plain_lane, plain_credit) = (OutWindow::new(lane.clone()), OutWindow::new(credit.clone()));
        let (to_lane, lane_link) = Link::between(plain_lane.clone());
        let (to_credit, credit_link) = Link::between(plain_credit.clone());
        let engine = Deferred::new(to_lane.clone(), plan.order, plan.most, plan.seed);
        let engine: Arc<dyn CopyEngine> = if plan.hasty { Arc::new(Hasty(engine)) } else { Arc::new(engine) };
        Simulation {
            plan,
            rng: Rng::with_seed(plan.seed),
            lane: plain_lane,
            credit: plain_credit,
            links: [lane_link, credit_link],
            producer: Producer::new(to_lane, InWindow::new(credit)).with_engine(engine, MIN),
            consumer: Consumer::new(InWindow::new(lane), to_credit),
            sent: VecDeque::new(),
            lent: VecDeque::new(),
            spoilt: Vec::new(),
            held: Vec::new(),
            pushed: 0,
            copies: 0,
        }
    }

    /// Attempts to send a message in one of the ways that there are.
    fn push(&mut self) {
        let max = entry_max(self.plan.lines);
        let rng = &mut self.rng;
        let len = if rng.u8(..3) == 0 { rng.usize(..=40) } else { rng.usize(..=max) };
        let bytes: Vec<u8> = std::iter::repeat_with(|| rng.u8(..)).take(len).collect();
        let message = Message { kind: rng.u8(..PAD), meta: rng.u16(..=META_MAX), bytes };
        let (head, rest) = message.bytes.split_at(len.min(8));
        if rng.u8(..4) == 0 {
            let copying = self.producer.is_copying();
            if !self.producer.put(message.kind, message.meta, head, rest.into()) {
                return;
            }
            assert!(!copying, "a tag overtook one that waits for a copy");
        } else {
            let room = rng.usize(len..=max);
            let Some(mut slot) = self.producer.reserve(if rng.bool() { len } else { room }) else { return };
            if rng.u8(..8) == 0 {
                slot.write_bytes(0, &message.bytes);
                return;
            }
            slot.write_bytes(0, head);
            if rng.u8(..4) == 0 {
                slot.write_bytes(head.len(), rest);
                slot.commit(message.kind, len, message.meta);
            } else {
                let (mut lent, source) = Lent::new(rest, rng.bool());
                match slot.commit_copy(message.kind, len, message.meta, head.len(), source) {
                    Some(number) => {
                        assert!(rest.len() >= MIN, "a small copy by the engine");
                        self.copies += 1;
                        assert_eq!(number, self.copies);
                        self.lent.push_back((number, lent));
                    }
                    None => lent.spoil(),
                }
            }
        }
        self.sent.push_back(message);
        self.pushed += 1;
    }

    /// Publishes what can be published, and takes sources back.
    fn publish(&mut self) {
        self.producer.publish_copied();
        while self.lent.front().is_some_and(|(number, _)| *number <= self.producer.copied()) {
            let (_, mut lent) = self.lent.pop_front().unwrap();
            lent.spoil();
            self.spoilt.push(lent);
        }
    }

    fn take(&mut self) -> Result<(), String> {
        let Some(entry) = self.consumer.take().map_err(|error| error.to_string())? else { return Ok(()) };
        let message = self.sent.pop_front().ok_or("an entry that was not sent")?;
        if (entry.kind, entry.meta, entry.len) != (message.kind, message.meta, message.bytes.len()) {
            return Err("another entry than was sent".into());
        }
        self.held.push((entry, message));
        Ok(())
    }

    /// Checks and releases an entry.
    fn release(&mut self) -> Result<(), String> {
        if self.held.is_empty() {
            return Ok(());
        }
        let (entry, message) = self.held.swap_remove(self.rng.usize(..self.held.len()));
        let mut bytes = vec![0; entry.len];
        self.consumer.window().read(entry.offset, &mut bytes);
        self.consumer.release();
        if bytes == message.bytes {
            Ok(())
        } else {
            Err(format!("{} bytes were torn", entry.len))
        }
    }

    fn run(mut self) -> Result<u64, String> {
        let mut steps = 0;
        while self.pushed < self.plan.messages || !self.sent.is_empty() || !self.held.is_empty() {
            steps += 1;
            if steps > 2000 * self.plan.messages {
                return Err(format!("stuck with {} entries not taken", self.sent.len()));
            }
            match self.rng.u8(..8) {
                0 | 1 if self.pushed < self.plan.messages => self.push(),
                0..=2 => self.publish(),
                3 => drop(self.links[0].arrive(&self.lane, &mut self.rng)),
                4 => drop(self.links[1].arrive(&self.credit, &mut self.rng)),
                5 => self.links[0].drain(&self.lane, &mut self.rng),
                6 => self.take()?,
                _ => self.release()?,
            }
        }
        assert!(self.producer.finish_copies(LIMIT));
        self.publish();
        assert!(self.lent.is_empty() && !self.producer.is_copying() && self.producer.copied() == self.copies);
        Ok(self.copies)
    }
}

fn plans() -> impl Strategy<Value = Plan> {
    let order = prop_oneof![Just(Order::Submission), Just(Order::Any)];
    (LINES_MIN..400, order, 1..8_usize, any::<u64>()).prop_map(|(lines, order, most, seed)| Plan {
        lines,
        messages: 150,
        order,
        most,
        hasty: false,
        seed,
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn copies_that_complete_late_and_in_any_order_lose_and_reorder_nothing(plan in plans()) {
        let copies = Simulation::new(plan).run();
        prop_assert!(copies.is_ok(), "{copies:?}");
        // An entry is at most a quarter of the lane.
        prop_assert!(entry_max(plan.lines) < 2 * MIN || copies.unwrap_or(0) > 0, "nothing was copied by the engine");
    }
}

#[test]
fn an_engine_that_reports_completion_too_early_is_noticed() {
    let plan = |seed| Plan { lines: 200, messages: 150, order: Order::Any, most: 6, hasty: true, seed };
    assert!((0..20).all(|seed| Simulation::new(plan(seed)).run().is_err()));
}

/// An engine that takes copies and never completes one.
struct Stuck;

impl CopyEngine for Stuck {
    fn submit(&self, _: CopySource, _: usize) -> Result<CopyTicket, CopySource> {
        Ok(CopyTicket(1))
    }
    fn is_complete(&self, _: CopyTicket) -> bool {
        false
    }
}

#[test]
fn the_wait_for_an_engine_that_never_completes_ends() {
    let (lane, credit) = (Region::anonymous(64 * LINE), Region::anonymous(8));
    let producer = Producer::new(OutWindow::new(lane), InWindow::new(credit));
    let mut producer = producer.with_engine(Arc::new(Stuck), 1);
    let source = CopySource::of_window(&InWindow::new(Region::anonymous(640)), 0, 600);
    let slot = producer.reserve(600).unwrap();
    assert!(slot.commit_copy(1, 600, 0, 0, source).is_some());
    assert!(!producer.finish_copies(Duration::from_millis(1)) && producer.is_copying());
}

#[test]
fn a_head_beyond_the_published_entries_is_ignored() {
    let (lane, credit) = (Region::anonymous(64 * LINE), Region::anonymous(8));
    let to_lane = OutWindow::new(lane.clone());
    let engine = Arc::new(Deferred::new(to_lane.clone(), Order::Submission, 64, 1));
    let mut producer = Producer::new(to_lane, InWindow::new(credit.clone())).with_engine(engine, 1);
    let source = || CopySource::of_window(&InWindow::new(Region::anonymous(640)), 0, 600);
    let put = |producer: &mut Producer| {
        producer.reserve(600).is_some_and(|slot| slot.commit_copy(1, 600, 0, 0, source()).is_some())
    };
    while put(&mut producer) {}
    let taken = producer.taken();
    OutWindow::new(credit).store(0, taken as u64);
    assert!(!put(&mut producer) && producer.taken() == taken);
    assert!(producer.finish_copies(LIMIT));
    assert!(put(&mut producer));
}

#[test]
fn a_checked_lane_is_copied_by_the_processor() {
    let (lane, credit, tail) = (Region::anonymous(64 * LINE), Region::anonymous(16), Region::anonymous(8));
    let to_lane = OutWindow::new(lane);
    let engine = Arc::new(Deferred::new(to_lane.clone(), Order::Submission, 4, 1));
    let producer =
        Producer::new(to_lane, InWindow::new(credit)).checked(crate::Reliability::Retry, OutWindow::new(tail));
    let mut producer = producer.with_engine(engine, 1);
    let source = CopySource::of_window(&InWindow::new(Region::anonymous(640)), 0, 600);
    assert_eq!(producer.reserve(600).unwrap().commit_copy(1, 600, 0, 0, source), None);
    assert!(!producer.is_copying());
}
