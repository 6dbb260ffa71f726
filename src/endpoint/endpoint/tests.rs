//! Tests with lane entries that no correct sender would write.

use crate::wire::{plain_meta, Head, MESSAGE};
use crate::Settings;
use crate::{Endpoint, EndpointError, Event};
use ntbring_memory::ForeignBytes;
use ntbring_queue::META_MAX;
use ntbring_ring::join::Candidate;
use ntbring_ring::Topology;

/// Creates a rank that is a ring of its own.
fn alone() -> Endpoint {
    let candidate = Candidate::new(Topology::new(1, &[0]).unwrap(), 0, Settings::default()).unwrap();
    let card = candidate.card();
    Endpoint::new(candidate.join(&[card]).unwrap(), Settings::default()).unwrap()
}

#[test]
fn a_plain_message_that_cannot_be_is_an_error_and_the_next_one_is_found() {
    let mut endpoint = alone();
    let good = plain_meta(Head { handler: 5 }, 8).unwrap();
    // A header of 16 bytes, and the longest, in an entry of 8.
    for bad in [plain_meta(Head { handler: 5 }, 16).unwrap(), META_MAX] {
        for meta in [bad, good] {
            assert!(endpoint.out.lane_to(0).put(MESSAGE, meta, &[7; 8], ForeignBytes::EMPTY));
        }
        let error = endpoint.poll().err().expect("a header that is longer than its entry");
        assert!(matches!(error, EndpointError::Wire { .. }), "{error}");
        let Ok(Some(Event::Arrival(arrival))) = endpoint.poll() else { panic!("nothing behind it") };
        endpoint.release(arrival.token, 0).unwrap();
        assert!(endpoint.poll().unwrap().is_none());
    }
}
