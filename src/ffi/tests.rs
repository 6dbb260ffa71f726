//! Tests that compare the definitions with the header and violate the contract on purpose.

mod external_peers;
mod pmi;
mod schedules;
mod shared;

use super::groups::{
    ntbring_allgather, ntbring_allgather_wait, ntbring_group_close, ntbring_group_offer, ntbring_group_open,
};
use super::offers::{ntbring_accept, ntbring_offer, ntbring_withdraw};
use super::peers::{
    ntbring_dpm_receive, ntbring_dpm_send, ntbring_dpm_withdraw, ntbring_peer_add, ntbring_peer_address,
    ntbring_peer_drop,
};
use super::pmi::{
    ntbring_pmi_abort, ntbring_pmi_barrier, ntbring_pmi_call_record, ntbring_pmi_close, ntbring_pmi_get,
    ntbring_pmi_hosts, ntbring_pmi_keep, ntbring_pmi_lock, ntbring_pmi_open, ntbring_pmi_put, ntbring_pmi_unlock,
};
use super::schedules::{ntbring_schedule_begin, ntbring_schedule_next};
use super::segments::{
    ntbring_can_compute, ntbring_is_mappable, ntbring_is_served, ntbring_remote, ntbring_segment_acquire,
    ntbring_segment_create, ntbring_segment_free, ntbring_segment_lock, ntbring_segment_open, ntbring_segment_release,
    ntbring_segment_seal, ntbring_segment_unlock,
};
use super::shared::{
    ntbring_can_share, ntbring_found, ntbring_relay, ntbring_shared_create, ntbring_shared_free, ntbring_shared_open,
    ntbring_shared_run, ntbring_shared_seal, ntbring_wake,
};
use super::timeline::{ntbring_timeline_begin, ntbring_timeline_end, ntbring_timeline_is_on};
use super::variables::{ntbring_count, ntbring_counter, ntbring_setting};
use super::writers::{
    ntbring_is_writable, ntbring_writer_free, ntbring_writer_is_intact, ntbring_writer_open, ntbring_writer_reach,
    ntbring_writer_write,
};
use super::*;

/// Compiles only if definition and declaration have the same type.
macro_rules! same_type {
    ($($name:ident: $type:ty),* $(,)?) => {
        $(const _: [$type; 2] = [$name, abi::$name];)*
    };
}

