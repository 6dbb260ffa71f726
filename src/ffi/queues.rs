//! The queues of the caller of the C ABI.

use super::abi::{ntbring_job_t, ntbring_queues_t, ntbring_receives_t};
use ::ntbring_endpoint::{Queues, ReadQueues};
use std::ffi::c_void;

/// The pointer that the caller's function gets.
struct Cookie(*mut c_void);

// SAFETY: the pointer is not used here. It is only passed to the caller's function, in `ntbring_poll`, which a single
// thread at a time may call, and any thread (contract of the header).
unsafe impl Send for Cookie {}

impl Cookie {
    fn pointer(&self) -> *mut c_void {
        self.0
    }
}

/// Returns the function that reads the queues of the caller, if it has any.
pub fn reader(job: &ntbring_job_t) -> Option<ReadQueues> {
    let (read, cookie) = (job.queues?, Cookie(job.queues_cookie));
    Some(Box::new(move |peers| {
        let mut receives = vec![ntbring_receives_t::default(); peers + 1];
        let mut queues =
            ntbring_queues_t { peers: peers as i32, receives: receives.as_mut_ptr(), ..ntbring_queues_t::default() };
        // SAFETY: the function and its cookie come from the caller; the entries are as many as the header says.
        unsafe { read(cookie.pointer(), &mut queues) };
        Queues {
            receives: receives.iter().map(|of| (of.count, of.bytes)).collect(),
            unexpected_msgs: queues.unexpected,
            unexpected_bytes: queues.unexpected_bytes,
        }
    }))
}
