//! Puts and gets of contiguous elements. Those of strided elements are in [`super::strided`].

use crate::handles::Ctx;
use crate::reach::{self, Mode};
use crate::symmetric::size;
use crate::world::world;
use std::ffi::c_int;
use std::mem::MaybeUninit;

pub use super::strided::{ibget, ibput, iget, iput};

/// # Safety
/// As the specification of the C function says, also for all functions below.
#[inline(always)]
unsafe fn put_in<T>(name: &'static str, ctx: Ctx, (dest, source): (*mut T, *const T), n: usize, pe: c_int, mode: Mode) {
    let world = world(name);
    let (peer, bytes) = (world.target(name, ctx, pe), size::<T>(name, n));
    if bytes > 0 {
        let place = world.pes.locate(name, "dest", dest as usize, bytes);
        // SAFETY: the place has room (checked), and the program guarantees the source.
        unsafe { reach::put(&world.pes, ctx, peer, place, source.cast(), bytes, mode) };
    }
}

#[inline(always)]
unsafe fn get_in<T>(name: &'static str, ctx: Ctx, (dest, source): (*mut T, *const T), n: usize, pe: c_int, mode: Mode) {
    let world = world(name);
    let (peer, bytes) = (world.target(name, ctx, pe), size::<T>(name, n));
    if bytes > 0 {
        let place = world.pes.locate(name, "source", source as usize, bytes);
        // SAFETY: the place has the bytes (checked), and the program guarantees the destination.
        unsafe { reach::get(&world.pes, ctx, peer, place, dest.cast(), bytes, mode) };
    }
}

#[inline(always)]
pub unsafe fn put<T>(name: &'static str, ctx: Ctx, dest: *mut T, source: *const T, n: usize, pe: c_int) {
    // SAFETY: the program's guarantee.
    unsafe { put_in(name, ctx, (dest, source), n, pe, Mode::Blocking) }
}

#[inline(always)]
pub unsafe fn put_nbi<T>(name: &'static str, ctx: Ctx, dest: *mut T, source: *const T, n: usize, pe: c_int) {
    // SAFETY: the program's guarantee.
    unsafe { put_in(name, ctx, (dest, source), n, pe, Mode::NonBlocking) }
}

#[inline(always)]
pub unsafe fn get<T>(name: &'static str, ctx: Ctx, dest: *mut T, source: *const T, n: usize, pe: c_int) {
    // SAFETY: the program's guarantee.
    unsafe { get_in(name, ctx, (dest, source), n, pe, Mode::Blocking) }
}

#[inline(always)]
pub unsafe fn get_nbi<T>(name: &'static str, ctx: Ctx, dest: *mut T, source: *const T, n: usize, pe: c_int) {
    // SAFETY: the program's guarantee.
    unsafe { get_in(name, ctx, (dest, source), n, pe, Mode::NonBlocking) }
}

/// Puts one element.
#[inline(always)]
pub unsafe fn p<T>(name: &'static str, ctx: Ctx, dest: *mut T, value: T, pe: c_int) {
    // SAFETY: the program's guarantee; the value lives until a blocking put returns.
    unsafe { put(name, ctx, dest, &value, 1, pe) }
}

/// Gets one element.
#[inline(always)]
pub unsafe fn g<T>(name: &'static str, ctx: Ctx, source: *const T, pe: c_int) -> T {
    let mut value = MaybeUninit::uninit();
    // SAFETY: the program's guarantee; a blocking get has written the value when it returns.
    unsafe {
        get(name, ctx, value.as_mut_ptr(), source, 1, pe);
        value.assume_init()
    }
}
