//! Offers of one rank and fetches of another, whose packets are passed on by hand.

use super::*;
use crate::arrival::Event;
use crate::error::EndpointError;
use crate::wire::{Offer, Packet, Request};
use ntbring_host::KernelCopy;
use ntbring_memory::{ForeignBytes, ForeignRoom};
use ntbring_zerocopy::{Limits, Payload, Thresholds};

/// The sender and the receiver.
const SENDER: u32 = 1;
const RECEIVER: u32 = 2;

fn bytes(of: &[u8]) -> Payload {
    // SAFETY: all callers keep the array while the payload is used.
    Payload::Contiguous(unsafe { ForeignBytes::new(of.as_ptr(), of.len()) })
}

fn room(of: &mut [u8]) -> ForeignRoom<'static> {
    // SAFETY: all callers keep the array, and do not touch it, while the room is used.
    unsafe { ForeignRoom::new(of.as_mut_ptr(), of.len()) }
}

fn thresholds() -> Thresholds {
    Thresholds::new(Limits::default(), false, 4096)
}

/// Accepts an offer of the sender.
fn accept(
    offers: &mut Offers,
    offer: Offer,
    room: Option<ForeignRoom<'static>>,
    size: u64,
    kernel_copy: Option<KernelCopy>,
) -> Next {
    offers.accept((SENDER, offer), room, size, 20, kernel_copy, &thresholds()).unwrap()
}

/// Returns the only action, which sends a packet to `dest`.
fn packet(offers: &mut Offers, dest: u32) -> Packet {
    let Some(Action::Send { dest: to, packet }) = offers.next_action() else { panic!("no packet") };
    assert!(to == dest && offers.next_action().is_none());
    packet
}

/// Makes the receiver ask for a payload as a stream, and the sender begin it. Returns the fetch.
fn stream(sender: &mut Offers, receiver: &mut Offers) -> u32 {
    let Packet::Cts { offer, fetch, request } = packet(receiver, SENDER) else { panic!("not accepted") };
    assert!(matches!(request, Request::Stream { .. }));
    sender.has_accepted(RECEIVER, (offer, fetch), request, None).unwrap();
    let Some(Action::Feed { dest: RECEIVER, fetch: fed, .. }) = sender.next_action() else { panic!("not fed") };
    assert!(fed == fetch && sender.is_settled());
    fetch
}

#[test]
fn a_streamed_payload_goes_to_its_room_piece_by_piece() {
    let (mut sender, mut receiver) = (Offers::new(SENDER, None), Offers::new(RECEIVER, None));
    let (from, mut to) = ([7; 1000], [0; 1000]);
    let offer = sender.offer(RECEIVER, bytes(&from), 10);
    assert!(offer.total == 1000 && !sender.is_settled() && sender.number(10) == Some(offer.id));
    assert_eq!(accept(&mut receiver, offer, Some(room(&mut to)), 1000, None), Next::Wait);
    let fetch = stream(&mut sender, &mut receiver);
    assert!(receiver.has_begun(SENDER, fetch, 999).is_err() && receiver.has_begun(RECEIVER, fetch, 1000).is_err());
    receiver.has_begun(SENDER, fetch, 1000).unwrap();
    assert!(receiver.has_begun(SENDER, fetch, 1000).is_err() && receiver.has_room(fetch));
    for last in [false, true] {
        let Destination::Room(piece) = receiver.destination(fetch, 500, last) else { panic!("no room") };
        assert_eq!((piece.address(), piece.len()), (to[500 * usize::from(last)..].as_mut_ptr(), 500));
        assert!(receiver.next_action().is_none());
        receiver.placed(fetch, 500, last);
    }
    assert!(matches!(receiver.next_action(), Some(Action::Event(Event::Fetched { cookie: 20 }))));
    assert!(!receiver.is_open() && receiver.streamed == 1);
}

