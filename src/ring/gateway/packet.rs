//! Packets of tunnels. A packet is a route of 8 bytes (see [`crate::relay::Route`]) and:
//!
//! ```text
//! tunnel 4, action 1, a 1, b 2, number 8, c 4, d 4 | bytes
//! ```

use crate::external_peer::{Ending, ExternalAddress};
use bytes::{Buf, BufMut, Bytes, BytesMut};
use ntbring_queue::{META_MAX, PAD};

/// Entry kind of a tunnel's packet, without the route bit.
pub(crate) const TUNNEL: u8 = 0x10;

/// Size of a packet's head after the route, bytes.
pub(super) const HEAD: usize = 24;

/// A part of an entry that a tunnel carries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fragment {
    /// Kind and additional value of the entry.
    pub kind: u8,
    pub meta: u16,
    /// Number of bytes of the whole entry.
    pub total: u32,
    /// Offset of this part in the entry, bytes.
    pub at: u32,
    pub bytes: Bytes,
}

/// Contents that a sender numbers and a receiver takes in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Content {
    /// The tunnel begins; always number 0. `lane` is the size of the lane for the receiver, bytes.
    Open {
        from: ExternalAddress,
        to: ExternalAddress,
        lane: u32,
    },
    Data(Fragment),
    /// The sending process is gone; the last packet of a tunnel.
    Close(Ending),
}

/// A packet of a tunnel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Packet {
    /// To the receiver: contents with their number.
    Content(u64, Content),
    /// To the receiver: asks for a confirmation.
    Probe,
    /// To the sender: the number of the next packet to be received, and the number of received packets that are not in
    /// the lane yet.
    Confirm { received: u64, waiting: u32 },
    /// To the sender: the receiving process is gone, or there is no such tunnel.
    Gone(Ending),
}

const OPEN: u8 = 1;
const DATA: u8 = 2;
const CLOSE: u8 = 3;
const PROBE: u8 = 4;
const CONFIRM: u8 = 5;
const GONE: u8 = 6;

impl Packet {
    /// Encodes the packet of a tunnel, without a route.
    pub fn encode(&self, tunnel: u32) -> Bytes {
        let none = Bytes::new();
        let ended = |ending: &Ending| u8::from(*ending == Ending::Died);
        let (action, a, b, number, c, d, bytes) = match self {
            Packet::Content(_, Content::Open { from, to, lane }) => {
                (OPEN, 0, 0, 0, *lane, 0, Bytes::from([from.bytes(), to.bytes()].concat()))
            }
            Packet::Content(n, Content::Data(Fragment { kind, meta, total, at, bytes })) => {
                (DATA, *kind, *meta, *n, *total, *at, bytes.clone())
            }
            Packet::Content(n, Content::Close(ending)) => (CLOSE, ended(ending), 0, *n, 0, 0, none),
            Packet::Probe => (PROBE, 0, 0, 0, 0, 0, none),
            Packet::Confirm { received, waiting } => (CONFIRM, 0, 0, *received, *waiting, 0, none),
            Packet::Gone(ending) => (GONE, ended(ending), 0, 0, 0, 0, none),
        };
        let mut to = BytesMut::with_capacity(HEAD + bytes.len());
        to.put_u32_le(tunnel);
        to.put_u8(action);
        to.put_u8(a);
        to.put_u16_le(b);
        to.put_u64_le(number);
        to.put_u32_le(c);
        to.put_u32_le(d);
        to.put(bytes);
        to.freeze()
    }

    /// Decodes a packet and the number of its tunnel; None if it is invalid.
    pub fn parse(mut bytes: Bytes) -> Option<(u32, Packet)> {
        if bytes.len() < HEAD {
            return None;
        }
        let (tunnel, action, a, b) = (bytes.get_u32_le(), bytes.get_u8(), bytes.get_u8(), bytes.get_u16_le());
        let (n, c, d) = (bytes.get_u64_le(), bytes.get_u32_le(), bytes.get_u32_le());
        let ending = Ending::of(a == 0);
        let packet = match action {
            OPEN if n == 0 && bytes.len() == 2 * ExternalAddress::LEN => {
                let (from, to) = bytes.split_at(ExternalAddress::LEN);
                let (from, to) = (ExternalAddress::parse(from)?, ExternalAddress::parse(to)?);
                Packet::Content(n, Content::Open { from, to, lane: c })
            }
            DATA if a != PAD && b <= META_MAX => {
                Packet::Content(n, Content::Data(Fragment { kind: a, meta: b, total: c, at: d, bytes }))
            }
            CLOSE => Packet::Content(n, Content::Close(ending)),
            PROBE => Packet::Probe,
            CONFIRM => Packet::Confirm { received: n, waiting: c },
            GONE => Packet::Gone(ending),
            _ => return None,
        };
        Some((tunnel, packet))
    }

    /// Returns true if the packet is for the receiving end of its tunnel.
    pub fn is_for_receiver(&self) -> bool {
        matches!(self, Packet::Content(..) | Packet::Probe)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::external_peer::address_for_tests as address;

    #[test]
    fn packets_survive_their_bytes_and_nonsense_is_none() {
        let fragment = Fragment { kind: 3, meta: 500, total: 9000, at: 4000, bytes: Bytes::from_static(b"payload") };
        for packet in [
            Packet::Content(0, Content::Open { from: address(1, 2, 3), to: address(4, 5, 6), lane: 65536 }),
            Packet::Content(7, Content::Data(fragment)),
            Packet::Content(8, Content::Close(Ending::Left)),
            Packet::Content(u64::MAX, Content::Close(Ending::Died)),
            Packet::Probe,
            Packet::Confirm { received: 9, waiting: 4 },
            Packet::Gone(Ending::Left),
            Packet::Gone(Ending::Died),
        ] {
            assert_eq!(Packet::parse(packet.encode(77)), Some((77, packet.clone())));
            for len in 0..HEAD {
                assert_eq!(Packet::parse(packet.encode(77).slice(..len)), None);
            }
        }
        for (kind, meta) in [(PAD, 0), (3, META_MAX + 1)] {
            let fragment = Fragment { kind, meta, total: 1, at: 0, bytes: Bytes::from_static(b"x") };
            assert_eq!(Packet::parse(Packet::Content(1, Content::Data(fragment)).encode(1)), None, "{kind} {meta}");
        }
        let mut open = BytesMut::from(&Packet::Probe.encode(1)[..]);
        for action in [0, OPEN, 7, 255] {
            open[4] = action;
            assert_eq!(Packet::parse(open.clone().freeze()), None, "{action}");
        }
    }
}
