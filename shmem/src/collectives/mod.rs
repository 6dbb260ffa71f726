//! Collectives on teams.
//!
//! Three mechanisms carry all of them: a barrier of flags, and an exchange and a broadcast of small blocks through slots in
//! the team's memory. Larger data are read directly from the memory of other PEs between two barriers; or, if not all
//! memory is mapped and there is one PE on each host, they pass from neighbour to neighbour by the schedules of libntbring.

mod barrier;
mod broadcast;
mod exchange;
mod moves;
mod reductions;
mod schedule;

pub use barrier::synchronise;
pub use exchange::exchange_words;
pub use moves::{alltoall_in, broadcast_in, collect_in, fcollect_in, Spread};
pub use reductions::reduce_in;

use crate::handles::{Ctx, Team};
use crate::order;
use crate::reduce::{Reduction, Sum, Zero};
use crate::rma::size;
use crate::teams;
use crate::world::world;
use std::ffi::c_int;

/// Waits until all PEs of the world have called it and all operations of the default context are complete.
pub unsafe fn barrier_all(name: &'static str) {
    let world = world(name);
    order::quiet_context(world, Ctx::DEFAULT);
    synchronise(world, world.teams.world());
}

/// Waits until all PEs of the world have called it.
pub unsafe fn sync_all(name: &'static str) {
    let world = world(name);
    synchronise(world, world.teams.world());
}

/// Waits until all PEs of a team have called it.
pub unsafe fn team_sync(name: &'static str, team: Team) -> c_int {
    let world = world(name);
    synchronise(world, &teams::get(world, name, team));
    0
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
    let world = world(name);
    let group = teams::get(world, name, team);
    let bytes = size::<T>(name, n);
    // SAFETY: the program's guarantee.
    unsafe { broadcast_in((world, name), &group, dest.cast(), source.cast(), bytes, root, true) };
    0
}

/// Concatenates the elements of all PEs of the team, of which each has its own number.
pub unsafe fn collect<T: Copy>(name: &'static str, team: Team, dest: *mut T, source: *const T, n: usize) -> c_int {
    let world = world(name);
    let group = teams::get(world, name, team);
    // SAFETY: the program's guarantee.
    unsafe { collect_in((world, name), &group, dest.cast(), source.cast(), size::<T>(name, n)) };
    0
}

/// Concatenates the elements of all PEs of the team, which have the same number.
pub unsafe fn fcollect<T: Copy>(name: &'static str, team: Team, dest: *mut T, source: *const T, n: usize) -> c_int {
    let world = world(name);
    let group = teams::get(world, name, team);
    // SAFETY: the program's guarantee.
    unsafe { fcollect_in((world, name), &group, dest.cast(), source.cast(), size::<T>(name, n)) };
    0
}

/// Each PE sends a block to each PE of the team.
pub unsafe fn alltoall<T: Copy>(name: &'static str, team: Team, dest: *mut T, source: *const T, n: usize) -> c_int {
    let world = world(name);
    let group = teams::get(world, name, team);
    // SAFETY: the program's guarantee.
    unsafe { alltoall_in((world, name), &group, dest, source, Spread { dest: 1, source: 1, n }) };
    0
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
    let world = world(name);
    let group = teams::get(world, name, team);
    // SAFETY: the program's guarantee.
    unsafe { alltoall_in((world, name), &group, dest, source, Spread { dest: dst, source: sst, n }) };
    0
}

/// Combines the elements of all PEs of the team, one by one; all PEs get the results.
pub unsafe fn reduce<T: Copy, R: Reduction<T>>(
    name: &'static str,
    team: Team,
    dest: *mut T,
    source: *const T,
    n: usize,
) -> c_int {
    let world = world(name);
    let group = teams::get(world, name, team);
    // SAFETY: the program's guarantee.
    unsafe { reduce_in::<T, R>((world, name), &group, dest, source, n) };
    0
}

/// Each PE gets the sums of the elements of the PEs up to itself.
pub unsafe fn inscan<T: Copy + Zero>(name: &'static str, team: Team, dest: *mut T, source: *const T, n: usize) -> c_int
where
    Sum: Reduction<T>,
{
    let world = world(name);
    let group = teams::get(world, name, team);
    // SAFETY: the program's guarantee.
    unsafe { reductions::scan_in((world, name), &group, dest, source, n, true) };
    0
}

/// Each PE gets the sums of the elements of the PEs before it; the first one gets zeros.
pub unsafe fn exscan<T: Copy + Zero>(name: &'static str, team: Team, dest: *mut T, source: *const T, n: usize) -> c_int
where
    Sum: Reduction<T>,
{
    let world = world(name);
    let group = teams::get(world, name, team);
    // SAFETY: the program's guarantee.
    unsafe { reductions::scan_in((world, name), &group, dest, source, n, false) };
    0
}
