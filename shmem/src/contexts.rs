//! Communication contexts: each counts its own operations on far PEs, so that a quiet waits for those of one context.

use crate::fail;
use crate::handles::{Ctx, SessionConfig, Team};
use crate::order;
use crate::teams;
use crate::world::{world, World};
use std::ffi::{c_int, c_long};
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// The default context.
pub const DEFAULT: Ctx = Ctx::DEFAULT;

/// Largest number of contexts at a time.
const MAX: usize = 4096;

/// Handles of created contexts are above this.
const FIRST: usize = 2;

/// A context that the program has created.
pub struct Context {
    team_handle: Team,
    team: Option<Arc<teams::Group>>,
    pending: AtomicU64,
}

impl Context {
    /// Returns the team whose numbers PEs have in this context; None if it is the whole world.
    pub fn team(&self) -> Option<&teams::Group> {
        self.team.as_deref()
    }
}

/// The contexts of a PE.
pub struct Contexts {
    /// Number of operations of the default context that are not complete.
    default: AtomicU64,
    /// The others, by handle; null for those that do not exist.
    table: Box<[AtomicPtr<Context>]>,
    /// Handles that are free.
    free: Mutex<Vec<usize>>,
}

impl Contexts {
    /// Creates the table, without any contexts but the default one.
    pub fn new() -> Contexts {
        let table = (0..MAX).map(|_| AtomicPtr::new(ptr::null_mut())).collect();
        Contexts { default: AtomicU64::new(0), table, free: Mutex::new((0..MAX).rev().collect()) }
    }

    /// Returns a context other than the default one. Ends the program if there is none with that handle.
    pub fn get(&self, name: &'static str, ctx: Ctx) -> &Context {
        match self.find(ctx) {
            Some(context) => context,
            None => fail::call(name, "ctx: this context does not exist, or was destroyed"),
        }
    }

    fn find(&self, ctx: Ctx) -> Option<&Context> {
        let entry = self.table.get(ctx.0.checked_sub(FIRST)?)?;
        // SAFETY: null, or a box that lives until the program destroys the context, which it does not use then.
        unsafe { entry.load(Ordering::Acquire).as_ref() }
    }

    /// Returns the counter of a context's operations that are not complete.
    pub fn pending(&self, ctx: Ctx) -> *const AtomicU64 {
        match self.find(ctx) {
            Some(context) => &context.pending,
            None => &self.default,
        }
    }

    /// Waits until all operations of a context are complete.
    pub fn wait(&self, world: &World, ctx: Ctx) {
        let pending = self.pending(ctx);
        // SAFETY: the counter lives as long as its context.
        world.link.wait(|| unsafe { (*pending).load(Ordering::Acquire) } == 0);
    }

    /// Runs `begin`, which begins operations in the context that it is given, and waits for their end.
    pub fn gather(&self, world: &World, begin: impl FnOnce(Ctx)) {
        let own = self.create(Team::WORLD, None);
        let ctx = own.unwrap_or(Ctx::DEFAULT);
        begin(ctx);
        self.wait(world, ctx);
        if own.is_some() {
            self.destroy(ctx);
        }
    }

    /// Creates a context; None if there are too many.
    fn create(&self, team_handle: Team, team: Option<Arc<teams::Group>>) -> Option<Ctx> {
        let index = self.free.lock().unwrap_or_else(PoisonError::into_inner).pop()?;
        let new = Box::new(Context { team_handle, team, pending: AtomicU64::new(0) });
        self.table[index].store(Box::into_raw(new), Ordering::Release);
        Some(Ctx(index + FIRST))
    }

    /// Completes the operations of all contexts of a team, and removes them.
    pub fn end_team(&self, world: &World, team: &Arc<teams::Group>) {
        let contexts = std::mem::take(&mut *team.contexts());
        for ctx in contexts {
            order::quiet_context(world, ctx);
            self.destroy(ctx);
        }
    }

    /// Waits until all operations of all contexts are complete. No other thread may use them.
    pub fn wait_for_all(&self, world: &World) {
        if world.link.has_far {
            let exists = |ctx: &Ctx| self.find(*ctx).is_some();
            (0..MAX).map(|index| Ctx(index + FIRST)).filter(exists).for_each(|ctx| self.wait(world, ctx));
        }
    }

    /// Removes a context, all of whose operations are complete.
    fn destroy(&self, ctx: Ctx) {
        let Some(index) = ctx.0.checked_sub(FIRST).filter(|&index| index < MAX) else { return };
        let old = self.table[index].swap(ptr::null_mut(), Ordering::AcqRel);
        if !old.is_null() {
            // SAFETY: made by `Box::into_raw`, and taken out of the table once.
            drop(unsafe { Box::from_raw(old) });
            self.free.lock().unwrap_or_else(PoisonError::into_inner).push(index);
        }
    }
}

impl Drop for Contexts {
    fn drop(&mut self) {
        (0..MAX).for_each(|index| self.destroy(Ctx(index + FIRST)));
    }
}

/// Returns true if there is anything to do for a context: `SHMEM_CTX_INVALID` is allowed where this is called. Ends the
/// program if another context does not exist.
#[inline(always)]
pub fn is_valid(world: &World, name: &'static str, ctx: Ctx) -> bool {
    if ctx != Ctx::DEFAULT && ctx != Ctx::INVALID {
        world.contexts.get(name, ctx);
    }
    ctx != Ctx::INVALID
}

pub unsafe fn ctx_create(name: &'static str, options: c_long, ctx: *mut Ctx) -> c_int {
    // SAFETY: the program's guarantee.
    unsafe { team_create_ctx(name, Team::WORLD, options, ctx) }
}

/// Creates a context for a team. The options only promise things; all contexts are good for any thread.
pub unsafe fn team_create_ctx(name: &'static str, team: Team, _options: c_long, ctx: *mut Ctx) -> c_int {
    let world = world(name);
    let group = world.teams.get(team);
    let of = group.clone().filter(|_| team != Team::WORLD);
    let new = group.as_ref().and_then(|_| world.contexts.create(team, of));
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
    let handle = world.contexts.get(name, ctx).team_handle;
    if let Some(group) = world.teams.get(handle) {
        group.contexts().retain(|&other| other != ctx);
    }
    order::quiet_context(world, ctx);
    world.contexts.destroy(ctx);
}

pub unsafe fn ctx_get_team(name: &'static str, ctx: Ctx, team: *mut Team) -> c_int {
    let world = world(name);
    let found = match ctx {
        Ctx::DEFAULT => Some(Team::WORLD),
        _ => world.contexts.find(ctx).map(|context| context.team_handle),
    };
    // SAFETY: the program guarantees writable memory.
    unsafe { team.write(found.unwrap_or(Team::INVALID)) };
    found.is_none().into()
}

/// Begins a session, a hint that many operations follow: they need no preparation here.
pub unsafe fn session_start(name: &'static str, ctx: Ctx, _: c_long, _: *const SessionConfig, _: c_long) {
    is_valid(world(name), name, ctx);
}

/// Ends a session.
pub unsafe fn session_stop(name: &'static str, ctx: Ctx) {
    is_valid(world(name), name, ctx);
}
