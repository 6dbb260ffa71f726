//! Atomic operations.

use crate::fail;
use crate::handles::Ctx;
use crate::reach::{self, AtomicOp, Pes, Word};
use crate::symmetric::{Peer, Place};
use crate::world::world;
use std::ffi::c_int;

/// Finds the target of an atomic operation. Ends the program if the address is not that of an aligned symmetric word.
#[inline(always)]
fn target<W: Word>(
    name: &'static str,
    ctx: Ctx,
    what: &'static str,
    address: *const W,
    pe: c_int,
) -> (&'static Pes, &'static Peer, Place) {
    let world = world(name);
    let peer = world.target(name, ctx, pe);
    let address = address as usize;
    if !address.is_multiple_of(W::SIZE) {
        fail::call(name, format_args!("{what}: {address:#x} is not a multiple of {}, the size of the type", W::SIZE));
    }
    (&world.pes, peer, world.pes.locate(name, what, address, W::SIZE))
}

#[inline(always)]
fn fetch_op<W: Word>(name: &'static str, ctx: Ctx, dest: *const W, op: AtomicOp, operand: W, pe: c_int) -> W {
    let what = if op == AtomicOp::Fetch { "source" } else { "dest" };
    let (pes, peer, at) = target(name, ctx, what, dest, pe);
    reach::fetch(pes, ctx, peer, at, op, operand)
}

#[inline(always)]
fn op<W: Word>(name: &'static str, ctx: Ctx, dest: *const W, op: AtomicOp, operand: W, pe: c_int) {
    let (pes, peer, at) = target(name, ctx, "dest", dest, pe);
    reach::operate(pes, ctx, peer, at, op, operand);
}

#[inline(always)]
unsafe fn later<W: Word>(
    name: &'static str,
    ctx: Ctx,
    (fetch, dest): (*mut W, *const W),
    op: AtomicOp,
    operand: W,
    pe: c_int,
) {
    let (pes, peer, at) = target(name, ctx, if op == AtomicOp::Fetch { "source" } else { "dest" }, dest, pe);
    // SAFETY: the program keeps `fetch` until the next quiet.
    unsafe { reach::fetch_later(pes, ctx, peer, at, (op, operand), fetch) };
}

#[inline(always)]
pub unsafe fn fetch<W: Word>(name: &'static str, ctx: Ctx, source: *const W, pe: c_int) -> W {
    fetch_op(name, ctx, source, AtomicOp::Fetch, W::from_bits(0), pe)
}

#[inline(always)]
pub unsafe fn set<W: Word>(name: &'static str, ctx: Ctx, dest: *mut W, value: W, pe: c_int) {
    let (pes, peer, at) = target(name, ctx, "dest", dest, pe);
    reach::set(pes, ctx, peer, at, value);
}

#[inline(always)]
pub unsafe fn compare_swap<W: Word>(name: &'static str, ctx: Ctx, dest: *mut W, cond: W, value: W, pe: c_int) -> W {
    let (pes, peer, at) = target(name, ctx, "dest", dest, pe);
    reach::compare_swap(pes, ctx, peer, at, cond, value)
}

#[inline(always)]
pub unsafe fn compare_swap_nbi<W: Word>(
    name: &'static str,
    ctx: Ctx,
    fetch: *mut W,
    dest: *mut W,
    cond: W,
    value: W,
    pe: c_int,
) {
    let (pes, peer, at) = target(name, ctx, "dest", dest, pe);
    // SAFETY: the program keeps `fetch` until the next quiet.
    unsafe { reach::compare_swap_later(pes, ctx, peer, at, (cond, value), fetch) };
}

#[inline(always)]
pub unsafe fn fetch_nbi<W: Word>(name: &'static str, ctx: Ctx, fetch: *mut W, source: *const W, pe: c_int) {
    // SAFETY: the program's guarantee.
    unsafe { later(name, ctx, (fetch, source), AtomicOp::Fetch, W::from_bits(0), pe) }
}

/// Defines the functions of an operation with an operand: fetching, not fetching, fetching later.
macro_rules! with_operand {
    ($op:ident: $fetch:ident, $plain:ident, $later:ident) => {
        with_operand!($op: $fetch, $later);

        #[inline(always)]
        pub unsafe fn $plain<W: Word>(name: &'static str, ctx: Ctx, dest: *mut W, value: W, pe: c_int) {
            op(name, ctx, dest, AtomicOp::$op, value, pe)
        }
    };
    ($op:ident: $fetch:ident, $later:ident) => {
        #[inline(always)]
        pub unsafe fn $fetch<W: Word>(name: &'static str, ctx: Ctx, dest: *mut W, value: W, pe: c_int) -> W {
            fetch_op(name, ctx, dest, AtomicOp::$op, value, pe)
        }

        #[inline(always)]
        pub unsafe fn $later<W: Word>(
            name: &'static str,
            ctx: Ctx,
            fetch: *mut W,
            dest: *mut W,
            value: W,
            pe: c_int,
        ) {
            // SAFETY: the program's guarantee.
            unsafe { later(name, ctx, (fetch, dest.cast_const()), AtomicOp::$op, value, pe) }
        }
    };
}

with_operand!(Swap: swap, swap_nbi);
with_operand!(Add: fetch_add, add, fetch_add_nbi);
with_operand!(And: fetch_and, and_, fetch_and_nbi);
with_operand!(Or: fetch_or, or_, fetch_or_nbi);
with_operand!(Xor: fetch_xor, xor_, fetch_xor_nbi);

#[inline(always)]
pub unsafe fn fetch_inc<W: Word>(name: &'static str, ctx: Ctx, dest: *mut W, pe: c_int) -> W {
    fetch_op(name, ctx, dest, AtomicOp::Add, W::from_bits(1), pe)
}

#[inline(always)]
pub unsafe fn inc<W: Word>(name: &'static str, ctx: Ctx, dest: *mut W, pe: c_int) {
    op(name, ctx, dest, AtomicOp::Add, W::from_bits(1), pe)
}

#[inline(always)]
pub unsafe fn fetch_inc_nbi<W: Word>(name: &'static str, ctx: Ctx, fetch: *mut W, dest: *mut W, pe: c_int) {
    // SAFETY: the program's guarantee.
    unsafe { later(name, ctx, (fetch, dest.cast_const()), AtomicOp::Add, W::from_bits(1), pe) }
}
