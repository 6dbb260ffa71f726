//! Methods and schedules of large collectives.

use super::abi::*;
use super::error::{argument, guard, Failure};
use ntbring_collectives::{begin, Buffer, Collective, Kind, Method, Place, Schedule, Step};
use std::mem::{align_of, size_of};

const _: () = assert!(size_of::<Schedule>() <= size_of::<[u64; 16]>() && align_of::<Schedule>() <= align_of::<u64>());

/// Chooses a method and, if it is one, begins a schedule. See `include/ntbring.h`.
///
/// # Safety
/// `collective` must be valid; `schedule` must be writable.
#[no_mangle]
pub unsafe extern "C" fn ntbring_schedule_begin(
    collective: *const ntbring_collective_t,
    schedule: *mut ntbring_schedule_t,
) -> i32 {
    guard(|| {
        if collective.is_null() || schedule.is_null() {
            return Err(argument("collective and schedule must not be NULL"));
        }
        // SAFETY: not null, and the caller guarantees a valid object.
        let collective = unsafe { self::collective(&*collective) }?;
        let begun = match begin(&collective) {
            Method::Messages => return Ok(NTBRING_BY_MESSAGES as i32),
            Method::Ring(begun) => begun,
        };
        if begun.requests() > NTBRING_REQUESTS_MAX {
            return Err(argument("there are too many ranks for a schedule"));
        }
        // SAFETY: the caller guarantees writable memory; the assertion above shows that the schedule fits `state`, for
        // which it is aligned.
        unsafe {
            (*schedule).scratch = begun.scratch();
            std::ptr::addr_of_mut!((*schedule).state).cast::<Schedule>().write(begun);
        }
        Ok(NTBRING_OK as i32)
    })
}

/// Writes the next step of a schedule. See `include/ntbring.h`.
///
/// # Safety
/// `schedule` must have been filled in by `ntbring_schedule_begin`; `step` must be writable.
#[no_mangle]
pub unsafe extern "C" fn ntbring_schedule_next(schedule: *mut ntbring_schedule_t, step: *mut ntbring_step_t) -> i32 {
    guard(|| {
        if schedule.is_null() || step.is_null() {
            return Err(argument("schedule and step must not be NULL"));
        }
        // SAFETY: not null; the caller guarantees that `ntbring_schedule_begin` has written a schedule there, which
        // only this function changes.
        let begun = unsafe { &mut *std::ptr::addr_of_mut!((*schedule).state).cast::<Schedule>() };
        let Some(next) = begun.next() else { return Ok(NTBRING_NONE as i32) };
        // SAFETY: not null, and the caller guarantees writable memory.
        unsafe { step.write(self::step(next)) };
        Ok(NTBRING_SOME as i32)
    })
}

fn collective(c: &ntbring_collective_t) -> Result<Collective, Failure> {
    let inside = |rank: i32| (0..c.ranks).contains(&rank);
    if c.ranks > NTBRING_HOSTS_MAX as i32 || !inside(c.rank) || !inside(c.root) {
        return Err(argument("ranks, rank or root of a collective have invalid values"));
    }
    let root = c.root as u32;
    let kind = match u32::try_from(c.kind) {
        Ok(NTBRING_BCAST) => Kind::Broadcast { root },
        Ok(NTBRING_REDUCE) => Kind::Reduce { root },
        Ok(NTBRING_ALLREDUCE) => Kind::Allreduce,
        Ok(NTBRING_ALLGATHER) => Kind::Allgather,
        Ok(NTBRING_ALLTOALL) => Kind::Alltoall,
        _ => return Err(argument("there is no such kind of collective")),
    };
    Ok(Collective {
        kind,
        ranks: c.ranks as u32,
        rank: c.rank as u32,
        elements: c.elements,
        element_size: c.element_size,
        in_place: c.in_place != 0,
    })
}

fn step(step: Step) -> ntbring_step_t {
    let mut s = ntbring_step_t::default();
    let mut places = |from: Option<Place>, to: Option<Place>, n: u64| {
        if let Some(place) = from {
            (s.from, s.from_offset) = (buffer(place), place.offset);
        }
        if let Some(place) = to {
            (s.to, s.to_offset) = (buffer(place), place.offset);
        }
        s.count = n;
    };
    let (action, peer, request) = match step {
        Step::Send { to, from, count, request } => {
            places(Some(from), None, count);
            (NTBRING_STEP_SEND, to, request)
        }
        Step::Receive { from, to, count, request } => {
            places(None, Some(to), count);
            (NTBRING_STEP_RECEIVE, from, request)
        }
        Step::Sent { request } => (NTBRING_STEP_SENT, 0, request),
        Step::Received { request, count } => {
            places(None, None, count);
            (NTBRING_STEP_RECEIVED, 0, request)
        }
        Step::Copy { from, to, count } => {
            places(Some(from), Some(to), count);
            (NTBRING_STEP_COPY, 0, 0)
        }
        Step::Reduce { from, to, count } => {
            places(Some(from), Some(to), count);
            (NTBRING_STEP_REDUCE, 0, 0)
        }
    };
    (s.action, s.peer, s.request) = (action, peer as i32, request);
    s
}

fn buffer(place: Place) -> u32 {
    match place.buffer {
        Buffer::Input => NTBRING_INPUT,
        Buffer::Output => NTBRING_OUTPUT,
        Buffer::Scratch => NTBRING_SCRATCH,
    }
}