same_type! {
    ntbring_address: unsafe extern "C" fn(*mut ntbring_endpoint_t, *mut c_void, *mut u64) -> i32,
    ntbring_open: unsafe extern "C" fn(*const ntbring_job_t, *mut *mut ntbring_endpoint_t) -> i32,
    ntbring_connect: unsafe extern "C" fn(*mut ntbring_endpoint_t, *const c_void, u64) -> i32,
    ntbring_check_space: unsafe extern "C" fn(*mut ntbring_endpoint_t) -> i32,
    ntbring_peer_address: unsafe extern "C" fn(*mut ntbring_endpoint_t, i32, *mut c_void, *mut u64) -> i32,
    ntbring_dpm_send: unsafe extern "C" fn(*mut ntbring_endpoint_t, i32, u32, *const c_void, u64) -> i32,
    ntbring_dpm_receive: unsafe extern "C" fn(*mut ntbring_endpoint_t, u32, *mut c_void, u64) -> i32,
    ntbring_dpm_withdraw: unsafe extern "C" fn(*mut ntbring_endpoint_t, u32) -> i32,
    ntbring_peer_add: unsafe extern "C" fn(*mut ntbring_endpoint_t, *const c_void, u64, *mut i32) -> i32,
    ntbring_peer_drop: unsafe extern "C" fn(*mut ntbring_endpoint_t, i32) -> i32,
    ntbring_limits: unsafe extern "C" fn(*mut ntbring_endpoint_t, *mut ntbring_limits_t) -> i32,
    ntbring_send: unsafe extern "C" fn(*mut ntbring_endpoint_t, *const ntbring_message_t) -> i32,
    ntbring_send_now: unsafe extern "C" fn(*mut ntbring_endpoint_t, i32, u16, u64, u64, *const c_void, u64) -> i32,
    ntbring_eager_max: unsafe extern "C" fn(*mut ntbring_endpoint_t, i32) -> u64,
    ntbring_offer: unsafe extern "C" fn(*mut ntbring_endpoint_t, *const ntbring_message_t) -> i32,
    ntbring_withdraw: unsafe extern "C" fn(*mut ntbring_endpoint_t, i32, *mut c_void, i32) -> i32,
    ntbring_accept:
        unsafe extern "C" fn(*mut ntbring_endpoint_t, *const ntbring_offer_t, *mut c_void, u64, *mut c_void) -> i32,
    ntbring_poll: unsafe extern "C" fn(*mut ntbring_endpoint_t, *mut ntbring_event_t) -> i32,
    ntbring_release: unsafe extern "C" fn(*mut ntbring_endpoint_t, *mut ntbring_event_t) -> i32,
    ntbring_idle: unsafe extern "C" fn(*mut ntbring_endpoint_t, u32, i32) -> u32,
    ntbring_flush: unsafe extern "C" fn(*mut ntbring_endpoint_t) -> i32,
    ntbring_linger: unsafe extern "C" fn(*mut ntbring_endpoint_t) -> i32,
    ntbring_close: unsafe extern "C" fn(*mut ntbring_endpoint_t) -> i32,
    ntbring_setting: unsafe extern "C" fn(*mut ntbring_endpoint_t, u32, *mut ntbring_variable_t) -> i32,
    ntbring_counter: unsafe extern "C" fn(u32, *mut ntbring_variable_t) -> i32,
    ntbring_count: unsafe extern "C" fn(*mut ntbring_endpoint_t, u32, *mut u64) -> i32,
    ntbring_is_mappable: unsafe extern "C" fn(*mut ntbring_endpoint_t, i32) -> i32,
    ntbring_segment_create: unsafe extern "C" fn(
        *mut ntbring_endpoint_t,
        u64,
        *mut *mut ntbring_segment_t,
        *mut *mut c_void,
        *mut ntbring_segment_address_t,
    ) -> i32,
    ntbring_segment_open: unsafe extern "C" fn(
        *mut ntbring_endpoint_t,
        i32,
        *const ntbring_segment_address_t,
        *mut *mut ntbring_segment_t,
        *mut *mut c_void,
    ) -> i32,
    ntbring_segment_seal: unsafe extern "C" fn(*mut ntbring_segment_t) -> i32,
    ntbring_segment_lock: unsafe extern "C" fn(*mut ntbring_endpoint_t, *mut ntbring_segment_t) -> i32,
    ntbring_segment_unlock: unsafe extern "C" fn(*mut ntbring_segment_t) -> i32,
    ntbring_segment_free: unsafe extern "C" fn(*mut ntbring_endpoint_t, *mut ntbring_segment_t) -> i32,
    ntbring_segment_acquire: unsafe extern "C" fn(*mut ntbring_endpoint_t, *mut ntbring_segment_t, i32) -> i32,
    ntbring_segment_release: unsafe extern "C" fn(*mut ntbring_segment_t, i32) -> i32,
    ntbring_is_writable: unsafe extern "C" fn(*mut ntbring_endpoint_t, i32) -> i32,
    ntbring_writer_open: unsafe extern "C" fn(
        *mut ntbring_endpoint_t,
        i32,
        *const ntbring_segment_address_t,
        *mut *mut ntbring_writer_t,
    ) -> i32,
    ntbring_writer_reach: unsafe extern "C" fn(*const ntbring_writer_t) -> u64,
    ntbring_writer_write: unsafe extern "C" fn(*mut ntbring_writer_t, u64, *const c_void, u64) -> i32,
    ntbring_writer_is_intact: unsafe extern "C" fn(*const ntbring_writer_t) -> i32,
    ntbring_writer_free: unsafe extern "C" fn(*mut ntbring_writer_t) -> i32,
    ntbring_is_served: unsafe extern "C" fn(*mut ntbring_endpoint_t, i32) -> i32,
    ntbring_can_compute: unsafe extern "C" fn(u8, u8) -> i32,
    ntbring_remote: unsafe extern "C" fn(*mut ntbring_endpoint_t, *const ntbring_remote_t) -> i32,
    ntbring_group_offer: unsafe extern "C" fn(*mut ntbring_endpoint_t, *mut u32) -> i32,
    ntbring_group_open: unsafe extern "C" fn(*mut ntbring_endpoint_t, u32, *const i32, u32, u32) -> i32,
    ntbring_group_close: unsafe extern "C" fn(*mut ntbring_endpoint_t, u32) -> i32,
    ntbring_allgather: unsafe extern "C" fn(*mut ntbring_endpoint_t, u32, *const c_void, u64) -> i32,
    ntbring_allgather_wait: unsafe extern "C" fn(*mut ntbring_endpoint_t, u32, *mut c_void, u64, u32) -> i32,
    ntbring_schedule_begin: unsafe extern "C" fn(*const ntbring_collective_t, *mut ntbring_schedule_t) -> i32,
    ntbring_schedule_next: unsafe extern "C" fn(*mut ntbring_schedule_t, *mut ntbring_step_t) -> i32,
    ntbring_can_share: unsafe extern "C" fn(*mut ntbring_endpoint_t, i32) -> i32,
    ntbring_shared_create: unsafe extern "C" fn(
        *mut ntbring_endpoint_t,
        i32,
        *mut *mut ntbring_shared_t,
        *mut ntbring_shared_card_t,
    ) -> i32,
    ntbring_shared_open: unsafe extern "C" fn(
        *mut ntbring_endpoint_t,
        *mut ntbring_shared_t,
        i32,
        *const i32,
        *const ntbring_shared_card_t,
    ) -> i32,
    ntbring_shared_seal: unsafe extern "C" fn(*mut ntbring_shared_t) -> i32,
    ntbring_shared_free: unsafe extern "C" fn(*mut ntbring_shared_t) -> i32,
    ntbring_shared_run: unsafe extern "C" fn(*mut ntbring_shared_t, *const ntbring_shared_call_t) -> i32,
    ntbring_wake: unsafe extern "C" fn(*mut ntbring_endpoint_t, i32) -> i32,
    ntbring_found: unsafe extern "C" fn(*mut ntbring_endpoint_t) -> i32,
    ntbring_relay: unsafe extern "C" fn(*mut ntbring_endpoint_t) -> i32,
    ntbring_pmi_open: unsafe extern "C" fn(*mut ntbring_pmi_job_t) -> i32,
    ntbring_pmi_close: unsafe extern "C" fn() -> i32,
    ntbring_pmi_keep: unsafe extern "C" fn(),
    ntbring_pmi_put: unsafe extern "C" fn(*const c_char, *const c_char) -> i32,
    ntbring_pmi_get: unsafe extern "C" fn(*const c_char, *mut c_char, u64) -> i32,
    ntbring_pmi_barrier: unsafe extern "C" fn() -> i32,
    ntbring_pmi_abort: unsafe extern "C" fn(i32) -> i32,
    ntbring_pmi_hosts: unsafe extern "C" fn(*mut i32, *mut i32) -> i32,
    ntbring_pmi_lock: unsafe extern "C" fn(),
    ntbring_pmi_unlock: unsafe extern "C" fn(),
    ntbring_pmi_call_record: unsafe extern "C" fn() -> *mut c_char,
    ntbring_abi_version: unsafe extern "C" fn() -> u32,
    ntbring_error_text: unsafe extern "C" fn() -> *const c_char,
    ntbring_timeline_is_on: unsafe extern "C" fn(*const c_char) -> i32,
    ntbring_timeline_begin: unsafe extern "C" fn(*const c_char, *mut u8) -> u64,
    ntbring_timeline_end: unsafe extern "C" fn(*const c_char, u64),
}

