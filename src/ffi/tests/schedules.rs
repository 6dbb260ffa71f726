//! Tests of schedules as C gets them.

use super::*;

fn bcast() -> ntbring_collective_t {
    let (kind, elements) = (NTBRING_BCAST as i32, 18192);
    ntbring_collective_t { kind, ranks: 4, rank: 1, root: 0, elements, element_size: 1, in_place: 0 }
}

fn code(collective: &ntbring_collective_t) -> i32 {
    let mut schedule = ntbring_schedule_t::default();
    // SAFETY: both are valid.
    unsafe { ntbring_schedule_begin(collective, &mut schedule) }
}

#[test]
fn a_broadcast_is_passed_on() {
    let mut schedule = ntbring_schedule_t::default();
    let mut steps = Vec::new();
    let mut step = ntbring_step_t::default();
    // SAFETY: the pointers are valid, and the schedule is filled in before its first step.
    unsafe {
        assert_eq!(ntbring_schedule_begin(&bcast(), &mut schedule), NTBRING_OK as i32);
        while ntbring_schedule_next(&mut schedule, &mut step) == NTBRING_SOME as i32 {
            steps.push((step.action, step.peer, step.to_offset + step.from_offset, step.count));
        }
        assert_eq!(ntbring_schedule_next(&mut schedule, &mut step), NTBRING_NONE as i32);
    }
    assert_eq!(schedule.scratch, 0);
    let expected = [
        (NTBRING_STEP_RECEIVE, 0, 0, 16384),
        (NTBRING_STEP_RECEIVE, 0, 16384, 1808),
        (NTBRING_STEP_RECEIVED, 0, 0, 16384),
        (NTBRING_STEP_SEND, 2, 0, 16384),
        (NTBRING_STEP_RECEIVED, 0, 0, 1808),
        (NTBRING_STEP_SEND, 2, 16384, 1808),
        (NTBRING_STEP_SENT, 0, 0, 0),
        (NTBRING_STEP_SENT, 0, 0, 0),
    ];
    assert_eq!(steps, expected);
}

#[test]
fn methods_are_told_as_codes() {
    let alltoall = ntbring_collective_t { kind: NTBRING_ALLTOALL as i32, ..bcast() };
    assert_eq!(code(&alltoall), NTBRING_OK as i32);
    assert_eq!(code(&ntbring_collective_t { ranks: 3, ..bcast() }), NTBRING_BY_MESSAGES as i32);
    let most = ntbring_collective_t { ranks: NTBRING_HOSTS_MAX as i32, ..bcast() };
    for kind in 0..4 {
        assert_eq!(code(&ntbring_collective_t { kind, ..most }), NTBRING_OK as i32);
    }
}

#[test]
fn collectives_with_wrong_values_are_refused() {
    let wrong = [
        ntbring_collective_t { kind: 5, ..bcast() },
        ntbring_collective_t { kind: -1, ..bcast() },
        ntbring_collective_t { rank: 4, ..bcast() },
        ntbring_collective_t { root: -1, ..bcast() },
        ntbring_collective_t { ranks: 0, ..bcast() },
        ntbring_collective_t { ranks: NTBRING_HOSTS_MAX as i32 + 1, ..bcast() },
    ];
    for collective in wrong {
        assert_eq!(code(&collective), NTBRING_ERR_ARGUMENT, "{collective:?}");
    }
    // SAFETY: the functions say that they check for NULL.
    unsafe {
        assert_eq!(ntbring_schedule_begin(&bcast(), std::ptr::null_mut()), NTBRING_ERR_ARGUMENT);
        assert_eq!(ntbring_schedule_next(std::ptr::null_mut(), std::ptr::null_mut()), NTBRING_ERR_ARGUMENT);
    }
}
