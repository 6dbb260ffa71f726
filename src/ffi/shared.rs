//! Collectives through shared buffers. The pointer given to C is that of the group's box.

use super::abi::*;
use super::error::{argument, guard, Failure};
use super::handle::{Handle, Shared};
use ::ntbring_shared::addresses::{of_cards, to_card};
use ::ntbring_shared::layout::Layout;
use ::ntbring_shared::{Buffers, Parts, Reduction, SharedError, Waiting};
use ntbring_host::{barrier, Segment};
use ntbring_memory::{ForeignBytes, ForeignRoom};
use ntbring_rma::operate::{Kind, Op};
use ntbring_rma::{address, words};
use ntbring_zerocopy::SingleCopy;
use smallvec::SmallVec;
use std::ffi::c_void;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

/// Bytes that members post at a time if every member has a core of its own: all of them copy at the same time then. With
/// fewer cores they post as much as a cell holds, because members take turns.
const GRAIN: usize = 64 << 10;

/// A group: this member's buffer, and those of all members once they are open.
struct Group {
    own: Segment,
    layout: Layout,
    members: usize,
    buffers: Option<Buffers>,
    /// Number of collectives of the endpoint.
    executed: Arc<AtomicU64>,
}

/// Returns the group behind a pointer.
///
/// # Safety
/// It must come from `ntbring_shared_create` and not be freed yet, and no other reference to it may exist.
unsafe fn group<'a>(shared: *mut ntbring_shared_t) -> Result<&'a mut Group, Failure> {
    // SAFETY: allocated by `Box::into_raw`; the caller guarantees that there is no other reference.
    unsafe { shared.cast::<Group>().as_mut() }.ok_or_else(|| argument("shared must not be NULL"))
}

/// Returns 1 if buffers can be shared with `rank`, else 0. See `include/ntbring.h`.
///
/// # Safety
/// `endpoint` must be connected.
#[no_mangle]
pub unsafe extern "C" fn ntbring_can_share(endpoint: *mut ntbring_endpoint_t, rank: i32) -> i32 {
    guard(|| {
        // SAFETY: `endpoint` is NULL or from `ntbring_open`, and no other call uses it (contract of this function).
        let endpoint = unsafe { Handle::from_raw(endpoint) }?.endpoint()?;
        Ok(u32::try_from(rank).is_ok_and(|rank| endpoint.can_share(rank)).into())
    })
}

/// Creates this rank's buffer of a group. See `include/ntbring.h`.
///
/// # Safety
/// `endpoint` must be connected; `shared` and `card` must be writable.
#[no_mangle]
pub unsafe extern "C" fn ntbring_shared_create(
    endpoint: *mut ntbring_endpoint_t,
    members: i32,
    shared: *mut *mut ntbring_shared_t,
    card: *mut ntbring_shared_card_t,
) -> i32 {
    guard(|| {
        // SAFETY: `endpoint` is NULL or from `ntbring_open`, and no other call uses it (contract of this function).
        let mut endpoint = unsafe { Handle::from_raw(endpoint) }?.endpoint()?;
        if shared.is_null() || card.is_null() || !(2..=NTBRING_SHARED_MAX as i32).contains(&members) {
            return Err(argument("shared and card must not be NULL, and members must be a possible number"));
        }
        let members = members as usize;
        let layout = Layout::new(members);
        let (own, at) = endpoint.create_shared(layout.bytes() as u64)?;
        let grain = if endpoint.is_oversubscribed() { layout.cell() } else { GRAIN };
        let executed = endpoint.shared_collectives();
        let kernel_copies = to_card(endpoint.shared_kernel_copies());
        let group = Group { own, layout, members, buffers: None, executed };
        // SAFETY: not null, and the caller guarantees writable memory.
        unsafe {
            let address = ntbring_segment_address_t { words: words(&at) };
            *card = ntbring_shared_card_t { address, grain: grain as u64, kernel_copies };
            *shared = Box::into_raw(Box::new(group)).cast();
        }
        Ok(NTBRING_OK as i32)
    })
}

