//! Questions about PEs, addresses and the library.

use crate::handles::Team;
use crate::world::{world, World};
use ntbring_shmem_api::constants::{SHMEM_MAJOR_VERSION, SHMEM_MINOR_VERSION};
use std::ffi::{c_char, c_int, c_void};

/// Name of the library, as `SHMEM_VENDOR_STRING` has it.
const NAME: &[u8] = b"ntbring\0";

pub unsafe fn my_pe(name: &'static str) -> c_int {
    world(name).pes.me as c_int
}

pub unsafe fn n_pes(name: &'static str) -> c_int {
    world(name).pes.n() as c_int
}

pub unsafe fn pe_accessible(name: &'static str, pe: c_int) -> c_int {
    usize::try_from(pe).is_ok_and(|pe| pe < world(name).pes.n()).into()
}

pub unsafe fn addr_accessible(name: &'static str, address: *const c_void, pe: c_int) -> c_int {
    let world = world(name);
    let exists = usize::try_from(pe).is_ok_and(|pe| pe < world.pes.n());
    (exists && world.pes.find(address as usize, 1).is_some()).into()
}

/// Returns the address of a symmetric object of a PE; null if this PE cannot access it by loads and stores. Those PEs
/// whose memory it can access are its `SHMEM_TEAM_SHARED`.
fn address(world: &World, dest: *const c_void, pe: usize) -> *mut c_void {
    if pe == world.pes.me && world.pes.find(dest as usize, 1).is_some() {
        return dest.cast_mut();
    }
    let peer = &world.pes.peers[pe];
    let shared = world.teams.shared().members().contains(&pe);
    match world.pes.find(dest as usize, 1) {
        Some(place) if peer.near && shared => peer.address(place) as *mut c_void,
        _ => std::ptr::null_mut(),
    }
}

pub unsafe fn ptr(name: &'static str, dest: *const c_void, pe: c_int) -> *mut c_void {
    let world = world(name);
    match usize::try_from(pe).ok().filter(|&pe| pe < world.pes.n()) {
        Some(pe) => address(world, dest, pe),
        None => std::ptr::null_mut(),
    }
}

pub unsafe fn team_ptr(name: &'static str, team: Team, dest: *const c_void, pe: c_int) -> *mut c_void {
    let world = world(name);
    let Some(team) = world.teams.get(team) else { return std::ptr::null_mut() };
    let member = usize::try_from(pe).ok().and_then(|pe| team.members().get(pe).copied());
    member.map_or(std::ptr::null_mut(), |pe| address(world, dest, pe))
}

pub unsafe fn info_get_version(_name: &'static str, major: *mut c_int, minor: *mut c_int) {
    // SAFETY: the program guarantees writable memory.
    unsafe {
        major.write(SHMEM_MAJOR_VERSION);
        minor.write(SHMEM_MINOR_VERSION);
    }
}

pub unsafe fn info_get_name(_name: &'static str, to: *mut c_char) {
    // SAFETY: the program guarantees room for SHMEM_MAX_NAME_LEN characters, which is more.
    unsafe { to.copy_from_nonoverlapping(NAME.as_ptr().cast(), NAME.len()) };
}
