//! A producer and a consumer in two threads, over windows whose writes `ntbring_ntb::weak` reorders in both directions.

use super::take_by_kind;
use crate::{Consumer, Producer, LINE};
use fastrand::Rng;
use ntbring_memory::{InWindow, OutWindow, Region};
use ntbring_ntb::weak::disorder;
use std::time::{Duration, Instant};

/// Aborts a test that would hang.
const TIMEOUT: Duration = Duration::from_secs(60);

fn bytes(rng: &mut Rng, max: usize) -> Vec<u8> {
    let len = if rng.bool() { rng.usize(..=max) } else { rng.usize(..=60) };
    std::iter::repeat_with(|| rng.u8(..)).take(len).collect()
}

fn until<T>(mut look: impl FnMut() -> Option<T>) -> Result<T, String> {
    let start = Instant::now();
    loop {
        if let Some(found) = look() {
            return Ok(found);
        }
        if start.elapsed() > TIMEOUT {
            return Err("nothing has moved for a minute".into());
        }
        std::thread::yield_now();
    }
}

fn exchange(lines: usize, messages: usize, hold: u32, weak: Option<u64>) -> Result<(), String> {
    let (memory, credit) = (Region::anonymous(lines * LINE), Region::anonymous(8));
    let dress = |window: OutWindow, salt| match weak {
        Some(seed) => disorder(window, seed ^ salt),
        None => window,
    };
    let (to_lane, to_credit) =
        (dress(OutWindow::new(memory.clone()), 0), dress(OutWindow::new(credit.clone()), 0x1234));
    let incoming = InWindow::new(memory);
    let mut producer = Producer::new(to_lane, InWindow::new(credit));
    let mut consumer = Consumer::new(incoming, to_credit);
    let seed = weak.unwrap_or(7);
    let max = producer.entry_max();
    std::thread::scope(|scope| {
        let sending = scope.spawn(move || {
            let mut rng = Rng::with_seed(seed);
            for i in 0..messages {
                let message = bytes(&mut rng, max);
                until(|| {
                    let mut slot = producer.reserve(message.len())?;
                    slot.write_bytes(0, &message);
                    slot.commit(1, message.len(), i as u16 & 0x7fff);
                    Some(())
                })?;
            }
            Ok::<(), String>(())
        });
        let mut rng = Rng::with_seed(seed);
        let mut receive = || {
            for i in 0..messages {
                let expected = bytes(&mut rng, max);
                let mut corrupt = None;
                let entry =
                    until(|| match if i % 2 == 0 { take_by_kind(&mut consumer, 1) } else { consumer.take() } {
                        Ok(None) => {
                            // The producer may need the entries that are held in order to continue.
                            while consumer.held() > 0 {
                                consumer.release();
                            }
                            None
                        }
                        Ok(Some(entry)) => Some(Ok(entry)),
                        Err(error) => {
                            corrupt = Some(error);
                            Some(Err(()))
                        }
                    })?;
                let Ok(entry) = entry else { return Err(format!("message {i}: {corrupt:?}")) };
                let mut found = vec![0; entry.len];
                consumer.window().read(entry.offset, &mut found);
                if found != expected || entry.meta != i as u16 & 0x7fff {
                    return Err(format!("message {i} is wrong: {entry:?}"));
                }
                if consumer.held() == hold || i + 1 == messages {
                    while consumer.held() > 0 {
                        consumer.release();
                    }
                }
            }
            Ok(())
        };
        let received = receive();
        // A producer whose consumer has given up is not joined.
        if received.is_ok() {
            sending.join().unwrap()
        } else {
            received
        }
    })
}

#[test]
fn messages_pass_in_order() {
    assert_eq!(exchange(64, 10_000, 1, None), Ok(()));
    assert_eq!(exchange(16, 3_000, 3, None), Ok(()));
}

#[test]
fn messages_pass_in_order_over_a_weakly_ordered_link() {
    for seed in 0..6 {
        assert_eq!(exchange(16 + 40 * seed as usize, 700, 1 + seed as u32 % 3, Some(seed)), Ok(()));
    }
}
