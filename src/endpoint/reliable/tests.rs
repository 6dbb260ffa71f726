//! Tests of one connection over a network that loses, duplicates and reorders datagrams, in virtual time.

use super::*;
use ntbring_memory::{ForeignBytes, InWindow, OutWindow, Region};
use ntbring_queue::{Consumer, Producer, Slot};
use proptest::prelude::*;
use std::collections::VecDeque;
use std::time::{Duration, Instant};

const MS: Duration = Duration::from_millis(1);

/// A packet under way: a datagram, and a copy of its entry's bytes.
#[derive(Clone)]
struct Flying {
    datagram: Datagram,
    bytes: Region,
    len: usize,
}

impl Flying {
    fn new(datagram: Datagram, bytes: ForeignBytes) -> Flying {
        let copy = Region::anonymous(bytes.len().max(8));
        OutWindow::new(copy.clone()).write(0, bytes);
        Flying { datagram, bytes: copy, len: bytes.len() }
    }

    fn saying(&self, datagram: Datagram) -> Flying {
        Flying { datagram, ..self.clone() }
    }
}

/// A connection of which one direction carries messages and the other their acknowledgements.
struct Pair {
    producer: Producer,
    sender: Sender,
    consumer: Consumer,
    receiver: Receiver,
    now: Instant,
}

impl Pair {
    fn new() -> Pair {
        let (producer, sender) = sending_half();
        let (consumer, receiver) = receiving_half();
        Pair { producer, sender, consumer, receiver, now: Instant::now() }
    }

    fn produce(&mut self, message: &[u8]) -> bool {
        let Some(mut slot) = self.producer.reserve(message.len()) else { return false };
        slot.write_bytes(0, message);
        Slot::commit(slot, 1, message.len(), 0);
        true
    }

    fn consume(&mut self) -> Option<Vec<u8>> {
        let entry = self.consumer.take().unwrap()?;
        let mut bytes = vec![0; entry.len];
        self.consumer.window().read(entry.offset, &mut bytes);
        self.consumer.release();
        Some(bytes)
    }

    /// Returns the datagrams that the sender has to send now.
    fn outgoing(&mut self) -> Vec<Flying> {
        let mut flying = Vec::new();
        while let Some(entry) = self.sender.outgoing() {
            let datagram = Datagram { place: entry.place, tag: Some(entry.tag), ..Datagram::default() };
            flying.push(Flying::new(datagram, self.sender.bytes(&entry)));
            self.sender.sent(&entry, self.now);
        }
        if self.sender.is_to_ask(self.now) {
            self.sender.has_asked(self.now);
            let datagram = Datagram { place: self.sender.place(), asks: true, ..Datagram::default() };
            flying.push(Flying::new(datagram, ForeignBytes::EMPTY));
        }
        flying
    }

    fn arrive(&mut self, flying: &Flying) -> Result<bool, Malformed> {
        let window = InWindow::new(flying.bytes.clone());
        self.receiver.take(&flying.datagram, window.foreign(0, flying.len), self.now)
    }

    /// Returns the acknowledgement that the receiver has to send now, if any.
    fn answer(&mut self) -> Option<Datagram> {
        self.receiver.is_to_tell(self.now).then(|| {
            let datagram = self.receiver.datagram(Place::default());
            self.receiver.has_sent(&datagram);
            datagram
        })
    }
}

fn message(number: u32, len: usize) -> Vec<u8> {
    let mut bytes = vec![number as u8; len];
    bytes[..4].copy_from_slice(&number.to_le_bytes());
    bytes
}

#[derive(Clone, Copy, Debug)]
struct Luck {
    lose: f64,
    double: f64,
    /// Probability that datagrams are reordered, as with two routes.
    overtake: f64,
    /// Probability in each round that the route changes: all datagrams under way are lost, and unacknowledged entries
    /// are retransmitted.
    turn: f64,
}

