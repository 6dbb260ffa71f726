//! Puts and gets of elements, or blocks of elements, that lie at regular distances.

use crate::fail;
use crate::handles::Ctx;
use crate::reach::{self, Mode};
use crate::symmetric::{size, Place};
use crate::world::world;
use std::ffi::c_int;

/// Distances between the first elements of consecutive blocks, in elements.
#[derive(Clone, Copy)]
struct Strides {
    dest: isize,
    source: isize,
}

/// Returns the number of bytes between the first and the last byte of `blocks` blocks. Ends the program if they cannot
/// lie in memory, or if a stride is smaller than a block.
fn extent<T>(name: &'static str, what: &str, stride: isize, block: usize, blocks: usize) -> usize {
    if stride < 1 || blocks > 1 && (stride as usize) < block {
        fail::call(name, format_args!("{what}: a stride of {stride} elements is too small for blocks of {block}"));
    }
    let last = (blocks - 1).checked_mul(stride as usize).and_then(|last| last.checked_add(block));
    size::<T>(name, last.unwrap_or(usize::MAX))
}

/// Calls `copy` for each block with its place and the address of the other side.
#[inline(always)]
fn each_block<T>(
    place: Place,
    local: *const T,
    (remote_stride, local_stride): (isize, isize),
    blocks: usize,
    mut copy: impl FnMut(Place, *const T),
) {
    for i in 0..blocks as isize {
        copy(place.plus((i * remote_stride) as usize * size_of::<T>()), local.wrapping_offset(i * local_stride));
    }
}

#[inline(always)]
unsafe fn put<T>(
    name: &'static str,
    ctx: Ctx,
    (dest, source): (*mut T, *const T),
    strides: Strides,
    (block, blocks): (usize, usize),
    pe: c_int,
) {
    let world = world(name);
    let peer = world.target(name, ctx, pe);
    if block == 0 || blocks == 0 {
        return;
    }
    let place = world.pes.locate(name, "dest", dest as usize, extent::<T>(name, "dst", strides.dest, block, blocks));
    extent::<T>(name, "sst", strides.source, block, blocks);
    each_block(place, source, (strides.dest, strides.source), blocks, |to, from| {
        // SAFETY: the place has room for all blocks (checked), and the program guarantees the source.
        unsafe { reach::put(&world.pes, ctx, peer, to, from.cast(), block * size_of::<T>(), Mode::Blocking) }
    });
}

#[inline(always)]
unsafe fn get<T>(
    name: &'static str,
    ctx: Ctx,
    (dest, source): (*mut T, *const T),
    strides: Strides,
    (block, blocks): (usize, usize),
    pe: c_int,
) {
    let world = world(name);
    let peer = world.target(name, ctx, pe);
    if block == 0 || blocks == 0 {
        return;
    }
    let place =
        world.pes.locate(name, "source", source as usize, extent::<T>(name, "sst", strides.source, block, blocks));
    extent::<T>(name, "dst", strides.dest, block, blocks);
    let fetch = |ctx, mode| {
        each_block(place, dest.cast_const(), (strides.source, strides.dest), blocks, |from, to| {
            let to = to.cast_mut().cast();
            // SAFETY: the place has all blocks (checked), and the program guarantees the destination; `gather`
            // waits for the end.
            unsafe { reach::get(&world.pes, ctx, peer, from, to, block * size_of::<T>(), mode) }
        });
    };
    match peer.near {
        true => fetch(ctx, Mode::Blocking),
        // All requests are under way at once.
        false => reach::gather(&world.pes, |ctx| fetch(ctx, Mode::NonBlocking)),
    }
}

#[inline(always)]
pub unsafe fn iput<T>(
    name: &'static str,
    ctx: Ctx,
    dest: *mut T,
    source: *const T,
    dst: isize,
    sst: isize,
    n: usize,
    pe: c_int,
) {
    // SAFETY: the program's guarantee.
    unsafe { put(name, ctx, (dest, source), Strides { dest: dst, source: sst }, (1, n), pe) }
}

#[inline(always)]
pub unsafe fn iget<T>(
    name: &'static str,
    ctx: Ctx,
    dest: *mut T,
    source: *const T,
    dst: isize,
    sst: isize,
    n: usize,
    pe: c_int,
) {
    // SAFETY: the program's guarantee.
    unsafe { get(name, ctx, (dest, source), Strides { dest: dst, source: sst }, (1, n), pe) }
}

#[inline(always)]
pub unsafe fn ibput<T>(
    name: &'static str,
    ctx: Ctx,
    dest: *mut T,
    source: *const T,
    dst: isize,
    sst: isize,
    block: usize,
    blocks: usize,
    pe: c_int,
) {
    // SAFETY: the program's guarantee.
    unsafe { put(name, ctx, (dest, source), Strides { dest: dst, source: sst }, (block, blocks), pe) }
}

#[inline(always)]
pub unsafe fn ibget<T>(
    name: &'static str,
    ctx: Ctx,
    dest: *mut T,
    source: *const T,
    dst: isize,
    sst: isize,
    block: usize,
    blocks: usize,
    pe: c_int,
) {
    // SAFETY: the program's guarantee.
    unsafe { get(name, ctx, (dest, source), Strides { dest: dst, source: sst }, (block, blocks), pe) }
}
