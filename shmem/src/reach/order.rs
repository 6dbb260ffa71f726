//! Completion of the operations of a context.

use super::{written, Pes};
use crate::handles::Ctx;
use std::sync::atomic::Ordering;

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
    std::sync::atomic::fence(Ordering::SeqCst);
}

/// Completes all operations of a context, which exists.
#[inline(always)]
pub fn quiet(pes: &Pes, ctx: Ctx) {
    full_fence();
    if pes.link.has_far {
        if !pes.written.is_empty() {
            written::quiet(pes);
        }
        wait(pes, ctx);
    }
}

/// Waits until all requests of a context are answered.
fn wait(pes: &Pes, ctx: Ctx) {
    let pending = pes.pending.of(ctx);
    pes.link.wait(|| pending.load(Ordering::Acquire) == 0);
}

/// Completes all operations of all contexts. No other thread may use them.
pub fn quiet_all(pes: &Pes) {
    quiet(pes, Ctx::DEFAULT);
    if pes.link.has_far {
        pes.link.wait(|| pes.pending.is_empty());
    }
}

/// Runs `begin`, which begins requests in the context that it is given, and waits until they are answered.
pub fn gather(pes: &Pes, begin: impl FnOnce(Ctx)) {
    let own = pes.pending.open();
    let ctx = own.unwrap_or(Ctx::DEFAULT);
    begin(ctx);
    wait(pes, ctx);
    own.into_iter().for_each(|own| pes.pending.close(own));
}