fn text() -> String {
    // SAFETY: valid until the next call of this thread.
    unsafe { std::ffi::CStr::from_ptr(ntbring_error_text()) }.to_string_lossy().into_owned()
}

#[test]
fn null_pointers_are_refused() {
    // SAFETY: the functions say that they check for NULL.
    unsafe {
        assert_eq!(ntbring_open(std::ptr::null(), std::ptr::null_mut()), NTBRING_ERR_ARGUMENT);
        assert_eq!(ntbring_send(std::ptr::null_mut(), std::ptr::null()), NTBRING_ERR_ARGUMENT);
        assert_eq!(ntbring_poll(std::ptr::null_mut(), std::ptr::null_mut()), NTBRING_ERR_ARGUMENT);
        assert_eq!(ntbring_close(std::ptr::null_mut()), 0);
        ntbring_idle(std::ptr::null_mut(), 10, 0);
    }
    assert!(!text().contains('\0'));
}

#[test]
fn settings_and_counters_are_numbered_and_described() {
    let ep = alone();
    let string = |at: *const c_char| {
        // SAFETY: the strings are valid while the endpoint is open.
        unsafe { std::ffi::CStr::from_ptr(at) }.to_str().unwrap().to_string()
    };
    let mut variable = ntbring_variable_t::default();
    let mut found = Vec::new();
    // SAFETY: the pointers are valid or NULL.
    unsafe {
        while ntbring_setting(ep, found.len() as u32, &mut variable) == NTBRING_SOME as i32 {
            assert!(!string(variable.meaning).is_empty());
            found.push((string(variable.name), string(variable.value)));
        }
        assert!(found.contains(&("NTBRING_CONNECT_TIMEOUT".into(), "60".into())), "{found:?}");
        let mut counters = Vec::new();
        while ntbring_counter(counters.len() as u32, &mut variable) == NTBRING_SOME as i32 {
            assert!(variable.value.is_null() && !string(variable.meaning).is_empty());
            counters.push(string(variable.name));
        }
        let packed = counters.iter().position(|name| name == "ntbring_msgs_packed").unwrap() as u32;
        assert_eq!(ntbring_send_now(ep, 0, 7, 1, 2, std::ptr::null(), 0), 0, "{}", text());
        let mut value = 0;
        assert_eq!((ntbring_count(ep, packed, &mut value), value), (0, 1));
        for call in [
            ntbring_setting(ep, 0, std::ptr::null_mut()),
            ntbring_setting(std::ptr::null_mut(), 0, &mut variable),
            ntbring_counter(0, std::ptr::null_mut()),
            ntbring_count(ep, packed, std::ptr::null_mut()),
            ntbring_count(ep, counters.len() as u32, &mut value),
        ] {
            assert_eq!(call, NTBRING_ERR_ARGUMENT);
        }
        // Other tests may close endpoints at the same time, so only the call itself is checked.
        assert_eq!(ntbring_close(ep), 0);
        assert_eq!(ntbring_count(std::ptr::null_mut(), packed, &mut value), 0);
    }
}

#[test]
fn a_ring_of_one_sends_to_itself() {
    let ep = alone();
    // SAFETY: all pointers are valid for the calls, and the payload until its event.
    unsafe {
        let mut limits = ntbring_limits_t::default();
        assert_eq!(ntbring_limits(ep, &mut limits), 0);
        assert!(limits.header_max >= 512, "{}", limits.header_max);
        assert_eq!(limits.block_max, 2040);
        let payload: Vec<u8> = (0..300_000).map(|i| (i % 251) as u8).collect();
        let header = *b"headers!";
        let message = ntbring_message_t {
            dest: 0,
            handler: 7,
            hdr: header.as_ptr().cast(),
            hdr_size: 8,
            data: payload.as_ptr().cast(),
            data_size: payload.len() as u64,
            cookie: 0x1234 as *mut c_void,
            ..Default::default()
        };
        assert_eq!(ntbring_send(ep, &message), NTBRING_PENDING as i32);
        let (mut got, mut sent) = (Vec::<u8>::new(), false);
        while got.len() < payload.len() || !sent {
            let mut e = ntbring_event_t::default();
            match ntbring_poll(ep, &mut e) {
                0 => continue,
                1 => {}
                code => panic!("{code}: {}", text()),
            }
            match e.kind {
                NTBRING_EVENT_BEGIN => {
                    assert_eq!((e.handler, e.total, e.hdr_size), (7, 300_000, 8));
                    e.cookie = 0x99 as *mut c_void;
                }
                NTBRING_EVENT_CHUNK => {
                    assert_eq!(e.cookie as usize, 0x99);
                    got.extend_from_slice(std::slice::from_raw_parts(e.data.cast(), e.data_size as usize));
                    assert_eq!(e.last != 0, got.len() == payload.len());
                }
                NTBRING_EVENT_SENT => {
                    assert_eq!(e.cookie as usize, 0x1234);
                    sent = true;
                }
                kind => panic!("event {kind}"),
            }
            assert_eq!(ntbring_release(ep, &mut e), 0, "{}", text());
        }
        assert_eq!(got, payload);
        assert_eq!(ntbring_flush(ep), 0);
        assert_eq!(ntbring_close(ep), 0);
    }
}

