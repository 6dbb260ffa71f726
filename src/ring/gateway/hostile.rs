//! The state machines of tunnels under packets that a fuzzer makes up.

use super::packet::{Content, Fragment, Packet, HEAD};
use super::receiver::{Placed, Receiver};
use super::sender::Sender;
use crate::external_peer::Ending;
use bytes::Bytes;
use std::time::{Duration, Instant};

/// Largest entry of the lane at the receiving end, bytes.
const ENTRY_MAX: usize = 300;

/// Lets another gateway send any packets to both ends of a tunnel.
pub fn tunnels(data: &[u8]) {
    let mut now = Instant::now();
    let (mut sender, mut receiver) = (Sender::new(Content::Close(Ending::Left)), Receiver::new(ENTRY_MAX));
    let mut is_open = true;
    // Number of the packet that the receiver expects next.
    let mut next = 1;
    let mut rest = data;
    while let Some((&[kind, a, b, c, d, e], behind)) = rest.split_first_chunk::<6>() {
        rest = behind;
        now += Duration::from_millis(u64::from(a) * 4);
        let number =
            |near: u64| if b < 200 { near.wrapping_add(u64::from(b % 5)).wrapping_sub(2) } else { u64::MAX - 3 };
        match kind % 8 {
            0 => {
                let len = (usize::from(a) + HEAD).min(rest.len());
                let bytes = Bytes::copy_from_slice(&rest[..len]);
                rest = &rest[len..];
                if let Some((tunnel, packet)) = Packet::parse(bytes) {
                    assert_eq!(Packet::parse(packet.encode(tunnel)), Some((tunnel, packet)));
                }
            }
            1 | 2 => {
                let [total, at] = [c, d].map(|value| u32::from(value) * if e < 10 { 1 << 24 } else { 1 });
                let bytes = Bytes::from(vec![e; usize::from(a)]);
                let fragment = Fragment { kind: 1, meta: 0, total, at, bytes };
                receiver.accept(if kind % 8 == 1 { next } else { number(next) }, Content::Data(fragment));
            }
            3 => receiver.accept(number(next), Content::Close(Ending::Died)),
            4 => drop(sender.confirm(number(sender.placed()), c.into(), now)),
            5 if sender.has_room() => {
                let fragment = Fragment { kind: 1, meta: 0, total: 9, at: 0, bytes: Bytes::from(vec![0; 9]) };
                sender.push(Content::Data(fragment));
            }
            6 => drop(sender.next(now)),
            _ => receiver.probe(),
        }
        if is_open {
            let put = |_: u8, _: u16, bytes: &[u8]| {
                assert!(bytes.len() <= ENTRY_MAX);
                c % 4 != 0
            };
            is_open = receiver.place(put) == Placed::Open;
            if let Some(Packet::Confirm { received, waiting }) = receiver.confirmation() {
                assert!(received >= next && u64::from(waiting) <= received);
                next = received;
            }
        }
        assert!(sender.rest(now).is_none_or(|rest| rest <= Duration::from_secs(2)));
    }
}
