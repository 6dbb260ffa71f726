//! Teams of PEs.

mod area;
mod group;
mod introductions;
mod split;
mod table;

pub use area::{Area, Flag, Way, BLOCK_MAX};
pub use group::Group;
pub use introductions::Introductions;
pub use split::{split_2d, split_strided};
pub use table::Teams;

use crate::collectives;
use crate::fail;
use crate::handles::{Team, TeamConfig};
use crate::world::world;
use ntbring_shmem_api::constants::SHMEM_TEAM_NUM_CONTEXTS;
use std::ffi::{c_int, c_long};
use std::sync::Arc;

/// Returns a team for a collective. Ends the program if there is none with that handle.
pub fn get(world: &crate::world::World, name: &'static str, team: Team) -> Arc<Group> {
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
    collectives::synchronise(world, &group);
    world.contexts.end_team(world, &group);
    world.teams.remove(team);
    group.area().free(world);
}
