//! Tests of the resources kept for processes of other jobs.

use super::*;
use std::fs;

/// Returns the number of descriptors of this process.
fn descriptors() -> usize {
    fs::read_dir("/proc/self/fd").unwrap().count()
}

/// Returns an endpoint of another job that knows the first one and has exchanged messages with it, and its number at
/// the first one.
///
/// # Safety
/// The first endpoint must be open.
unsafe fn friend(ep: *mut ntbring_endpoint_t) -> (*mut ntbring_endpoint_t, i32) {
    let other = alone();
    let (mut address, mut size, mut e) = ([0u8; NTBRING_ADDRESS_MAX as usize], 0, ntbring_event_t::default());
    let mut peer = [0; 2];
    // SAFETY: all pointers are valid for the calls.
    unsafe {
        for (i, (from, to)) in [(ep, other), (other, ep)].into_iter().enumerate() {
            assert_eq!(ntbring_address(to, address.as_mut_ptr().cast(), &mut size), 0);
            assert_eq!(ntbring_peer_add(from, address.as_ptr().cast(), size, &mut peer[i]), 0, "{}", text());
            assert_eq!(ntbring_dpm_send(from, peer[i], 5, address.as_ptr().cast(), 8), 0, "{}", text());
        }
        for ep in [other, ep] {
            (0..100).for_each(|_| assert_eq!(ntbring_poll(ep, &mut e), 0, "{}", text()));
        }
        // Both are polled; an unanswered request is given up.
        for ep in [other, ep] {
            assert_eq!(ntbring_dpm_withdraw(ep, 5), 0);
        }
    }
    (other, peer[0])
}

/// Descriptors are counted for the whole process, so there is one test of them; other tests that run meanwhile make
/// it retry.
#[test]
fn lanes_that_are_open_need_no_descriptor() {
    let ep = alone();
    let mut kept = usize::MAX;
    // SAFETY: the endpoints are open until they are closed.
    unsafe {
        for _ in 0..20 {
            let before = descriptors();
            let (other, _) = friend(ep);
            let after = descriptors();
            assert_eq!(ntbring_close(other), 0);
            // The other endpoint has descriptors of its own.
            let (own, closed) = (after.saturating_sub(before), after.saturating_sub(descriptors()));
            kept = kept.min(own.abs_diff(closed));
            if kept == 0 {
                break;
            }
        }
        assert_eq!((kept, ntbring_close(ep)), (0, 0));
    }
}

#[test]
fn the_number_of_a_peer_that_was_dropped_is_given_to_another() {
    let ep = alone();
    // SAFETY: the endpoints are open until they are closed.
    unsafe {
        for round in 0..5 {
            let (other, peer) = friend(ep);
            assert_eq!(peer, 1, "round {round}");
            // Not before it is lost.
            assert_eq!(ntbring_peer_drop(ep, peer), 0);
            let (second, another) = friend(ep);
            assert_eq!(another, 2, "round {round}");
            for (other, peer) in [(other, peer), (second, another)] {
                assert_eq!((ntbring_flush(other), ntbring_linger(other), ntbring_close(other)), (0, 0, 0));
                assert_eq!(lost(ep).0, peer);
            }
            for peer in [1, 2, 2, 7] {
                assert_eq!(ntbring_peer_drop(ep, peer), 0);
            }
        }
        assert_eq!(ntbring_peer_drop(ep, -1), NTBRING_ERR_ARGUMENT);
        assert_eq!((ntbring_flush(ep), ntbring_close(ep)), (0, 0));
    }
}

#[test]
fn who_leaves_is_noticed_by_the_next_polls() {
    let ep = alone();
    // SAFETY: the endpoints are open until they are closed.
    unsafe {
        let (other, peer) = friend(ep);
        assert_eq!((ntbring_flush(other), ntbring_linger(other)), (0, 0));
        let mut e = ntbring_event_t::default();
        let found = (0..1000).any(|_| ntbring_poll(ep, &mut e) == NTBRING_SOME as i32 && e.kind == NTBRING_EVENT_LOST);
        assert_eq!((found, e.src), (true, peer));
        assert_eq!((ntbring_close(other), ntbring_close(ep)), (0, 0));
    }
}
