//! A lane between two threads: a ring buffer in shared memory with one producer and one consumer.
//!
//!     cargo run --example lane

use ntbring_memory::{InWindow, OutWindow, Region};
use ntbring_queue::{Consumer, Producer, LINE};

/// Messages that are sent.
const MESSAGES: u32 = 1000;

/// Runs the example.
pub fn main() {
    // On a real link `lane` lies in the receiver's memory and `credit` in the sender's; each side maps the other's for
    // writing only.
    let (lane, credit) = (Region::anonymous(64 * LINE), Region::anonymous(LINE));
    let mut producer = Producer::new(OutWindow::new(lane.clone()), InWindow::new(credit.clone()));
    let mut consumer = Consumer::new(InWindow::new(lane), OutWindow::new(credit));
    std::thread::scope(|scope| {
        scope.spawn(move || {
            for number in 0..MESSAGES {
                let bytes = number.to_le_bytes();
                // None while the lane is full: the consumer returns its head once per half lane.
                let mut slot = loop {
                    match producer.reserve(bytes.len()) {
                        Some(slot) => break slot,
                        None => std::thread::yield_now(),
                    }
                };
                slot.write_bytes(0, &bytes);
                slot.commit(1, bytes.len(), 0);
            }
        });
        scope.spawn(move || {
            for expected in 0..MESSAGES {
                let entry = loop {
                    match consumer.take().expect("the producer writes nothing but entries") {
                        Some(entry) => break entry,
                        None => std::thread::yield_now(),
                    }
                };
                let mut bytes = [0; 4];
                consumer.window().read(entry.offset, &mut bytes);
                assert_eq!((entry.len, u32::from_le_bytes(bytes)), (4, expected));
                consumer.release();
            }
            println!("{MESSAGES} messages have arrived in order through a lane of 64 lines");
        });
    });
}