/// Opens the buffers of all members. See `include/ntbring.h`.
///
/// # Safety
/// `endpoint` must be connected; `shared` must not be freed yet; `ranks` and `cards` must have an entry for each member.
#[no_mangle]
pub unsafe extern "C" fn ntbring_shared_open(
    endpoint: *mut ntbring_endpoint_t,
    shared: *mut ntbring_shared_t,
    me: i32,
    ranks: *const i32,
    cards: *const ntbring_shared_card_t,
) -> i32 {
    guard(|| {
        // SAFETY: `endpoint` is NULL or from `ntbring_open`, and no other call uses it (contract of this function).
        let mut endpoint = unsafe { Handle::from_raw(endpoint) }?.endpoint()?;
        // SAFETY: the group is NULL or has not been freed (contract of this function).
        let group = unsafe { group(shared) }?;
        if ranks.is_null() || cards.is_null() || !(0..group.members as i32).contains(&me) {
            return Err(argument("ranks and cards must not be NULL, and me must be a member"));
        }
        // SAFETY: not null, and the caller guarantees an entry for each member.
        let (ranks, cards) = unsafe {
            (std::slice::from_raw_parts(ranks, group.members), std::slice::from_raw_parts(cards, group.members))
        };
        let mut regions = Vec::with_capacity(group.members);
        for (member, (&rank, card)) in ranks.iter().zip(cards).enumerate() {
            let at = address(card.address.words);
            regions.push(match member == me as usize {
                true => group.own.bytes().clone(),
                false if at.size != group.layout.bytes() as u64 => {
                    return Err(argument("a member has no buffer, or one of another size"));
                }
                false => endpoint.open_shared(rank as u32, &at)?.bytes().clone(),
            });
        }
        let grain = cards.iter().map(|card| card.grain as usize).min().unwrap_or(GRAIN);
        let (yields, paired) = (endpoint.is_oversubscribed(), barrier::available());
        let mut buffers = Buffers::new(me as usize, regions, group.layout, grain, yields, paired);
        let limits = of_cards(cards.iter().map(|card| card.kernel_copies));
        if let Some(from) = endpoint.kernel_copies_of(ranks).filter(|_| limits != SingleCopy::Never) {
            buffers.post_addresses(from, limits);
        }
        endpoint.watch_shared(ranks.iter().map(|&rank| rank as u32).collect(), &buffers.waits_for());
        group.buffers = Some(buffers);
        Ok(NTBRING_OK as i32)
    })
}

/// Prevents that further processes open the buffer. See `include/ntbring.h`.
///
/// # Safety
/// `shared` must not be freed yet.
#[no_mangle]
pub unsafe extern "C" fn ntbring_shared_seal(shared: *mut ntbring_shared_t) -> i32 {
    guard(|| {
        // SAFETY: the group is NULL or has not been freed (contract of this function).
        unsafe { group(shared) }?.own.seal();
        Ok(NTBRING_OK as i32)
    })
}

/// Destroys this rank's part of a group. See `include/ntbring.h`.
///
/// # Safety
/// `shared` must be NULL, or come from `ntbring_shared_create` and not be used again.
#[no_mangle]
pub unsafe extern "C" fn ntbring_shared_free(shared: *mut ntbring_shared_t) -> i32 {
    guard(|| {
        if !shared.is_null() {
            // SAFETY: allocated by `Box::into_raw`, and the caller gives it up.
            drop(unsafe { Box::from_raw(shared.cast::<Group>()) });
        }
        Ok(NTBRING_OK as i32)
    })
}

/// Wakes a rank. See `include/ntbring.h`.
///
/// # Safety
/// `endpoint` must be connected.
#[no_mangle]
pub unsafe extern "C" fn ntbring_wake(endpoint: *mut ntbring_endpoint_t, rank: i32) -> i32 {
    guard(|| {
        // SAFETY: `endpoint` is NULL or from `ntbring_open`, and no other call uses it (contract of this function).
        unsafe { Handle::from_raw(endpoint) }?.endpoint()?.wake(rank as u32)?;
        Ok(NTBRING_OK as i32)
    })
}

/// Passes on transit traffic. See `include/ntbring.h`.
///
/// # Safety
/// `endpoint` must be connected.
#[no_mangle]
pub unsafe extern "C" fn ntbring_relay(endpoint: *mut ntbring_endpoint_t) -> i32 {
    guard(|| {
        // SAFETY: `endpoint` is NULL or from `ntbring_open`, and no other call uses it (contract of this function).
        let any = unsafe { Handle::from_raw(endpoint) }?.endpoint()?.relay();
        Ok(if any { NTBRING_SOME } else { NTBRING_NONE } as i32)
    })
}

