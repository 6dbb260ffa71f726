//! Teams of PEs.

use crate::collectives;
use crate::fail;
use crate::groups::Group;
use crate::handles::{Team, TeamConfig};
use crate::reach;
use crate::teams::Part;
use crate::world::{world, World};
use ntbring_shmem_api::constants::SHMEM_TEAM_NUM_CONTEXTS;
use std::ffi::{c_int, c_long};
use std::sync::Arc;

/// Returns a team for a collective. Ends the program if there is none with that handle.
pub fn get(world: &World, name: &'static str, team: Team) -> Arc<Group> {
    match world.teams.get(team) {
        Some(group) => group,
        None => fail::call(name, "team: this team does not exist, was destroyed, or this PE is not in it"),
    }
}

pub unsafe fn my_pe(name: &'static str, team: Team) -> c_int {
    world(name).teams.get(team).map_or(-1, |group| group.me() as c_int)
}

pub unsafe fn n_pes(name: &'static str, team: Team) -> c_int {
    world(name).teams.get(team).map_or(-1, |group| group.members().len() as c_int)
}

pub unsafe fn get_config(name: &'static str, team: Team, mask: c_long, config: *mut TeamConfig) -> c_int {
    let Some(group) = world(name).teams.get(team) else { return -1 };
    if mask & SHMEM_TEAM_NUM_CONTEXTS != 0 && !config.is_null() {
        // SAFETY: the program guarantees writable memory.
        unsafe { (*config).num_contexts = group.num_contexts() };
    }
    0
}

pub unsafe fn translate_pe(name: &'static str, from: Team, pe: c_int, to: Team) -> c_int {
    let world = world(name);
    let (Some(from), Some(to)) = (world.teams.get(from), world.teams.get(to)) else { return -1 };
    let member = usize::try_from(pe).ok().and_then(|pe| from.members().get(pe));
    let found = member.and_then(|member| to.members().iter().position(|other| other == member));
    found.map_or(-1, |pe| pe as c_int)
}

/// Destroys a team; all its PEs call it.
pub unsafe fn destroy(name: &'static str, team: Team) {
    let world = world(name);
    match team {
        Team::INVALID => return,
        Team::WORLD | Team::SHARED => fail::call(name, "team: the teams of the library cannot be destroyed"),
        _ => {}
    }
    let group = get(world, name, team);
    // No PE of the team accesses this PE's part of the team's memory after that.
    collectives::synchronise(&world.pes, &group);
    for ctx in std::mem::take(&mut *group.contexts()) {
        reach::quiet(&world.pes, ctx);
        world.contexts.destroy(&world.pes, ctx);
    }
    world.teams.remove(team);
}

/// Returns the number of contexts in a configuration.
unsafe fn num_contexts(config: *const TeamConfig, mask: c_long) -> c_int {
    match mask & SHMEM_TEAM_NUM_CONTEXTS != 0 && !config.is_null() {
        // SAFETY: not null, and the program guarantees a valid object.
        true => unsafe { (*config).num_contexts },
        false => 0,
    }
}

pub unsafe fn split_strided(
    name: &'static str,
    parent: Team,
    start: c_int,
    stride: c_int,
    size: c_int,
    config: *const TeamConfig,
    mask: c_long,
    new: *mut Team,
) -> c_int {
    let world = world(name);
    let mut made = (Team::INVALID, false);
    if let Some(parent) = world.teams.get(parent) {
        if let Some(part) = Part::of(start, stride, size, parent.n()) {
            // SAFETY: the program's guarantee.
            made = world.teams.split(&world.pes, &parent, part, unsafe { num_contexts(config, mask) });
        }
    }
    // SAFETY: the program guarantees writable memory.
    unsafe { new.write(made.0) };
    if made.1 {
        0
    } else {
        -1
    }
}

pub unsafe fn split_2d(
    name: &'static str,
    parent: Team,
    xrange: c_int,
    x_config: *const TeamConfig,
    x_mask: c_long,
    x_team: *mut Team,
    y_config: *const TeamConfig,
    y_mask: c_long,
    y_team: *mut Team,
) -> c_int {
    let world = world(name);
    let mut made = [(Team::INVALID, false); 2];
    if let Some(parent) = world.teams.get(parent).filter(|_| xrange >= 1) {
        let (n, width) = (parent.n(), (xrange as usize).min(parent.n()));
        let (column, row) = (parent.me() % width, parent.me() / width);
        let x = Part { start: row * width, stride: 1, size: width.min(n - row * width) };
        let y = Part { start: column, stride: width as isize, size: (n - column).div_ceil(width) };
        // SAFETY: the program's guarantee.
        let contexts = unsafe { [num_contexts(x_config, x_mask), num_contexts(y_config, y_mask)] };
        made = [(x, contexts[0]), (y, contexts[1])]
            .map(|(part, contexts)| world.teams.split(&world.pes, &parent, part, contexts));
        if !made.iter().all(|made| made.1) {
            // All PEs of the parent know that; no team is left of it.
            for (team, _) in &mut made {
                world.teams.remove(*team);
                *team = Team::INVALID;
            }
        }
    }
    // SAFETY: the program guarantees writable memory.
    unsafe {
        x_team.write(made[0].0);
        y_team.write(made[1].0);
    }
    if made.iter().all(|made| made.1) {
        0
    } else {
        -1
    }
}
