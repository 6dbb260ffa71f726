//! Access to the symmetric memory of another PE: by loads, stores and instructions of the processor if it is mapped
//! (near), otherwise by requests that its host carries out (far). Puts to far PEs whose memory can at least be written are
//! stores (written).
//!
//! Operations of one context on one PE happen in the order of the calls: near ones since processors keep the order of
//! stores that a release fence separates, far ones since requests to a host stay in order, and stores are made in their
//! turn.

mod copy;
mod far;
mod link;
mod mailboxes;
mod messages;
mod near;
mod operation;
mod transfers;
mod written;

pub use copy::copy;
pub use link::{Far, Link};
pub use mailboxes::GROUP;
pub use near::Word;
pub use operation::Operation;
pub use written::quiet as quiet_written;

use crate::handles::Ctx;
use crate::world::{Peer, Place, World};
use std::ptr;

/// An atomic operation on a word of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AtomicOp {
    /// Adds the operand.
    Add,
    /// Bitwise and.
    And,
    /// Bitwise or.
    Or,
    /// Bitwise exclusive or.
    Xor,
    /// Replaces the word by the operand.
    Swap,
    /// Only reads the word.
    Fetch,
}

/// State of an operation when the call returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// A put's source may be reused; what a get or an atomic operation fetches is there.
    Blocking,
    /// The operation is complete after the context's next quiet.
    NonBlocking,
}

/// Writes `len` bytes to a place of a PE.
///
/// # Safety
/// `source` must be readable for `len` bytes: for the call, or until the next quiet if the mode is non-blocking. The
/// place must have `len` bytes.
#[inline(always)]
pub unsafe fn put(world: &World, ctx: Ctx, peer: &Peer, to: Place, source: *const u8, len: usize, mode: Mode) {
    if peer.near {
        // SAFETY: the place lies in the mapping (checked by the caller), and the caller guarantees the source.
        unsafe { copy(source, peer.address(to) as *mut u8, len) };
        peer.wake(to.memory);
    // SAFETY: the caller guarantees the source.
    } else if !unsafe { written::put(world, peer, to, source, len) } {
        // SAFETY: the caller's guarantee.
        unsafe { far::put(world, ctx, peer, to, source, len, mode) };
    }
}

/// Reads `len` bytes from a place of a PE.
///
/// # Safety
/// `dest` must be writable for `len` bytes: for the call, or until the next quiet if the mode is non-blocking. The place
/// must have `len` bytes.
#[inline(always)]
pub unsafe fn get(world: &World, ctx: Ctx, peer: &Peer, from: Place, dest: *mut u8, len: usize, mode: Mode) {
    if peer.near {
        // SAFETY: the place lies in the mapping (checked by the caller), and the caller guarantees the destination.
        unsafe { copy(peer.address(from) as *const u8, dest, len) };
    } else {
        // SAFETY: the caller's guarantee.
        unsafe { far::get(world, ctx, peer, from, dest, len, mode) };
    }
}

/// Performs an atomic operation on a word of a PE and returns its previous value.
#[inline(always)]
pub fn fetch<W: Word>(world: &World, ctx: Ctx, peer: &Peer, at: Place, op: AtomicOp, operand: W) -> W {
    if peer.near {
        let before = near::operate(peer.address(at), op, operand);
        if op != AtomicOp::Fetch {
            peer.wake(at.memory);
        }
        return before;
    }
    far::fetch(world, ctx, peer, at, op, operand)
}

/// Performs an atomic operation on a word of a PE, which is complete after the context's next quiet.
#[inline(always)]
pub fn operate<W: Word>(world: &World, ctx: Ctx, peer: &Peer, at: Place, op: AtomicOp, operand: W) {
    if peer.near {
        near::operate(peer.address(at), op, operand);
        return peer.wake(at.memory);
    }
    far::operate(world, ctx, peer, at, op, operand);
}

/// Stores a word at a PE; what this PE has written there before is visible before it. The store is atomic with respect
/// to other such stores and to loads.
#[inline(always)]
pub fn store<W: Word>(world: &World, ctx: Ctx, peer: &Peer, at: Place, value: W) {
    let bits = value.bits();
    // SAFETY: the word is a local, whose first bytes are those of the value.
    if peer.near || !unsafe { written::put(world, peer, at, ptr::from_ref(&bits).cast(), W::SIZE) } {
        set(world, ctx, peer, at, value);
    }
}

/// The same, atomic with respect to all atomic operations.
#[inline(always)]
pub fn set<W: Word>(world: &World, ctx: Ctx, peer: &Peer, at: Place, value: W) {
    if peer.near {
        near::store(peer.address(at), value);
        return peer.wake(at.memory);
    }
    far::operate(world, ctx, peer, at, AtomicOp::Swap, value);
}

/// Writes `new` to a word of a PE if it equals `expected`, and returns its previous value.
#[inline(always)]
pub fn compare_swap<W: Word>(world: &World, ctx: Ctx, peer: &Peer, at: Place, expected: W, new: W) -> W {
    if peer.near {
        let before = near::compare_swap(peer.address(at), expected, new);
        peer.wake(at.memory);
        return before;
    }
    far::compare_swap(world, ctx, peer, at, expected, new)
}

/// Performs an atomic operation, and stores the previous value at `to` by the context's next quiet.
///
/// # Safety
/// `to` must be writable until then.
#[inline(always)]
pub unsafe fn fetch_later<W: Word>(
    world: &World,
    ctx: Ctx,
    peer: &Peer,
    at: Place,
    (op, operand): (AtomicOp, W),
    to: *mut W,
) {
    if peer.near {
        let before = fetch(world, ctx, peer, at, op, operand);
        // SAFETY: the caller's guarantee.
        return unsafe { to.write(before) };
    }
    // SAFETY: the caller's guarantee.
    unsafe { far::fetch_later(world, ctx, peer, at, (op, operand), to) };
}

/// Compare-and-swap that stores the previous value at `to` by the context's next quiet.
///
/// # Safety
/// As for [`fetch_later`].
#[inline(always)]
pub unsafe fn compare_swap_later<W: Word>(
    world: &World,
    ctx: Ctx,
    peer: &Peer,
    at: Place,
    (expected, new): (W, W),
    to: *mut W,
) {
    if peer.near {
        let before = compare_swap(world, ctx, peer, at, expected, new);
        // SAFETY: the caller's guarantee.
        return unsafe { to.write(before) };
    }
    // SAFETY: the caller's guarantee.
    unsafe { far::compare_swap_later(world, ctx, peer, at, (expected, new), to) };
}