/// Sends the messages over such a network and counts the rounds it takes.
fn all_come(sizes: &[usize], luck: Luck, seed: u64) -> Pair {
    let (mut pair, mut dice) = (Pair::new(), fastrand::Rng::with_seed(seed));
    let (mut there, mut back) = (VecDeque::<Flying>::new(), VecDeque::<Datagram>::new());
    let (mut produced, mut got) = (0, 0);
    for round in 0.. {
        assert!(round < 200_000, "{got} of {} have come; {luck:?}", sizes.len());
        while produced < sizes.len() && pair.produce(&message(produced as u32, sizes[produced])) {
            produced += 1;
        }
        if dice.f64() < luck.turn {
            there.clear();
            back.clear();
            pair.sender.turned(pair.now);
            pair.receiver.repeat(pair.now);
        }
        for flying in pair.outgoing() {
            let copies = usize::from(dice.f64() >= luck.lose) + usize::from(dice.f64() < luck.double);
            (0..copies).for_each(|_| there.push_back(flying.clone()));
        }
        for _ in 0..dice.usize(0..=there.len()) {
            let i = if dice.f64() < luck.overtake { dice.usize(0..there.len()) } else { 0 };
            let flying = there.remove(i).unwrap();
            pair.arrive(&flying).unwrap();
        }
        while let Some(bytes) = pair.consume() {
            assert_eq!(bytes, message(got, sizes[got as usize]));
            got += 1;
        }
        back.extend(pair.answer().filter(|_| dice.f64() >= luck.lose));
        while let Some(datagram) = back.pop_front() {
            pair.sender.acknowledge(&datagram, pair.now).unwrap();
        }
        pair.now += MS;
        if got as usize == sizes.len() && pair.sender.is_settled() {
            break;
        }
    }
    pair
}

#[test]
fn nothing_is_sent_twice_where_nothing_is_lost() {
    let sizes: Vec<usize> = (0..2000).map(|i| 4 + i * 37 % 9000).collect();
    let luck = Luck { lose: 0.0, double: 0.0, overtake: 0.0, turn: 0.0 };
    assert_eq!(all_come(&sizes, luck, 1).sender.resent, 0);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]
    #[test]
    fn every_message_comes_once_and_in_order(
        sizes in proptest::collection::vec(4usize..32_000, 1..120), seed: u64,
        lose in 0.0..0.5, double in 0.0..0.5, overtake in 0.0..0.5, turn in 0.0..0.2,
    ) {
        all_come(&sizes, Luck { lose, double, overtake, turn }, seed);
    }
}

/// Returns a full lane, all of whose entries have arrived, and the number of the next message.
fn full() -> (Pair, u32) {
    let mut pair = Pair::new();
    let number = (0..).find(|number| !pair.produce(&message(*number, 1000))).unwrap();
    for flying in pair.outgoing() {
        pair.arrive(&flying).unwrap();
    }
    (pair, number)
}

/// Lets time pass until the sender asks once and learns that there is room.
fn asks_and_gets_on(pair: &mut Pair, number: u32) {
    pair.now += 3 * MS;
    let asked = pair.outgoing();
    assert_eq!(asked.len(), 1);
    pair.arrive(&asked[0]).unwrap();
    let answer = pair.answer().unwrap();
    assert!(pair.sender.acknowledge(&answer, pair.now).unwrap());
    assert!(pair.produce(&message(number, 1000)));
}

#[test]
fn a_full_lane_gets_on_when_its_head_was_lost() {
    let (mut pair, number) = full();
    while pair.consume().is_some() {}
    assert!(pair.answer().is_some(), "and it is lost");
    assert!(!pair.produce(&message(number, 1000)));
    asks_and_gets_on(&mut pair, number);
}

/// Covers a sender that knows that everything has arrived but not that it was consumed.
#[test]
fn a_full_lane_gets_on_when_only_its_head_was_lost() {
    let (mut pair, number) = full();
    let answer = pair.answer().unwrap();
    assert!(pair.sender.acknowledge(&answer, pair.now).unwrap() && pair.sender.is_settled());
    while pair.consume().is_some() {}
    assert!(pair.answer().is_some(), "and it is lost");
    assert!(pair.answer().is_none() && !pair.produce(&message(number, 1000)));
    asks_and_gets_on(&mut pair, number);
    // Nothing more is expected, so the requests end.
    for flying in pair.outgoing() {
        pair.arrive(&flying).unwrap();
    }
    pair.now += 3 * MS;
    let answer = pair.answer().unwrap();
    pair.sender.acknowledge(&answer, pair.now).unwrap();
    pair.now += 10_000 * MS;
    assert!(pair.outgoing().is_empty());
}

