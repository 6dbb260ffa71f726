//! Creation and destruction of contexts, and questions about them.

use crate::contexts::Context;
use crate::fail;
use crate::handles::{Ctx, SessionConfig, Team};
use crate::reach;
use crate::world::world;
use std::ffi::{c_int, c_long};

pub unsafe fn ctx_create(name: &'static str, options: c_long, ctx: *mut Ctx) -> c_int {
    // SAFETY: the program's guarantee.
    unsafe { team_create_ctx(name, Team::WORLD, options, ctx) }
}

/// Creates a context for a team. The options only promise things; all contexts are good for any thread.
pub unsafe fn team_create_ctx(name: &'static str, team: Team, _options: c_long, ctx: *mut Ctx) -> c_int {
    let world = world(name);
    let group = world.teams.get(team);
    let of = group.clone().filter(|_| team != Team::WORLD);
    let new = group.as_ref().and_then(|_| world.contexts.create(&world.pes, team, of));
    if let (Some(group), Some(ctx)) = (group, new) {
        group.contexts().push(ctx);
    }
    // SAFETY: the program guarantees writable memory.
    unsafe { ctx.write(new.unwrap_or(Ctx::INVALID)) };
    new.is_none().into()
}

pub unsafe fn ctx_destroy(name: &'static str, ctx: Ctx) {
    let world = world(name);
    match ctx {
        Ctx::INVALID => return,
        Ctx::DEFAULT => fail::call(name, "ctx: the default context cannot be destroyed"),
        _ => {}
    }
    let handle = world.contexts.get(name, ctx).team_handle();
    if let Some(group) = world.teams.get(handle) {
        group.contexts().retain(|&other| other != ctx);
    }
    reach::quiet(&world.pes, ctx);
    world.contexts.destroy(&world.pes, ctx);
}

pub unsafe fn ctx_get_team(name: &'static str, ctx: Ctx, team: *mut Team) -> c_int {
    let world = world(name);
    let found = match ctx {
        Ctx::DEFAULT => Some(Team::WORLD),
        _ => world.contexts.find(ctx).map(Context::team_handle),
    };
    // SAFETY: the program guarantees writable memory.
    unsafe { team.write(found.unwrap_or(Team::INVALID)) };
    found.is_none().into()
}

/// Begins a session, a hint that many operations follow: they need no preparation here.
pub unsafe fn session_start(name: &'static str, ctx: Ctx, _: c_long, _: *const SessionConfig, _: c_long) {
    world(name).contexts.is_valid(name, ctx);
}

/// Ends a session.
pub unsafe fn session_stop(name: &'static str, ctx: Ctx) {
    world(name).contexts.is_valid(name, ctx);
}
