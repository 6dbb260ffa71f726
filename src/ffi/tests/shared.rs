//! Tests of collectives through shared buffers as C calls them. The members of a group are threads, whose buffers belong
//! to one endpoint.

use super::*;
use std::ptr::{null, null_mut};

/// A group that a thread uses.
struct Member(*mut ntbring_shared_t);

// SAFETY: each group is used by one thread.
unsafe impl Send for Member {}

fn created(ep: *mut ntbring_endpoint_t) -> (Member, ntbring_shared_card_t) {
    let (mut shared, mut card) = (null_mut(), ntbring_shared_card_t::default());
    // SAFETY: connected, and both are writable.
    unsafe { assert_eq!(ntbring_shared_create(ep, 2, &mut shared, &mut card), 0, "{}", text()) };
    (Member(shared), card)
}

fn pair(ep: *mut ntbring_endpoint_t) -> [Member; 2] {
    let ((first, a), (second, b)) = (created(ep), created(ep));
    for (me, member) in [&first, &second].into_iter().enumerate() {
        // SAFETY: connected, and two ranks and cards.
        unsafe {
            assert_eq!(ntbring_shared_open(ep, member.0, me as i32, [0, 0].as_ptr(), [a, b].as_ptr()), 0, "{}", text())
        };
    }
    // SAFETY: both are open.
    unsafe { assert_eq!([ntbring_shared_seal(first.0), ntbring_shared_seal(second.0)], [0, 0]) };
    [first, second]
}

unsafe extern "C" fn pass_time(_: *mut c_void, _: i32) -> i32 {
    std::thread::yield_now();
    1
}

unsafe extern "C" fn give_up(_: *mut c_void, _: i32) -> i32 {
    0
}

/// Subtracts: an operation that depends on the order.
unsafe extern "C" fn difference(_: *mut c_void, from: *const c_void, to: *mut c_void, count: u64) {
    let (from, to) = (from.cast::<i64>(), to.cast::<i64>());
    // SAFETY: the library passes `count` numbers at both addresses.
    (0..count as usize).for_each(|i| unsafe { *to.add(i) = *from.add(i) - *to.add(i) });
}

/// Returns the value of the counter of collectives through shared buffers.
fn executed(ep: *mut ntbring_endpoint_t) -> u64 {
    let index = ::ntbring_endpoint::COUNTERS.iter().position(|counter| counter.name == "shared_collectives").unwrap();
    let mut value = 0;
    // SAFETY: from `alone`, and the value is writable.
    unsafe { assert_eq!(ntbring_count(ep, index as u32, &mut value), 0, "{}", text()) };
    value
}

fn call(kind: u32, input: &[i64], output: &mut [i64]) -> ntbring_shared_call_t {
    ntbring_shared_call_t {
        kind: kind as i32,
        input: input.as_ptr().cast(),
        input_size: 8 * input.len() as u64,
        output: output.as_mut_ptr().cast(),
        output_size: 8 * output.len() as u64,
        element_size: 8,
        op: -1,
        type_: -1,
        fold: Some(difference),
        pass_time: Some(pass_time),
        ..Default::default()
    }
}

#[test]
fn members_reduce_with_an_operation_of_the_caller_and_with_a_known_one() {
    let ep = alone();
    let members = pair(ep);
    std::thread::scope(|scope| {
        for (me, member) in members.into_iter().enumerate() {
            scope.spawn(move || {
                let member = member;
                for known in [false, true] {
                    let input: Vec<i64> = (0..70_000).map(|i| i * (me as i64 + 2)).collect();
                    let mut output = vec![0; input.len()];
                    let mut call = call(NTBRING_SHARED_ALLREDUCE, &input, &mut output);
                    if known {
                        (call.op, call.type_) = (NTBRING_OP_SUM as i32, NTBRING_TYPE_INT64 as i32);
                    }
                    // SAFETY: the group is open, and the call names the buffers above.
                    unsafe { assert_eq!(ntbring_shared_run(member.0, &call), 0, "{}", text()) };
                    let factor = if known { 5 } else { -1 };
                    assert!(output.iter().enumerate().all(|(i, &o)| o == i as i64 * factor));
                }
                // SAFETY: not used again.
                unsafe { assert_eq!(ntbring_shared_free(member.0), 0) };
            });
        }
    });
    assert_eq!(executed(ep), 4, "two calls of each member");
    // SAFETY: from `alone`.
    unsafe { ntbring_close(ep) };
}

