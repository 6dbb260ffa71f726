//! Order and completion of operations.

use crate::handles::Ctx;
use crate::reach;
use crate::world::world;
use std::ffi::c_int;
use std::sync::atomic::{fence as memory_fence, Ordering};

/// Orders operations: those of the context before the call, on each PE, happen before those after it. Requests to a host
/// are carried out in order, and stores through a link are fenced one by one, so only stores to mapped memory need a fence.
#[inline(always)]
pub unsafe fn fence(name: &'static str, ctx: Ctx) {
    world(name).contexts.is_valid(name, ctx);
    memory_fence(Ordering::Release);
}

/// Completes all operations of a context.
#[inline(always)]
pub unsafe fn quiet(name: &'static str, ctx: Ctx) {
    let world = world(name);
    if world.contexts.is_valid(name, ctx) {
        reach::quiet(&world.pes, ctx);
    }
}

/// Completes all operations of a context on some PEs; here those on all PEs.
pub unsafe fn pe_quiet(name: &'static str, ctx: Ctx, pes: *const c_int, n: usize) {
    let world = world(name);
    if !world.contexts.is_valid(name, ctx) {
        return;
    }
    for i in 0..n {
        // SAFETY: the program guarantees `n` elements.
        world.target(name, ctx, unsafe { pes.add(i).read() });
    }
    reach::quiet(&world.pes, ctx);
}
