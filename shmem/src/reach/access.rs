//! One-sided operations on a PE, near or far.

use super::{copy, far, near, written, AtomicOp, Mode, Pes, Word};
use crate::handles::Ctx;
use crate::symmetric::{Peer, Place};
use std::ptr;

/// Writes `len` bytes to a place of a PE.
///
/// # Safety
/// `source` must be readable for `len` bytes: for the call, or until the next quiet if the mode is non-blocking. The
/// place must have `len` bytes.
#[inline(always)]
pub unsafe fn put(pes: &Pes, ctx: Ctx, peer: &Peer, to: Place, source: *const u8, len: usize, mode: Mode) {
    if peer.near {
        // SAFETY: the place lies in the mapping (checked by the caller), and the caller guarantees the source.
        unsafe { copy(source, peer.address(to) as *mut u8, len) };
        peer.wake(to.memory);
    // SAFETY: the caller guarantees the source.
    } else if !unsafe { written::put(pes, peer, to, source, len) } {
        // SAFETY: the caller's guarantee.
        unsafe { far::put(pes, ctx, peer, to, source, len, mode) };
    }
}

/// Reads `len` bytes from a place of a PE.
///
/// # Safety
/// `dest` must be writable for `len` bytes: for the call, or until the next quiet if the mode is non-blocking. The place
/// must have `len` bytes.
#[inline(always)]
pub unsafe fn get(pes: &Pes, ctx: Ctx, peer: &Peer, from: Place, dest: *mut u8, len: usize, mode: Mode) {
    if peer.near {
        // SAFETY: the place lies in the mapping (checked by the caller), and the caller guarantees the destination.
        unsafe { copy(peer.address(from) as *const u8, dest, len) };
    } else {
        // SAFETY: the caller's guarantee.
        unsafe { far::get(pes, ctx, peer, from, dest, len, mode) };
    }
}

/// Performs an atomic operation on a word of a PE and returns its previous value.
#[inline(always)]
pub fn fetch<W: Word>(pes: &Pes, ctx: Ctx, peer: &Peer, at: Place, op: AtomicOp, operand: W) -> W {
    if peer.near {
        let before = near::operate(peer.address(at), op, operand);
        if op != AtomicOp::Fetch {
            peer.wake(at.memory);
        }
        return before;
    }
    far::fetch(pes, ctx, peer, at, op, operand)
}

/// Performs an atomic operation on a word of a PE, which is complete after the context's next quiet.
#[inline(always)]
pub fn operate<W: Word>(pes: &Pes, ctx: Ctx, peer: &Peer, at: Place, op: AtomicOp, operand: W) {
    if peer.near {
        near::operate(peer.address(at), op, operand);
        return peer.wake(at.memory);
    }
    far::operate(pes, ctx, peer, at, op, operand);
}

/// Stores a word at a PE; what this PE has written there before is visible before it. The store is atomic with respect
/// to other such stores and to loads.
#[inline(always)]
pub fn store<W: Word>(pes: &Pes, ctx: Ctx, peer: &Peer, at: Place, value: W) {
    let bits = value.bits();
    // SAFETY: the word is a local, whose first bytes are those of the value.
    if peer.near || !unsafe { written::put(pes, peer, at, ptr::from_ref(&bits).cast(), W::SIZE) } {
        set(pes, ctx, peer, at, value);
    }
}

/// The same, atomic with respect to all atomic operations.
#[inline(always)]
pub fn set<W: Word>(pes: &Pes, ctx: Ctx, peer: &Peer, at: Place, value: W) {
    if peer.near {
        near::store(peer.address(at), value);
        return peer.wake(at.memory);
    }
    far::operate(pes, ctx, peer, at, AtomicOp::Swap, value);
}

/// Writes `new` to a word of a PE if it equals `expected`, and returns its previous value.
#[inline(always)]
pub fn compare_swap<W: Word>(pes: &Pes, ctx: Ctx, peer: &Peer, at: Place, expected: W, new: W) -> W {
    if peer.near {
        let before = near::compare_swap(peer.address(at), expected, new);
        peer.wake(at.memory);
        return before;
    }
    far::compare_swap(pes, ctx, peer, at, expected, new)
}

/// Performs an atomic operation, and stores the previous value at `to` by the context's next quiet.
///
/// # Safety
/// `to` must be writable until then.
#[inline(always)]
pub unsafe fn fetch_later<W: Word>(
    pes: &Pes,
    ctx: Ctx,
    peer: &Peer,
    at: Place,
    (op, operand): (AtomicOp, W),
    to: *mut W,
) {
    if peer.near {
        let before = fetch(pes, ctx, peer, at, op, operand);
        // SAFETY: the caller's guarantee.
        return unsafe { to.write(before) };
    }
    // SAFETY: the caller's guarantee.
    unsafe { far::fetch_later(pes, ctx, peer, at, (op, operand), to) };
}

/// Compare-and-swap that stores the previous value at `to` by the context's next quiet.
///
/// # Safety
/// As for [`fetch_later`].
#[inline(always)]
pub unsafe fn compare_swap_later<W: Word>(
    pes: &Pes,
    ctx: Ctx,
    peer: &Peer,
    at: Place,
    (expected, new): (W, W),
    to: *mut W,
) {
    if peer.near {
        let before = compare_swap(pes, ctx, peer, at, expected, new);
        // SAFETY: the caller's guarantee.
        return unsafe { to.write(before) };
    }
    // SAFETY: the caller's guarantee.
    unsafe { far::compare_swap_later(pes, ctx, peer, at, (expected, new), to) };
}