/// Returns the next event of an endpoint, and releases it: its bytes are no longer valid.
fn event(ep: *mut ntbring_endpoint_t) -> ntbring_event_t {
    let mut e = event_of(ep);
    // SAFETY: all pointers are valid for the call.
    assert_eq!(unsafe { ntbring_release(ep, &mut e) }, 0, "{}", text());
    e
}

/// Returns the next event of an endpoint, which the caller must release.
fn event_of(ep: *mut ntbring_endpoint_t) -> ntbring_event_t {
    let mut e = ntbring_event_t::default();
    for _ in 0..1_000_000 {
        // SAFETY: all pointers are valid for the calls.
        match unsafe { ntbring_poll(ep, &mut e) } {
            0 => continue,
            1 => return e,
            code => panic!("{code}: {}", text()),
        }
    }
    panic!("no event");
}

#[test]
fn what_is_offered_is_fetched_once_and_as_far_as_wanted() {
    let ep = alone();
    let payload: Vec<u8> = (0..700_000u32).map(|i| (i % 247) as u8).collect();
    let cookie = 0x4321 as *mut c_void;
    // SAFETY: all pointers are valid for the calls, and payload and room until their events.
    unsafe {
        let eager_max = ntbring_eager_max(ep, 0) as usize;
        assert!(eager_max < payload.len());
        for wanted in [0, 1, eager_max, payload.len() - 1, payload.len()] {
            let message = ntbring_message_t {
                hdr: b"question".as_ptr().cast(),
                hdr_size: 8,
                data: payload.as_ptr().cast(),
                data_size: payload.len() as u64,
                cookie,
                ..Default::default()
            };
            assert_eq!(ntbring_offer(ep, &message), NTBRING_PENDING as i32, "{}", text());
            let e = event(ep);
            assert_eq!((e.kind, e.offer.total, e.hdr_size), (NTBRING_EVENT_OFFER, payload.len() as u64, 8));
            assert_eq!(ntbring_flush(ep), NTBRING_PENDING as i32);
            let mut room = vec![0u8; wanted + 1];
            let at: *mut c_void = room.as_mut_ptr().cast();
            let more = payload.len() as u64 + 1;
            assert_eq!(ntbring_accept(ep, &e.offer, at, more, cookie), NTBRING_ERR_ARGUMENT);
            let mut left = match ntbring_accept(ep, &e.offer, at, wanted as u64, cookie) {
                0 => 1,
                1 => 2,
                code => panic!("{code}: {}", text()),
            };
            while left > 0 {
                let done = event(ep);
                assert!([NTBRING_EVENT_FETCHED, NTBRING_EVENT_TAKEN].contains(&done.kind) && done.cookie == cookie);
                left -= 1;
            }
            assert_eq!(room[..wanted], payload[..wanted]);
            assert_eq!((room[wanted], ntbring_flush(ep)), (0, 0));
        }
        let nothing = ntbring_message_t::default();
        assert_eq!(ntbring_offer(ep, &nothing), NTBRING_ERR_ARGUMENT);
        let (to_nobody, small) = (7, [1u8; 8]);
        let at = small.as_ptr().cast();
        assert_eq!(ntbring_send_now(ep, to_nobody, 1, 1, 2, at, 8), NTBRING_PENDING as i32);
        assert_eq!(ntbring_send_now(ep, 0, 1, u64::MAX - 1, 2, at, 8), 0);
        let mut e = event_of(ep);
        assert_eq!((e.kind, e.hdr_size, e.data_size), (NTBRING_EVENT_MESSAGE, 16, 8));
        assert_eq!((*e.hdr.cast::<[u64; 2]>(), *e.data.cast::<[u8; 8]>()), ([u64::MAX - 1, 2], small));
        let mut nowhere = ntbring_event_t { token: [99, 0, 0, 0], ..e };
        assert_eq!(ntbring_release(ep, &mut nowhere), NTBRING_ERR_ARGUMENT);
        assert_eq!((ntbring_release(ep, &mut e), ntbring_release(ep, &mut e)), (0, NTBRING_ERR_ARGUMENT));
        let mut nothing = ntbring_event_t { token: [0; 4], charge: 0, ..e };
        assert_eq!((ntbring_release(ep, &mut nothing), ntbring_close(ep)), (0, 0));
    }
}

