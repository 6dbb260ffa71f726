//! Order and completion of operations.

use crate::contexts;
use crate::handles::Ctx;
use crate::reach;
use crate::world::{world, World};
use std::ffi::c_int;
use std::sync::atomic::{fence as memory_fence, Ordering};

/// Makes all earlier stores of this thread visible before its later loads.
#[inline(always)]
fn full_fence() {
    // Faster than `mfence`.
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a locked addition of 0 to the top of the stack changes nothing.
    unsafe {
        std::arch::asm!("lock or dword ptr [rsp], 0", options(nostack))
    };
    #[cfg(not(target_arch = "x86_64"))]
    memory_fence(Ordering::SeqCst);
}

/// Orders operations: those of the context before the call, on each PE, happen before those after it. Requests to a host
/// are carried out in order, and stores through a link are fenced one by one, so only stores to mapped memory need a fence.
#[inline(always)]
pub unsafe fn fence(name: &'static str, ctx: Ctx) {
    contexts::is_valid(world(name), name, ctx);
    memory_fence(Ordering::Release);
}

/// Completes all operations of a context.
#[inline(always)]
pub unsafe fn quiet(name: &'static str, ctx: Ctx) {
    let world = world(name);
    if contexts::is_valid(world, name, ctx) {
        quiet_context(world, ctx);
    }
}

/// Completes all operations of a context, which exists.
#[inline(always)]
pub fn quiet_context(world: &World, ctx: Ctx) {
    full_fence();
    if world.link.has_far {
        if !world.written.is_empty() {
            reach::quiet_written(world);
        }
        world.contexts.wait(world, ctx);
    }
}

/// Completes all operations of a context on some PEs; here those on all PEs.
pub unsafe fn pe_quiet(name: &'static str, ctx: Ctx, pes: *const c_int, n: usize) {
    let world = world(name);
    if !contexts::is_valid(world, name, ctx) {
        return;
    }
    for i in 0..n {
        // SAFETY: the program guarantees `n` elements.
        world.target(name, ctx, unsafe { pes.add(i).read() });
    }
    quiet_context(world, ctx);
}
