//! Collectives that move elements and do not combine them.

use super::barrier::synchronise;
use super::broadcast::broadcast_block;
use super::chain::{allgather_chain, broadcast_chain, is_chain};
use super::exchange::{allgather, exchange, exchange_words, BLOCK_MAX};
use super::schedule::{self, Collective};
use crate::abi::{NTBRING_ALLGATHER, NTBRING_ALLTOALL, NTBRING_BCAST};
use crate::fail;
use crate::groups::Group;
use crate::handles::Ctx;
use crate::reach::{self, copy, Mode, Pes};
use crate::symmetric::size;
use std::ffi::c_int;
use std::mem::MaybeUninit;

/// The PEs, and the name of the C function.
pub type Call<'a> = (&'a Pes, &'static str);

/// Reads `len` bytes at a symmetric address of a PE of the team.
///
/// # Safety
/// `to` must be writable.
unsafe fn pull((pes, name): Call, group: &Group, from: usize, source: *const u8, to: *mut u8, len: usize) {
    if len == 0 {
        return;
    }
    let place = pes.locate(name, "source", source as usize, len);
    let peer = &pes.peers[group.members()[from]];
    // SAFETY: the place has the bytes (checked); the caller guarantees the destination.
    unsafe { reach::get(pes, Ctx::DEFAULT, peer, place, to, len, Mode::Blocking) };
}

/// The root's bytes become those of all PEs, of the root itself only if `at_root`.
///
/// # Safety
/// As the specification of the C function says.
pub unsafe fn broadcast_in(
    (pes, name): Call,
    group: &Group,
    dest: *mut u8,
    source: *const u8,
    len: usize,
    root: c_int,
    at_root: bool,
) {
    let Some(root) = usize::try_from(root).ok().filter(|&root| root < group.n()) else {
        fail::call(name, format_args!("PE_root: {root} is not one of the team's PEs, 0 to {}", group.n() - 1));
    };
    let is_root = group.me() == root;
    // SAFETY: the program guarantees both buffers.
    unsafe {
        if is_root && at_root && dest.cast_const() != source {
            copy(source, dest, len);
        }
        if len <= BLOCK_MAX {
            return broadcast_block(pes, group, root, source, dest, len);
        }
        if is_chain(pes, group) {
            let place = pes.locate(name, "dest", dest as usize, len);
            let data = if is_root { source } else { dest.cast_const() };
            return broadcast_chain(pes, group, root, data, place, len);
        }
        // The root's own destination is filled, or stays as it is.
        let (input, output) = if is_root { (source, source.cast_mut()) } else { (dest.cast_const(), dest) };
        let collective = Collective { kind: NTBRING_BCAST, root, input, output, n: len };
        if schedule::run(pes, group, &collective, |_, _, _| {}) {
            return;
        }
        synchronise(pes, group);
        if !is_root {
            pull((pes, name), group, root, source, dest, len);
        }
        synchronise(pes, group);
    }
}

/// Concatenates blocks of `len` bytes.
///
/// # Safety
/// As the specification of the C function says.
pub unsafe fn fcollect_in((pes, name): Call, group: &Group, dest: *mut u8, source: *const u8, len: usize) {
    let me = group.me();
    // SAFETY: the program guarantees both buffers, of which the destination has room for all blocks.
    unsafe {
        if len <= BLOCK_MAX {
            // The source may lie in the destination, where its copy goes.
            let mut own = MaybeUninit::<[u8; BLOCK_MAX]>::uninit();
            copy(source, own.as_mut_ptr().cast(), len);
            let own = own.as_ptr().cast();
            allgather(pes, group, own, len, |from, block| copy(block, dest.add(from * len), len));
            return copy(own, dest.add(me * len), len);
        }
        if is_chain(pes, group) {
            let place = pes.locate(name, "dest", dest as usize, size::<u8>(name, len.saturating_mul(group.n())));
            copy(source, dest.add(me * len), len);
            return allgather_chain(pes, group, dest, place, len);
        }
        let collective = Collective { kind: NTBRING_ALLGATHER, root: 0, input: source, output: dest, n: len };
        if schedule::run(pes, group, &collective, |_, _, _| {}) {
            return;
        }
        synchronise(pes, group);
        for from in (1..group.n()).map(|i| (me + i) % group.n()) {
            pull((pes, name), group, from, source, dest.add(from * len), len);
        }
        copy(source, dest.add(me * len), len);
        synchronise(pes, group);
    }
}

/// Concatenates blocks, of which this PE's has `len` bytes.
///
/// # Safety
/// As the specification of the C function says.
pub unsafe fn collect_in((pes, name): Call, group: &Group, dest: *mut u8, source: *const u8, len: usize) {
    let me = group.me();
    let lengths = exchange_words(pes, group, [len as u64, 0]);
    let mut at = 0;
    for (from, &[length, _]) in lengths.iter().enumerate() {
        let length = length as usize;
        // SAFETY: the program guarantees both buffers, of which the destination has room for all blocks.
        unsafe {
            match from == me {
                true => copy(source, dest.add(at), length),
                false => pull((pes, name), group, from, source, dest.add(at), length),
            }
        }
        at += length;
    }
    synchronise(pes, group);
}

/// Distances between consecutive elements, and the number of elements of a block.
#[derive(Clone, Copy)]
pub struct Spread {
    /// Distance in the destination, in elements.
    pub dest: isize,
    /// Distance in the source, in elements.
    pub source: isize,
    /// Elements for each PE.
    pub n: usize,
}

/// Each PE sends a block to each PE of the team.
///
/// # Safety
/// As the specification of the C function says.
pub unsafe fn alltoall_in<T: Copy>(
    (pes, name): Call,
    group: &Group,
    dest: *mut T,
    source: *const T,
    Spread { dest: dst, source: sst, n }: Spread,
) {
    let (me, total) = (group.me(), size::<T>(name, n));
    if dst < 1 || sst < 1 {
        fail::call(name, format_args!("dst, sst: distances of {dst} and {sst} elements are impossible"));
    }
    // SAFETY: the program guarantees both buffers, with room for the blocks of all PEs at these distances.
    unsafe {
        let to_dest = |from: usize, i: usize| dest.offset((from * n + i) as isize * dst);
        let from_source = |to: usize, i: usize| source.offset((to * n + i) as isize * sst);
        if dst == 1 && sst == 1 && total <= BLOCK_MAX {
            let own = |to: usize| from_source(to, 0).cast();
            exchange(pes, group, own, total, |from, block| copy(block, to_dest(from, 0).cast(), total));
            return copy(from_source(me, 0).cast(), to_dest(me, 0).cast(), total);
        }
        let collective = Collective { kind: NTBRING_ALLTOALL, root: 0, input: source, output: dest, n };
        if dst == 1 && sst == 1 && schedule::run(pes, group, &collective, |_, _, _| {}) {
            return;
        }
        synchronise(pes, group);
        for from in (1..group.n()).map(|i| (me + i) % group.n()) {
            if dst == 1 && sst == 1 {
                pull((pes, name), group, from, from_source(me, 0).cast(), to_dest(from, 0).cast(), total);
                continue;
            }
            for i in 0..n {
                let (from_there, to_here) = (from_source(me, i).cast(), to_dest(from, i).cast());
                pull((pes, name), group, from, from_there, to_here, size_of::<T>());
            }
        }
        (0..n).for_each(|i| to_dest(me, i).write(from_source(me, i).read()));
        synchronise(pes, group);
    }
}
