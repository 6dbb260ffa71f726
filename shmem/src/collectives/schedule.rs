//! Large collectives of teams with one PE on each host, whose memory not all can map: the schedules of libntbring, in which
//! data pass from neighbour to neighbour.

use crate::abi::*;
use crate::fail;
use crate::groups::Group;
use crate::reach::{copy, Operation, Pes};
use std::sync::Arc;

/// A collective.
pub struct Collective<T> {
    /// `NTBRING_BCAST` and so on.
    pub kind: u32,
    /// The root's number in the team; 0 if there is none.
    pub root: usize,
    /// This PE's contribution.
    pub input: *const T,
    /// Destination of the result. It may be the input.
    pub output: *mut T,
    /// Elements of a vector, or of one PE's block.
    pub n: usize,
}

/// Returns true if a team has one PE on each host, in their order, and not all memory is mapped.
pub fn is_ring(pes: &Pes, group: &Group) -> bool {
    let hosts = pes.peers.iter().map(|peer| peer.host + 1).max().unwrap_or(0);
    let in_order = || group.members().iter().zip(0..).all(|(&pe, host)| pes.peers[pe].host == host);
    !pes.all_near && group.n() == hosts as usize && group.n() > 2 && in_order()
}

/// Runs a collective by a schedule, if there is one for it. `combine` combines a number of elements at the first address,
/// which get the results, with those at the second one. Returns false if nothing was done.
///
/// # Safety
/// The buffers must be as large as the collective needs.
pub unsafe fn run<T: Copy>(
    pes: &Pes,
    group: &Group,
    collective: &Collective<T>,
    combine: impl Fn(*mut T, *const T, usize),
) -> bool {
    if !is_ring(pes, group) {
        return false;
    }
    let description = ntbring_collective_t {
        kind: collective.kind as i32,
        ranks: group.n() as i32,
        rank: group.me() as i32,
        root: collective.root as i32,
        elements: collective.n as u64,
        element_size: size_of::<T>() as u64,
        in_place: (collective.input == collective.output.cast_const()).into(),
    };
    let mut schedule = ntbring_schedule_t::default();
    // SAFETY: both are locals.
    match unsafe { ntbring_schedule_begin(&description, &mut schedule) } {
        rc if rc < 0 => fail::ring("a collective cannot begin"),
        rc if rc != NTBRING_OK as i32 => return false,
        _ => {}
    }
    let _turn = group.turn();
    let mut scratch: Vec<T> = Vec::with_capacity(schedule.scratch as usize);
    let scratch = scratch.as_mut_ptr();
    let mut transfers: Vec<Option<Arc<Operation>>> = Vec::new();
    let mut step = ntbring_step_t::default();
    // SAFETY: the schedule was begun, and the step is a local.
    while unsafe { ntbring_schedule_next(&mut schedule, &mut step) } == NTBRING_SOME as i32 {
        let at = |buffer: u32, offset: u64| {
            let base = match buffer {
                NTBRING_INPUT => collective.input.cast_mut(),
                NTBRING_OUTPUT => collective.output,
                _ => scratch,
            };
            base.wrapping_add(offset as usize)
        };
        let (from, to) = (at(step.from, step.from_offset), at(step.to, step.to_offset));
        let (count, number) = (step.count as usize, step.request as usize);
        let len = count * size_of::<T>();
        let mut begin = |transfer| {
            transfers.resize_with(transfers.len().max(number + 1), || None);
            transfers[number] = Some(transfer);
        };
        let peer = step.peer as usize;
        match step.action {
            _ if count == 0 && step.action != NTBRING_STEP_SENT && step.action != NTBRING_STEP_RECEIVED => {}
            // The tag is where the receiver's part of the team's memory is: no other team has it.
            // SAFETY: the steps stay within the buffers, which are kept until the transfers have ended.
            NTBRING_STEP_SEND => begin(unsafe {
                let tag = group.area().part(peer) as u64;
                pes.link.send(group.members()[peer], tag, from.cast(), len)
            }),
            // SAFETY: as above.
            NTBRING_STEP_RECEIVE => begin(unsafe {
                let tag = group.area().part(group.me()) as u64;
                pes.link.receive(group.members()[peer], tag, to.cast(), len)
            }),
            NTBRING_STEP_SENT | NTBRING_STEP_RECEIVED => {
                if let Some(transfer) = transfers.get_mut(number).and_then(Option::take) {
                    pes.link.wait(|| transfer.is_done());
                }
            }
            // SAFETY: as above.
            NTBRING_STEP_COPY => unsafe { copy(from.cast_const().cast(), to.cast(), len) },
            _ => combine(to, from, count),
        }
    }
    true
}