#[test]
fn what_has_begun_goes_where_it_is_to_go_and_no_further() {
    let ep = alone();
    let payload: Vec<u8> = (0..60_000u32).map(|i| (i % 251) as u8).collect();
    // SAFETY: all pointers are valid for the calls, payload and room to the end.
    unsafe {
        for wanted in [payload.len(), 1000, 0] {
            let message = ntbring_message_t {
                handler: 3,
                data: payload.as_ptr().cast(),
                data_size: payload.len() as u64,
                cookie: 0x55 as *mut c_void,
                ..Default::default()
            };
            let sent = ntbring_send(ep, &message) as u32;
            let (mut room, mut e, mut there, mut done) = (vec![0u8; wanted + 1], event_of(ep), false, sent == 0);
            assert_eq!((e.kind, e.total, e.data.is_null()), (NTBRING_EVENT_BEGIN, payload.len() as u64, true));
            (e.data, e.data_size, e.cookie) = (room.as_mut_ptr().cast(), wanted as u64, 0x66 as *mut c_void);
            assert_eq!(ntbring_release(ep, &mut e), 0, "{}", text());
            while !(there && done) {
                let e = event(ep);
                match (e.kind, e.cookie as usize) {
                    (NTBRING_EVENT_FETCHED, 0x66) => there = true,
                    (NTBRING_EVENT_SENT, 0x55) => done = true,
                    other => panic!("{other:?}"),
                }
            }
            assert_eq!((&room[..wanted], room[wanted]), (&payload[..wanted], 0));
        }
        assert_eq!((ntbring_flush(ep), ntbring_close(ep)), (0, 0));
    }
}

#[test]
fn what_has_not_left_is_taken_back() {
    let ep = alone();
    let (payload, mut waits, mut number) = (vec![5u8; 4000], Vec::new(), 0u64);
    let message = |number: &u64| ntbring_message_t {
        hdr: (&raw const *number).cast(),
        hdr_size: 8,
        data: payload.as_ptr().cast(),
        data_size: 4000,
        cookie: *number as *mut c_void,
        ..Default::default()
    };
    // SAFETY: all pointers are valid for the calls, and the payload to the end.
    unsafe {
        while waits.len() < 3 {
            number += 1;
            match ntbring_send(ep, &message(&number)) as u32 {
                NTBRING_PENDING => waits.push(number),
                code => assert_eq!(code, 0, "{}", text()),
            }
        }
        let offered = number + 1;
        assert_eq!(ntbring_offer(ep, &message(&offered)), NTBRING_PENDING as i32);
        let take_back = |number: u64, dropped| ntbring_withdraw(ep, 0, number as *mut c_void, dropped) as u32;
        assert_eq!(
            [1, offered + 1, waits[1], waits[1], offered, offered].map(|number| take_back(number, 0)),
            [0, 0, 1, 0, 1, 0]
        );
        assert_eq!(ntbring_withdraw(ep, 0, std::ptr::null_mut(), 0), NTBRING_ERR_ARGUMENT);
        assert_eq!(ntbring_withdraw(ep, -1, 8 as *mut c_void, 0), NTBRING_ERR_ARGUMENT);
        // An empty message needs no answer, and its cookie may belong to another message while it waits.
        let twin = number + 2;
        let empty = ntbring_message_t { data_size: 0, ..message(&twin) };
        assert_eq!((ntbring_send(ep, &empty), ntbring_send(ep, &message(&twin))), (0, NTBRING_PENDING as i32));
        assert_eq!([take_back(twin, 0), take_back(twin, 0)], [1, 0]);
        let (mut arrived, mut sent) = (Vec::new(), Vec::new());
        while (arrived.len() as u64) < number {
            let e = event(ep);
            match e.kind {
                NTBRING_EVENT_MESSAGE => arrived.push(e.hdr.cast::<u64>().read()),
                NTBRING_EVENT_SENT => sent.push(e.cookie as u64),
                kind => panic!("event {kind}"),
            }
        }
        assert_eq!(arrived, (1..=number).filter(|&n| n != waits[1]).chain([twin]).collect::<Vec<_>>());
        assert_eq!(sent, [waits[0], waits[2]]);
        assert_eq!((ntbring_flush(ep), ntbring_offer(ep, &message(&offered))), (0, NTBRING_PENDING as i32));
        assert_eq!(
            (event(ep).kind, take_back(offered, 0), ntbring_flush(ep)),
            (NTBRING_EVENT_OFFER, 0, NTBRING_PENDING as i32)
        );
        assert_eq!((take_back(offered, 1), take_back(offered, 1), ntbring_flush(ep)), (1, 0, 0));
        assert_eq!(ntbring_close(ep), 0);
    }
}

/// Returns an endpoint, of a job of one rank, that has not joined.
fn opened() -> *mut ntbring_endpoint_t {
    let host_of = [0];
    let job = ntbring_job_t { size: 1, hosts: 1, host_of: host_of.as_ptr(), ..ntbring_job_t::default() };
    let mut ep = std::ptr::null_mut();
    // SAFETY: all pointers are valid for the call.
    assert_eq!(unsafe { ntbring_open(&job, &mut ep) }, 0, "{}", text());
    ep
}

/// Covers the behaviour of an MPI session that never communicates.
#[test]
fn who_has_not_joined_may_leave() {
    let ep = opened();
    // SAFETY: the endpoint is open until the last call.
    unsafe {
        assert_eq!((ntbring_flush(ep), ntbring_linger(ep), ntbring_close(ep)), (0, 0, 0), "{}", text());
    }
}

#[test]
fn hosts_compute_what_is_defined_for_a_type() {
    let can = |op: u32, kind: u32| ntbring_can_compute(op as u8, kind as u8);
    assert_eq!([can(NTBRING_OP_SUM, NTBRING_TYPE_COMPLEX), can(NTBRING_OP_MAX, NTBRING_TYPE_COMPLEX)], [1, 0]);
    assert_eq!([can(NTBRING_OP_BAND, NTBRING_TYPE_BYTES), can(NTBRING_OP_BAND, NTBRING_TYPE_DOUBLE)], [1, 0]);
    assert_eq!([can(NTBRING_OP_NO_OP + 1, NTBRING_TYPE_BYTES), can(NTBRING_OP_SUM, 200)], [0, 0]);
}

