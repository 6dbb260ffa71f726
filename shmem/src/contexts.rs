//! Communication contexts: operations of each on far PEs are counted, so that a quiet waits for those of one context.

use crate::fail;
use crate::groups::Group;
use crate::handles::{Ctx, Team};
use crate::reach::{Pes, CONTEXTS};
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::Arc;

/// A context that the program has created.
pub struct Context {
    team_handle: Team,
    team: Option<Arc<Group>>,
}

impl Context {
    /// Returns the handle of the team for which it was created.
    pub fn team_handle(&self) -> Team {
        self.team_handle
    }

    /// Returns the team whose numbers PEs have in this context; None if it is the whole world.
    pub fn team(&self) -> Option<&Group> {
        self.team.as_deref()
    }
}

/// The contexts of a PE.
pub struct Contexts {
    /// Created contexts, by number; null for those that do not exist.
    table: Box<[AtomicPtr<Context>]>,
}

impl Contexts {
    /// Creates the table, without any contexts but the default one.
    pub fn new() -> Contexts {
        Contexts { table: (0..CONTEXTS).map(|_| AtomicPtr::new(ptr::null_mut())).collect() }
    }

    /// Returns a context other than the default one. Ends the program if there is none with that handle.
    pub fn get(&self, name: &'static str, ctx: Ctx) -> &Context {
        match self.find(ctx) {
            Some(context) => context,
            None => fail::call(name, "ctx: this context does not exist, or was destroyed"),
        }
    }

    /// Returns a created context; None if there is none with that handle.
    pub fn find(&self, ctx: Ctx) -> Option<&Context> {
        let entry = self.table.get(ctx.number()?)?;
        // SAFETY: null, or a box that lives until the program destroys the context, which it does not use then.
        unsafe { entry.load(Ordering::Acquire).as_ref() }
    }

    /// Returns true if there is anything to do for a context: `SHMEM_CTX_INVALID` is allowed where this is called. Ends the
    /// program if another context does not exist.
    #[inline(always)]
    pub fn is_valid(&self, name: &'static str, ctx: Ctx) -> bool {
        if ctx != Ctx::DEFAULT && ctx != Ctx::INVALID {
            self.get(name, ctx);
        }
        ctx != Ctx::INVALID
    }

    /// Creates a context; None if there are too many.
    pub fn create(&self, pes: &Pes, team_handle: Team, team: Option<Arc<Group>>) -> Option<Ctx> {
        let ctx = pes.pending.open()?;
        let new = Box::new(Context { team_handle, team });
        self.table[ctx.number()?].store(Box::into_raw(new), Ordering::Release);
        Some(ctx)
    }

    /// Removes a context, all of whose operations are complete.
    pub fn destroy(&self, pes: &Pes, ctx: Ctx) {
        let entry = ctx.number().and_then(|number| self.table.get(number));
        if entry.and_then(take).is_some() {
            pes.pending.close(ctx);
        }
    }
}

impl Drop for Contexts {
    fn drop(&mut self) {
        self.table.iter().for_each(|entry| _ = take(entry));
    }
}

/// Takes a context out of the table, if there is one.
fn take(entry: &AtomicPtr<Context>) -> Option<Box<Context>> {
    let old = entry.swap(ptr::null_mut(), Ordering::AcqRel);
    // SAFETY: made by `Box::into_raw`, and taken out of the table once.
    (!old.is_null()).then(|| unsafe { Box::from_raw(old) })
}
