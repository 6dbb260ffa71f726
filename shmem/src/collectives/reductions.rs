//! Reductions and scans.

use super::barrier::synchronise;
use super::exchange::{allgather, BLOCK_MAX};
use super::moves::{bytes, Call};
use super::schedule::{self, Collective};
use crate::abi::NTBRING_ALLREDUCE;
use crate::handles::Ctx;
use crate::reach::{self, copy, Mode};
use crate::reduce::{combine, Reduction, Sum, Zero};
use crate::rma::size;
use crate::teams::Group;
use crate::world::Place;
use std::slice;

/// Elements that are combined at a time, bytes: they stay in a processor's first cache.
const CHUNK: usize = 16 << 10;

/// Returns the elements at an address.
///
/// # Safety
/// They must be readable for the lifetime.
unsafe fn elements<'a, T>(at: *const T, n: usize) -> &'a [T] {
    match n {
        0 => &[],
        // SAFETY: the caller's guarantee.
        _ => unsafe { slice::from_raw_parts(at, n) },
    }
}

/// Gets the elements of all PEs of the team by an exchange; they must fit a slot.
unsafe fn gather<T: Copy>((world, _): Call, group: &Group, source: *const T, n: usize) -> Vec<T> {
    let mut all = Vec::with_capacity(group.n() * n);
    // SAFETY: the program guarantees the source.
    let own = unsafe { elements(source, n) };
    (0..group.n()).for_each(|_| all.extend_from_slice(own));
    // SAFETY: as above.
    let own = unsafe { bytes(source.cast(), size_of_val(own)) };
    allgather(world, group, own, |from, read| {
        let there = &mut all[from * n..][..n];
        // SAFETY: elements are plain numbers, whose bytes may be written.
        read(unsafe { slice::from_raw_parts_mut(there.as_mut_ptr().cast(), size_of_val(there)) });
    });
    all
}

/// Reads elements of a PE, or finds them if they are mapped, and passes them on.
unsafe fn with_elements<T: Copy>(
    (world, _): Call,
    pe: usize,
    place: Place,
    n: usize,
    room: &mut Vec<T>,
    mut then: impl FnMut(&[T]),
) {
    let peer = &world.peers[pe];
    // SAFETY: the place has the elements (checked by the caller), and other PEs do not change them meanwhile.
    unsafe {
        if peer.near {
            return then(elements(peer.address(place) as *const T, n));
        }
        room.clear();
        room.reserve(n);
        let (to, len) = (room.as_mut_ptr().cast(), n * size_of::<T>());
        reach::get(world, Ctx::DEFAULT, peer, place, to, len, Mode::Blocking);
        room.set_len(n);
    }
    then(room);
}

/// Combines the elements of all PEs of the team; all get the results. Few elements are exchanged and combined by each PE;
/// of many, each PE combines a part and writes it to all.
///
/// # Safety
/// As the specification of the C function says.
pub unsafe fn reduce_in<T: Copy, R: Reduction<T>>(call: Call, group: &Group, dest: *mut T, source: *const T, n: usize) {
    let (world, name) = call;
    let total = size::<T>(name, n);
    // SAFETY: the program guarantees both buffers.
    unsafe {
        if group.n() == 1 {
            return copy(source.cast(), dest.cast(), total);
        }
        if total <= BLOCK_MAX {
            let mut all = gather(call, group, source, n);
            let (first, others) = all.split_at_mut(n);
            others.chunks_exact(n.max(1)).for_each(|other| combine::<T, R>(first, other));
            return copy(first.as_ptr().cast(), dest.cast(), total);
        }
        let collective = Collective { kind: NTBRING_ALLREDUCE, root: 0, input: source, output: dest, n };
        if schedule::run(world, group, &collective, combine::<T, R>) {
            return;
        }
        let [to, from] = [("dest", dest as usize), ("source", source as usize)]
            .map(|(what, address)| world.locate(name, what, address, total));
        synchronise(world, group);
        let (members, me) = (group.members(), group.me());
        let part = |number: usize| (n as u128 * number as u128 / group.n() as u128) as usize;
        let (mut sums, mut room) = (Vec::new(), Vec::new());
        let mut at = part(me);
        while at < part(me + 1) {
            let count = (CHUNK / size_of::<T>()).min(part(me + 1) - at);
            let offset = at * size_of::<T>();
            sums.clear();
            with_elements(call, members[0], from.plus(offset), count, &mut room, |first| sums.extend_from_slice(first));
            for &member in &members[1..] {
                let other = |other: &[T]| combine::<T, R>(&mut sums, other);
                with_elements(call, member, from.plus(offset), count, &mut room, other);
            }
            for peer in (0..group.n()).map(|i| &world.peers[members[(me + i) % group.n()]]) {
                let (bytes, len) = (sums.as_ptr().cast(), count * size_of::<T>());
                reach::put(world, Ctx::DEFAULT, peer, to.plus(offset), bytes, len, Mode::Blocking);
            }
            at += count;
        }
        synchronise(world, group);
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
    let (world, name) = call;
    let total = size::<T>(name, n);
    let count = group.me() + usize::from(inclusive);
    let mut sums = vec![T::ZERO; n];
    // SAFETY: the program guarantees both buffers.
    unsafe {
        if total <= BLOCK_MAX {
            let all = gather(call, group, source, n);
            all.chunks_exact(n.max(1)).take(count).for_each(|other| combine::<T, Sum>(&mut sums, other));
            return copy(sums.as_ptr().cast(), dest.cast(), total);
        }
        let from = world.locate(name, "source", source as usize, total);
        synchronise(world, group);
        let mut room = Vec::new();
        for &member in &group.members()[..count] {
            with_elements(call, member, from, n, &mut room, |other| combine::<T, Sum>(&mut sums, other));
        }
        synchronise(world, group);
        copy(sums.as_ptr().cast(), dest.cast(), total);
    }
}