/// Returns a connected endpoint of a job of one rank.
fn alone() -> *mut ntbring_endpoint_t {
    let ep = opened();
    // SAFETY: all pointers are valid for the calls.
    unsafe {
        let (mut address, mut size) = ([0u8; NTBRING_ADDRESS_MAX as usize], 0);
        assert_eq!(ntbring_address(ep, address.as_mut_ptr().cast(), &mut size), 0);
        assert_eq!(ntbring_connect(ep, address.as_ptr().cast(), size), 0, "{}", text());
    }
    ep
}

#[test]
fn endpoints_of_two_jobs_become_peers_and_talk() {
    let eps = [alone(), alone()];
    let mut addresses = [[0u8; NTBRING_ADDRESS_MAX as usize]; 2];
    let payload: Vec<u8> = (0..100_000u32).map(|i| (i % 253) as u8).collect();
    // SAFETY: all pointers are valid for the calls, and the payload until the end.
    unsafe {
        let mut size = 0;
        for (ep, address) in eps.iter().zip(&mut addresses) {
            assert_eq!(ntbring_address(*ep, address.as_mut_ptr().cast(), &mut size), 0);
        }
        for i in 0..2 {
            let mut peer = [0i32; 2];
            for p in &mut peer {
                let other = addresses[1 - i].as_ptr().cast();
                assert_eq!(ntbring_peer_add(eps[i], other, size, p), 0, "{}", text());
            }
            assert_eq!(peer, [1, 1], "the same process has the same number");
            let mut own = -1;
            assert_eq!(ntbring_peer_add(eps[i], addresses[i].as_ptr().cast(), size, &mut own), 0);
            assert_eq!(own, 0, "oneself is one's rank");
            let message = ntbring_message_t {
                dest: 1,
                handler: 3,
                data: payload.as_ptr().cast(),
                data_size: payload.len() as u64,
                cookie: 0x77 as *mut c_void,
                ..Default::default()
            };
            assert!(ntbring_send(eps[i], &message) >= 0, "{}", text());
        }
        let mut got = [Vec::<u8>::new(), Vec::new()];
        let mut rounds = 0;
        while got.iter().any(|g| g.len() < payload.len()) {
            rounds += 1;
            assert!(rounds < 1_000_000, "{:?} bytes have arrived", [got[0].len(), got[1].len()]);
            for (ep, got) in eps.iter().zip(&mut got) {
                let mut e = ntbring_event_t::default();
                let code = ntbring_poll(*ep, &mut e);
                assert!(code >= 0, "{}", text());
                if code == 1 {
                    if e.kind == NTBRING_EVENT_BEGIN {
                        assert!(e.data.is_null(), "no room was given yet");
                    }
                    if e.kind == NTBRING_EVENT_CHUNK {
                        assert_eq!(e.last != 0, got.len() + e.data_size as usize == payload.len());
                        got.extend_from_slice(std::slice::from_raw_parts(e.data.cast(), e.data_size as usize));
                    }
                    assert_eq!(ntbring_release(*ep, &mut e), 0, "{}", text());
                }
            }
        }
        assert!(got.iter().all(|g| *g == payload));
        for (i, address) in addresses.iter().enumerate() {
            for (ep, peer) in [(eps[i], 0), (eps[1 - i], 1)] {
                let (mut known, mut len) = ([0u8; NTBRING_ADDRESS_MAX as usize], 0);
                assert_eq!(ntbring_peer_address(ep, peer, known.as_mut_ptr().cast(), &mut len), 0);
                assert_eq!((&known, len), (address, size));
            }
        }
        // The first endpoint asks, the second answers, in one thread.
        let (mut heard, hear) = ([0u8; 600], |ep, heard: &mut [u8; 600]| {
            let mut e = ntbring_event_t::default();
            while ntbring_dpm_receive(ep, 5, heard.as_mut_ptr().cast(), 512) == NTBRING_PENDING as i32 {
                assert_eq!(ntbring_poll(ep, &mut e), 0, "{}", text());
            }
        });
        for (from, to, what) in [(0, 1, b"question"), (1, 0, b"answer..")] {
            assert_eq!(ntbring_dpm_send(eps[from], 1, 5, what.as_ptr().cast(), 8), 0, "{}", text());
            hear(eps[to], &mut heard);
            assert_eq!(heard[..8], what[..]);
        }
        assert_eq!(ntbring_dpm_withdraw(eps[0], 5), 0);
        let bytes = heard.as_ptr().cast();
        for (peer, size) in [(2, 8), (-1, 8), (1, 513)] {
            assert_eq!(ntbring_dpm_send(eps[0], peer, 5, bytes, size), NTBRING_ERR_ARGUMENT);
        }
        assert_eq!(ntbring_dpm_receive(eps[0], 5, std::ptr::null_mut(), 8), NTBRING_ERR_ARGUMENT);
        assert_eq!(ntbring_peer_address(eps[0], 2, heard.as_mut_ptr().cast(), &mut size), NTBRING_ERR_ARGUMENT);
        let mut peer = 0;
        assert_eq!(ntbring_peer_add(eps[0], [0u8; 80].as_ptr().cast(), 80, &mut peer), NTBRING_ERR_ARGUMENT);
        let nobody = ntbring_message_t { dest: 7, ..Default::default() };
        assert_eq!(ntbring_send(eps[0], &nobody), NTBRING_ERR_ARGUMENT);
        for ep in eps {
            assert_eq!(ntbring_close(ep), 0);
        }
    }
}

