//! Kinds of mapping, and the fences that each of them needs.

#[cfg(loom)]
use loom::sync::atomic::{fence, Ordering};
#[cfg(not(loom))]
use std::sync::atomic::{fence, Ordering};

/// The way in which stores to a mapping reach memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mapping {
    /// Through the caches: memory of this machine.
    #[default]
    Coherent,
    /// Through the processor's write-combining buffers, which may hold and reorder stores until a fence.
    WriteCombining,
    /// Each store by itself, in order.
    Uncached,
}

impl Mapping {
    /// Makes all stores before it visible before any store after it.
    #[inline]
    pub fn fence(self) {
        match self {
            Mapping::Coherent => fence(Ordering::Release),
            Mapping::WriteCombining | Mapping::Uncached => drain(),
        }
    }
}

/// Empties the write-combining buffers: on x86 `fence(Release)` compiles to nothing, and only `sfence` does that.
#[cfg(all(target_arch = "x86_64", not(loom)))]
#[inline]
fn drain() {
    fence(Ordering::Release);
    // SAFETY: every x86-64 processor has SSE, and the instruction accesses no memory of ours.
    unsafe { std::arch::x86_64::_mm_sfence() }
}

/// Orders stores to memory that devices see, too: `fence(Release)` is a barrier for processors only.
#[cfg(all(target_arch = "aarch64", not(loom)))]
#[inline]
fn drain() {
    fence(Ordering::Release);
    // SAFETY: the instruction orders stores and changes no register or memory.
    unsafe { std::arch::asm!("dmb oshst", options(nostack, preserves_flags)) }
}

/// Elsewhere the strongest fence that there is.
#[cfg(any(loom, not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
#[inline]
fn drain() {
    fence(Ordering::SeqCst);
}
