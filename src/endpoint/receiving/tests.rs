//! Chunks in a lane from a neighbour's forwarder.

use super::inbound::Inbound;
use super::inbox::Inbox;
use crate::arrival::{Polled, Target};
use crate::bell::Bell;
use crate::error::EndpointError;
use crate::settings::Settings;
use crate::wire::Packet;
use ntbring_memory::{ForeignBytes, InWindow, OutWindow, Region};
use ntbring_queue::{Consumer, Producer, LINE};
use ntbring_ring::join::Candidate;
use ntbring_ring::relay::Route;
use ntbring_ring::Topology;
use std::sync::Arc;

/// Creates the lanes of a rank that is a ring of its own, and one more from a forwarder. Returns the latter's producer.
fn relayed() -> (Inbound, Producer) {
    let candidate = Candidate::new(Topology::new(1, &[0]).unwrap(), 0, Settings::default()).unwrap();
    let card = candidate.card();
    let mut inbound = Inbound::new(&Arc::new(candidate.join(&[card]).unwrap()), None);
    let (lane, credit) = (Region::anonymous(1024 * LINE), Region::anonymous(LINE));
    let consumer = Consumer::new(InWindow::new(lane.clone()), OutWindow::new(credit.clone()));
    inbound.boxes.push(Inbox::new(consumer, Bell::Reliable, None));
    (inbound, Producer::new(OutWindow::new(lane), InWindow::new(credit)))
}

fn put(lane: &mut Producer, route: Route, stream: u8, payload: &[u8]) {
    let prefix = Packet::Chunk { stream, payload: payload.len() }.prefix(Some(route));
    let mut slot = lane.reserve(prefix.end() + payload.len()).unwrap();
    slot.write_bytes(0, prefix.bytes());
    slot.write_bytes(prefix.end(), payload);
    slot.commit(prefix.kind, prefix.end() + payload.len(), prefix.meta);
}

const HERE: Route = Route { src: 0, dst: 0 };

#[test]
fn relayed_chunks_with_a_destination_are_pieces() {
    let (mut inbound, mut lane) = relayed();
    let (small, large) = ([1; 100], [2; 5000]);
    inbound.open(0, 3, (small.len() + large.len()) as u64, Target::Fetch(9)).unwrap();
    put(&mut lane, HERE, 3, &small);
    put(&mut lane, HERE, 3, &large);
    for (bytes, last) in [(&small[..], false), (&large, true)] {
        let Ok(Some(Polled::Piece(piece))) = inbound.poll(|fetch| fetch == 9) else { panic!("no chunk") };
        assert!(matches!(piece.target, Target::Fetch(9)) && (piece.len, piece.last) == (bytes.len(), last));
        let mut found = vec![0; piece.len];
        inbound.read(piece.lane, piece.offset, &mut found);
        assert_eq!(found, bytes);
        inbound.release_entry(piece.lane).unwrap();
    }
    // The stream has ended.
    put(&mut lane, HERE, 3, &small);
    assert!(inbound.poll(|_| true).is_err());
}

#[test]
fn a_relayed_chunk_without_a_destination_is_an_arrival_and_one_for_another_rank_an_error() {
    let (mut inbound, mut lane) = relayed();
    inbound.open(0, 3, 1000, Target::Fetch(9)).unwrap();
    put(&mut lane, HERE, 3, &[0; 100]);
    let Ok(Some(Polled::Arrival(arrival))) = inbound.poll(|_| false) else { panic!("no arrival") };
    assert!(matches!(arrival.target, Target::Fetch(9)) && arrival.piece() == 100 && !arrival.last);
    // Of a lane with a held entry, nothing more is taken by another thread.
    put(&mut lane, HERE, 3, &[0; 100]);
    assert!(inbound.poll_free(|_| true).unwrap().is_none());
    inbound.release(arrival.token, 0).unwrap();
    assert!(matches!(inbound.poll_free(|_| true), Ok(Some(Polled::Piece(_)))));
    for wrong in [Route { dst: 1, ..HERE }, Route { src: 1, ..HERE }] {
        put(&mut lane, wrong, 3, &[0; 100]);
        assert!(inbound.poll(|_| true).is_err());
    }
    // More bytes than were announced.
    put(&mut lane, HERE, 3, &[0; 900]);
    assert!(inbound.poll(|_| true).is_err());
}

#[test]
fn a_chunk_of_a_lost_rank_is_dropped() {
    let (mut inbound, mut lane) = relayed();
    inbound.open(0, 3, 1000, Target::Fetch(9)).unwrap();
    inbound.lose(0);
    put(&mut lane, HERE, 3, &[0; 100]);
    assert!(inbound.poll(|_| true).unwrap().is_none());
    assert!(lane.put(1, 0, &[], ForeignBytes::EMPTY));
}

#[test]
fn a_second_lane_of_a_rank_and_one_of_a_neighbour_are_refused() {
    let (mut inbound, _lane) = relayed();
    // The rank has a lane to itself.
    assert!(matches!(inbound.open_direct(0), Err(EndpointError::SecondLane { src: 0 })));
    assert!(matches!(inbound.open_direct(7), Err(EndpointError::ExternalPeer(_))));
    inbound.lose(0);
    assert!(inbound.open_direct(0).is_ok(), "a lost rank's packets are dropped");
}
