//! Deprecated collectives on active sets: PEs at a distance of a power of two. Each set that is used becomes a group of
//! its own, which its PEs introduce to each other at its first use; `pSync` and `pWrk` are not needed.

use crate::collectives::{alltoall_in, broadcast_in, collect_in, fcollect_in, reduce_in, synchronise, Spread};
use crate::fail;
use crate::handles::Ctx;
use crate::order;
use crate::reduce::Reduction;
use crate::rma::size;
use crate::teams::Group;
use crate::world::{world, World};
use std::ffi::{c_int, c_long};
use std::sync::Arc;

/// An active set, as the program gives it.
type Set = (c_int, c_int, c_int);

/// Returns the group of an active set, in which this PE must be.
fn group(world: &World, name: &'static str, (start, log_stride, count): Set) -> Arc<Group> {
    let last = i64::from(start) + (i64::from(count) - 1).checked_shl(log_stride as u32).unwrap_or(i64::MAX);
    let exists = start >= 0 && (0..31).contains(&log_stride) && count >= 1 && last < world.n() as i64;
    if !exists {
        fail::call(
            name,
            format_args!(
                "the active set of {count} PEs from PE {start} at a distance of 2^{log_stride} does not exist: PEs are \
                 0 to {}",
                world.n() - 1
            ),
        );
    }
    let members: Vec<usize> = (0..count as usize).map(|i| start as usize + (i << log_stride)).collect();
    let Some(me) = members.iter().position(|&member| member == world.me) else {
        fail::call(name, format_args!("PE {} is not in the active set {members:?}", world.me));
    };
    if count as usize == world.n() {
        return world.teams.world().clone();
    }
    let key = (start as usize, log_stride as u32, count as usize);
    world.teams.active(key, || world.introductions.introduce(world, name, key, members, me))
}

/// Waits until all PEs of the set have called it and the operations of the default context are complete.
pub unsafe fn barrier(name: &'static str, start: c_int, log_stride: c_int, count: c_int, _: *mut c_long) {
    let world = world(name);
    order::quiet_context(world, Ctx::DEFAULT);
    synchronise(world, &group(world, name, (start, log_stride, count)));
}

/// Waits until all PEs of the set have called it.
pub unsafe fn sync(name: &'static str, start: c_int, log_stride: c_int, count: c_int, _: *mut c_long) {
    let world = world(name);
    synchronise(world, &group(world, name, (start, log_stride, count)));
}

/// The root's elements become those of the other PEs.
pub unsafe fn broadcast<T>(
    name: &'static str,
    dest: *mut T,
    source: *const T,
    n: usize,
    root: c_int,
    start: c_int,
    log_stride: c_int,
    count: c_int,
    _: *mut c_long,
) {
    let world = world(name);
    let group = group(world, name, (start, log_stride, count));
    let bytes = size::<T>(name, n);
    // SAFETY: the program's guarantee.
    unsafe { broadcast_in((world, name), &group, dest.cast(), source.cast(), bytes, root, false) }
}

/// Concatenates the elements of all PEs, of which each has its own number.
pub unsafe fn collect<T>(
    name: &'static str,
    dest: *mut T,
    source: *const T,
    n: usize,
    start: c_int,
    log_stride: c_int,
    count: c_int,
    _: *mut c_long,
) {
    let world = world(name);
    let group = group(world, name, (start, log_stride, count));
    // SAFETY: the program's guarantee.
    unsafe { collect_in((world, name), &group, dest.cast(), source.cast(), size::<T>(name, n)) }
}

/// Concatenates the elements of all PEs, which have the same number.
pub unsafe fn fcollect<T>(
    name: &'static str,
    dest: *mut T,
    source: *const T,
    n: usize,
    start: c_int,
    log_stride: c_int,
    count: c_int,
    _: *mut c_long,
) {
    let world = world(name);
    let group = group(world, name, (start, log_stride, count));
    // SAFETY: the program's guarantee.
    unsafe { fcollect_in((world, name), &group, dest.cast(), source.cast(), size::<T>(name, n)) }
}

/// Each PE sends a block to each PE.
pub unsafe fn alltoall<T: Copy>(
    name: &'static str,
    dest: *mut T,
    source: *const T,
    n: usize,
    start: c_int,
    log_stride: c_int,
    count: c_int,
    _: *mut c_long,
) {
    let world = world(name);
    let group = group(world, name, (start, log_stride, count));
    // SAFETY: the program's guarantee.
    unsafe { alltoall_in((world, name), &group, dest, source, Spread { dest: 1, source: 1, n }) }
}

/// The same with elements at regular distances.
pub unsafe fn alltoalls<T: Copy>(
    name: &'static str,
    dest: *mut T,
    source: *const T,
    dst: isize,
    sst: isize,
    n: usize,
    start: c_int,
    log_stride: c_int,
    count: c_int,
    _: *mut c_long,
) {
    let world = world(name);
    let group = group(world, name, (start, log_stride, count));
    // SAFETY: the program's guarantee.
    unsafe { alltoall_in((world, name), &group, dest, source, Spread { dest: dst, source: sst, n }) }
}

/// Combines the elements of all PEs, one by one; all PEs get the results.
pub unsafe fn to_all<T: Copy, R: Reduction<T>>(
    name: &'static str,
    dest: *mut T,
    source: *const T,
    n: c_int,
    start: c_int,
    log_stride: c_int,
    count: c_int,
    _: *mut T,
    _: *mut c_long,
) {
    let world = world(name);
    let group = group(world, name, (start, log_stride, count));
    let Ok(n) = usize::try_from(n) else { fail::call(name, format_args!("nreduce: {n} elements are impossible")) };
    // SAFETY: the program's guarantee.
    unsafe { reduce_in::<T, R>((world, name), &group, dest, source, n) }
}