/// Ends a wait. See `include/ntbring.h`.
///
/// # Safety
/// `endpoint` must be connected. Any thread may call it.
#[no_mangle]
pub unsafe extern "C" fn ntbring_found(endpoint: *mut ntbring_endpoint_t) -> i32 {
    guard(|| {
        // SAFETY: `endpoint` is NULL or from `ntbring_open`, as the contract of this function requires.
        if let Some(idle) = unsafe { Shared::from_raw(endpoint) }?.idle() {
            idle.busy();
        }
        Ok(NTBRING_OK as i32)
    })
}

/// The functions of the caller for a wait.
struct Callbacks<'a> {
    call: &'a ntbring_shared_call_t,
}

impl Waiting for Callbacks<'_> {
    fn pass_time(&mut self, may_sleep: bool) -> bool {
        // SAFETY: a function of the caller, which is valid during the call, with its argument.
        self.call.pass_time.is_none_or(|pass_time| unsafe { pass_time(self.call.cookie, may_sleep.into()) } != 0)
    }

    fn relay(&mut self) -> bool {
        // SAFETY: as above.
        self.call.relay.is_some_and(|relay| unsafe { relay(self.call.cookie) } != 0)
    }

    fn found(&mut self) {
        if let Some(found) = self.call.found {
            // SAFETY: as above.
            unsafe { found(self.call.cookie) }
        }
    }

    fn wake(&mut self, member: usize) {
        if let Some(wake) = self.call.wake {
            // SAFETY: as above.
            unsafe { wake(self.call.cookie, member as i32) }
        }
    }
}

/// Executes a collective. See `include/ntbring.h`.
///
/// # Safety
/// `shared` must be open; `call` must be valid, with buffers of the sizes that it names.
#[no_mangle]
pub unsafe extern "C" fn ntbring_shared_run(shared: *mut ntbring_shared_t, call: *const ntbring_shared_call_t) -> i32 {
    guard(|| {
        // SAFETY: the group is NULL or has not been freed, and no other call uses it (contract of this function).
        let group = unsafe { group(shared) }?;
        let buffers = group.buffers.as_mut().ok_or_else(|| argument("the group is not open"))?;
        if call.is_null() {
            return Err(argument("call must not be NULL"));
        }
        // SAFETY: not null, and the caller guarantees a valid object.
        let call = unsafe { &*call };
        if call.kind != NTBRING_SHARED_FAIL as i32 {
            group.executed.fetch_add(1, Ordering::Relaxed);
        }
        // SAFETY: the caller guarantees buffers of the sizes that the call names.
        match unsafe { run(buffers, call) } {
            Ok(()) => Ok(NTBRING_OK as i32),
            Err(Ended::Failed(failure)) => {
                // The other members must not wait for this one, and the next collective is the next one at all.
                buffers.fail(false, &mut Callbacks { call });
                Err(failure)
            }
            Err(Ended::Collective(SharedError::GivenUp)) => Ok(NTBRING_NONE as i32),
            Err(Ended::Collective(error)) => Err(error.into()),
        }
    })
}

/// Why a collective was not executed, or has failed.
enum Ended {
    Failed(Failure),
    Collective(SharedError),
}

impl From<SharedError> for Ended {
    fn from(error: SharedError) -> Ended {
        Ended::Collective(error)
    }
}

impl From<Failure> for Ended {
    fn from(failure: Failure) -> Ended {
        Ended::Failed(failure)
    }
}

/// The blocks of a buffer.
struct Blocks {
    parts: Option<SmallVec<[(usize, usize); 16]>>,
    /// Size of each block if they are equal, bytes.
    equal: usize,
}

impl Blocks {
    /// Returns the blocks of a buffer of `size` bytes.
    ///
    /// # Safety
    /// `parts` must be NULL or have an entry for each member.
    unsafe fn new(parts: *const ntbring_part_t, members: usize, size: u64) -> Result<Blocks, Failure> {
        if parts.is_null() {
            return Ok(Blocks { parts: None, equal: size as usize / members });
        }
        // SAFETY: not null, and the caller guarantees an entry for each member.
        let parts = unsafe { std::slice::from_raw_parts(parts, members) };
        let inside = |part: &&ntbring_part_t| part.offset <= size && part.size <= size - part.offset;
        if !parts.iter().all(|part| inside(&part)) {
            return Err(argument("a block lies beyond its buffer"));
        }
        let parts = parts.iter().map(|part| (part.offset as usize, part.size as usize)).collect();
        Ok(Blocks { parts: Some(parts), equal: 0 })
    }

