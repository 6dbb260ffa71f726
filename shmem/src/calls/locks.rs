//! Locks.

use crate::locks::Lock;
use crate::world::world;
use std::ffi::{c_int, c_long};

pub unsafe fn set_lock(name: &'static str, lock: *mut c_long) {
    let world = world(name);
    world.locks.set(&Lock::of(&world.pes, name, lock));
}

pub unsafe fn test_lock(name: &'static str, lock: *mut c_long) -> c_int {
    let world = world(name);
    (!world.locks.test(&Lock::of(&world.pes, name, lock))).into()
}

pub unsafe fn clear_lock(name: &'static str, lock: *mut c_long) {
    let world = world(name);
    world.locks.clear(&Lock::of(&world.pes, name, lock));
}
