//! Packets that no manager has sent, and the encoding of those that managers send.

use super::settled;
use crate::packet::{Body, Header, Method};
use crate::record::{Peer, Ports, Record, Stamp, EPOCH_MAX};
use crate::routes::Plan;
use crate::shape::Shape;
use crate::table::{Fragment, Table};
use crate::{Event, Hwid, Lid, Manager, ManagerError, Path, Rules, HOPS_MAX, PORTS};
use crate::{PacketError, HEADER, PACKET_MAX};
use proptest::prelude::*;
use std::time::Duration;

fn path() -> impl Strategy<Value = Path> {
    proptest::collection::vec(0u8..4, 1..=HOPS_MAX).prop_map(|ports| Path::of(&ports).unwrap())
}

fn stamp() -> impl Strategy<Value = Stamp> {
    (0..=EPOCH_MAX, 0u64..5, any::<u32>()).prop_map(|(epoch, master, digest)| Stamp {
        epoch,
        master: Hwid(master),
        digest,
    })
}

fn record() -> impl Strategy<Value = Record> {
    let peer = (0u64..5, 0u8..4, 1u32..).prop_map(|(hwid, port, weight)| Peer { hwid: Hwid(hwid), port, weight });
    let ports = proptest::collection::vec(proptest::option::of(peer), PORTS);
    (0u64..5, stamp(), 0u64..5, 1..=64u8, any::<bool>(), ports).prop_map(|(hwid, stamp, master, lid, busy, ports)| {
        let ports: Ports = ports.try_into().unwrap();
        Record { hwid: Hwid(hwid), stamp, master: Hwid(master), lid: Lid(lid), busy, ports }
    })
}

/// Returns a manager with two ports up and a neighbour at each.
fn manager() -> Manager {
    let network = settled(Shape::parse("ring:3").unwrap(), Rules::default());
    network.manager(1).unwrap().clone()
}

#[test]
fn the_bytes_are_where_the_documentation_says() {
    let way = Path::of(&[1, 0, 3]).unwrap();
    let mut ports = Ports::default();
    ports[1] = Some(Peer { hwid: Hwid(0x77), port: 2, weight: 5 });
    let stamp = Stamp { epoch: 9, master: Hwid(0x11), digest: 0x55 };
    let record = Record { hwid: Hwid(0x22), stamp, master: Hwid(0x33), lid: Lid(4), busy: true, ports };
    let mut header = Header::new(Method::Answer, 0x0102_0304, way);
    header.backward = Path::of(&[2]).unwrap();
    let bytes = header.with(&Body::Answer(record).bytes());
    assert_eq!(bytes[..12], *b"ntm\x01\x01\x01\x03\x01\x04\x03\x02\x01");
    assert_eq!(bytes[12..16], [Record::LEN as u8, 0, 0, 0]);
    assert_eq!((bytes[16], bytes[32]), (0b11_00_01, 2));
    let record = &bytes[HEADER..];
    assert_eq!((record[0], record[8], record[16], record[24], record[32], record[36]), (0x22, 9, 0x11, 0x33, 0x55, 1));
    assert_eq!((record[37], record[38], record[39]), (4, 0, 0));
    assert_eq!((record[56], record[64], record[68], record.len()), (0x77, 5, 2, 104));
}

#[test]
fn what_is_wrong_is_said() {
    let way = Path::of(&[1]).unwrap();
    let good = Body::Ask(manager().record()).packet(1, way);
    let change = |at: usize, byte: u8| {
        let mut bytes = good.clone();
        bytes[at] = byte;
        bytes
    };
    for (bytes, error) in [
        (vec![], "0 bytes are not a packet"),
        (vec![0; PACKET_MAX + 1], "961 bytes are not a packet"),
        (change(0, 0), "it begins with 0x016d7400"),
        (change(4, 9), "there is no method 9 in direction 0"),
        (change(6, 64), "its lists of ports are impossible: 0 of 64 hops"),
        (change(6, 0), "its lists of ports are impossible: 0 of 0 hops"),
        (change(12, 1), "152 bytes are not a header and its payload"),
        (change(7, 1), "its field path counter has an impossible value"),
        (change(HEADER + 15, 1), "its field epoch has an impossible value"),
        (change(HEADER + 36, 2), "its field busy has an impossible value"),
        (change(HEADER + 37, 65), "its field local id has an impossible value"),
        (good[..good.len() - 1].to_vec(), "151 bytes are not a header and its payload"),
    ] {
        let said = manager().step(Duration::ZERO, Event::Packet { port: 0, bytes: &bytes }).unwrap_err().to_string();
        assert!(said.contains("by port 0") && said.contains(error), "{error}: {said}");
    }
    let port = manager().step(Duration::ZERO, Event::PortUp { port: 4, weight: 1 });
    assert_eq!(port, Err(ManagerError::Port(4)));
    let weight = manager().step(Duration::ZERO, Event::PortUp { port: 0, weight: 0 });
    assert_eq!(weight, Err(ManagerError::Weight(0)));
}

