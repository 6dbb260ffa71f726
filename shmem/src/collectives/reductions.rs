//! Reductions and scans.

use super::barrier::synchronise;
use super::chain::{allreduce_chain, is_chain};
use super::exchange::{allgather, BLOCK_MAX};
use super::moves::Call;
use super::schedule::{self, Collective};
use crate::abi::NTBRING_ALLREDUCE;
use crate::groups::Group;
use crate::handles::Ctx;
use crate::reach::{self, copy, Mode};
use crate::reduce::{combine, Reduction, Sum, Zero};
use crate::symmetric::{size, Place};
use smallvec::SmallVec;

/// Elements that are combined at a time, bytes: they stay in a processor's first cache.
const CHUNK: usize = 16 << 10;

/// The elements of all PEs of a team, one vector after the other.
type Gathered<T> = SmallVec<[T; 16]>;

/// Gets the elements of all PEs of the team by an exchange; they must fit a slot.
unsafe fn gather<T: Copy>((pes, _): Call, group: &Group, source: *const T, n: usize) -> Gathered<T> {
    let (total, len) = (group.n() * n, n * size_of::<T>());
    let mut all = Gathered::with_capacity(total);
    let to: *mut T = all.as_mut_ptr();
    // SAFETY: the program guarantees the source; there is room for the elements of all PEs, which are all written.
    unsafe {
        copy(source.cast(), to.add(group.me() * n).cast(), len);
        allgather(pes, group, source.cast(), len, |from, block| copy(block, to.add(from * n).cast(), len));
        all.set_len(total);
    }
    all
}

/// Returns the address of elements of a PE, which are read into `room` if they are not mapped.
///
/// # Safety
/// The place must have the elements (checked by the caller).
unsafe fn elements<T: Copy>((pes, _): Call, pe: usize, place: Place, n: usize, room: &mut Vec<T>) -> *const T {
    let peer = &pes.peers[pe];
    if peer.near {
        return peer.address(place) as *const T;
    }
    room.clear();
    room.reserve(n);
    // SAFETY: the caller's guarantee; there is room for the elements.
    unsafe {
        let to = room.as_mut_ptr().cast();
        reach::get(pes, Ctx::DEFAULT, peer, place, to, n * size_of::<T>(), Mode::Blocking);
    }
    room.as_ptr()
}

/// Combines the elements of all PEs of the team; all get the results. Few elements are exchanged and combined by each PE.
/// Many go from PE to PE in a ring; otherwise each PE combines a part and writes it to all.
///
/// # Safety
/// As the specification of the C function says.
pub unsafe fn reduce_in<T: Copy, R: Reduction<T>>(call: Call, group: &Group, dest: *mut T, source: *const T, n: usize) {
    let (pes, name) = call;
    let total = size::<T>(name, n);
    // SAFETY: the program guarantees both buffers.
    unsafe {
        if group.n() == 1 {
            return copy(source.cast(), dest.cast(), total);
        }
        if total <= BLOCK_MAX {
            let mut all = gather(call, group, source, n);
            let first = all.as_mut_ptr();
            (1..group.n()).for_each(|pe| combine::<T, R>(first, first.add(pe * n), n));
            return copy(first.cast_const().cast(), dest.cast(), total);
        }
        if is_chain(pes, group) {
            let place = pes.locate(name, "dest", dest as usize, total);
            // A PE adds its elements to others that have arrived in the destination.
            let mut kept = Vec::<T>::new();
            let source = if source == dest.cast_const() {
                kept.reserve(n);
                copy(source.cast(), kept.as_mut_ptr().cast(), total);
                kept.as_ptr()
            } else {
                source
            };
            let combine = |to, from, count| combine::<T, R>(to, from, count);
            return allreduce_chain(pes, group, source, (dest, place), n, combine);
        }
        let collective = Collective { kind: NTBRING_ALLREDUCE, root: 0, input: source, output: dest, n };
        if schedule::run(pes, group, &collective, |to, from, count| combine::<T, R>(to, from, count)) {
            return;
        }
        let [to, from] = [("dest", dest as usize), ("source", source as usize)]
            .map(|(what, address)| pes.locate(name, what, address, total));
        synchronise(pes, group);
        let (members, me) = (group.members(), group.me());
        let part = |number: usize| (n as u128 * number as u128 / group.n() as u128) as usize;
        let most = CHUNK / size_of::<T>();
        let (mut sums, mut room) = (Vec::<T>::with_capacity(most), Vec::<T>::new());
        let mut at = part(me);
        while at < part(me + 1) {
            let count = most.min(part(me + 1) - at);
            let offset = at * size_of::<T>();
            let bytes = count * size_of::<T>();
            let sums = sums.as_mut_ptr();
            copy(elements(call, members[0], from.plus(offset), count, &mut room).cast(), sums.cast(), bytes);
            for &member in &members[1..] {
                combine::<T, R>(sums, elements(call, member, from.plus(offset), count, &mut room), count);
            }
            for peer in (0..group.n()).map(|i| &pes.peers[members[(me + i) % group.n()]]) {
                let from = sums.cast_const().cast();
                reach::put(pes, Ctx::DEFAULT, peer, to.plus(offset), from, bytes, Mode::Blocking);
            }
            at += count;
        }
        // A barrier may take other ways than what was put.
        reach::quiet(pes, Ctx::DEFAULT);
        synchronise(pes, group);
    }
}

/// Sums up the elements of the PEs before this one in the team, and its own if `inclusive`.
///
/// # Safety
/// As the specification of the C functions says.
pub unsafe fn scan_in<T: Copy + Zero>(
    call: Call,
    group: &Group,
    dest: *mut T,
    source: *const T,
    n: usize,
    inclusive: bool,
) where
    Sum: Reduction<T>,
{
    let (pes, name) = call;
    let total = size::<T>(name, n);
    let count = group.me() + usize::from(inclusive);
    let mut sums = vec![T::ZERO; n];
    // SAFETY: the program guarantees both buffers.
    unsafe {
        if total <= BLOCK_MAX {
            let all = gather(call, group, source, n);
            (0..count).for_each(|pe| combine::<T, Sum>(sums.as_mut_ptr(), all.as_ptr().add(pe * n), n));
            return copy(sums.as_ptr().cast(), dest.cast(), total);
        }
        let from = pes.locate(name, "source", source as usize, total);
        synchronise(pes, group);
        let mut room = Vec::new();
        for &member in &group.members()[..count] {
            combine::<T, Sum>(sums.as_mut_ptr(), elements(call, member, from, n, &mut room), n);
        }
        synchronise(pes, group);
        copy(sums.as_ptr().cast(), dest.cast(), total);
    }
}
