//! Deprecated collectives on active sets: PEs at a distance of a power of two. Each set that is used becomes a group of
//! its own, which its PEs introduce to each other at its first use; `pSync` and `pWrk` are not needed.

use crate::collectives::{alltoall_in, broadcast_in, collect_in, fcollect_in, reduce_in, synchronise, Call, Spread};
use crate::fail;
use crate::groups::Group;
use crate::handles::Ctx;
use crate::reach;
use crate::reduce::Reduction;
use crate::symmetric::size;
use crate::world::{world, World};
use std::ffi::{c_int, c_long};
use std::sync::Arc;

/// An active set, as the program gives it: first PE, logarithm of the stride, number of PEs.
type Set = (c_int, c_int, c_int);

/// Returns the group of an active set, in which this PE must be.
fn group(world: &World, name: &'static str, (start, log_stride, count): Set) -> Arc<Group> {
    let (me, n) = (world.pes.me, world.pes.n());
    let last = i64::from(start) + (i64::from(count) - 1).checked_shl(log_stride as u32).unwrap_or(i64::MAX);
    let exists = start >= 0 && (0..31).contains(&log_stride) && count >= 1 && last < n as i64;
    if !exists {
        fail::call(
            name,
            format_args!(
                "the active set of {count} PEs from PE {start} at a distance of 2^{log_stride} does not exist: PEs are \
                 0 to {}",
                n - 1
            ),
        );
    }
    if count as usize == n {
        return world.teams.world().clone();
    }
    let members: Vec<usize> = (0..count as usize).map(|i| start as usize + (i << log_stride)).collect();
    let Some(number) = members.iter().position(|&member| member == me) else {
        fail::call(name, format_args!("PE {me} is not in the active set {members:?}"));
    };
    let set = (start as usize, log_stride as u32, count as usize);
    world.teams.active(&world.pes, name, set, members, number)
}

/// Runs a collective of an active set.
#[inline(always)]
fn on_set(name: &'static str, set: Set, run: impl FnOnce(Call, &Group)) {
    let world = world(name);
    run((&world.pes, name), &group(world, name, set));
}

/// Waits until all PEs of the set have called it and the operations of the default context are complete.
pub unsafe fn barrier(name: &'static str, start: c_int, log_stride: c_int, count: c_int, psync: *mut c_long) {
    reach::quiet(&world(name).pes, Ctx::DEFAULT);
    // SAFETY: the program's guarantee.
    unsafe { sync(name, start, log_stride, count, psync) };
}

/// Waits until all PEs of the set have called it.
pub unsafe fn sync(name: &'static str, start: c_int, log_stride: c_int, count: c_int, _: *mut c_long) {
    on_set(name, (start, log_stride, count), |(pes, _), group| synchronise(pes, group));
}

/// Defines functions whose last parameters are an active set and `pSync`: their other parameters, and what they do.
macro_rules! on_sets {
    ($($(#[$doc:meta])* $name:ident($dest:ident, $source:ident $(, $parameter:ident: $type:ty)*), |$call:ident, $group:ident| $body:expr;)*) => {
        $($(#[$doc])*
        pub unsafe fn $name<T: Copy>(
            name: &'static str,
            $dest: *mut T,
            $source: *const T,
            $($parameter: $type,)*
            start: c_int,
            log_stride: c_int,
            count: c_int,
            _: *mut c_long,
        ) {
            // SAFETY: the program's guarantee.
            on_set(name, (start, log_stride, count), |$call, $group| unsafe { $body });
        })*
    };
}

on_sets! {
    /// The root's elements become those of the other PEs.
    broadcast(dest, source, n: usize, root: c_int), |call, group|
        broadcast_in(call, group, dest.cast(), source.cast(), size::<T>(call.1, n), root, false);

    /// Concatenates the elements of all PEs, of which each has its own number.
    collect(dest, source, n: usize), |call, group| collect_in(call, group, dest.cast(), source.cast(), size::<T>(call.1, n));

    /// Concatenates the elements of all PEs, which have the same number.
    fcollect(dest, source, n: usize), |call, group| fcollect_in(call, group, dest.cast(), source.cast(), size::<T>(call.1, n));

    /// Each PE sends a block to each PE.
    alltoall(dest, source, n: usize), |call, group| alltoall_in(call, group, dest, source, Spread { dest: 1, source: 1, n });

    /// The same with elements at regular distances.
    alltoalls(dest, source, dst: isize, sst: isize, n: usize), |call, group|
        alltoall_in(call, group, dest, source, Spread { dest: dst, source: sst, n });
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
    on_set(name, (start, log_stride, count), |call, group| {
        let Ok(n) = usize::try_from(n) else { fail::call(name, format_args!("nreduce: {n} elements are impossible")) };
        // SAFETY: the program's guarantee.
        unsafe { reduce_in::<T, R>(call, group, dest, source, n) }
    });
}
