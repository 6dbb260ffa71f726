//! Peers that violate the protocol: for arbitrary writes, an end of a lane neither panics, nor accesses memory
//! outside the lane, nor loops for ever.

use super::take_by_kind;
use crate::{entry_max, lines_for, Consumer, Corrupt, Producer, Tag, LEN_MAX, LINE, META_MAX, PAD, TAG};
use fastrand::Rng;
use ntbring_memory::{InWindow, OutWindow, Region};
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

/// A word that is as likely as possible to be accepted as a tag.
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
            // Memory that does not change cannot hold more entries than lines.
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
                        // The entry stays in place.
                        prop_assert_eq!(consumer.take(), Err(error));
                        prop_assert_eq!(consumer.sequence(), at);
                        break;
                    }
                }
            }
            // The peer writes the expected tag at any line, in any state of the consumer.
            for line in 0..lines {
                let tag = Tag { sequence: consumer.sequence(), kind: 1, len: rng.u32(..300), meta: 0 };
                memory.store(line * LINE, tag.word());
            }
            let _ = consumer.take();
        }
    }

    #[test]
    fn whatever_the_head_is_said_to_be_nothing_is_written_outside(
        lines in 16usize..600,
        seed: u64,
    ) {
        let mut rng = Rng::with_seed(seed);
        let credit = Region::anonymous(8);
        let hostile = OutWindow::new(credit.clone());
        // The lane is in the middle of a larger window, which shows writes outside it.
        let window = Region::anonymous((lines + 2) * LINE);
        let beside = InWindow::new(window.clone());
        let lane = OutWindow::new(window).part(LINE, lines * LINE);
        let mut producer = Producer::new(lane, InWindow::new(credit));
        // The head in which a correct producer believes.
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
            let room = |head: u64, lines_of: u64| tail - head + lines_of < lines as u64;
            let with_filling = if need > rest { need + rest } else { need };
            // The producer may decide with an older head; only the sufficiency of the latest head is checked.
            let look = |head: &mut u64| if said > *head && said <= tail { *head = said };
            if !room(head, with_filling) {
                look(&mut head);
            }
            let room = |head| room(head, with_filling);
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

/// Padding entries in a row would keep a consumer in one call for as long as a peer keeps writing them.
#[test]
fn a_lap_without_an_entry_is_corrupt() {
    let pad = |sequence| Tag { sequence, kind: PAD, len: 0, meta: 0 }.word();
    let Lane { memory, mut consumer } = lane(16);
    memory.store(0, pad(0));
    assert_eq!(consumer.take(), Err(Corrupt::NoTag { line: 0, word: pad(0) }));

    // Padding is valid behind any entry, but not behind other padding.
    for line in 1..16 {
        let Lane { memory, mut consumer } = lane(16);
        for sequence in 0..line {
            let tag = Tag { sequence, kind: 1, len: 0, meta: 0 };
            memory.store(usize::from(sequence) * LINE, tag.word());
            assert!(consumer.take().unwrap().is_some());
        }
        memory.store(usize::from(line) * LINE, pad(line));
        assert_eq!(consumer.take(), Ok(None), "the tag of the lap before is not yet the next one");
        memory.store(0, pad(line + 1));
        assert_eq!(consumer.take(), Err(Corrupt::NoTag { line: 0, word: pad(line + 1) }));
    }
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
