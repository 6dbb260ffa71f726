//! A peer that writes what it likes into a lane and into the word that takes the head.

use ntbring_memory::{InWindow, OutWindow, Region};
use ntbring_queue::{Consumer, Producer, Tag, LINE};

/// Runs one input.
pub fn run(data: &[u8]) {
    let Some((&size, data)) = data.split_first() else { return };
    let lines = 16 + size as usize % 64;
    let (lane, credit) = (Region::anonymous(lines * LINE), Region::anonymous(8));
    let (memory, head) = (OutWindow::new(lane.clone()), OutWindow::new(credit.clone()));
    let mut consumer = Consumer::new(InWindow::new(lane.clone()), OutWindow::new(Region::anonymous(8)));
    let mut producer = Producer::new(OutWindow::new(Region::anonymous(lines * LINE)), InWindow::new(credit));
    for step in data.chunks_exact(10) {
        let word = u64::from_le_bytes(step[2..].try_into().expect("8 bytes"));
        let line = step[0] as usize % lines;
        match step[1] % 8 {
            0 => memory.store(line * LINE, word),
            1 => memory.write_bytes(line * LINE, step),
            // What the consumer most likely takes for valid.
            2 | 3 => {
                let tag = Tag { sequence: consumer.sequence(), kind: step[2], len: word as u32 >> 12, meta: 0 };
                memory.store(line * LINE, Tag { len: tag.len & 0xfff, ..tag }.word());
            }
            4 => head.store(0, word),
            5 => {
                if let Some(slot) = producer.reserve(word as usize % (producer.entry_max() + 1)) {
                    let room = slot.room();
                    slot.commit(1, room, 0);
                }
                assert!(producer.taken() <= lines);
            }
            6 if consumer.held() > 0 => drop(consumer.release()),
            _ => {
                while let Ok(Some(entry)) = consumer.take() {
                    let mut bytes = vec![0; entry.len];
                    consumer.window().read(entry.offset, &mut bytes);
                }
            }
        }
    }
}