#[test]
fn a_segment_is_created_opened_locked_sealed_and_freed() {
    let ep = alone();
    // SAFETY: all pointers are valid for the calls, and the segments' bytes until they are freed.
    unsafe {
        assert_eq!((ntbring_is_mappable(ep, 0), ntbring_is_mappable(ep, 1), ntbring_is_mappable(ep, -1)), (1, 0, 0));
        let mut address = ntbring_segment_address_t::default();
        let (mut own, mut twin) = (std::ptr::null_mut(), std::ptr::null_mut());
        let (mut base, mut twin_base) = (std::ptr::null_mut(), std::ptr::null_mut());
        assert_eq!(ntbring_segment_create(ep, 0, &mut own, &mut base, &mut address), NTBRING_ERR_ARGUMENT);
        assert_eq!(ntbring_segment_create(ep, 1 << 55, &mut own, &mut base, &mut address), NTBRING_ERR_RESOURCE);
        assert!(text().contains("/dev/shm") && text().contains(&(1u64 << 55).to_string()), "{}", text());
        assert_eq!(ntbring_segment_create(ep, 100, &mut own, &mut base, &mut address), 0, "{}", text());
        assert_eq!(ntbring_segment_open(ep, 1, &address, &mut twin, &mut twin_base), NTBRING_ERR_ARGUMENT);
        assert_eq!(ntbring_segment_open(ep, 0, &address, &mut twin, &mut twin_base), 0, "{}", text());
        base.cast::<u64>().write_volatile(5);
        assert_eq!(twin_base.cast::<u64>().read_volatile(), 5);
        for _ in 0..3 {
            assert_eq!((ntbring_segment_lock(ep, own), ntbring_segment_unlock(own)), (0, 0));
            assert_eq!((ntbring_segment_lock(ep, twin), ntbring_segment_unlock(twin)), (0, 0));
        }
        // There is no rank 41: a lock that it seems to hold is an error, not a hang.
        assert!((*twin.cast::<ntbring_ring::HeldSegment>()).try_lock(41));
        assert_eq!(ntbring_segment_lock(ep, own), NTBRING_ERR_PROTOCOL);
        assert!(text().contains("41"), "{}", text());
        assert_eq!(ntbring_segment_unlock(twin), 0);
        assert_eq!(ntbring_segment_seal(own), 0);
        let mut late = std::ptr::null_mut();
        assert_eq!(ntbring_segment_open(ep, 0, &address, &mut late, &mut twin_base), NTBRING_ERR_RESOURCE);
        assert_eq!((ntbring_segment_free(ep, own), ntbring_segment_free(ep, twin), ntbring_close(ep)), (0, 0, 0));
        assert_eq!(ntbring_segment_lock(std::ptr::null_mut(), own), NTBRING_ERR_ARGUMENT);
    }
}

/// A message in a lane that its receiver has not opened yet would be lost if its sender ended.
#[test]
fn one_job_waits_until_another_can_read_what_was_sent() {
    let (asking, other, gone) = (alone(), alone(), alone());
    let (mut address, mut size, mut e) = ([0u8; NTBRING_ADDRESS_MAX as usize], 0, ntbring_event_t::default());
    // SAFETY: all pointers are valid for the calls.
    unsafe {
        for (peer, ep) in [(1, other), (2, gone)] {
            let mut added = 0;
            assert_eq!(ntbring_address(ep, address.as_mut_ptr().cast(), &mut size), 0);
            assert_eq!(ntbring_peer_add(asking, address.as_ptr().cast(), size, &mut added), 0, "{}", text());
            assert_eq!((added, ntbring_flush(asking)), (peer, 0), "nothing lies in the lane");
            assert_eq!(ntbring_dpm_send(asking, peer, 5, address.as_ptr().cast(), 8), 0, "{}", text());
            assert_eq!(ntbring_flush(asking), NTBRING_PENDING as i32);
            match peer {
                // A rank that spins does not look into its mailbox at each poll.
                1 => (0..100).for_each(|_| assert_eq!(ntbring_poll(ep, &mut e), 0, "{}", text())),
                _ => assert_eq!(ntbring_close(ep), 0),
            }
            assert_eq!(ntbring_flush(asking), 0, "it was opened, or no peer will read it");
        }
        assert_eq!((ntbring_close(asking), ntbring_close(other)), (0, 0));
    }
}

/// Polls until a rank is lost. Returns its number, whether it has left, and the reason.
///
/// # Safety
/// The endpoint must be open.
unsafe fn lost(ep: *mut ntbring_endpoint_t) -> (i32, bool, String) {
    let (start, mut e) = (std::time::Instant::now(), ntbring_event_t::default());
    while start.elapsed() < std::time::Duration::from_secs(20) {
        // SAFETY: the caller guarantees an open endpoint.
        unsafe {
            match ntbring_poll(ep, &mut e) as u32 {
                NTBRING_SOME if e.kind == NTBRING_EVENT_LOST => return (e.src, e.last != 0, text()),
                NTBRING_SOME => assert_eq!(ntbring_release(ep, &mut e), 0),
                _ => {}
            }
        }
    }
    panic!("no peer is lost");
}