    fn parts(&self) -> Parts<'_> {
        self.parts.as_ref().map_or(Parts::Equal(self.equal), |parts| Parts::Each(parts))
    }
}

/// # Safety
/// As [`ntbring_shared_run`].
unsafe fn run(buffers: &mut Buffers, call: &ntbring_shared_call_t) -> Result<(), Ended> {
    let (members, me) = (buffers.members(), buffers.me());
    let waiting = &mut Callbacks { call };
    if call.kind == NTBRING_SHARED_FAIL as i32 {
        buffers.fail(call.root == 1, waiting);
        return Ok(());
    }
    let missing = |at: *const c_void, size: u64| at.is_null() && size > 0 || size > isize::MAX as u64;
    if missing(call.input, call.input_size) || missing(call.output, call.output_size) {
        return Err(argument("input and output must have their sizes").into());
    }
    let root = usize::try_from(call.root).ok().filter(|&root| root < members);
    let root = root.ok_or_else(|| argument("root must be a member"))?;
    // SAFETY: the caller guarantees readable bytes during the call.
    let input = unsafe { ForeignBytes::new(call.input.cast(), call.input_size as usize) };
    // SAFETY: the caller guarantees writable bytes during the call.
    let output = unsafe { ForeignRoom::new(call.output.cast(), call.output_size as usize) };
    // SAFETY: the caller guarantees an entry for each member.
    let sends = unsafe { Blocks::new(call.sends, members, call.input_size) }?;
    // SAFETY: as above.
    let receives = unsafe { Blocks::new(call.receives, members, call.output_size) }?;

    let mut fold = |from: *const u8, to: *mut u8, count: usize| {
        if let Some(fold) = call.fold {
            // SAFETY: a function of the caller, with `count` elements at both addresses.
            unsafe { fold(call.cookie, from.cast(), to.cast(), count as u64) }
        }
    };
    let number = |value: i32| u8::try_from(value).ok();
    let known = number(call.op).and_then(Op::parse).zip(number(call.type_).and_then(Kind::parse));
    let element = (call.element_size as usize).max(1);
    let known = known.filter(|(_, kind)| kind.size() == element);
    let reduction = &mut Reduction { element, known, fold: &mut fold };
    let whole = call.input_size.is_multiple_of(element as u64);
    let same = whole && call.input_size <= call.output_size;
    let fits = |fits: bool| if fits { Ok(()) } else { Err(argument("input and output do not fit the collective")) };
    match u32::try_from(call.kind) {
        Ok(NTBRING_SHARED_BARRIER) => buffers.barrier(waiting)?,
        Ok(NTBRING_SHARED_BCAST) => buffers.broadcast(root, output, waiting)?,
        Ok(NTBRING_SHARED_ALLGATHER) => buffers.allgather(input, receives.parts(), output, waiting)?,
        Ok(NTBRING_SHARED_ALLTOALL) => buffers.alltoall((input, sends.parts()), (output, receives.parts()), waiting)?,
        Ok(NTBRING_SHARED_REDUCE) => {
            fits(if me == root { same } else { whole })?;
            buffers.reduce(Some(root), input, (me == root).then_some(output), reduction, waiting)?
        }
        Ok(NTBRING_SHARED_ALLREDUCE) => {
            fits(same)?;
            buffers.reduce(None, input, Some(output), reduction, waiting)?
        }
        Ok(NTBRING_SHARED_REDUCE_SCATTER) => {
            let counts: Vec<usize> = (0..members).map(|member| sends.parts().of(member).1 / element).collect();
            let all = counts.iter().sum::<usize>() * element;
            fits(all == input.len() && counts[me] * element <= output.len())?;
            buffers.reduce_scatter(input, &counts, output, reduction, waiting)?
        }
        Ok(NTBRING_SHARED_SCAN) => {
            fits(same)?;
            buffers.scan(true, input, output, reduction, waiting)?
        }
        Ok(NTBRING_SHARED_EXSCAN) => {
            fits(same)?;
            buffers.scan(false, input, output, reduction, waiting)?
        }
        _ => return Err(argument("there is no such kind of collective").into()),
    }
    Ok(())
}
