//! Encoding and decoding.

use super::tag::*;
use super::*;
use ntbring_queue::{LINE, META_MAX, TAG};
use ntbring_ring::relay::Route;
use ntbring_rma::Reply;
use ntbring_rma::Status;
use proptest::prelude::*;

fn packets() -> impl Strategy<Value = Packet> {
    let head = (0..HANDLERS).prop_map(|handler| Head { handler });
    prop_oneof![
        (head.clone(), 0usize..5000, 0usize..5000).prop_map(|(head, header, payload)| Packet::Message {
            head,
            header,
            payload
        }),
        (head, 0usize..5000, 0..STREAMS as u8, 1..i64::MAX as u64)
            .prop_map(|(head, header, stream, total)| Packet::Begin { head, header, stream, total }),
        (0..STREAMS as u8, 1usize..5000).prop_map(|(stream, payload)| Packet::Chunk { stream, payload }),
        offers(),
        (any::<u32>(), any::<u32>(), requests()).prop_map(|(offer, fetch, request)| Packet::Cts {
            offer,
            fetch,
            request
        }),
        (any::<u32>(), 0..STREAMS as u8, 1..MOST).prop_map(|(fetch, stream, total)| Packet::Data {
            fetch,
            stream,
            total
        }),
        (any::<u32>(), any::<bool>()).prop_map(|(fetch, ok)| Packet::Fin { fetch, ok }),
        any::<u32>().prop_map(|offer| Packet::Taken { offer }),
        Just(Packet::Direct),
        (1..=i64::MAX as u64).prop_map(|allowed| Packet::Credit { allowed }),
        any::<(u32, u32, u64)>().prop_map(|(origin, number, allowed)| Packet::Stalled { origin, number, allowed }),
        (any::<u32>(), any::<Option<u32>>(), 0usize..5000).prop_map(|(id, rank, payload)| {
            let status = rank.map_or(Status::Done, Status::Orphaned);
            Packet::Served { reply: Reply { id, status }, payload }
        }),
        (any::<u32>(), any::<u32>(), 1u16..4, 0usize..5000).prop_map(|(tag, number, kind, payload)| Packet::Dpm {
            what: DpmId { tag, number },
            kind: DpmKind::parse(kind).unwrap(),
            payload
        }),
    ]
}

fn offers() -> impl Strategy<Value = Packet> {
    (0..HANDLERS, 0usize..5000, any::<u32>(), any::<u64>(), 1..MOST).prop_map(
        |(handler, header, id, address, total)| {
            let head = Head { handler };
            Packet::Rts { head, header, offer: Offer { id, address, total } }
        },
    )
}

fn requests() -> impl Strategy<Value = Request> {
    prop_oneof![
        (1..MOST, any::<bool>()).prop_map(|(len, prefer_eager)| Request::Stream { len, prefer_eager }),
        (1..=u64::MAX, any::<u64>(), 1..MOST).prop_map(|(address, from, len)| Request::Push { address, from, len }),
    ]
}

/// Bytes of an entry that come after the prefix.
fn rest(packet: Packet) -> usize {
    match packet {
        Packet::Message { header, payload, .. } => header + payload,
        Packet::Begin { header, .. } | Packet::Rts { header, .. } => header,
        Packet::Chunk { payload, .. } | Packet::Served { payload, .. } => payload,
        Packet::Dpm { payload, .. } => payload,
        _ => 0,
    }
}

proptest! {
    #[test]
    fn packets_survive_the_wire(packet in packets(), route in proptest::option::of((any::<u32>(), any::<u32>()))) {
        let route = route.map(|(src, dst)| Route { src, dst });
        let prefix = packet.prefix(route);
        let len = prefix.end() + rest(packet);
        let parsed = Packet::parse(prefix.kind, prefix.meta, len, prefix.bytes(), route.is_some());
        prop_assert_eq!(parsed, Ok((packet, route, prefix.end())));
        prop_assert_eq!(prefix.bytes().len() % 8, 0);
    }

    #[test]
    fn hostile_entries_are_refused_or_stay_inside(kind: u8, meta in 0..=META_MAX, first in proptest::collection::vec(any::<u8>(), PREFIX_MAX), len in 0usize..10_000, routed: bool) {
        let first = &first[..len.min(PREFIX_MAX)];
        if let Ok((packet, _, at)) = Packet::parse(kind, meta, len, first, routed) {
            prop_assert_eq!(at + rest(packet), len);
        }
    }
}

#[test]
fn the_smallest_messages_need_one_line() {
    // MPICH's header for a send has 48 bytes.
    let packet = Packet::Message { head: Head::default(), header: 48, payload: 8 };
    assert_eq!(ntbring_queue::lines_for(packet.prefix(None).end() + 48 + 8), 1);
}

#[test]
fn large_pieces_begin_a_line() {
    for route in [None, Some(Route { src: 1, dst: 2 })] {
        let end = |payload| Packet::Chunk { stream: 3, payload }.prefix(route).end();
        assert_eq!((TAG + end(APART_MIN)) % LINE, 0);
        assert_eq!(end(APART_MIN - 1), route.map_or(0, |_| Route::LEN));
    }
}