#[test]
fn impossible_calls_are_refused() {
    let ep = alone();
    let (mut numbers, none) = ([0i64; 4], ntbring_shared_card_t::default());
    let input = [0i64; 4];
    // SAFETY: pointers are NULL or valid; the group is open when it runs.
    unsafe {
        assert_eq!((ntbring_can_share(ep, 0), ntbring_can_share(ep, 1), ntbring_can_share(ep, -1)), (1, 0, 0));
        assert_eq!((ntbring_wake(ep, 0), ntbring_found(ep), ntbring_shared_free(null_mut())), (0, 0, 0));
        assert_eq!(ntbring_relay(ep), NTBRING_NONE as i32);
        let (mut shared, mut card) = (null_mut(), none);
        for members in [-1, 0, 1, 65] {
            assert_eq!(ntbring_shared_create(ep, members, &mut shared, &mut card), NTBRING_ERR_ARGUMENT);
        }
        let (member, mine) = created(ep);
        let open = |me, ranks: *const i32, cards: *const ntbring_shared_card_t| {
            ntbring_shared_open(ep, member.0, me, ranks, cards)
        };
        assert_eq!(open(0, null(), null()), NTBRING_ERR_ARGUMENT);
        assert_eq!(open(2, [0, 0].as_ptr(), [mine, mine].as_ptr()), NTBRING_ERR_ARGUMENT);
        assert_eq!(open(0, [0, 0].as_ptr(), [mine, none].as_ptr()), NTBRING_ERR_ARGUMENT, "a member without a buffer");
        assert_eq!(open(0, [0, 9].as_ptr(), [mine, mine].as_ptr()), NTBRING_ERR_ARGUMENT, "there is no rank 9");
        let barrier = call(NTBRING_SHARED_BARRIER, &input, &mut numbers);
        assert_eq!(ntbring_shared_run(member.0, &barrier), NTBRING_ERR_ARGUMENT, "it is not open");
        ntbring_shared_free(member.0);

        let [first, second] = pair(ep);
        let run = |call: &ntbring_shared_call_t| ntbring_shared_run(first.0, call);
        let good = call(NTBRING_SHARED_ALLREDUCE, &input, &mut numbers);
        let outside = [ntbring_part_t { offset: 0, size: 8 }, ntbring_part_t { offset: 32, size: 8 }];
        let wrong = [
            ntbring_shared_call_t { kind: 99, ..good },
            ntbring_shared_call_t { root: 2, ..good },
            ntbring_shared_call_t { root: -1, ..good },
            ntbring_shared_call_t { output_size: 24, ..good },
            ntbring_shared_call_t { element_size: 5, ..good },
            ntbring_shared_call_t { input: null(), ..good },
            ntbring_shared_call_t { kind: NTBRING_SHARED_ALLTOALL as i32, sends: outside.as_ptr(), ..good },
            ntbring_shared_call_t { kind: NTBRING_SHARED_REDUCE_SCATTER as i32, input_size: 24, ..good },
        ];
        for (i, call) in wrong.iter().enumerate() {
            assert_eq!(run(call), NTBRING_ERR_ARGUMENT, "{i}");
        }
        assert_eq!(ntbring_shared_run(first.0, null()), NTBRING_ERR_ARGUMENT);
        let waits = ntbring_shared_call_t { pass_time: Some(give_up), ..good };
        assert_eq!(run(&waits), NTBRING_NONE as i32, "the other member never calls");
        let fails = ntbring_shared_call_t { kind: NTBRING_SHARED_FAIL as i32, ..good };
        assert_eq!(ntbring_shared_run(second.0, &fails), 0);
        assert_eq!([first, second].map(|member| ntbring_shared_free(member.0)), [0, 0]);
        ntbring_close(ep);
    }
}