#[test]
fn a_table_must_make_sense() {
    let table = manager().table().bytes();
    assert_eq!(Table::parse(&table).unwrap().bytes(), table);
    // Own id, count, classes, a host's id out of order, a path with bits beyond its end.
    for (at, byte) in [(16, 2), (17, 2), (18, 9), (24 + 8, 60), (24 + 9, 0), (24 + 27, 0x80)] {
        let mut bytes = table.clone();
        bytes[at] = byte;
        assert!(matches!(Table::parse(&bytes), Err(PacketError::Value(_) | PacketError::Length { .. })), "{at}");
    }
}

/// A table is accepted if it is newer, whichever host sends it; a host with a smaller id that sends one is the
/// master.
#[test]
fn only_newer_tables_are_taken() {
    let shape = Shape::parse("ring:3").unwrap();
    let plan = Plan::new(&shape.graph(0), 2, None);
    let old = manager().table().stamp();
    for (epoch, master, digest, taken, believed) in [
        (old.epoch - 1, 101, old.digest + 1, false, 101),
        (old.epoch, 101, old.digest, false, 101),
        (old.epoch, 101, old.digest - 1, false, 101),
        (old.epoch, 101, old.digest + 1, true, 101),
        (old.epoch, 103, old.digest + 1, false, 101),
        (old.epoch, 100, old.digest - 1, true, 100),
        (old.epoch + 1, 101, 0, true, 101),
        (old.epoch + 1, 103, 0, true, 101),
        // A table as if from an earlier life of the host itself.
        (old.epoch + 1, 102, 0, false, 101),
    ] {
        let stamp = Stamp { epoch, master: Hwid(master), digest };
        let own = plan.hosts().iter().position(|host| host.0 == Hwid(102)).unwrap();
        let table = plan.table(stamp, own).bytes();
        let mut manager = manager();
        for piece in Fragment::all(stamp, &table) {
            let bytes = Body::Table(piece).packet(0, Path::of(&[1]).unwrap());
            manager.step(Duration::ZERO, Event::Packet { port: 0, bytes: &bytes }).unwrap();
        }
        assert_eq!(manager.table().stamp(), if taken { stamp } else { old }, "{stamp:?}");
        assert_eq!(manager.master(), Hwid(believed), "{stamp:?}");
    }
}

proptest! {
    #[test]
    fn packets_survive_the_wire(round: u32, forward in path(), way in path(), record in record(), stamp in stamp(),
                                table in proptest::collection::vec(any::<u8>(), 1..Table::BYTES_MAX)) {
        let mut bodies = vec![Body::Ask(record), Body::Answer(record), Body::Returned(way)];
        bodies.extend(Fragment::all(stamp, &table).map(Body::Table));
        for body in bodies {
            let bytes = body.packet(round, forward);
            prop_assert!(bytes.len() <= PACKET_MAX);
            let (header, payload) = Header::parse(&bytes).unwrap();
            prop_assert_eq!(header, Header::new(body.method(), round, forward));
            prop_assert_eq!(Body::parse(header.method, payload), Ok(body));
        }
    }

    #[test]
    fn arbitrary_bytes_are_refused_or_make_sense(bytes in proptest::collection::vec(any::<u8>(), 0..1000)) {
        prop_assert!(Header::parse(&bytes).is_err());
        for method in [Method::Ask, Method::Answer, Method::Returned, Method::Table] {
            if let Ok(body) = Body::parse(method, &bytes) {
                prop_assert_eq!(body.bytes(), bytes.clone());
            }
        }
        if let Ok(table) = Table::parse(&bytes) {
            prop_assert_eq!(table.bytes(), bytes);
        }
    }

    /// A neighbour that sends well-formed packets with arbitrary contents.
    #[test]
    fn no_packet_harms_a_manager(packets in proptest::collection::vec((0u8..2, 0u32..4, path(), path(), record(), 0u8..4, stamp(), 0u8..3), 1..40)) {
        let mut manager = manager();
        let own = manager.table().bytes();
        for (port, round, forward, way, record, kind, stamp, time) in packets {
            let body = match kind {
                0 => Body::Ask(record),
                1 => Body::Answer(record),
                2 => Body::Returned(way),
                _ => Body::Table(Fragment { stamp, total: own.len() as u16, offset: 0, bytes: &own }),
            };
            // The packet is at its last hop, as if it had made all others.
            let mut header = Header::new(body.method(), round, forward);
            header.backward = way.iter().take(forward.len() - 1).fold(Path::EMPTY, |path, port| path.then(port).unwrap());
            let bytes = header.with(&body.bytes());
            let now = Duration::from_millis(5 * u64::from(time));
            let before = manager.table().stamp();
            let _ = manager.step(now, Event::Packet { port, bytes: &bytes });
            manager.step(now, Event::Tick).unwrap();
            prop_assert!(manager.table().stamp() >= before);
            prop_assert!(manager.table().host(manager.hwid()).unwrap().path.is_empty());
        }
    }
}
