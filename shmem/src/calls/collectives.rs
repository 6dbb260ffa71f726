//! Collectives on teams.

use super::teams;
use crate::collectives::{
    alltoall_in, broadcast_in, collect_in, fcollect_in, reduce_in, scan_in, synchronise, Call, Spread,
};
use crate::groups::Group;
use crate::handles::{Ctx, Team};
use crate::reach;
use crate::reduce::{Reduction, Sum, Zero};
use crate::symmetric::size;
use crate::world::world;
use std::ffi::c_int;

/// Waits until all PEs of the world have called it and all operations of the default context are complete.
pub unsafe fn barrier_all(name: &'static str) {
    let world = world(name);
    reach::quiet(&world.pes, Ctx::DEFAULT);
    synchronise(&world.pes, world.teams.world());
}

/// Waits until all PEs of the world have called it.
pub unsafe fn sync_all(name: &'static str) {
    let world = world(name);
    synchronise(&world.pes, world.teams.world());
}

/// Runs a collective of a team, which cannot fail: errors end the program.
#[inline(always)]
fn on_team(name: &'static str, team: Team, run: impl FnOnce(Call, &Group)) -> c_int {
    let world = world(name);
    run((&world.pes, name), &teams::get(world, name, team));
    0
}

/// Waits until all PEs of a team have called it.
pub unsafe fn team_sync(name: &'static str, team: Team) -> c_int {
    on_team(name, team, |(pes, _), group| synchronise(pes, group))
}

/// The root's elements become those of all PEs of the team, the root included.
pub unsafe fn broadcast<T: Copy>(
    name: &'static str,
    team: Team,
    dest: *mut T,
    source: *const T,
    n: usize,
    root: c_int,
) -> c_int {
    on_team(name, team, |call, group| {
        let bytes = size::<T>(name, n);
        // SAFETY: the program's guarantee.
        unsafe { broadcast_in(call, group, dest.cast(), source.cast(), bytes, root, true) }
    })
}

/// Concatenates the elements of all PEs of the team, of which each has its own number.
pub unsafe fn collect<T: Copy>(name: &'static str, team: Team, dest: *mut T, source: *const T, n: usize) -> c_int {
    on_team(name, team, |call, group| {
        // SAFETY: the program's guarantee.
        unsafe { collect_in(call, group, dest.cast(), source.cast(), size::<T>(name, n)) }
    })
}

/// Concatenates the elements of all PEs of the team, which have the same number.
pub unsafe fn fcollect<T: Copy>(name: &'static str, team: Team, dest: *mut T, source: *const T, n: usize) -> c_int {
    on_team(name, team, |call, group| {
        // SAFETY: the program's guarantee.
        unsafe { fcollect_in(call, group, dest.cast(), source.cast(), size::<T>(name, n)) }
    })
}

/// Each PE sends a block to each PE of the team.
pub unsafe fn alltoall<T: Copy>(name: &'static str, team: Team, dest: *mut T, source: *const T, n: usize) -> c_int {
    // SAFETY: the program's guarantee.
    unsafe { alltoalls(name, team, dest, source, 1, 1, n) }
}

/// The same with elements at regular distances.
pub unsafe fn alltoalls<T: Copy>(
    name: &'static str,
    team: Team,
    dest: *mut T,
    source: *const T,
    dst: isize,
    sst: isize,
    n: usize,
) -> c_int {
    on_team(name, team, |call, group| {
        // SAFETY: the program's guarantee.
        unsafe { alltoall_in(call, group, dest, source, Spread { dest: dst, source: sst, n }) }
    })
}

/// Combines the elements of all PEs of the team, one by one; all PEs get the results.
pub unsafe fn reduce<T: Copy, R: Reduction<T>>(
    name: &'static str,
    team: Team,
    dest: *mut T,
    source: *const T,
    n: usize,
) -> c_int {
    on_team(name, team, |call, group| {
        // SAFETY: the program's guarantee.
        unsafe { reduce_in::<T, R>(call, group, dest, source, n) }
    })
}

/// Each PE gets the sums of the elements of the PEs up to itself.
pub unsafe fn inscan<T: Copy + Zero>(name: &'static str, team: Team, dest: *mut T, source: *const T, n: usize) -> c_int
where
    Sum: Reduction<T>,
{
    on_team(name, team, |call, group| {
        // SAFETY: the program's guarantee.
        unsafe { scan_in(call, group, dest, source, n, true) }
    })
}

/// Each PE gets the sums of the elements of the PEs before it; the first one gets zeros.
pub unsafe fn exscan<T: Copy + Zero>(name: &'static str, team: Team, dest: *mut T, source: *const T, n: usize) -> c_int
where
    Sum: Reduction<T>,
{
    on_team(name, team, |call, group| {
        // SAFETY: the program's guarantee.
        unsafe { scan_in(call, group, dest, source, n, false) }
    })
}
