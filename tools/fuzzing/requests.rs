//! Requests for one-sided operations, and replies to them.

use crate::script::Script;
use ntbring_rma::{Reply, Request};

/// Runs one input.
pub fn run(data: &[u8]) {
    let mut script = Script(data);
    while !script.is_over() {
        // The action and the operation are often valid.
        let mut head: [u8; Request::LEN] = script.bytes();
        if script.byte() < 200 {
            (head[4], head[7]) = (head[4] % 8, 0);
            (head[5], head[6]) = (head[5] % 16, head[6] % 20);
            head[28..].fill(0);
        }
        let operands = usize::from(script.short());
        if let Ok(request) = Request::parse(&head, operands) {
            assert_eq!(Request::parse(&request.bytes(), operands), Ok(request));
            assert!(request.action.operands(request.len) == operands as u64);
            assert!(request.action.result(request.len) <= u64::from(u32::MAX) && request.action.fits(request.len));
        }
        let mut reply: [u8; Reply::LEN] = script.bytes();
        if script.byte() < 200 {
            (reply[4], reply[5], reply[6], reply[7]) = (reply[4] % 6, 0, 0, 0);
            reply[12..].fill(0);
        }
        if let Some(reply) = Reply::parse(&reply) {
            assert_eq!(Reply::parse(&reply.bytes()), Some(reply));
        }
    }
}