/// Covers a consumer that advances between the two reads of its position.
#[test]
fn what_is_consumed_while_it_is_told_is_told_next_time() {
    let mut pair = Pair::new();
    (0..100).for_each(|i| assert!(pair.produce(&message(i, 1000))));
    for flying in pair.outgoing() {
        pair.arrive(&flying).unwrap();
    }
    let datagram = pair.receiver.datagram(Place::default());
    while pair.consume().is_some() {}
    pair.receiver.has_sent(&datagram);
    assert!(pair.answer().is_some_and(|answer| answer.head > datagram.head));
}

#[test]
fn what_is_lost_is_complained_of_once() {
    let mut pair = Pair::new();
    (0..10).for_each(|i| assert!(pair.produce(&message(i, 100))));
    let flying = pair.outgoing();
    flying[1..].iter().for_each(|one| assert!(!pair.arrive(one).unwrap()));
    let answer = pair.answer().unwrap();
    assert!(answer.lacks && pair.answer().is_none());
    assert!(pair.sender.acknowledge(&answer, pair.now).unwrap());
    let again = pair.outgoing();
    assert_eq!((again.len(), pair.sender.resent), (10, 10));
    again.iter().for_each(|one| assert!(pair.arrive(one).unwrap()));
    // An acknowledgement that was overtaken changes nothing.
    let late = pair.receiver.datagram(Place::default());
    pair.sender.acknowledge(&late, pair.now).unwrap();
    assert!(!pair.sender.acknowledge(&answer, pair.now).unwrap());
    assert!(pair.sender.is_settled());
}

/// Covers a tag read at a wrong position: bytes of a message that may look like a tag.
#[test]
fn who_claims_to_have_a_part_of_an_entry_gets_nothing_more() {
    let mut pair = Pair::new();
    let mut bytes = message(0, 200);
    let tag = ntbring_queue::Tag { sequence: 1, kind: 1, len: 1 << 20, meta: 0 };
    bytes[56..64].copy_from_slice(&tag.word().to_le_bytes());
    assert!(pair.produce(&bytes));
    pair.outgoing();
    let word = Datagram { has: Place { lines: 1, entries: 1 }, lacks: true, ..Datagram::default() };
    pair.sender.acknowledge(&word, pair.now).unwrap();
    assert!(pair.sender.outgoing().is_none());
}

#[test]
fn what_cannot_be_is_refused() {
    let mut pair = Pair::new();
    assert!(pair.produce(&message(0, 100)));
    let good = pair.outgoing().remove(0);
    let at = |lines, entries| Place { lines, entries };
    // The tag of the second entry in place of the first's; a length that is not there; no tag.
    let tag = |f: fn(u64) -> u64| Datagram { tag: good.datagram.tag.map(f), ..good.datagram };
    for malformed in [tag(|tag| tag + 1), tag(|tag| tag + (1 << 24)), tag(|_| 1)] {
        assert!(pair.arrive(&good.saying(malformed)).is_err(), "{malformed:?}");
    }
    for (has, head) in [(at(3, 1), 0), (at(2, 2), 0), (at(2, 1), 3), (at(u64::MAX, 0), 0)] {
        let word = Datagram { has, head, ..Datagram::default() };
        assert!(pair.sender.acknowledge(&word, pair.now).is_err(), "{has:?} {head}");
    }
    assert!(pair.arrive(&good).unwrap() && !pair.arrive(&good).unwrap());
    // More than the lane has room for: the consumer consumes nothing.
    let mut number = 1;
    while pair.produce(&message(number, 50)) {
        number += 1;
    }
    for flying in pair.outgoing() {
        pair.arrive(&flying).unwrap();
    }
    let place = pair.sender.place();
    let tag = ntbring_queue::Tag { sequence: place.entries as u16, kind: 1, len: 50, meta: 0 };
    let datagram = Datagram { place, tag: Some(tag.word()), ..Datagram::default() };
    let much = Flying { datagram, bytes: Region::anonymous(56), len: 50 };
    assert_eq!(pair.arrive(&much), Err(Malformed("sent more than its lane holds")));
}
