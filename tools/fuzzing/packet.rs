//! An entry of a lane that a peer has made up.

use arbitrary::{Arbitrary, Unstructured};
use ntbring_endpoint::wire::{Packet, PREFIX_MAX};

/// Runs one input.
pub fn run(data: &[u8]) {
    let Ok(input) = <(u8, u16, u16, bool, &[u8])>::arbitrary_take_rest(Unstructured::new(data)) else { return };
    let (kind, meta, len, routed, bytes) = input;
    let len = len as usize;
    let first = &bytes[..bytes.len().min(len).min(PREFIX_MAX)];
    if let Ok((packet, route, at)) = Packet::parse(kind, meta & 0x7fff, len, first, routed) {
        assert_eq!(route.is_some(), routed);
        let end = match packet {
            Packet::Message { header, payload, .. } => at + header + payload,
            Packet::Begin { header, .. } | Packet::Rts { header, .. } => at + header,
            Packet::Chunk { payload, .. } | Packet::Served { payload, .. } | Packet::Dpm { payload, .. } => {
                at + payload
            }
            Packet::Cts { .. }
            | Packet::Data { .. }
            | Packet::Fin { .. }
            | Packet::Taken { .. }
            | Packet::Credit { .. }
            | Packet::Direct
            | Packet::Stalled { .. } => at,
        };
        assert_eq!(end, len);
        // What is understood is what would be sent.
        let prefix = packet.prefix(route);
        let again = Packet::parse(prefix.kind, prefix.meta, prefix.end() + len - at, prefix.bytes(), routed);
        assert_eq!(again.map(|(p, r, _)| (p, r)), Ok((packet, route)));
    }
}
