//! The two ends of a tunnel over a link that loses, repeats and reorders packets.

use super::super::sender::Sender;
use super::*;
use crate::external_peer::address_for_tests as address;
use bytes::Bytes;
use proptest::prelude::*;
use std::time::{Duration, Instant};

fn open() -> Content {
    Content::Open { from: address(1, 2, 3), to: address(4, 5, 6), lane: 65536 }
}

/// Returns the parts of an entry whose bytes follow from `n`.
fn parts(n: usize, len: usize, part: usize) -> Vec<Content> {
    let bytes = Bytes::from(vec![n as u8; len]);
    let ats = (0..len.max(1)).step_by(part);
    let fragment = |at: usize| Fragment {
        kind: 1,
        meta: n as u16,
        total: len as u32,
        at: at as u32,
        bytes: bytes.slice(at..len.min(at + part)),
    };
    ats.map(|at| Content::Data(fragment(at))).collect()
}

proptest! {
    /// All entries arrive once and in order, whatever the link does, as long as it does not lose all packets.
    #[test]
    fn entries_arrive_once_and_in_order(
        lens in prop::collection::vec(0_usize..9000, 1..30),
        part in 64_usize..2000,
        mut luck in prop::collection::vec(0_u8..8, 50..400),
    ) {
        let mut now = Instant::now();
        let (mut sender, mut receiver) = (Sender::new(open()), None::<Receiver>);
        let mut unsent = lens.iter().enumerate().flat_map(|(n, len)| parts(n, *len, part)).collect::<VecDeque<_>>();
        unsent.push_back(Content::Close(Ending::Left));
        let (mut out, mut back) = (VecDeque::new(), VecDeque::new());
        let (mut placed, mut ended) = (Vec::new(), false);
        for step in 0.. {
            prop_assert!(step < 20_000, "the tunnel is stuck");
            let luck = luck.pop().unwrap_or(7);
            while sender.has_room() {
                let Some(content) = unsent.pop_front() else { break };
                sender.push(content);
            }
            out.extend(std::iter::from_fn(|| sender.next(now)));
            prop_assert!(out.len() < 4000);
            match luck {
                0 => { out.pop_front(); }
                1 => out.extend(out.front().cloned()),
                2 if !out.is_empty() => out.rotate_left(1),
                3 => { back.pop_front(); }
                _ => {}
            }
            match (out.pop_front(), &mut receiver) {
                (Some(Packet::Content(0, Content::Open { .. })), None) => receiver = Some(Receiver::new(9000)),
                (Some(Packet::Content(n, content)), Some(receiver)) => receiver.accept(n, content),
                (Some(Packet::Probe), Some(receiver)) => receiver.probe(),
                _ => {}
            }
            if let Some(receiver) = &mut receiver {
                // Now and then the lane has no room.
                if luck != 4 {
                    let mut room = usize::from(luck);
                    let state = receiver.place(|kind, meta, bytes| {
                        let fits = room > 0;
                        if fits {
                            room -= 1;
                            placed.push((kind, meta, bytes.to_vec()));
                        }
                        fits
                    });
                    ended |= state == Placed::Ended(Ending::Left);
                    prop_assert!(!matches!(state, Placed::Invalid(_)));
                }
                back.extend(receiver.confirmation());
            }
            if let Some(Packet::Confirm { received, waiting }) = back.pop_front() {
                sender.confirm(received, waiting, now);
            }
            if ended {
                break;
            }
            now += Duration::from_millis(20);
        }
        let expected: Vec<_> = lens.iter().enumerate().map(|(n, len)| (1, n as u16, vec![n as u8; *len])).collect();
        prop_assert_eq!(placed, expected);
    }
}

#[test]
fn a_sender_takes_no_more_than_its_window_and_ignores_nonsense() {
    let now = Instant::now();
    let mut sender = Sender::new(open());
    let mut pushed = 0;
    while sender.has_room() {
        parts(pushed, 1000, 1000).into_iter().for_each(|part| assert_eq!(sender.push(part), pushed as u64 + 1));
        pushed += 1;
    }
    assert_eq!(pushed, WINDOW.div_ceil(1000 + 24));
    // Only the first packet is sent before the tunnel is known to be open.
    assert!(matches!(sender.next(now), Some(Packet::Content(0, Content::Open { .. }))));
    assert_eq!(sender.next(now), None);
    assert!(sender.rest(now).is_some());
    for (received, waiting) in [(2, 0), (u64::MAX, 0), (1, 2), (0, u32::MAX)] {
        assert!(!sender.confirm(received, waiting, now));
    }
    assert!(sender.confirm(1, 0, now));
    assert_eq!(std::iter::from_fn(|| sender.next(now)).count(), pushed);
    assert!(sender.confirm(pushed as u64 + 1, 0, now) && sender.is_idle() && sender.rest(now).is_none());
    assert!(!sender.confirm(3, 0, now), "an old confirmation");
}

#[test]
fn a_receiver_refuses_entries_that_are_inconsistent() {
    let fragment = |total, at, len: usize| {
        Content::Data(Fragment { kind: 1, meta: 0, total, at, bytes: Bytes::from(vec![0; len]) })
    };
    for wrong in [fragment(10, 1, 5), fragment(10, 0, 11), fragment(101, 0, 50), fragment(10, 0, 0), open()] {
        let mut receiver = Receiver::new(100);
        receiver.accept(1, wrong.clone());
        assert!(matches!(receiver.place(|_, _, _| true), Placed::Invalid(_)), "{wrong:?}");
    }
    let mut receiver = Receiver::new(100);
    receiver.accept(1, fragment(10, 0, 5));
    receiver.accept(2, Content::Close(Ending::Died));
    assert!(matches!(receiver.place(|_, _, _| true), Placed::Invalid(_)));
}

#[test]
fn a_sender_asks_for_confirmations_while_nothing_is_sent_but_not_before_the_tunnel_is_open() {
    let mut now = Instant::now();
    let mut sender = Sender::new(open());
    for _ in 0..100 {
        assert!(!matches!(sender.next(now), Some(Packet::Probe)), "the receiver knows of no tunnel yet");
        now += Duration::from_millis(500);
    }
    sender.confirm(1, 0, now);
    assert!(sender.is_idle());
    let probes = (0..40).filter(|_| {
        now += Duration::from_millis(500);
        matches!(sender.next(now), Some(Packet::Probe))
    });
    assert_eq!(probes.count(), 10);
}
