//! Peers that do not keep to the protocol: whatever they write, an end of a lane neither panics,
//! nor reaches beyond its memory, nor goes on for ever.

use super::take_by_kind;
use crate::ntb::{InWindow, OutWindow, Region};
use crate::queue::{entry_max, lines_for, Consumer, Corrupt, Producer, Tag, LEN_MAX, LINE, META_MAX, PAD, TAG};
use fastrand::Rng;
use proptest::prelude::*;

struct Lane {
    memory: OutWindow,
    consumer: Consumer,
}

fn lane(lines: usize) -> Lane {
    let region = Region::anonymous(lines * LINE);
    let credit = OutWindow::new(Region::anonymous(8));
    Lane { memory: OutWindow::new(region.clone()), consumer: Consumer::new(InWindow::new(region), credit) }
}

/// A word that is as likely as possible to be taken for a tag.
fn word(rng: &mut Rng, expected: u16) -> u64 {
    match rng.u8(..8) {
        0 => 0,
        1 => rng.u64(..),
        n => Tag {
            sequence: if n < 5 { expected } else { expected.wrapping_add(rng.u16(..40)).wrapping_sub(20) },
            kind: if rng.u8(..3) == 0 { PAD } else { rng.u8(..) },
            len: match rng.u8(..4) {
                0 => rng.u32(..=LEN_MAX as u32),
                1 => rng.u32(..2000),
                _ => rng.u32(..60),
            },
            meta: rng.u16(..=META_MAX),
        }
        .word(),
    }
}

proptest! {
    #[test]
    fn whatever_lies_in_a_lane_entries_stay_inside(lines in 16usize..600, seed: u64) {
        let mut rng = Rng::with_seed(seed);
        let Lane { memory, mut consumer } = lane(lines);
        for _ in 0..40 {
            for line in 0..lines {
                memory.store(line * LINE, word(&mut rng, consumer.sequence().wrapping_add(line as u16)));
            }
            // No memory that stays as it is can have more entries than lines.
            for turn in 0.. {
                prop_assert!(turn <= lines, "no end");
                let before = consumer.sequence();
                let short = rng.bool();
                match if short { take_by_kind(&mut consumer, rng.u8(..3)) } else { consumer.take() } {
                    Ok(Some(entry)) => {
                        prop_assert!(entry.len <= entry_max(lines));
                        prop_assert!(entry.offset >= TAG && entry.offset + entry.len <= lines * LINE);
                        prop_assert_eq!(entry.offset % LINE, TAG);
                        let mut bytes = vec![0; entry.len];
                        consumer.window().read(entry.offset, &mut bytes);
                        if rng.bool() {
                            consumer.release();
                        }
                    }
                    Ok(None) => break,
                    Err(error) => {
                        prop_assert!(!error.to_string().is_empty());
                        let (at, _) = (consumer.sequence(), before);
                        // It stays where it is.
                        prop_assert_eq!(consumer.take(), Err(error));
                        prop_assert_eq!(consumer.sequence(), at);
                        break;
                    }
                }
            }
            // The peer goes on with what is expected at any line: whatever state it is in.
            for line in 0..lines {
                let tag = Tag { sequence: consumer.sequence(), kind: 1, len: rng.u32(..300), meta: 0 };
                memory.store(line * LINE, tag.word());
            }
            let _ = consumer.take();
        }
    }

    #[test]
    fn whatever_the_head_is_said_to_be_nothing_is_written_outside(lines in 16usize..600, seed: u64) {
        let mut rng = Rng::with_seed(seed);
        let credit = Region::anonymous(8);
        let hostile = OutWindow::new(credit.clone());
        // A lane in the middle of a larger window, which shows what is written beside it.
        let window = Region::anonymous((lines + 2) * LINE);
        let beside = InWindow::new(window.clone());
        let mut producer = Producer::new(OutWindow::new(window).part(LINE, lines * LINE), InWindow::new(credit));
        // The head that a correct producer believes in.
        let (mut tail, mut head, mut said) = (0u64, 0u64, 0u64);
        for _ in 0..500 {
            said = match rng.u8(..6) {
                0 => rng.u64(..),
                1 => tail + rng.u64(..3),
                2 => head.wrapping_sub(rng.u64(..3)),
                3 => head + rng.u64(..=tail - head),
                4 => u64::MAX - rng.u64(..3),
                _ => said,
            };
            hostile.store(0, said);
            let len = rng.usize(..=producer.entry_max());
            let need = lines_for(len) as u64;
            let rest = lines as u64 - tail % lines as u64;
            let with_filling = if need > rest { need + rest } else { need };
            let room = |head: u64| tail - head + with_filling < lines as u64;
            if !room(head) && said > head && said <= tail {
                head = said;
            }
            match producer.reserve(len) {
                Some(mut slot) => {
                    prop_assert!(room(head), "room that is not there");
                    slot.write_bytes(0, &vec![0xff; len]);
                    slot.commit(1, len, 0);
                    tail += with_filling;
                }
                None => prop_assert!(!room(head), "no room though there is"),
            }
            prop_assert!(producer.taken() <= lines);
        }
        for word in 0..LINE / 8 {
            prop_assert_eq!(beside.load(8 * word), 0);
            prop_assert_eq!(beside.load((lines + 1) * LINE + 8 * word), 0);
        }
    }
}

/// Fillings that follow each other would keep a consumer in one call for as long as a peer keeps
/// writing them.
#[test]
fn a_filling_where_anything_fits_is_corrupt() {
    let Lane { memory, mut consumer } = lane(16);
    let pad = |sequence| Tag { sequence, kind: PAD, len: 0, meta: 0 }.word();
    memory.store(0, pad(0));
    assert_eq!(consumer.take(), Err(Corrupt::NoTag { line: 0, word: pad(0) }));

    let Lane { memory, mut consumer } = lane(16);
    let mut sequence = 0;
    for line in (0..12).step_by(4).chain([12, 13]) {
        let len = if line < 12 { 4 * LINE - TAG } else { 0 };
        memory.store(line * LINE, Tag { sequence, kind: 1, len: len as u32, meta: 0 }.word());
        assert_eq!(consumer.take().map(|e| e.unwrap().len), Ok(len));
        sequence += 1;
    }
    // Two lines are left: here a filling is right, but not another one after it.
    memory.store(14 * LINE, pad(sequence));
    memory.store(0, pad(sequence + 1));
    assert_eq!(consumer.take(), Err(Corrupt::NoTag { line: 0, word: pad(sequence + 1) }));
}

#[test]
fn tags_from_the_future_and_the_distant_past_are_corrupt() {
    let tag = |sequence| Tag { sequence, kind: 1, len: 0, meta: 0 }.word();
    for (sequence, fine) in [(0, true), (1, false), (u16::MAX, true), (u16::MAX - 15, true), (u16::MAX - 16, false)] {
        let Lane { memory, mut consumer } = lane(16);
        memory.store(0, tag(sequence));
        assert_eq!(consumer.take().is_ok(), fine, "{sequence}");
    }
}

#[test]
fn an_entry_that_reaches_beyond_the_lane_is_corrupt() {
    let Lane { memory, mut consumer } = lane(16);
    for line in 0..15u16 {
        memory.store(line as usize * LINE, Tag { sequence: line, kind: 1, len: 0, meta: 0 }.word());
        consumer.take().unwrap().unwrap();
    }
    memory.store(15 * LINE, Tag { sequence: 15, kind: 1, len: 57, meta: 0 }.word());
    assert_eq!(consumer.take(), Err(Corrupt::Length { line: 15, len: 57, max: 56 }));
}