#[test]
fn a_payload_without_room_is_shown_as_far_as_it_was_accepted() {
    let (mut sender, mut receiver) = (Offers::new(SENDER, None), Offers::new(RECEIVER, None));
    let from = [7; 1000];
    let offer = sender.offer(RECEIVER, bytes(&from), 10);
    assert_eq!(accept(&mut receiver, offer, None, 600, None), Next::Wait);
    let fetch = stream(&mut sender, &mut receiver);
    let pieces = [(500, false), (400, false), (50, false), (50, true)];
    let shown = pieces.map(|(len, last)| match receiver.destination(fetch, len, last) {
        Destination::Shown { bytes, cookie: 20 } => Some(bytes),
        _ => None,
    });
    assert_eq!(shown, [Some(500), Some(100), None, Some(0)]);
    assert!(!receiver.is_open());
}

#[test]
fn offers_and_fetches_of_a_lost_peer_are_forgotten() {
    let mut offers = Offers::new(RECEIVER, None);
    let (from, mut to) = ([7; 1000], [0; 1000]);
    let lost = offers.offer(SENDER, bytes(&from), 10);
    let kept = offers.offer(3, bytes(&from), 11);
    let offer = Offer { id: 5, address: 0, total: 1000 };
    accept(&mut offers, offer, Some(room(&mut to)), 1000, None);
    let Packet::Cts { fetch, .. } = packet(&mut offers, SENDER) else { panic!("not accepted") };
    offers.lose(SENDER);
    assert!(!offers.has_room(fetch) && offers.has_begun(SENDER, fetch, 1000).is_err());
    assert!(offers.has_taken(SENDER, lost.id).is_err());
    assert!(offers.has_taken(3, lost.id).is_err() && offers.has_taken(3, kept.id).is_ok());
    assert!(matches!(offers.next_action(), Some(Action::Event(Event::Taken { cookie: 11 }))));
    assert!(offers.is_settled() && !offers.is_open());
}

#[test]
fn a_kernel_copy_is_complete_at_once_and_a_refused_one_is_streamed() {
    let (mut sender, mut receiver) = (Offers::new(SENDER, None), Offers::new(RECEIVER, None));
    let (from, mut to) = ([7; 3000], [0; 3000]);
    // This process is the sender, too; a probe may be forbidden.
    let Ok(kernel_copy) = KernelCopy::probe(std::process::id(), KernelCopy::probe_address()) else { return };
    let offer = sender.offer(RECEIVER, bytes(&from), 10);
    assert_eq!(accept(&mut receiver, offer, Some(room(&mut to)), 3000, Some(kernel_copy)), Next::Copy);
    assert_eq!((receiver.copy_first(20), receiver.copied, receiver.received), (Accepted::Done, 3000, 3000));
    assert!(matches!(packet(&mut receiver, SENDER), Packet::Taken { offer: id } if id == offer.id));
    assert_eq!(to, from);

    // No memory of any process is at this address.
    let wrong = Offer { address: 8, ..offer };
    assert_eq!(accept(&mut receiver, wrong, Some(room(&mut to)), 3000, Some(kernel_copy)), Next::Copy);
    assert_eq!(receiver.copy_first(20), Accepted::Pending);
    stream(&mut sender, &mut receiver);
}

#[test]
fn requests_beyond_an_offer_are_errors() {
    let mut sender = Offers::new(SENDER, None);
    let from = [7; 1000];
    let offer = sender.offer(RECEIVER, bytes(&from), 10);
    let beyond = [
        Request::Stream { len: 1001, prefer_eager: false },
        Request::Push { address: 8, from: 500, len: 501 },
        Request::Push { address: 8, from: 1001, len: 1 },
    ];
    for request in beyond {
        let wrong = sender.has_accepted(RECEIVER, (offer.id, 0), request, None);
        assert!(matches!(wrong, Err(EndpointError::Offer { src: RECEIVER, .. })));
    }
    // A copy that this rank cannot make is reported, and the receiver asks for a stream then.
    let push = Request::Push { address: 8, from: 500, len: 500 };
    sender.has_accepted(RECEIVER, (offer.id, 4), push, None).unwrap();
    assert!(matches!(packet(&mut sender, RECEIVER), Packet::Fin { fetch: 4, ok: false }));
    assert!(sender.forget(10) && !sender.forget(10));
    let room = Some(room(&mut [0; 10])).filter(|_| false);
    assert!(sender.accept((RECEIVER, offer), room, 1001, 20, None, &thresholds()).is_err());
}
