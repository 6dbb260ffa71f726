//! Holds the definitions against the header, and breaks the contract on purpose.

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
    ntbring_limits: unsafe extern "C" fn(*mut ntbring_endpoint_t, *mut ntbring_limits_t) -> i32,
    ntbring_send: unsafe extern "C" fn(*mut ntbring_endpoint_t, *const ntbring_message_t) -> i32,
    ntbring_poll: unsafe extern "C" fn(*mut ntbring_endpoint_t, *mut ntbring_event_t) -> i32,
    ntbring_release: unsafe extern "C" fn(*mut ntbring_endpoint_t, *mut ntbring_event_t) -> i32,
    ntbring_idle: unsafe extern "C" fn(*mut ntbring_endpoint_t, u32),
    ntbring_flush: unsafe extern "C" fn(*mut ntbring_endpoint_t) -> i32,
    ntbring_close: unsafe extern "C" fn(*mut ntbring_endpoint_t) -> i32,
    ntbring_abi_version: unsafe extern "C" fn() -> u32,
    ntbring_error_text: unsafe extern "C" fn() -> *const c_char,
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
        ntbring_idle(std::ptr::null_mut(), 10);
    }
    assert!(!text().contains('\0'));
}

#[test]
fn a_ring_of_one_sends_to_itself() {
    let host_of = [0];
    let job = ntbring_job_t { rank: 0, size: 1, hosts: 1, host_of: host_of.as_ptr() };
    let mut ep = std::ptr::null_mut();
    // SAFETY: all pointers are valid for the calls, and the payload until its event.
    unsafe {
        assert_eq!(ntbring_open(&job, &mut ep), 0, "{}", text());
        let (mut address, mut size) = ([0u8; NTBRING_ADDRESS_MAX as usize], 0);
        assert_eq!(ntbring_address(ep, address.as_mut_ptr().cast(), &mut size), 0);
        assert_eq!(ntbring_connect(ep, address.as_ptr().cast(), size), 0, "{}", text());
        let mut limits = ntbring_limits_t::default();
        assert_eq!(ntbring_limits(ep, &mut limits), 0);
        assert!(limits.header_max >= 512, "{}", limits.header_max);
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
