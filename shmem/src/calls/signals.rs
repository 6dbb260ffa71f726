//! Puts with signals, and signal operations.

use super::compare::Cmp;
use crate::fail;
use crate::handles::Ctx;
use crate::reach::{self, AtomicOp, Mode};
use crate::symmetric::{size, Peer, Place};
use crate::world::{world, World};
use ntbring_shmem_api::constants::{SHMEM_SIGNAL_ADD, SHMEM_SIGNAL_SET};
use std::ffi::c_int;
use std::sync::atomic::{AtomicU64, Ordering};

/// Returns the place of a signal word. Ends the program if it is none.
#[inline(always)]
fn word_place(world: &World, name: &'static str, word: *const u64) -> Place {
    let address = word as usize;
    if !address.is_multiple_of(8) {
        fail::call(name, format_args!("sig_addr: {address:#x} is not a multiple of 8"));
    }
    world.pes.locate(name, "sig_addr", address, 8)
}

/// Updates a signal word after everything that was written to the PE before.
#[inline(always)]
fn signal((world, name): (&World, &'static str), ctx: Ctx, peer: &Peer, word: *mut u64, value: u64, op: c_int) {
    let at = word_place(world, name, word);
    match op {
        SHMEM_SIGNAL_SET => reach::store(&world.pes, ctx, peer, at, value),
        SHMEM_SIGNAL_ADD => reach::operate(&world.pes, ctx, peer, at, AtomicOp::Add, value),
        _ => fail::call(name, format_args!("sig_op: {op} is neither SHMEM_SIGNAL_SET nor SHMEM_SIGNAL_ADD")),
    }
}

#[inline(always)]
unsafe fn put_in<T>(
    name: &'static str,
    ctx: Ctx,
    (dest, source, n): (*mut T, *const T, usize),
    (word, value, op): (*mut u64, u64, c_int),
    pe: c_int,
    mode: Mode,
) {
    let world = world(name);
    let (peer, bytes) = (world.target(name, ctx, pe), size::<T>(name, n));
    if bytes > 0 {
        let place = world.pes.locate(name, "dest", dest as usize, bytes);
        // SAFETY: the place has room (checked), and the program guarantees the source.
        unsafe { reach::put(&world.pes, ctx, peer, place, source.cast(), bytes, mode) };
    }
    signal((world, name), ctx, peer, word, value, op);
}

#[inline(always)]
pub unsafe fn put_signal<T>(
    name: &'static str,
    ctx: Ctx,
    dest: *mut T,
    source: *const T,
    n: usize,
    word: *mut u64,
    value: u64,
    op: c_int,
    pe: c_int,
) {
    // SAFETY: the program's guarantee.
    unsafe { put_in(name, ctx, (dest, source, n), (word, value, op), pe, Mode::Blocking) }
}

#[inline(always)]
pub unsafe fn put_signal_nbi<T>(
    name: &'static str,
    ctx: Ctx,
    dest: *mut T,
    source: *const T,
    n: usize,
    word: *mut u64,
    value: u64,
    op: c_int,
    pe: c_int,
) {
    // SAFETY: the program's guarantee.
    unsafe { put_in(name, ctx, (dest, source, n), (word, value, op), pe, Mode::NonBlocking) }
}

pub unsafe fn signal_set(name: &'static str, ctx: Ctx, word: *mut u64, value: u64, pe: c_int) {
    let world = world(name);
    signal((world, name), ctx, world.target(name, ctx, pe), word, value, SHMEM_SIGNAL_SET);
}

pub unsafe fn signal_add(name: &'static str, ctx: Ctx, word: *mut u64, value: u64, pe: c_int) {
    let world = world(name);
    signal((world, name), ctx, world.target(name, ctx, pe), word, value, SHMEM_SIGNAL_ADD);
}

/// Returns the value of a signal word of this PE.
pub unsafe fn signal_fetch(name: &'static str, word: *const u64) -> u64 {
    let world = world(name);
    word_place(world, name, word);
    // SAFETY: a symmetric word (checked), accessed atomically.
    unsafe { AtomicU64::from_ptr(word.cast_mut()) }.load(Ordering::Acquire)
}

/// Waits until a signal word of this PE fulfils a condition. Returns the value that does.
pub unsafe fn signal_wait_until(name: &'static str, word: *mut u64, cmp: c_int, value: u64) -> u64 {
    let world = world(name);
    let (place, cmp) = (word_place(world, name, word), Cmp::of(name, cmp));
    let mut found = 0;
    reach::until(&world.pes, place.memory, || {
        // SAFETY: a symmetric word (checked), accessed atomically.
        found = unsafe { AtomicU64::from_ptr(word) }.load(Ordering::Acquire);
        cmp.holds(found, value)
    });
    found
}
