//! The other end of a connection, which sends what datagrams it likes and says it has come as far as it likes.

use ntbring_endpoint::reliable::{Datagram, Place, Receiver, Sender};
use ntbring_memory::{ForeignBytes, InWindow, OutWindow, Region};
use ntbring_queue::{Consumer, Producer, Tag, LINE};
use std::time::{Duration, Instant};

/// Of a lane.
const LINES: usize = 32;

fn place(low: u8, high: u8, near: Place) -> Place {
    // About where the other end really is, or anywhere.
    let number = |step: u8, near: u64| match step {
        0..=250 => near.wrapping_add(u64::from(step)).wrapping_sub(125),
        _ => u64::MAX >> (8 * (255 - step)),
    };
    Place { lines: number(low, near.lines), entries: number(high, near.entries) }
}

/// Runs one input.
pub fn run(data: &[u8]) {
    let (lane, credit) = (Region::anonymous(LINES * LINE), Region::anonymous(LINE));
    let mut producer = Producer::new(OutWindow::new(lane.clone()), InWindow::new(credit.clone()));
    let mut sender = Sender::new(InWindow::new(lane), OutWindow::new(credit));
    let (copy, freed) = (Region::anonymous(LINES * LINE), Region::anonymous(LINE));
    let mut consumer = Consumer::new(InWindow::new(copy.clone()), OutWindow::new(freed.clone()));
    let mut receiver = Receiver::new(OutWindow::new(copy), InWindow::new(freed));
    let mut now = Instant::now();
    for step in data.chunks_exact(12) {
        now += Duration::from_millis(step[1].into());
        let flag = |bit: u8| step[2] >> bit & 1 != 0;
        let (has, head) = (receiver.state().0, u64::from(step[3]));
        match step[0] % 8 {
            // A datagram whose entry may well come next.
            0 | 1 => {
                let len = usize::from(step[4]) * 2;
                let kind = if step[5] > 240 { 0xff } else { step[5] };
                let tag = Tag { sequence: has.entries as u16, kind, len: len as u32, meta: 0 };
                let tag = if flag(4) { tag.word() } else { u64::from_le_bytes(step[4..].try_into().expect("8 bytes")) };
                let near = if flag(5) { has } else { place(step[10], step[11], has) };
                let datagram = Datagram {
                    place: near,
                    asks: flag(0),
                    lacks: flag(1),
                    tag: flag(2).then_some(tag),
                    ..Datagram::default()
                };
                let window = InWindow::new(Region::anonymous(512));
                let _ = receiver.take(&datagram, window.foreign(0, len), now);
            }
            // Any bytes for a datagram.
            2 => {
                let mut bytes = [0; Datagram::HEAD];
                bytes.iter_mut().zip(step.iter().cycle()).for_each(|(to, from)| *to = *from);
                bytes[48..].fill(0);
                bytes[48] = step[2];
                if let Some((route, datagram)) = Datagram::parse(bytes) {
                    assert_eq!(datagram.bytes(route), bytes);
                    let _ = receiver.take(&datagram, ForeignBytes::EMPTY, now);
                    let _ = sender.acknowledge(&datagram, now);
                }
            }
            // A word on how far it has come.
            3 => {
                let has = place(step[10], step[11], sender.place());
                let head = if flag(3) { has.lines } else { head };
                let word = Datagram { has, head, lacks: flag(1), ..Datagram::default() };
                let _ = sender.acknowledge(&word, now);
            }
            4 => {
                let len = (usize::from(step[4]) * 3).min(producer.entry_max());
                if let Some(mut slot) = producer.reserve(len) {
                    // Bytes that may look like tags.
                    let bytes: Vec<u8> = step[4..].iter().copied().cycle().take(len).collect();
                    slot.write_bytes(0, &bytes);
                    slot.commit(1, len, 0);
                }
            }
            5 => {
                while let Some(entry) = sender.outgoing() {
                    sender.sent(&entry, now);
                }
                if sender.is_to_ask(now) {
                    sender.has_asked(now);
                }
            }
            6 => {
                if receiver.is_to_tell(now) {
                    let datagram = receiver.datagram(sender.place());
                    assert!(datagram.head <= datagram.has.lines);
                    receiver.has_sent(&datagram);
                }
                if flag(0) {
                    sender.turned(now);
                    receiver.repeat(now);
                }
            }
            _ => {
                while let Ok(Some(entry)) = consumer.take() {
                    let mut bytes = vec![0; entry.len];
                    consumer.window().read(entry.offset, &mut bytes);
                    consumer.release();
                }
            }
        }
        assert!(sender.taken() <= u64::MAX / 2 && sender.open() <= u64::MAX / 2);
        assert!(receiver.state().0.lines - receiver.state().1 <= LINES as u64);
    }
}