#[test]
fn who_is_gone_of_another_job_is_lost() {
    let (mut address, mut size, mut peer) = ([0u8; NTBRING_ADDRESS_MAX as usize], 0, 0);
    for leaves in [false, true] {
        let (ep, other) = (alone(), alone());
        // SAFETY: all pointers are valid for the calls.
        unsafe {
            assert_eq!(ntbring_address(other, address.as_mut_ptr().cast(), &mut size), 0);
            let mut add = |ep| (ntbring_peer_add(ep, address.as_ptr().cast(), size, &mut peer), peer);
            assert_eq!(add(ep), (0, 1), "{}", text());
            assert_eq!(ntbring_dpm_send(ep, 1, 5, address.as_ptr().cast(), 8), 0);
            let mut e = ntbring_event_t::default();
            (0..100).for_each(|_| assert_eq!(ntbring_poll(other, &mut e), 0, "{}", text()));
            if leaves {
                assert_eq!(ntbring_linger(other), 0);
            }
            assert_eq!(ntbring_close(other), 0);
            let (who, has_left, why) = lost(ep);
            assert_eq!((who, has_left, why.contains("MPI_Finalize")), (1, leaves, leaves), "{why}");
            // A caller that waits for the peer's answer gets an error.
            assert_eq!(ntbring_dpm_receive(ep, 5, address.as_mut_ptr().cast(), 512), NTBRING_ERR_PEER, "{}", text());
            assert_eq!(ntbring_close(ep), 0);
        }
    }
}

#[test]
fn who_was_gone_before_is_lost_at_once() {
    let (ep, other) = (alone(), alone());
    let (mut address, mut size, mut peer) = ([0u8; NTBRING_ADDRESS_MAX as usize], 0, 0);
    // SAFETY: all pointers are valid for the calls.
    unsafe {
        assert_eq!(ntbring_address(other, address.as_mut_ptr().cast(), &mut size), 0);
        assert_eq!(ntbring_close(other), 0);
        for _ in 0..2 {
            assert_eq!((ntbring_peer_add(ep, address.as_ptr().cast(), size, &mut peer), peer), (0, 1), "{}", text());
        }
        assert_eq!(lost(ep).0, 1);
        assert_eq!(ntbring_dpm_send(ep, 1, 5, address.as_ptr().cast(), 8), 0, "{}", text());
        assert_eq!((ntbring_flush(ep), ntbring_close(ep)), (0, 0));
    }
}

#[test]
fn a_group_of_one_shares_with_itself() {
    let ep = alone();
    let (block, mut blocks, mut mine) = ([7u8; 2100], [0u8; 2100], 9);
    let (from, to): (*const c_void, *mut c_void) = (block.as_ptr().cast(), blocks.as_mut_ptr().cast());
    // SAFETY: all pointers are valid for the calls, or NULL, which the functions check for.
    unsafe {
        assert_eq!(ntbring_allgather(ep, 3, from, 8), NTBRING_ERR_ARGUMENT);
        assert_eq!(ntbring_group_offer(ep, std::ptr::null_mut()), NTBRING_ERR_ARGUMENT);
        assert_eq!((ntbring_group_offer(ep, &mut mine), mine), (0, 15));
        assert_eq!(ntbring_group_open(ep, 3, std::ptr::null(), mine, mine), NTBRING_ERR_ARGUMENT);
        assert_eq!(ntbring_group_open(ep, 3, [-1].as_ptr(), mine, mine), NTBRING_ERR_ARGUMENT);
        assert_eq!(ntbring_group_open(ep, 3, [0].as_ptr(), mine, 0), NTBRING_NO_GROUP as i32);
        assert_eq!((ntbring_group_offer(ep, &mut mine), mine), (0, 15));
        assert_eq!(ntbring_group_open(ep, 3, [0].as_ptr(), mine, mine), 0, "{}", text());
        assert_eq!(ntbring_group_open(ep, 3, [0].as_ptr(), 0, 0), NTBRING_ERR_ARGUMENT);
        assert_eq!(ntbring_allgather(ep, 3, from, 2041), NTBRING_ERR_ARGUMENT);
        assert_eq!(ntbring_allgather(ep, 3, std::ptr::null(), 8), 0);
        assert_eq!(ntbring_allgather_wait(ep, 3, to, 8, 0), NTBRING_ERR_PROTOCOL);
        assert!(text().contains("failed"), "{}", text());
        assert_eq!(ntbring_allgather(ep, 3, from, 2040), 0, "{}", text());
        assert_eq!(ntbring_allgather_wait(ep, 3, to, 2039, 0), NTBRING_ERR_ARGUMENT);
        assert_eq!(ntbring_allgather_wait(ep, 3, std::ptr::null_mut(), 2040, 0), NTBRING_ERR_ARGUMENT);
        assert_eq!(ntbring_allgather_wait(ep, 3, to, 2040, 0), 0, "{}", text());
        let another = std::thread::spawn({
            let ep = ep as usize;
            move || (ntbring_group_close(ep as _, 3), ntbring_group_close(ep as _, 4))
        });
        assert_eq!(another.join().unwrap(), (0, 0));
        assert_eq!((ntbring_group_offer(ep, &mut mine), mine), (0, 15));
        assert_eq!(ntbring_allgather_wait(ep, 3, to, 2040, 0), NTBRING_ERR_ARGUMENT);
        assert_eq!(ntbring_close(ep), 0);
    }
    assert_eq!((&blocks[..2040], &blocks[2040..]), (&block[..2040], &[0u8; 60][..]));
}
